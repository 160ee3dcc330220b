/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The text report's two halves: text.c has its lines, text_tables.c its tables.
 */
#ifndef SAFESCOPED_TEXT_PRIV_H
#define SAFESCOPED_TEXT_PRIV_H

#include "export.h"
#include "export_priv.h"

struct text {
	FILE *out;
	const struct export_opts *opts;
	const struct tl_session *session;
	const struct tl_target *target;
	unsigned width;
	size_t rows; /* at most so many in a table */
};

/* A section's title, after an empty line. */
void text__section(const struct text *t, const char *title);

/* The text after the bullet, broken between words to the width. -ENOMEM. */
int text__paragraph(const struct text *t, const char *bullet, const char *text);

int text__findings(const struct text *t);
int text__threads(const struct text *t);
int text__functions(const struct text *t);
int text__safe_calls(const struct text *t);
int text__unsafe_calls(const struct text *t);

#endif
