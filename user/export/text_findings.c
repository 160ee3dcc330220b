/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The text report's first lines: what the session found out, most time first, each as a paragraph
 * of its own, broken between words.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "text_priv.h"

#define FINDINGS 8

static size_t width_of(const char *s, size_t len)
{
	size_t n = 0;

	/* all bytes of a code point but the first one are 10xxxxxx */
	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)s[i] & 0xc0) != 0x80;
	return n;
}

/* A string of the target's, without what a terminal could take for a command. */
static char *printable(const char *s)
{
	/* one bad byte becomes the three of U+FFFD */
	char *out = malloc(strlen(s) * 3 + 1);
	size_t len = 0;
	uint32_t cp;

	if (!out)
		return NULL;
	while ((cp = utf8__next(&s)))
		len += utf8__put(out + len, utf8__is_control(cp) ? '?' : cp);
	out[len] = '\0';
	return out;
}

int text__paragraph(const struct text *t, const char *bullet, const char *text)
{
	size_t at = width_of(bullet, strlen(bullet)), indent = MAX(at, (size_t)2);
	bool first = true;
	char *clean = printable(text);
	const char *s = clean;

	if (!clean)
		return -ENOMEM;
	fputs(bullet, t->out);
	while (*s) {
		size_t len = strcspn(s, " "), width = width_of(s, len);

		if (!first && at + 1 + width > t->width) {
			fprintf(t->out, "\n%*s", (int)indent, "");
			at = indent;
		} else if (!first) {
			fputc(' ', t->out);
			at++;
		}
		first = false;
		fwrite(s, 1, len, t->out);
		at += width;
		s += len + strspn(s + len, " ");
	}
	fputc('\n', t->out);
	free(clean);
	return 0;
}

/* What the text does not say yet of the place: all of it, its source line, or nothing. */
static const char *rest_of_place(const struct tl_finding *finding)
{
	const char *where = finding->where, *src = strstr(where, " (");
	char *name;
	bool said;

	if (!src)
		return strstr(finding->text, where) ? "" : where;
	name = strndup(where, (size_t)(src - where));
	said = name && strstr(finding->text, name);
	free(name);
	return said ? src + 1 : where;
}

static int put_finding(const struct text *t, const struct tl_finding *finding)
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
