/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The formats by name.
 */
#include <string.h>

#include "export_priv.h"

const struct export_format export_speedscope = {"speedscope", ".speedscope.json",
						speedscope__write};
const struct export_format export_folded = {"folded", ".folded", folded__write};
const struct export_format export_json = {"json", ".json", json__write};
const struct export_format export_text = {"text", ".txt", text__write};
const struct export_format export_chrome = {"chrome", ".trace.json", chrome__write};
const struct export_format export_pprof = {"pprof", ".pb.gz", pprof__write};
const struct export_format export_html = {"html", ".html", html__write};
const struct export_format export_otlp = {"otlp", ".otlp.pb.gz", otlp__write};

static const struct export_format *const formats[] = {
	&export_speedscope, &export_folded, &export_json, &export_text,
	&export_chrome,	    &export_pprof,  &export_html, &export_otlp,
};

const struct export_format *export__find(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (strlen(formats[i]->name) == len && !memcmp(formats[i]->name, name, len))
			return formats[i];
	return NULL;
}

struct export_names export__names(void)
{
	struct export_names names = {0};
	size_t len = 0;

	for (size_t i = 0; i < ARRAY_SIZE(formats) && len < sizeof(names.s); i++)
		len += (size_t)snprintf(names.s + len, sizeof(names.s) - len, "%s%s", i ? ", " : "",
					formats[i]->name);
	return names;
}
