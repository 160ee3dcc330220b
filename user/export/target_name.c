/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process for people: its name, and where it runs. */
#include <stdio.h>
#include <string.h>

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

	snprintf(place.s, sizeof(place.s), "%s%.64s%s%.*s%s%.64s", *service ? ", " : "", service,
		 *container ? ", container " : "",
		 (int)MIN(container__shown(container), (size_t)40), container, *pod ? ", pod " : "",
		 pod);
	return place;
}

size_t service__stem(const char *service, size_t len)
{
	static const char suffix[] = ".service";
	const size_t of_suffix = sizeof(suffix) - 1;

	return len > of_suffix && strncmp(service + len - of_suffix, suffix, of_suffix) == 0
		       ? len - of_suffix
		       : len;
}

size_t container__shown(const char *container)
{
	const char *slash = strrchr(container, '/'), *id = slash ? slash + 1 : container;

	return (size_t)(id - container) + MIN(strlen(id), (size_t)12);
}
