/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The formats by name.
 */
#include <string.h>

#include "base/base.h"
#include "export.h"

const struct export_format *export__find(const char *name, size_t len)
{
	static const struct export_format *const formats[] = {
		&export_speedscope, &export_folded, &export_json, &export_text,
		&export_chrome,	    &export_pprof,  &export_html,
	};

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (strlen(formats[i]->name) == len && !memcmp(formats[i]->name, name, len))
			return formats[i];
	return NULL;
}
