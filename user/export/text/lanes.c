/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The text report's tables of lanes, with their columns of states.
 */
#include <stdlib.h>
#include <string.h>

#include "text_priv.h"

struct state_column {
	uint8_t state;
	const char *title, *group;
};

/* In the order of the columns: what the thread was in, or waited in or for. */
static const struct state_column of_thread[] = {
	{ST_HASKELL, "Haskell", "on CPU"},
	{ST_UNSAFE_CALL_CPU, "unsafe", "on CPU"},
	{ST_SAFE_CALL_CPU, "safe", "on CPU"},
	{ST_GC_WORK, "GC", "on CPU"},
	{ST_RTS, "RTS", "on CPU"},
	{ST_FOREIGN_CPU, "other", "on CPU"},
	{ST_UNSAFE_CALL_BLOCKED, "in unsafe", "waiting"},
	{ST_SAFE_CALL_BLOCKED, "in safe", "waiting"},
	{ST_CAP_WAIT, "for cap", "waiting"},
	{ST_GC_WAIT, "for GC", "waiting"},
	{ST_RTS_BLOCKED, "in RTS", "waiting"},
	{ST_FOREIGN_BLOCKED, "in other", "waiting"},
	{ST_HASKELL_BLOCKED, "for page", "waiting"},
	{ST_PREEMPTED, "for CPU", "waiting"},
	{ST_SAFE_CALL, "safe call", NULL},
	{ST_IDLE, "idle", NULL},
	{ST_UNKNOWN, "unknown", NULL},
};
static const struct state_column of_capability[] = {
	{CS_HASKELL, "Haskell", NULL},	 {CS_UNSAFE_CALL, "unsafe", NULL}, {CS_GC, "GC", NULL},
	{CS_RTS, "RTS", NULL},		 {CS_PREEMPTED, "no CPU", NULL},   {CS_IDLE, "idle", NULL},
	{CS_DISABLED, "disabled", NULL}, {CS_UNKNOWN, "unknown", NULL},
};
static const struct state_column of_haskell[] = {
	{HS_RUNNING, "running", NULL},
	{HS_UNSAFE_CALL, "unsafe call", NULL},
	{HS_SAFE_CALL, "safe call", NULL},
	{HS_RUNNABLE, "runnable", NULL},
	{HS_GC, "GC", NULL},
	{HS_BLOCKED_MVAR, "MVar", "blocked"},
	{HS_BLOCKED_STM, "STM", "blocked"},
	{HS_BLOCKED_BLACKHOLE, "black hole", "blocked"},
	{HS_BLOCKED_IO, "I/O", "blocked"},
	{HS_BLOCKED_DELAY, "delay", "blocked"},
	{HS_BLOCKED_OTHER, "other", "blocked"},
	{HS_UNKNOWN, "unknown", NULL},
};
static const struct {
	const struct state_column *v;
	size_t n;
} kinds[LANE_KINDS] = {
	[LANE_CAPABILITY] = {of_capability, ARRAY_SIZE(of_capability)},
	[LANE_THREAD] = {of_thread, ARRAY_SIZE(of_thread)},
	[LANE_HASKELL] = {of_haskell, ARRAY_SIZE(of_haskell)},
};

/* ── states ──────────────────────────────────────────────────────────────────────────────── */

void account__add(struct account *sum, const struct pic_lane *lane)
{
	sum->wall += lane->end_ns - lane->start_ns;
	/* if it is not known for one lane, the sum is not known */
	sum->cpu = MAX(sum->cpu, lane->cpu_ns) == UINT64_MAX ? UINT64_MAX : sum->cpu + lane->cpu_ns;
	for (unsigned s = 0; s < LANE_STATES; s++)
		sum->states_ns[s] += lane->states_ns[s];
}

int states_table__new(struct states_table *st, enum lane_kind kind,
		      const struct table_column *before, size_t n, uint32_t shown, uint32_t sampled,
		      const struct account *worth, const struct table_column *after)
{
	struct table_column v[TEXT_STATE_COLUMNS + 8];

	st->n = 0;
	memcpy(v, before, n * sizeof(*v));
	for (size_t i = 0; i < kinds[kind].n; i++) {
		const struct state_column *c = &kinds[kind].v[i];

		if (!(shown >> c->state & 1))
			continue;
		st->states[st->n++] = c->state;
		v[n++] = (struct table_column){
			.title = c->title,
			.flags = COL_RIGHT | (sampled >> c->state & 1 ? COL_SAMPLED : 0) |
				 (worth ? COL_SPARE : 0),
			.group = c->group,
			.worth = worth ? worth->states_ns[c->state] : 0,
		};
	}
	if (after)
		v[n++] = *after;
	return table__new(v, n, &st->table);
}

void states_table__row(const struct states_table *st, const struct account *account, bool shares)
{
	for (size_t i = 0; i < st->n; i++) {
		uint64_t ns = account->states_ns[st->states[i]];

		if (shares)
			text__cell_share(st->table, human__percent(ns, account->wall));
		else
			text__cell_duration(st->table, ns);
	}
}

/* ── lanes ───────────────────────────────────────────────────────────────────────────────── */

static const struct table_column before_capability[] = {{"capability", COL_FLEX, NULL, 0},
							{"wall", COL_RIGHT, NULL, 0}};
static const struct table_column before_thread[] = {
	{"thread", COL_FLEX, NULL, 0}, {"wall", COL_RIGHT, NULL, 0}, {"CPU", COL_RIGHT, NULL, 0}};
static const struct table_column before_haskell[] = {{"Haskell thread", COL_RIGHT, NULL, 0},
						     {"label", COL_FLEX, NULL, 0},
						     {"wall", COL_RIGHT, NULL, 0}};
static const struct {
	const char *title, *things;
	const struct table_column *before;
	size_t n;
} texts[LANE_KINDS] = {
	[LANE_CAPABILITY] = {"What each capability was used for, in % of its wall time",
			     "capabilities", before_capability, ARRAY_SIZE(before_capability)},
	[LANE_THREAD] = {"Where the time went, in % of each thread's wall time", "threads",
			 before_thread, ARRAY_SIZE(before_thread)},
	[LANE_HASKELL] = {"What Haskell threads did, in % of each one's life", "Haskell threads",
			  before_haskell, ARRAY_SIZE(before_haskell)},
};

/* The states whose share is worth showing in at least one of the lanes. */
static uint32_t states_of(const struct pic_lane *const *v, size_t n, uint32_t *ret_sampled)
{
	uint32_t shown = 0, sampled = 0;

	for (size_t i = 0; i < n; i++) {
		for (unsigned s = 0; s < LANE_STATES; s++)
			if (human__percent(v[i]->states_ns[s], v[i]->end_ns - v[i]->start_ns) >=
			    TEXT_SHARE_SHOWN)
				shown |= 1u << s;
		sampled |= v[i]->sampled_states;
	}
	*ret_sampled = sampled & shown;
	return shown;
}

static void add_name(struct table *table, const struct pic_lane *lane)
{
	if (lane->kind == LANE_CAPABILITY) {
		table__cellf(table, "%" PRIu32, lane->cap);
	} else if (lane->kind == LANE_THREAD) {
		table__cellf(table, "%d %.16s", (int)lane->tid, or_empty(lane->name));
	} else {
		table__cellf(table, "%" PRIu64, lane->tso);
		table__cell(table, or_empty(lane->name));
	}
}

static void add_sums(const struct states_table *st, enum lane_kind kind, const struct account *sum)
{
	text__cell_duration(st->table, sum->wall);
	if (kind == LANE_THREAD)
		text__cell_duration(st->table, sum->cpu);
	states_table__row(st, sum, true);
}

int text__lanes(const struct text *t, enum lane_kind kind, const struct pic_lane *const *v,
		size_t n, size_t awake)
{
	/* a Haskell thread's states are either all from events or all sampled, and there is no sum
	 * row */
	bool haskell = kind == LANE_HASKELL;
	struct account all = {0}, busy = {0}, asleep = {0};
	uint32_t sampled, shown = states_of(v, haskell ? MIN(n, t->rows) : n, &sampled);
	struct states_table st;
	int err;

	for (size_t i = 0; i < n; i++) {
		account__add(&all, v[i]);
		account__add(i < awake ? &busy : &asleep, v[i]);
	}
	err = states_table__new(&st, kind, texts[kind].before, texts[kind].n, shown,
				haskell ? 0 : sampled, haskell ? NULL : &busy, NULL);
	if (err)
		return err;
	for (size_t i = 0; i < MIN(awake, t->rows); i++) {
		struct account one = {0};

		account__add(&one, v[i]);
		add_name(st.table, v[i]);
		add_sums(&st, kind, &one);
	}
	if (awake < n) {
		table__cellf(st.table, "%zu mostly idle", n - awake);
		add_sums(&st, kind, &asleep);
	}
	if (n > 1 && !haskell) {
		table__cell(st.table, "all");
		add_sums(&st, kind, &all);
	}
	err = text__print(t, texts[kind].title, st.table, awake, texts[kind].things);
	if (sampled && !haskell)
		fputs("  ~ sampled; the other columns are exact\n", t->out);
	return err;
}

/* Prints all lanes of a kind, in the order of the picture. */
static int put_lanes(const struct text *t, enum lane_kind kind)
{
	const struct pic_lanes *lanes = &t->target->lanes[kind];
	const struct pic_lane **v;
	int err;

	if (!lanes->n || !export__shows(t->opts, kind))
		return 0;
	v = calloc(lanes->n, sizeof(struct pic_lane *));
	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < lanes->n; i++)
		v[i] = &lanes->v[i];
	err = text__lanes(t, kind, v, lanes->n, lanes->n);
	free(v);
	return err;
}

int text__capabilities(const struct text *t)
{
	return put_lanes(t, LANE_CAPABILITY);
}

int text__haskell_threads(const struct text *t)
{
	return put_lanes(t, LANE_HASKELL);
}
