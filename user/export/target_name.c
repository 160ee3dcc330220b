/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What people call a process: its name, and where it runs. */
#include <stdio.h>

#include "export_priv.h"

struct pic_target_name pic_target__name(const struct pic_target *target)
{
	struct pic_target_name name;

	snprintf(name.s, sizeof(name.s), "%s (pid %d)", or_empty(target->comm), (int)target->pid);
	return name;
}

struct pic_target_place pic_target__place(const struct pic_target *target)
{
	const char *service = or_empty(target->service), *pod = or_empty(target->pod);
	const char *container = or_empty(target->container);
	struct pic_target_place place;

	/* of a container's id as much as its engine shows */
	snprintf(place.s, sizeof(place.s), "%s%.64s%s%.12s%s%.64s", *service ? ", " : "", service,
		 *container ? ", container " : "", container, *pod ? ", pod " : "", pod);
	return place;
}
