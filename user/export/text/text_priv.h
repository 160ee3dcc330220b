/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the text report share: report.c has its order, trust.c its last lines, the
 * others a table or two each.
 */
#ifndef SAFESCOPED_TEXT_PRIV_H
#define SAFESCOPED_TEXT_PRIV_H

#include <inttypes.h>

#include "export/columns.h"

struct text {
	FILE *out;
	const struct export_opts *opts;
	const struct picture *pic;
	const struct pic_session *session;
	const struct pic_target *target;
	struct strtab *strings; /* text__safe's */
	uint64_t wall_ns;	/* what was seen of the process */
	unsigned width;
	size_t rows;	/* at most so many in a table */
	bool several;	/* processes: what they have in common is reported once */
	bool log_alone; /* nothing was attached to: an eventlog, or a report, is all there is */
};

/* ── words (words.c) ─────────────────────────────────────────────────────────────────────── */

/* A section's title, after an empty line. */
void text__section(const struct text *t, const char *title);
/* The text after the bullet, broken between words to the width. -ENOMEM. */
int text__paragraph(const struct text *t, const char *bullet, const char *text);
/* Each line that is put becomes a paragraph. */
int text__wrapped(const struct text *t, void (*put)(const struct text *t));
/* A string of the target's, by text__escape; "" without memory. */
const char *text__safe(const struct text *t, const char *s);
static inline const char *plural(uint64_t n, const char *one, const char *many)
{
	return n == 1 ? one : many;
}

/* ── tables (cells.c) ────────────────────────────────────────────────────────────────────── */

#define TEXT_SHARE_SHOWN 0.05 /* percent: less is 0.0 in a table with one decimal */

/* UINT64_MAX: not known. */
void text__cell_duration(struct table *t, uint64_t ns);
void text__cell_share(struct table *t, double percent);
int text__table(const struct columns *columns, struct table **ret_table);
void text__row(struct table *table, const struct columns *columns, const void *row);
/*
 * Prints the table under its title (NULL: none), frees it, and adds "… and N more things", if there
 * are more (`n` of them) than a table has rows.
 */
int text__print(const struct text *t, const char *title, struct table *table, size_t n,
		const char *things);

/* ── lanes (lanes.c) ─────────────────────────────────────────────────────────────────────── */

/* What lanes add up to. */
struct account {
	uint64_t wall, cpu, states_ns[LANE_STATES];
};
void account__add(struct account *sum, const struct pic_lane *lane);

/* A table with columns of states after its first ones, and maybe one more. */
#define TEXT_STATE_COLUMNS 24
struct states_table {
	struct table *table;
	size_t n;
	uint8_t states[TEXT_STATE_COLUMNS]; /* in the order of the columns */
};
/*
 * `shown`: bit per state that has a column; `sampled`: is marked so; `worth`: by it columns are
 * left out, NULL: none are.
 */
int states_table__new(struct states_table *st, enum lane_kind kind,
		      const struct table_column *before, size_t n, uint32_t shown, uint32_t sampled,
		      const struct account *worth, const struct table_column *after);
/* Cells for the states: shares of the wall time, or durations. */
void states_table__row(const struct states_table *st, const struct account *account, bool shares);
/* A row each, those that are not awake in one; then what all add up to. */
int text__lanes(const struct text *t, enum lane_kind kind, const struct pic_lane *const *v,
		size_t n, size_t awake);

/* ── parts ───────────────────────────────────────────────────────────────────────────────── */

/* Of a session with more than one process. */
int text__targets(const struct text *t);
/* Processes that ended, of which only their programs' sums are kept; nothing if there are none. */
int text__ended(const struct text *t);
/* Its own cost, as far as it is not known by process. */
int text__common_cost(const struct text *t);
int text__findings(const struct text *t);
int text__threads(const struct text *t);
int text__capabilities(const struct text *t);
int text__haskell_threads(const struct text *t);
int text__gc(const struct text *t);
int text__functions(const struct text *t);
int text__cost_centres(const struct text *t);
int text__cost_centre_stacks(const struct text *t);
int text__safe_calls(const struct text *t);
int text__unsafe_calls(const struct text *t);
int text__windows(const struct text *t);
int text__heap(const struct text *t);
/* How the probes' places were found, names, stacks, losses, own cost, what is missing. */
int text__trust(const struct text *t);

#endif
