/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the text report share. report.c defines its order, trust.c writes its last
 * lines, the others a table or two each.
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
	/* The processes that tables of functions and calls cover; with more than one, each row
	 * names its process. */
	const struct pic_target *const *of;
	size_t n_of;
	struct strtab *strings; /* holds the results of text__safe */
	uint64_t wall_ns;	/* the time for which the process was observed */
	unsigned width;
	size_t rows;	/* the maximum in a table */
	bool several;	/* several processes: what they have in common is reported once */
	bool brief;	/* the one-screen overview; else the full report */
	bool log_alone; /* no process was profiled: there is only a log, or a report of GHC's */
};

/* ── words (words.c) ─────────────────────────────────────────────────────────────────────── */

/* Prints a section's title, after an empty line. */
void text__section(const struct text *t, const char *title);
/* Prints the text after the bullet, wrapped between words, but not within a number or before its
 * unit. -ENOMEM. */
int text__paragraph(const struct text *t, const char *bullet, const char *text);
/* Prints each line that `put` writes as a paragraph. */
int text__wrapped(const struct text *t, void (*put)(const struct text *t));
/* A string of the target's, escaped by text__escape; "" on allocation failure. */
const char *text__safe(const struct text *t, const char *s);
static inline const char *plural(uint64_t n, const char *one, const char *many)
{
	return n == 1 ? one : many;
}

/* ── tables (cells.c) ────────────────────────────────────────────────────────────────────── */

#define TEXT_SHARE_SHOWN 0.05 /* percent: less would round to 0.0 with one decimal */

/* ns: UINT64_MAX if not known. */
void text__cell_duration(struct table *t, uint64_t ns);
void text__cell_share(struct table *t, double percent);
int text__table(const struct columns *columns, struct table **ret_table);
/* The same, preceded by a column for the process if the table covers several. */
int text__table_of(const struct text *t, const struct columns *columns, struct table **ret_table);
/* Adds that column's cell; nothing if there is no such column. */
void text__cell_process(const struct text *t, struct table *table, const struct pic_target *target);
void text__row(struct table *table, const struct columns *columns, const void *row);
/*
 * Prints the table under its title (NULL: none), frees it, and adds "… and N more things" if there
 * are more (`n` in all) than a table has rows.
 */
int text__print(const struct text *t, const char *title, struct table *table, size_t n,
		const char *things);

/* ── lanes (lanes.c) ─────────────────────────────────────────────────────────────────────── */

/* The sum of several lanes. */
struct account {
	uint64_t wall, cpu, states_ns[LANE_STATES];
};
void account__add(struct account *sum, const struct pic_lane *lane);

/* A table with columns for states after its first ones, and optionally one more at the end. */
#define TEXT_STATE_COLUMNS 24
struct states_table {
	struct table *table;
	size_t n;
	uint8_t states[TEXT_STATE_COLUMNS]; /* in the order of the columns */
};
/*
 * `shown`: a bit for each state that has a column; `sampled`: a bit for each one marked as sampled;
 * `worth`: ranks the columns if some must be left out, NULL: none may be.
 */
int states_table__new(struct states_table *st, enum lane_kind kind,
		      const struct table_column *before, size_t n, uint32_t shown, uint32_t sampled,
		      const struct account *worth, const struct table_column *after);
/* Adds the cells for the states: shares of the wall time, or durations. */
void states_table__row(const struct states_table *st, const struct account *account, bool shares);
/* Prints a row for each of the first `awake` lanes, one for all others, and the sum of all. */
int text__lanes(const struct text *t, enum lane_kind kind, const struct pic_lane *const *v,
		size_t n, size_t awake);

/* ── bars (bars.c) ───────────────────────────────────────────────────────────────────────── */

struct bars;
int bars__new(const struct text *t, size_t max, struct bars **ret_bars);
/* Adds a row for OS threads or capabilities, up to the maximum. `counted`: the legend's shares
 * include it; `gc`: its text in the column of collections, "" for none. */
void bars__add(struct bars *b, enum lane_kind kind, const struct account *account, bool counted,
	       const char *gc, const char *label);
/* Prints nothing if there are no rows. */
int bars__print(struct bars *b, const char *title, const char *first);
void bars__free(struct bars *b);

/* ── parts ───────────────────────────────────────────────────────────────────────────────── */

/* A part of the report, about t->target or t->of. Prints nothing if there is nothing to report. */
typedef int text_part(const struct text *t);
/* The one-screen overview of a process, and of a session with several. */
int text__overview(const struct text *t);
int text__overview_of_all(const struct text *t);
/* For a session with more than one process. */
int text__targets(const struct text *t);
/* Ended processes of which only their programs' sums are kept. */
int text__ended(const struct text *t);
/* The profiler's own cost, as far as it is not known for each process. */
int text__common_cost(const struct text *t);
int text__findings(const struct text *t);
/* What the first `awake` threads waited in or for, in one paragraph. */
int text__waits(const struct text *t, const struct pic_lane *const *lanes, size_t awake);
/* The OS threads, those that used or wanted a CPU first; the caller frees. `ret_awake`: how many of
 * them do not just sleep. */
int text__order_threads(const struct pic_target *target, const struct pic_lane ***ret_v,
			size_t *ret_awake);
int text__threads(const struct text *t);
int text__capabilities(const struct text *t);
int text__haskell_threads(const struct text *t);
int text__gc(const struct text *t);
int text__allocation(const struct text *t);
int text__heap_curves(const struct text *t);
int text__functions(const struct text *t);
int text__cost_centres(const struct text *t);
int text__cost_centre_stacks(const struct text *t);
int text__safe_calls(const struct text *t);
int text__unsafe_calls(const struct text *t);
int text__windows(const struct text *t);
int text__heap(const struct text *t);
/* How far the report can be trusted, in one paragraph, and what is missing, without duplicates. */
int text__brief_trust(const struct text *t);
/* How the probes' places were found, the quality of names and stacks, losses, own cost, what is
 * missing. */
int text__trust(const struct text *t);

#endif
