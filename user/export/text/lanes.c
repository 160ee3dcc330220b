/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The text report's columns of states, and the tables of capabilities and of Haskell threads.
 */
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
	{ST_UNSAFE_CALL_BLOCKED, "unsafe", "waiting"},
	{ST_SAFE_CALL_BLOCKED, "safe", "waiting"},
	{ST_CAP_WAIT, "cap", "waiting"},
	{ST_GC_WAIT, "GC", "waiting"},
	{ST_RTS_BLOCKED, "RTS", "waiting"},
	{ST_FOREIGN_BLOCKED, "other", "waiting"},
	{ST_HASKELL_BLOCKED, "page", "waiting"},
	{ST_PREEMPTED, "CPU", "waiting"},
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
	{HS_RUNNABLE, "ready", NULL},
	{HS_GC, "GC", NULL},
	{HS_BLOCKED_MVAR, "MVar", "blocked"},
	{HS_BLOCKED_STM, "STM", "blocked"},
	{HS_BLOCKED_BLACKHOLE, "thunk", "blocked"},
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
	sum->cpu += lane->cpu_ns;
	for (unsigned s = 0; s < LANE_STATES; s++)
		sum->states_ns[s] += lane->states_ns[s];
}

uint32_t accounts__states(const struct pic_lanes *lanes, size_t n, uint32_t *ret_sampled)
{
	uint32_t shown = 0;

	*ret_sampled = 0;
	for (size_t i = 0; i < n; i++) {
		const struct pic_lane *lane = &lanes->v[i];

		for (unsigned s = 0; s < LANE_STATES; s++)
			if (human__percent(lane->states_ns[s], lane->end_ns - lane->start_ns) >=
			    TEXT_SHARE_SHOWN)
				shown |= 1u << s;
		*ret_sampled |= lane->sampled_states;
	}
	*ret_sampled &= shown;
	return shown;
}

int states_table__new(struct states_table *st, enum lane_kind kind,
		      const struct table_column *before, size_t n_before, uint32_t most,
		      uint32_t sampled, const struct account *worth,
		      const struct table_column *after)
{
	struct table_column v[TEXT_STATE_COLUMNS + 8];
	size_t n = 0;

	st->kind = kind;
	st->n = 0;
	while (n < n_before) {
		v[n] = before[n];
		n++;
	}
	for (size_t i = 0; i < kinds[kind].n; i++) {
		const struct state_column *c = &kinds[kind].v[i];

		if (!(most >> c->state & 1))
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

void text__sampled(const struct text *t, uint32_t sampled)
{
	if (sampled)
		fputs("  ~ sampled; the other columns are exact\n", t->out);
}

/* ── capabilities ────────────────────────────────────────────────────────────────────────── */

int text__capabilities(const struct text *t)
{
	static const struct table_column before[] = {{"capability", COL_FLEX, NULL, 0},
						     {"wall", COL_RIGHT, NULL, 0}};
	const struct pic_lanes *lanes = &t->target->lanes[LANE_CAPABILITY];
	uint32_t sampled, shown = accounts__states(lanes, lanes->n, &sampled);
	struct account all = {0};
	struct states_table st;
	int err;

	if (!lanes->n || !export__shows(t->opts, LANE_CAPABILITY))
		return 0;
	for (size_t i = 0; i < lanes->n; i++)
		account__add(&all, &lanes->v[i]);
	err = states_table__new(&st, LANE_CAPABILITY, before, ARRAY_SIZE(before), shown, sampled,
				&all, NULL);
	if (err)
		return err;
	for (size_t i = 0; i < MIN(lanes->n, t->rows); i++) {
		struct account one = {0};

		account__add(&one, &lanes->v[i]);
		table__cellf(st.table, "%" PRIu32, lanes->v[i].cap);
		text__cell_duration(st.table, one.wall);
		states_table__row(&st, &one, true);
	}
	if (lanes->n > 1) {
		table__cell(st.table, "all");
		text__cell_duration(st.table, all.wall);
		states_table__row(&st, &all, true);
	}
	err = text__print(t, "What each capability was used for, in % of its wall time", st.table,
			  lanes->n, "capabilities");
	text__sampled(t, sampled);
	return err;
}

/* ── Haskell threads ─────────────────────────────────────────────────────────────────────── */

int text__haskell_threads(const struct text *t)
{
	static const struct table_column before[] = {{"Haskell thread", COL_RIGHT, NULL, 0},
						     {"label", COL_FLEX, NULL, 0},
						     {"wall", COL_RIGHT, NULL, 0}};
	const struct pic_lanes *lanes = &t->target->lanes[LANE_HASKELL];
	size_t n = MIN(lanes->n, t->rows);
	uint32_t sampled, shown = accounts__states(lanes, n, &sampled);
	struct states_table st;
	int err;

	if (!n || !export__shows(t->opts, LANE_HASKELL))
		return 0;
	err = states_table__new(&st, LANE_HASKELL, before, ARRAY_SIZE(before), shown, 0, NULL,
				NULL);
	if (err)
		return err;
	for (size_t i = 0; i < n; i++) {
		struct account one = {0};

		account__add(&one, &lanes->v[i]);
		table__cellf(st.table, "%" PRIu64, lanes->v[i].tso);
		table__cell(st.table, or_empty(lanes->v[i].name));
		text__cell_duration(st.table, one.wall);
		states_table__row(&st, &one, true);
	}
	return text__print(t, "What Haskell threads did, in % of each one's life", st.table,
			   lanes->n, "Haskell threads");
}
