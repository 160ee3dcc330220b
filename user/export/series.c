/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "series.h"

#include <string.h>

struct series_names series__names(const struct pic_lanes *lanes)
{
	struct series_names names = {.n = 0};

	for (size_t i = 0; i < lanes->n; i++) {
		const char *name = lanes->v[i].name;

		if (!name || !*name || series__find(&names, name))
			continue;
		if (names.n == SERIES_NAMES)
			return (struct series_names){.n = 0};
		names.v[names.n++] = name;
	}
	return names;
}

size_t series__find(const struct series_names *names, const char *name)
{
	for (size_t i = 0; name && i < names->n; i++)
		if (!strcmp(names->v[i], name))
			return i + 1;
	return 0;
}
