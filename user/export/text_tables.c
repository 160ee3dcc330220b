/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The text report's tables: threads by state, functions, safe calls, unsafe calls.
 */
#include <inttypes.h>
#include <string.h>

#include "text_priv.h"

/* ── cells ───────────────────────────────────────────────────────────────────────────────── */

static void cell_duration(struct table *t, const char *mark, uint64_t ns)
{
	char text[32];

	if (ns == UINT64_MAX) {
		table__cell(t, "–");
		return;
	}
	human__duration(text, sizeof(text), ns);
	table__cellf(t, "%s%s", ns ? mark : "", ns ? text : "0");
}

void text__cell_duration(struct table *t, uint64_t ns)
{
	cell_duration(t, "", ns);
}

static void cell_count(struct table *t, const char *mark, uint64_t n)
{
	char text[32];

	human__count(text, sizeof(text), n);
	table__cellf(t, "%s%s", mark, text);
}

void text__cell_share(struct table *t, double percent)
{
	if (percent < TEXT_SHARE_SHOWN)
		table__cell(t, "·");
	else
		table__cellf(t, "%.1f", percent);
}

/* `~`: the nearest name that is known, not the name of that very code. */
static void cell_name(struct table *t, const char *name, bool approximate)
{
	if (!name || !*name)
		table__cell(t, "?");
	else
		table__cellf(t, "%s%s", approximate && *name != '~' ? "~" : "", name);
}

int text__print(struct table *table, const struct text *t)
{
	int err = table__print(table, t->out, t->width, t->opts->colour);

	table__free(table);
	return err;
}

void text__more(const struct text *t, size_t n, const char *what)
{
	char count[32];

	if (n <= t->rows)
		return;
	human__count(count, sizeof(count), n - t->rows);
	fprintf(t->out, "  … and %s more %s\n", count, what);
}

/* ── threads ─────────────────────────────────────────────────────────────────────────────── */

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

static void add_thread(struct table *table, const char *name, uint64_t wall, uint64_t cpu,
		       const uint64_t states_ns[ST_MAX], uint32_t shown)
{
	table__cell(table, name);
	cell_duration(table, "", wall);
	cell_duration(table, "", cpu);
	for (size_t c = 0; c < ARRAY_SIZE(state_columns); c++) {
		enum tl_state state = state_columns[c].state;

		if (shown >> state & 1)
			text__cell_share(table, human__percent(states_ns[state], wall));
		else
			table__cell(table, "");
	}
}

/* Which of the numbers are estimates: no event marks where these states begin and end. */
static void put_sampled(const struct text *t, uint32_t sampled, size_t coarse)
{
	const char *comma = "  sampled: ";

	for (size_t c = 0; c < ARRAY_SIZE(state_columns); c++) {
		if (!(sampled >> state_columns[c].state & 1))
			continue;
		fprintf(t->out, "%s%s", comma, state__title(state_columns[c].state));
		comma = ", ";
	}
	if (sampled)
		fputs("; the rest is exact\n", t->out);
	if (coarse)
		fprintf(t->out,
			"  short stretches of %zu %s were merged in the profiles; these shares are "
			"right\n",
			coarse, coarse == 1 ? "thread" : "threads");
}

int text__threads(const struct text *t)
{
	const struct tl_target *target = t->target;
	uint64_t total[ST_MAX] = {0}, wall = 0, cpu = 0;
	uint32_t shown = 0, sampled = 0;
	size_t coarse = 0;
	struct table *table;
	int err;

	if (!target->n_lanes)
		return 0;
	for (size_t i = 0; i < target->n_lanes; i++) {
		const struct tl_lane *lane = &target->lanes[i];
		uint64_t lane_wall = lane->end_ns - lane->start_ns;

		for (int s = 0; s < ST_MAX; s++) {
			total[s] += lane->states_ns[s];
			if (human__percent(lane->states_ns[s], lane_wall) >= TEXT_SHARE_SHOWN)
				shown |= 1u << s;
		}
		wall += lane_wall;
		cpu = lane->cpu_ns == UINT64_MAX || cpu == UINT64_MAX ? UINT64_MAX
								      : cpu + lane->cpu_ns;
		sampled |= lane->sampled_states;
		coarse += lane->coarse;
	}
	err = table__new(3 + ARRAY_SIZE(state_columns), &table);
	if (err)
		return err;
	table__column(table, 0, "thread", "", COL_FLEX);
	table__column(table, 1, "wall", "", COL_RIGHT);
	table__column(table, 2, "CPU", "", COL_RIGHT);
	for (size_t c = 0; c < ARRAY_SIZE(state_columns); c++)
		table__column(table, 3 + c, state_columns[c].title, state_columns[c].group,
			      COL_RIGHT);
	for (size_t i = 0; i < MIN(target->n_lanes, t->rows); i++) {
		const struct tl_lane *lane = &target->lanes[i];
		char name[48];

		snprintf(name, sizeof(name), "%d %.16s", (int)lane->tid, lane->name);
		add_thread(table, name, lane->end_ns - lane->start_ns, lane->cpu_ns,
			   lane->states_ns, shown);
	}
	add_thread(table, "all threads", wall, cpu, total, shown);
	text__section(t, "Where the time went, in % of each thread's wall time");
	err = text__print(table, t);
	text__more(t, target->n_lanes, "threads");
	put_sampled(t, sampled & shown, coarse);
	return err;
}

/* ── functions ───────────────────────────────────────────────────────────────────────────── */

static bool is_code(const struct tl_function *f)
{
	return f->kind != TF_STATE && f->kind != TF_MARK;
}

/* A module that the qualified name already tells is not told twice. */
static const char *module_of(const struct tl_function *f)
{
	const char *name = f->name ? f->name : "", *module = f->module ? f->module : "";
	size_t len = strlen(module);

	name += *name == '~';
	return len && !strncmp(name, module, len) && name[len] == '.' ? "" : module;
}

int text__functions(const struct text *t)
{
	const struct tl_target *target = t->target;
	size_t n = 0, left = t->rows;
	uint64_t samples = 0;
	struct table *table;
	int err;

	for (size_t i = 0; i < target->n_functions; i++) {
		samples += target->functions[i].self_samples;
		n += is_code(&target->functions[i]);
	}
	samples = MAX(samples, target->quality.samples);
	if (!n || !samples)
		return 0;
	err = table__new(4, &table);
	if (err)
		return err;
	table__column(table, 0, "self %", NULL, COL_RIGHT);
	table__column(table, 1, "total %", NULL, COL_RIGHT);
	table__column(table, 2, "function", NULL, COL_FLEX);
	table__column(table, 3, "module", NULL, COL_FLEX);
	for (size_t i = 0; i < target->n_functions && left; i++) {
		const struct tl_function *f = &target->functions[i];

		if (!is_code(f))
			continue;
		text__cell_share(table, human__percent(f->self_samples, samples));
		text__cell_share(table, human__percent(f->total_samples, samples));
		cell_name(table, f->name, f->approximate);
		table__cell(table, module_of(f));
		left--;
	}
	text__section(t, "Top functions, by samples on the CPU");
	err = text__print(table, t);
	text__more(t, n, "functions");
	return err;
}

/* ── calls ───────────────────────────────────────────────────────────────────────────────── */

static void add_note(struct buf *notes, uint64_t n, const char *what)
{
	char count[32];

	if (!n)
		return;
	human__count(count, sizeof(count), n);
	buf__addf(notes, "%s%s %s", notes->len ? ", " : "", count, what);
}

static void cell_notes(struct table *table, const struct tl_call *call)
{
	struct buf notes;
	char open[32];

	buf__init(&notes, 1024);
	add_note(&notes, call->open_at_end, "open");
	if (call->open_at_end && call->open_wall_ns) {
		human__duration(open, sizeof(open), call->open_wall_ns);
		buf__addf(&notes, " for %s", open);
	}
	add_note(&notes, call->open_at_start, "begun before");
	add_note(&notes, call->abandoned, "abandoned");
	if (!call->exact && call->observed_share < 1)
		buf__addf(&notes, "%sseen %.0f %% of the time", notes.len ? ", " : "",
			  100 * call->observed_share);
	if (call->interruptible)
		buf__addf(&notes, "%sinterruptible", notes.len ? ", " : "");
	table__cell(table, notes.data ? notes.data : "");
	buf__free(&notes);
}

static void add_safe_call(struct table *table, const struct tl_call *call, bool verbose)
{
	const char *mark = call->exact ? "" : "≥ ";

	cell_name(table, call->function, false);
	table__cell(table, verbose && call->library ? call->library : "");
	cell_name(table, call->caller, call->caller_approximate);
	cell_count(table, mark, call->calls);
	cell_duration(table, mark, call->wall_ns);
	cell_duration(table, mark, call->cpu_ns);
	cell_duration(table, mark, call->blocked_ns);
	cell_duration(table, "",
		      call->calls && call->wall_ns != UINT64_MAX ? call->wall_ns / call->calls
								 : UINT64_MAX);
	cell_duration(table, "", call->p99_ns);
	cell_duration(table, "", call->max_ns);
	cell_duration(table, mark, call->cap_wait_ns);
	cell_notes(table, call);
}

int text__safe_calls(const struct text *t)
{
	static const struct {
		const char *title;
		int flags;
	} columns[] = {
		{"function", COL_FLEX}, {"library", COL_FLEX},	 {"called from", COL_FLEX},
		{"calls", COL_RIGHT},	{"total", COL_RIGHT},	 {"CPU", COL_RIGHT},
		{"blocked", COL_RIGHT}, {"mean", COL_RIGHT},	 {"p99", COL_RIGHT},
		{"max", COL_RIGHT},	{"cap wait", COL_RIGHT}, {"", COL_LEFT},
	};
	const struct tl_target *target = t->target;
	struct table *table;
	int err;

	if (!target->n_calls)
		return 0;
	err = table__new(ARRAY_SIZE(columns), &table);
	if (err)
		return err;
	for (size_t c = 0; c < ARRAY_SIZE(columns); c++)
		table__column(table, c, columns[c].title, NULL, columns[c].flags);
	for (size_t i = 0; i < MIN(target->n_calls, t->rows); i++)
		add_safe_call(table, &target->calls[i], t->opts->verbose);
	text__section(t, "Safe calls, by wall time");
	err = text__print(table, t);
	text__more(t, target->n_calls, "call sites");
	return err;
}

int text__unsafe_calls(const struct text *t)
{
	const struct tl_target *target = t->target;
	struct table *table;
	int err;

	if (!target->n_unsafe_calls)
		return 0;
	err = table__new(6, &table);
	if (err)
		return err;
	table__column(table, 0, "function", NULL, COL_FLEX);
	table__column(table, 1, "library", NULL, COL_FLEX);
	table__column(table, 2, "called from", NULL, COL_FLEX);
	table__column(table, 3, "samples", NULL, COL_RIGHT);
	table__column(table, 4, "CPU", NULL, COL_RIGHT);
	table__column(table, 5, "blocked", NULL, COL_RIGHT);
	for (size_t i = 0; i < MIN(target->n_unsafe_calls, t->rows); i++) {
		const struct tl_unsafe *call = &target->unsafe_calls[i];

		cell_name(table, call->function, false);
		table__cell(table, t->opts->verbose && call->library ? call->library : "");
		cell_name(table, call->caller, call->caller_approximate);
		cell_count(table, "", call->samples);
		/* Sampled: an unsafe call has no event of its own. */
		cell_duration(table, "~", call->cpu_ns);
		cell_duration(table, "~", call->blocked_ns);
	}
	text__section(t, "Unsafe calls, by time; each holds its capability, and GC waits for it");
	err = text__print(table, t);
	text__more(t, target->n_unsafe_calls, "unsafe calls");
	return err;
}
