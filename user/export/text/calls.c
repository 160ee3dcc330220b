/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The text report's tables of safe calls and unsafe calls.
 */
#include <stdlib.h>
#include <string.h>

#include "export/calls.h"
#include "text_priv.h"

#define UNSAFE_SHOWN   0.1 /* percent of the session */
#define HANDOVER_SHOWN 1.0 /* percent of a call's time including its hand-over */

/* ── safe calls ──────────────────────────────────────────────────────────────────────────── */

struct safe_ref {
	const struct pic_target *target;
	const struct pic_call *call;
	uint64_t ns; /* including the open ones so far */
	bool io_manager;
};

static int by_wall(const void *pa, const void *pb)
{
	const struct safe_ref *a = pa, *b = pb;

	return CMP(a->io_manager, b->io_manager)
		       ?: CMP(b->ns, a->ns)
		       ?: CMP(b->call->calls, a->call->calls)
		       ?: CMP(a->target->pid, b->target->pid)
		       ?: CMP(a->call, b->call);
}

/* False for the I/O manager's call that stayed open for the whole session: its row would be all
 * zeros. */
static bool is_news(const struct text *t, const struct pic_call *call)
{
	return !t->brief || call->calls || !call__is_io_manager(call);
}

static int sort_safe_calls(const struct text *t, struct safe_ref **ret_v, size_t *ret_n)
{
	struct safe_ref *v;
	size_t n = 0;

	for (size_t i = 0; i < t->n_of; i++)
		n += t->of[i]->n_calls;
	v = calloc(n + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	n = 0;
	for (size_t i = 0; i < t->n_of; i++) {
		for (size_t k = 0; k < t->of[i]->n_calls; k++) {
			const struct pic_call *call = &t->of[i]->calls[k];

			if (is_news(t, call))
				v[n++] = (struct safe_ref){t->of[i], call, call__ns(call),
							   call__is_io_manager(call)};
		}
	}
	qsort(v, n, sizeof(*v), by_wall);
	*ret_v = v;
	*ret_n = n;
	return 0;
}

/* True if any of the calls was off the CPU for a notable time before its function began. */
static bool has_handover(const struct safe_ref *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t handover = v[i].call->handover_ns, wall = v[i].call->wall_ns;

		if (handover != UINT64_MAX && wall != UINT64_MAX &&
		    human__percent(handover, wall + handover) > HANDOVER_SHOWN)
			return true;
	}
	return false;
}

static void add_safe_call(const struct text *t, struct table *table, const struct columns *columns,
			  const struct safe_ref *ref)
{
	struct call_row row = {.call = *ref->call, .mean_ns = UINT64_MAX};
	struct buf notes;

	buf__init(&notes, 1024);
	call__add_notes(&notes, &row.call);
	row.notes = notes.data;
	if (row.call.calls && row.call.wall_ns != UINT64_MAX)
		row.mean_ns = row.call.wall_ns / row.call.calls;
	if (t->brief)
		row.call.library = "";
	text__cell_process(t, table, ref->target);
	text__row(table, columns, &row);
	buf__free(&notes);
}

/* Columns that only the full report has. */
static bool is_detail(const struct column *c)
{
	return c->offset == offsetof(struct call_row, call.p99_ns) ||
	       c->offset == offsetof(struct call_row, call.handover_ns);
}

int text__safe_calls(const struct text *t)
{
	size_t n, shown, n_columns = 0;
	struct column v[24];
	struct columns columns = {.v = v};
	struct safe_ref *refs;
	struct table *table;
	bool handover;
	int err = sort_safe_calls(t, &refs, &n);

	if (err || !n) {
		if (!err)
			free(refs);
		return err;
	}
	shown = MIN(n, t->rows);
	handover = has_handover(refs, shown);
	for (size_t i = 0; i < call_columns.n && n_columns < ARRAY_SIZE(v); i++) {
		const struct column *c = &call_columns.v[i];
		bool is_handover = c->offset == offsetof(struct call_row, call.handover_ns);

		if (t->brief ? !is_detail(c) : handover || !is_handover)
			v[n_columns++] = *c;
	}
	columns.n = n_columns;
	err = text__table_of(t, &columns, &table);
	for (size_t i = 0; i < shown && !err; i++)
		add_safe_call(t, table, &columns, &refs[i]);
	free(refs);
	return err ? err : text__print(t, "Safe calls, by wall time", table, n, "call sites");
}

/* ── unsafe calls ────────────────────────────────────────────────────────────────────────── */

struct unsafe_ref {
	const struct pic_target *target;
	const struct pic_unsafe *call;
};

static int by_time(const void *pa, const void *pb)
{
	const struct unsafe_ref *a = pa, *b = pb;

	return CMP(b->call->cpu_ns + b->call->blocked_ns, a->call->cpu_ns + a->call->blocked_ns)
		       ?: CMP(a->target->pid, b->target->pid)
		       ?: CMP(a->call, b->call);
}

/* True for calls too short for a row: without a sample, and below UNSAFE_SHOWN. */
static bool is_small(const struct text *t, const struct pic_unsafe *call)
{
	return !t->opts->verbose && !call->samples &&
	       human__percent(call->cpu_ns + call->blocked_ns, t->wall_ns) < UNSAFE_SHOWN;
}

int text__unsafe_calls(const struct text *t)
{
	struct unsafe_ref *refs;
	struct table *table;
	size_t n = 0, max = 0;
	int err;

	for (size_t i = 0; i < t->n_of; i++)
		max += t->of[i]->n_unsafe_calls;
	refs = calloc(max + 1, sizeof(*refs));
	if (!refs)
		return -ENOMEM;
	for (size_t i = 0; i < t->n_of; i++)
		for (size_t k = 0; k < t->of[i]->n_unsafe_calls; k++)
			if (!is_small(t, &t->of[i]->unsafe_calls[k]))
				refs[n++] =
					(struct unsafe_ref){t->of[i], &t->of[i]->unsafe_calls[k]};
	qsort(refs, n, sizeof(*refs), by_time);
	err = n ? text__table_of(t, &unsafe_columns, &table) : 0;
	for (size_t i = 0; i < MIN(n, t->rows) && !err; i++) {
		struct pic_unsafe call = *refs[i].call;

		if (t->brief)
			call.library = "";
		text__cell_process(t, table, refs[i].target);
		text__row(table, &unsafe_columns, &call);
	}
	free(refs);
	if (err || !n)
		return err;
	return text__print(t,
			   "Unsafe calls, by time; each holds its capability, and GC waits for it",
			   table, n, "unsafe calls");
}
