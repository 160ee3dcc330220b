/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The text report's table of OS threads: where each one's time went, those first that used or
 * wanted a CPU; and what they waited in. Threads that slept all the time share one row.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "text_priv.h"

/* Percent of its wall time that a thread ran, and ran or wanted to: with less of both it is asleep.
 * On a machine that is not ours alone even a timer's thread has to wait for its CPU. */
#define ASLEEP_CPU   0.5
#define ASLEEP_BUSY  5.0
#define REASONS	     6
#define REASON_SHOWN 1.0 /* percent of the session */

/* In the order of the columns: what the thread was in, or waited in or for. */
static const struct {
	enum tl_state state;
	const char *title, *group;
} state_columns[] = {
	{ST_HASKELL, "Haskell", "on CPU"},
	{ST_UNSAFE_CALL_CPU, "unsafe", "on CPU"},
	{ST_SAFE_CALL_CPU, "safe", "on CPU"},
	{ST_GC_WORK, "GC", "on CPU"},
	{ST_RTS, "RTS", "on CPU"},
	{ST_FOREIGN_CPU, "other", "on CPU"},
	{ST_UNSAFE_CALL_BLOCKED, "unsafe", "waiting"},
	{ST_SAFE_CALL_BLOCKED, "safe", "waiting"},
	{ST_CAP_WAIT, "cap", "waiting"},
	{ST_GC_WAIT, "GC", "waiting"},
	{ST_RTS_BLOCKED, "RTS", "waiting"},
	{ST_FOREIGN_BLOCKED, "other", "waiting"},
	{ST_HASKELL_BLOCKED, "page", "waiting"},
	{ST_PREEMPTED, "CPU", "waiting"},
	{ST_SAFE_CALL, "safe call", ""},
	{ST_IDLE, "idle", ""},
	{ST_UNKNOWN, "unknown", ""},
};

struct row {
	const struct tl_lane *lane;
	uint64_t wall, busy;
};

/* ── the order ───────────────────────────────────────────────────────────────────────────── */

/* Time in which the thread ran, or would have if it could. */
static uint64_t busy_ns(const struct tl_lane *lane)
{
	static const enum tl_state wanted[] = {ST_UNSAFE_CALL_BLOCKED, ST_CAP_WAIT,  ST_GC_WAIT,
					       ST_HASKELL_BLOCKED,     ST_PREEMPTED, ST_UNKNOWN};
	uint64_t ns = lane->cpu_ns;

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		ns += lane->states_ns[wanted[i]];
	return ns;
}

static bool is_asleep(const struct row *row)
{
	return human__percent(row->lane->cpu_ns, row->wall) < ASLEEP_CPU &&
	       human__percent(row->busy, row->wall) < ASLEEP_BUSY;
}

/* Those asleep come last. */
static int by_busy(const void *pa, const void *pb)
{
	const struct row *a = pa, *b = pb;

	if (is_asleep(a) != is_asleep(b))
		return is_asleep(a) ? 1 : -1;
	if (a->busy != b->busy)
		return a->busy < b->busy ? 1 : -1;
	return (a->lane->tid > b->lane->tid) - (a->lane->tid < b->lane->tid);
}

/* *ret_awake: the rows before it are of threads that were not asleep all the time. */
static struct row *sorted(const struct text *t, size_t *ret_awake)
{
	size_t n = t->target->n_lanes, awake = 0;
	struct row *rows = calloc(n, sizeof(*rows));

	if (!rows)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		const struct tl_lane *lane = &t->target->lanes[i];

		rows[i] = (struct row){lane, lane->end_ns - lane->start_ns, busy_ns(lane)};
	}
	qsort(rows, n, sizeof(*rows), by_busy);
	while (awake < n && !is_asleep(&rows[awake]))
		awake++;
	/* a row for one is no gain */
	if (t->opts->verbose || awake + 1 >= n)
		awake = n;
	*ret_awake = awake;
	return rows;
}

/* ── the table ───────────────────────────────────────────────────────────────────────────── */

struct sums {
	uint64_t wall, cpu, states_ns[ST_MAX];
};

static void sum_up(struct sums *sums, const struct tl_lane *lane)
{
	sums->wall += lane->end_ns - lane->start_ns;
	sums->cpu += lane->cpu_ns;
	for (int s = 0; s < ST_MAX; s++)
		sums->states_ns[s] += lane->states_ns[s];
}

static void add_row(struct table *table, const char *name, const struct sums *sums, uint32_t shown)
{
	table__cell(table, name);
	text__cell_duration(table, sums->wall);
	text__cell_duration(table, sums->cpu);
	for (size_t c = 0; c < ARRAY_SIZE(state_columns); c++) {
		enum tl_state state = state_columns[c].state;

		if (shown >> state & 1)
			text__cell_share(table, human__percent(sums->states_ns[state], sums->wall));
		else
			table__cell(table, "");
	}
}

static void say_name(const struct tl_lane *lane, char *out, size_t size)
{
	snprintf(out, size, "%d %.16s", (int)lane->tid, lane->name);
}

static void fill(struct table *table, const struct text *t, const struct row *rows, size_t awake,
		 uint32_t shown)
{
	struct sums all = {0}, asleep = {0};
	char name[48];

	for (size_t i = 0; i < t->target->n_lanes; i++) {
		struct sums one = {0};

		sum_up(&all, rows[i].lane);
		if (i >= awake) {
			sum_up(&asleep, rows[i].lane);
		} else if (i < t->rows) {
			sum_up(&one, rows[i].lane);
			say_name(rows[i].lane, name, sizeof(name));
			add_row(table, name, &one, shown);
		}
	}
	if (awake < t->target->n_lanes) {
		snprintf(name, sizeof(name), "%zu asleep", t->target->n_lanes - awake);
		add_row(table, name, &asleep, shown);
	}
	if (awake > 1 || awake < t->target->n_lanes)
		add_row(table, "all", &all, shown);
}

static uint32_t states_shown(const struct tl_target *target, uint32_t *ret_sampled)
{
	uint32_t shown = 0, sampled = 0;

	for (size_t i = 0; i < target->n_lanes; i++) {
		const struct tl_lane *lane = &target->lanes[i];

		for (int s = 0; s < ST_MAX; s++)
			if (human__percent(lane->states_ns[s], lane->end_ns - lane->start_ns) >=
			    TEXT_SHARE_SHOWN)
				shown |= 1u << s;
		sampled |= lane->sampled_states;
	}
	*ret_sampled = sampled & shown;
	return shown;
}

static int put_table(const struct text *t, const struct row *rows, size_t awake)
{
	char titles[ARRAY_SIZE(state_columns)][16];
	uint32_t sampled, shown = states_shown(t->target, &sampled);
	struct sums all = {0};
	struct table *table;
	int err = table__new(3 + ARRAY_SIZE(state_columns), &table);

	if (err)
		return err;
	for (size_t i = 0; i < awake; i++)
		sum_up(&all, rows[i].lane);
	table__column(table, 0, "thread", "", COL_FLEX);
	table__column(table, 1, "wall", "", COL_RIGHT);
	table__column(table, 2, "CPU", "", COL_RIGHT);
	for (size_t c = 0; c < ARRAY_SIZE(state_columns); c++) {
		snprintf(titles[c], sizeof(titles[c]), "%s%s",
			 sampled >> state_columns[c].state & 1 ? "~" : "", state_columns[c].title);
		table__column(table, 3 + c, titles[c], state_columns[c].group, COL_RIGHT);
		table__worth(table, 3 + c, all.states_ns[state_columns[c].state]);
	}
	fill(table, t, rows, awake, shown);
	text__section(t, "Where the time went, in % of each thread's wall time");
	err = text__print(table, t);
	text__more(t, awake, "threads");
	text__sampled(t, sampled);
	return err;
}

/* ── what they waited in ─────────────────────────────────────────────────────────────────── */

/* Waits that the table has columns for tell nothing more. */
static bool is_column(const char *reason)
{
	for (int s = 0; s < ST_MAX; s++)
		if (!state__on_cpu(s) && !strcmp(reason, state__title(s)))
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
		const struct tl_lane *lane = rows[i].lane;

		/* where a thread without Haskell sleeps is nobody's question */
		if (lane->states_ns[ST_FOREIGN_BLOCKED] > rows[i].wall / 2)
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
		char ns[32];

		if (human__percent(v[i].ns, t->wall_ns) < REASON_SHOWN)
			break;
		human__duration(ns, sizeof(ns), v[i].ns);
		buf__addf(&text, "%s%s %s", i ? ", " : "", v[i].text, ns);
		if (v[i].threads > 1)
			buf__addf(&text, " (%zu threads)", v[i].threads);
	}
	if (text.len)
		err = text__paragraph(t, "  waited in: ", text.data);
	buf__free(&text);
	free(v);
	return err;
}

/* Short stretches of some threads were merged. */
static void put_coarse(const struct text *t)
{
	size_t coarse = 0;

	for (size_t i = 0; i < t->target->n_lanes; i++)
		coarse += t->target->lanes[i].coarse;
	if (coarse)
		fprintf(t->out,
			"  short stretches of %zu %s were merged in the profiles; these shares are "
			"right\n",
			coarse, coarse == 1 ? "thread" : "threads");
}

int text__threads(const struct text *t)
{
	struct row *rows;
	size_t awake;
	int err;

	if (!t->target->n_lanes)
		return 0;
	rows = sorted(t, &awake);
	if (!rows)
		return -ENOMEM;
	err = put_table(t, rows, awake);
	if (!err)
		err = put_waits(t, rows, awake);
	if (!err)
		put_coarse(t);
	free(rows);
	return err;
}
