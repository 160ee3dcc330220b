/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The text report's table of OS threads: where each one's time went, those first that used or
 * wanted a CPU; and what they waited in. Threads that slept all the time share one row.
 */
#include <stdlib.h>
#include <string.h>

#include "export/lanes.h"
#include "text_priv.h"

#define REASONS	     6
#define REASON_SHOWN 1.0 /* percent of the session */

struct row {
	const struct pic_lane *lane;
	uint64_t busy;
	bool asleep;
};

/* Those asleep come last. */
static int by_busy(const void *pa, const void *pb)
{
	const struct row *a = pa, *b = pb;

	if (a->asleep != b->asleep)
		return a->asleep ? 1 : -1;
	if (a->busy != b->busy)
		return a->busy < b->busy ? 1 : -1;
	return (a->lane->tid > b->lane->tid) - (a->lane->tid < b->lane->tid);
}

/* *ret_awake: the rows before it are of threads that were not asleep all the time. */
static struct row *sorted(const struct text *t, const struct pic_lanes *lanes, size_t *ret_awake)
{
	struct row *rows = calloc(lanes->n, sizeof(*rows));
	size_t awake = 0;

	if (!rows)
		return NULL;
	for (size_t i = 0; i < lanes->n; i++)
		rows[i] = (struct row){&lanes->v[i], lane__busy_ns(&lanes->v[i]),
				       lane__is_asleep(&lanes->v[i])};
	qsort(rows, lanes->n, sizeof(*rows), by_busy);
	while (awake < lanes->n && !rows[awake].asleep)
		awake++;
	/* a row for one is no gain */
	*ret_awake = t->opts->verbose || awake + 1 >= lanes->n ? lanes->n : awake;
	return rows;
}

/* ── the table ───────────────────────────────────────────────────────────────────────────── */

static void add_row(const struct states_table *st, const char *name, const struct account *sum)
{
	table__cell(st->table, name);
	text__cell_duration(st->table, sum->wall);
	text__cell_duration(st->table, sum->cpu);
	states_table__row(st, sum, true);
}

static int put_table(const struct text *t, const struct row *rows, size_t awake)
{
	static const struct table_column before[] = {{"thread", COL_FLEX, NULL, 0},
						     {"wall", COL_RIGHT, NULL, 0},
						     {"CPU", COL_RIGHT, NULL, 0}};
	const struct pic_lanes *lanes = &t->target->lanes[LANE_THREAD];
	uint32_t sampled, shown = accounts__states(lanes, lanes->n, &sampled);
	struct account all = {0}, busy = {0}, asleep = {0};
	struct states_table st;
	char name[48];
	int err;

	for (size_t i = 0; i < lanes->n; i++) {
		account__add(&all, rows[i].lane);
		account__add(i < awake ? &busy : &asleep, rows[i].lane);
	}
	err = states_table__new(&st, LANE_THREAD, before, ARRAY_SIZE(before), shown, sampled, &busy,
				NULL);
	if (err)
		return err;
	for (size_t i = 0; i < MIN(awake, t->rows); i++) {
		struct account one = {0};

		account__add(&one, rows[i].lane);
		snprintf(name, sizeof(name), "%d %.16s", (int)rows[i].lane->tid,
			 or_empty(rows[i].lane->name));
		add_row(&st, name, &one);
	}
	if (awake < lanes->n) {
		snprintf(name, sizeof(name), "%zu asleep", lanes->n - awake);
		add_row(&st, name, &asleep);
	}
	if (awake > 1 || awake < lanes->n)
		add_row(&st, "all", &all);
	err = text__print(t, "Where the time went, in % of each thread's wall time", st.table,
			  awake, "threads");
	text__sampled(t, sampled);
	return err;
}

/* ── what they waited in ─────────────────────────────────────────────────────────────────── */

/* Waits that the table has columns for. */
static bool is_column(const char *reason)
{
	for (unsigned s = 0; s < ST_MAX; s++)
		if (!state__on_cpu(LANE_THREAD, s) && !strcmp(reason, state__title(LANE_THREAD, s)))
			return true;
	return !strcmp(reason, "memory (page fault)");
}

struct reason {
	const char *text;
	uint64_t ns;
	size_t threads;
};

static int by_text(const void *pa, const void *pb)
{
	return strcmp(((const struct reason *)pa)->text, ((const struct reason *)pb)->text);
}

static int by_ns(const void *pa, const void *pb)
{
	const struct reason *a = pa, *b = pb;

	if (a->ns != b->ns)
		return a->ns < b->ns ? 1 : -1;
	return strcmp(a->text, b->text);
}

/* The reasons of all threads that are shown, the most time first; the caller frees. */
static struct reason *reasons(const struct row *rows, size_t awake, size_t *ret_n)
{
	size_t max = 0, n = 0, merged = 0;
	struct reason *v;

	for (size_t i = 0; i < awake; i++)
		max += rows[i].lane->n_off_cpu;
	v = calloc(max + 1, sizeof(*v));
	if (!v)
		return NULL;
	for (size_t i = 0; i < awake; i++) {
		const struct pic_lane *lane = rows[i].lane;

		/* where a thread without Haskell sleeps is nobody's question */
		if (lane->states_ns[ST_FOREIGN_BLOCKED] > (lane->end_ns - lane->start_ns) / 2)
			continue;
		for (size_t k = 0; k < lane->n_off_cpu; k++)
			if (!is_column(lane->off_cpu[k].reason))
				v[n++] = (struct reason){lane->off_cpu[k].reason,
							 lane->off_cpu[k].ns, 1};
	}
	qsort(v, n, sizeof(*v), by_text);
	for (size_t i = 0; i < n; i++) {
		if (merged && !strcmp(v[merged - 1].text, v[i].text)) {
			v[merged - 1].ns += v[i].ns;
			v[merged - 1].threads++;
		} else {
			v[merged++] = v[i];
		}
	}
	qsort(v, merged, sizeof(*v), by_ns);
	*ret_n = merged;
	return v;
}

static int put_waits(const struct text *t, const struct row *rows, size_t awake)
{
	size_t n;
	struct reason *v = reasons(rows, awake, &n);
	struct buf text;
	int err = 0;

	if (!v)
		return -ENOMEM;
	buf__init(&text, 1 << 20);
	for (size_t i = 0; i < MIN(n, (size_t)REASONS); i++) {
		if (human__percent(v[i].ns, t->wall_ns) < REASON_SHOWN)
			break;
		buf__addf(&text, "%s%s %s", i ? ", " : "", v[i].text, human__duration(v[i].ns).s);
		if (v[i].threads > 1)
			buf__addf(&text, " (%zu threads)", v[i].threads);
	}
	if (text.len)
		err = text__paragraph(t, "  waited in: ", text.data);
	buf__free(&text);
	free(v);
	return err;
}

int text__threads(const struct text *t)
{
	const struct pic_lanes *lanes = &t->target->lanes[LANE_THREAD];
	size_t awake, merged = 0;
	struct row *rows;
	int err;

	if (!lanes->n || !export__shows(t->opts, LANE_THREAD))
		return 0;
	rows = sorted(t, lanes, &awake);
	if (!rows)
		return -ENOMEM;
	err = put_table(t, rows, awake);
	if (!err)
		err = put_waits(t, rows, awake);
	free(rows);
	for (size_t i = 0; i < lanes->n; i++)
		merged += lanes->v[i].merged_ns != 0;
	if (!err && merged)
		fprintf(t->out,
			"  short stretches of %zu %s were merged in the profiles; these shares are "
			"right\n",
			merged, plural(merged, "thread", "threads"));
	return err;
}
