/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The text report's tables of functions, safe calls and unsafe calls.
 */
#include <string.h>

#include "text_priv.h"

#define UNSAFE_SHOWN   0.1 /* percent of the session */
#define HANDOVER_SHOWN 1.0 /* percent of a call's time with its hand-over */

/* ── functions ───────────────────────────────────────────────────────────────────────────── */

static bool is_code(const struct pic_function *f)
{
	return f->kind != TF_STATE && f->kind != TF_MARK;
}

/* A module that is in the qualified name already is not shown twice. */
static const char *module_of(const struct pic_function *f)
{
	const char *name = or_empty(f->name), *module = or_empty(f->module);
	size_t len = strlen(module);

	name += *name == '~';
	return len && !strncmp(name, module, len) && name[len] == '.' ? "" : module;
}

int text__functions(const struct text *t)
{
	const struct pic_target *target = t->target;
	uint64_t samples = 0;
	struct table *table;
	size_t n = 0;
	int err;

	for (size_t i = 0; i < target->n_functions; i++) {
		samples += target->functions[i].self_samples;
		n += is_code(&target->functions[i]);
	}
	samples = MAX(samples, target->quality.samples);
	/* With a log alone functions are cost centres, which have a table of their own. */
	if (!n || !samples || t->log_alone)
		return 0;
	err = text__table(&function_columns, &table);
	if (err)
		return err;
	for (size_t i = 0, left = t->rows; i < target->n_functions && left; i++) {
		struct function_row row = {.function = target->functions[i]};

		if (!is_code(&row.function))
			continue;
		row.self = human__percent(row.function.self_samples, samples);
		row.total = human__percent(row.function.total_samples, samples);
		row.function.module = module_of(&row.function);
		text__row(table, &function_columns, &row);
		left--;
	}
	return text__print(t, "Top functions, by samples on the CPU", table, n, "functions");
}

/* ── calls ───────────────────────────────────────────────────────────────────────────────── */

static void add_note(struct buf *notes, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void add_note(struct buf *notes, const char *fmt, ...)
{
	char note[96];
	va_list args;

	va_start(args, fmt);
	vsnprintf(note, sizeof(note), fmt, args);
	va_end(args);
	buf__addf(notes, "%s%s", notes->len ? ", " : "", note);
}

static void add_notes(struct buf *notes, const struct pic_call *call)
{
	if (call->open_at_end && call->open_wall_ns)
		add_note(notes, "%s open for %s", human__count(call->open_at_end).s,
			 human__duration(call->open_wall_ns).s);
	else if (call->open_at_end)
		add_note(notes, "%s open", human__count(call->open_at_end).s);
	if (call->open_at_start)
		add_note(notes, "%s begun before", human__count(call->open_at_start).s);
	if (call->abandoned)
		add_note(notes, "%s abandoned", human__count(call->abandoned).s);
	if (!call->exact && call->observed_share < 1)
		add_note(notes, "seen %.0f %% of the time", 100 * call->observed_share);
	if (call->interruptible)
		add_note(notes, "interruptible");
}

/* Whether any of the first n calls was off the CPU for a while before its function began. */
static bool has_handover(const struct pic_call *calls, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t handover = calls[i].handover_ns;

		if (handover != UINT64_MAX && calls[i].wall_ns != UINT64_MAX &&
		    human__percent(handover, calls[i].wall_ns + handover) > HANDOVER_SHOWN)
			return true;
	}
	return false;
}

int text__safe_calls(const struct text *t)
{
	const struct pic_target *target = t->target;
	size_t n = MIN(target->n_calls, t->rows), n_columns = 0;
	struct column v[24];
	struct columns columns = {.v = v};
	bool handover = has_handover(target->calls, n);
	struct table *table;
	int err;

	if (!n)
		return 0;
	for (size_t i = 0; i < call_columns.n && n_columns < ARRAY_SIZE(v); i++)
		if (handover ||
		    call_columns.v[i].offset != offsetof(struct call_row, call.handover_ns))
			v[n_columns++] = call_columns.v[i];
	columns.n = n_columns;
	err = text__table(&columns, &table);
	if (err)
		return err;
	for (size_t i = 0; i < n; i++) {
		struct call_row row = {.call = target->calls[i], .mean_ns = UINT64_MAX};
		struct buf notes;

		buf__init(&notes, 1024);
		add_notes(&notes, &row.call);
		row.notes = notes.data;
		if (row.call.calls && row.call.wall_ns != UINT64_MAX)
			row.mean_ns = row.call.wall_ns / row.call.calls;
		if (!t->opts->verbose)
			row.call.library = "";
		text__row(table, &columns, &row);
		buf__free(&notes);
	}
	return text__print(t, "Safe calls, by wall time", table, target->n_calls, "call sites");
}

/* A moment that no sample saw is not worth a row. */
static bool is_small(const struct text *t, const struct pic_unsafe *call)
{
	return !t->opts->verbose && !call->samples &&
	       human__percent(call->cpu_ns + call->blocked_ns, t->wall_ns) < UNSAFE_SHOWN;
}

int text__unsafe_calls(const struct text *t)
{
	const struct pic_target *target = t->target;
	struct table *table;
	size_t shown = 0;
	int err = text__table(&unsafe_columns, &table);

	if (err)
		return err;
	for (size_t i = 0; i < target->n_unsafe_calls; i++) {
		struct pic_unsafe call = target->unsafe_calls[i];

		if (is_small(t, &call) || ++shown > t->rows)
			continue;
		if (!t->opts->verbose)
			call.library = "";
		text__row(table, &unsafe_columns, &call);
	}
	if (!shown) {
		table__free(table);
		return 0;
	}
	return text__print(t,
			   "Unsafe calls, by time; each holds its capability, and GC waits for it",
			   table, shown, "unsafe calls");
}
