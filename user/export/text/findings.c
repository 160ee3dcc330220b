/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The text report's first lines: what the session found out, most time first, each as a paragraph
 * of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "text_priv.h"

#define FINDINGS 8

/* What is not in the text yet of the place: all of it, its source line, or nothing. */
static const char *rest_of_place(const struct pic_finding *finding)
{
	const char *where = finding->where, *src = strstr(where, " (");
	char *name;
	bool known;

	if (!src)
		return strstr(finding->text, where) ? "" : where;
	name = strndup(where, (size_t)(src - where));
	known = name && strstr(finding->text, name);
	free(name);
	return known ? src + 1 : where;
}

static int put_finding(const struct text *t, const struct pic_finding *finding)
{
	const char *place = rest_of_place(finding);
	char *text = NULL;
	int err;

	if (!*place)
		return text__paragraph(t, "  · ", finding->text);
	if (asprintf(&text, *place == '(' ? "%s %s" : "%s [%s]", finding->text, place) < 0)
		return -ENOMEM;
	err = text__paragraph(t, "  · ", text);
	free(text);
	return err;
}

int text__findings(const struct text *t)
{
	size_t n = t->target->n_findings, shown = t->opts->verbose ? n : MIN(n, (size_t)FINDINGS);
	int err = 0;

	if (!n)
		return 0;
	text__section(t, "What stands out");
	for (size_t i = 0; i < shown && !err; i++)
		err = put_finding(t, &t->target->findings[i]);
	if (shown < n)
		fprintf(t->out, "  … and %zu more (-v, or the JSON report)\n", n - shown);
	return err;
}
