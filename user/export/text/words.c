/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Titles, paragraphs, and untrusted strings. */
#include <stdlib.h>
#include <string.h>

#include "text_priv.h"

void text__section(const struct text *t, const char *title)
{
	bool colour = t->opts->colour;

	fprintf(t->out, "\n%s%s%s\n", colour ? "\033[1m" : "", title, colour ? "\033[0m" : "");
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* True if s continues the number before it: with its unit, or three more digits. */
static bool goes_on_number(const char *s)
{
	static const char *const units[] = {"ns", "µs", "ms", "s",  "min", "h",
					    "d",  "%",	"B",  "kB", "MB",  "GB"};
	size_t len = strcspn(s, " ,;:.)");

	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (strlen(units[i]) == len && !memcmp(s, units[i], len))
			return true;
	return is_digit(s[0]) && is_digit(s[1]) && is_digit(s[2]) && !is_digit(s[3]);
}

/* The length of a word, or of a number with its continuation, which is never split across lines. */
static size_t piece_length(const char *s)
{
	size_t len = strcspn(s, " ");

	while (len && s[len] && is_digit(s[len - 1]) && goes_on_number(s + len + 1))
		len += 1 + strcspn(s + len + 1, " ");
	return len;
}

int text__paragraph(const struct text *t, const char *bullet, const char *text)
{
	size_t at = text__width(bullet, strlen(bullet)),
	       indent = MIN(MAX(at, (size_t)2), (size_t)4);
	char *clean = text__escaped(text), *head = text__escaped(bullet);
	bool first = true;

	if (!clean || !head) {
		free(clean);
		free(head);
		return -ENOMEM;
	}
	fputs(head, t->out);
	free(head);
	for (const char *s = clean; *s;) {
		size_t len = piece_length(s), width = text__width(s, len);

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

int text__wrapped(const struct text *t, void (*put)(const struct text *t))
{
	char *lines = NULL, *rest;
	struct text to = *t;
	size_t size;
	int err = 0;

	to.out = open_memstream(&lines, &size);
	if (!to.out)
		return -ENOMEM;
	put(&to);
	if (fclose(to.out))
		err = -ENOMEM;
	rest = lines;
	for (char *line; !err && (line = strsep(&rest, "\n")) && *line;)
		err = text__paragraph(t, *line == ' ' ? "  " : "", line + strspn(line, " "));
	free(lines);
	return err;
}

const char *text__safe(const struct text *t, const char *s)
{
	uint32_t id;

	return strtab__add_escaped(t->strings, s, &id) ? "" : strtab__get(t->strings, id);
}
