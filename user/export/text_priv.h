/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the text report share: text.c has its order, text_trust.c its last lines, the
 * others a table each.
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
	uint64_t wall_ns; /* what was seen of the process */
	unsigned width;
	size_t rows;	/* at most so many in a table */
	bool several;	/* processes: what they have in common is told once */
	bool log_alone; /* nothing was attached to: an eventlog, or a report, is all there is */
};

/* A section's title, after an empty line. */
void text__section(const struct text *t, const char *title);

/* The text after the bullet, broken between words to the width. -ENOMEM. */
int text__paragraph(const struct text *t, const char *bullet, const char *text);

#define TEXT_SHARE_SHOWN 0.05 /* percent: less is 0.0 in a table with one decimal */

/* Cells and ends of tables. UINT64_MAX: not known. */
void text__cell_duration(struct table *t, uint64_t ns);
void text__cell_count(struct table *t, uint64_t n);
void text__cell_share(struct table *t, double percent);
/* Prints and frees the table. */
int text__print(struct table *table, const struct text *t);
/* "… and N more things", if there are more than the table has rows. */
void text__more(const struct text *t, size_t n, const char *what);
/* What the mark of a table's columns means, if it has marked ones. */
void text__sampled(const struct text *t, uint32_t sampled);

void text__put_duration(FILE *out, uint64_t ns);
void text__put_count(FILE *out, uint64_t n);
/* A string of the target's, without what a terminal could take for a command. */
void text__put_safe(FILE *out, const char *s);

/* Of a session with more than one process. */
int text__targets(const struct text *t, const struct timeline *tl);
/* Its own cost, as far as that cannot be told apart by process. */
int text__common_cost(const struct text *t, const struct timeline *tl);
int text__findings(const struct text *t);
int text__threads(const struct text *t);
int text__capabilities(const struct text *t);
int text__gc(const struct text *t);
int text__functions(const struct text *t);
int text__cost_centres(const struct text *t);
int text__safe_calls(const struct text *t);
int text__unsafe_calls(const struct text *t);

/* How the probes' places were found, names, stacks, losses, own cost, what is missing. */
int text__trust(const struct text *t);

/* ── of an eventlog (text_log.c) ─────────────────────────────────────────────────────────── */

void text__eventlog(const struct text *t);
int text__cost_centre_stacks(const struct text *t);
int text__haskell_threads(const struct text *t);
int text__windows(const struct text *t);
int text__heap(const struct text *t);

#endif
