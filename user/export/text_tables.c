/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The text report's tables of functions, safe calls and unsafe calls; cells of all tables.
 */
#include <inttypes.h>
#include <string.h>

#include "text_priv.h"

#define UNSAFE_SHOWN   0.1 /* percent of the session */
#define HANDOVER_SHOWN 1.0 /* percent of a call's time with its hand-over */

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

void text__cell_count(struct table *t, uint64_t n)
{
	cell_count(t, "", n);
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

void text__sampled(const struct text *t, uint32_t sampled)
{
	if (sampled)
		fputs("  ~ sampled; the other columns are exact\n", t->out);
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

/* Whether any of the first n calls was off the CPU for a while before its function began. */
static bool has_handover(const struct tl_call *calls, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t handover = calls[i].handover_ns;

		if (handover != UINT64_MAX && calls[i].wall_ns != UINT64_MAX &&
		    human__percent(handover, calls[i].wall_ns + handover) > HANDOVER_SHOWN)
			return true;
	}
	return false;
}

static void add_safe_call(struct table *table, const struct tl_call *call, bool verbose,
			  bool handover)
{
	const char *mark = call->exact ? "" : "≥ ";

	cell_name(table, call->function, false);
	table__cell(table, verbose && call->library ? call->library : "");
	cell_name(table, call->caller, call->caller_approximate);
	cell_count(table, mark, call->calls);
	if (handover)
		cell_duration(table, mark, call->handover_ns);
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
	enum { HANDOVER_COLUMN = 4 };
	static const struct {
		const char *title;
		int flags;
		uint64_t worth;
	} columns[] = {
		{"function", COL_FLEX, UINT64_MAX},
		{"library", COL_FLEX, 0},
		{"called from", COL_FLEX, UINT64_MAX},
		{"calls", COL_RIGHT, UINT64_MAX},
		[HANDOVER_COLUMN] = {"hand-over", COL_RIGHT, 2},
		{"total", COL_RIGHT, UINT64_MAX},
		{"CPU", COL_RIGHT, UINT64_MAX},
		{"blocked", COL_RIGHT, 3},
		{"mean", COL_RIGHT, 6},
		{"p99", COL_RIGHT, 5},
		{"max", COL_RIGHT, 4},
		{"cap wait", COL_RIGHT, UINT64_MAX},
		{"", COL_FLEX, 1},
	};
	const struct tl_target *target = t->target;
	size_t n = MIN(target->n_calls, t->rows), column = 0;
	bool handover = has_handover(target->calls, n);
	struct table *table;
	int err;

	if (!n)
		return 0;
	err = table__new(ARRAY_SIZE(columns) - !handover, &table);
	if (err)
		return err;
	for (size_t c = 0; c < ARRAY_SIZE(columns); c++) {
		if (c == HANDOVER_COLUMN && !handover)
			continue;
		table__column(table, column, columns[c].title, NULL, columns[c].flags);
		table__worth(table, column++, columns[c].worth);
	}
	for (size_t i = 0; i < n; i++)
		add_safe_call(table, &target->calls[i], t->opts->verbose, handover);
	text__section(t, "Safe calls, by wall time");
	err = text__print(table, t);
	text__more(t, target->n_calls, "call sites");
	return err;
}

/* A moment that no sample saw tells nothing. */
static bool is_small(const struct text *t, const struct tl_unsafe *call)
{
	return !t->opts->verbose && !call->samples &&
	       human__percent(call->cpu_ns + call->blocked_ns, t->wall_ns) < UNSAFE_SHOWN;
}

int text__unsafe_calls(const struct text *t)
{
	static const char *const titles[] = {"function", "library", "called from", "samples",
					     "CPU",	 "blocked", "GC waited"};
	const struct tl_target *target = t->target;
	size_t shown = 0;
	struct table *table;
	int err;

	for (size_t i = 0; i < target->n_unsafe_calls; i++)
		shown += !is_small(t, &target->unsafe_calls[i]);
	if (!shown)
		return 0;
	err = table__new(ARRAY_SIZE(titles), &table);
	if (err)
		return err;
	for (size_t c = 0; c < ARRAY_SIZE(titles); c++)
		table__column(table, c, titles[c], NULL, c < 3 ? COL_FLEX : COL_RIGHT);
	for (size_t i = 0, left = t->rows; i < target->n_unsafe_calls && left; i++) {
		const struct tl_unsafe *call = &target->unsafe_calls[i];

		if (is_small(t, call))
			continue;
		cell_name(table, call->function, false);
		table__cell(table, t->opts->verbose && call->library ? call->library : "");
		cell_name(table, call->caller, call->caller_approximate);
		cell_count(table, "", call->samples);
		/* Sampled: an unsafe call has no event of its own. */
		cell_duration(table, "~", call->cpu_ns);
		cell_duration(table, "~", call->blocked_ns);
		if (call->held_up_gc_ns == UINT64_MAX)
			table__cell(table, "");
		else
			cell_duration(table, "", call->held_up_gc_ns);
		left--;
	}
	text__section(t, "Unsafe calls, by time; each holds its capability, and GC waits for it");
	err = text__print(table, t);
	text__more(t, shown, "unsafe calls");
	return err;
}
