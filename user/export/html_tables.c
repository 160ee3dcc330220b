/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tables of the html page, all of one shape: {"title", "columns": [[title, unit, state]],
 * "rows": [[cell]], "more": rows left out}. Units: "text", "ns", "count", and "share", which is
 * nanoseconds in a state, shown as a share of the row's wall time. null: not known.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "html.h"

#define ROWS	    200	 /* of a table, and */
#define ROWS_OF_ALL 1600 /* of the tables of a kind, but no less than */
#define ROWS_LEAST  25
#define TARGETS	    256
#define PARAGRAPHS  64
#define NOT_A_STATE NULL

struct table_out {
	FILE *out;
	size_t columns, cells, rows, most;
	bool any; /* another table is before it */
};

/* ── cells ───────────────────────────────────────────────────────────────────────────────── */

static void begin(struct table_out *t, const char *title)
{
	fputs(t->any ? ",\n{\"title\":" : "\n{\"title\":", t->out);
	json__put_in_html(t->out, title);
	fputs(",\"columns\":[", t->out);
	t->any = true;
	t->columns = t->cells = t->rows = 0;
}

static void column(struct table_out *t, const char *title, const char *unit, const char *state)
{
	fputs(t->columns++ ? ",[" : "[", t->out);
	json__put_in_html(t->out, title);
	fprintf(t->out, ",\"%s\"", unit);
	if (state)
		fprintf(t->out, ",\"%s\"", state);
	fputc(']', t->out);
}

/* In front of a cell. */
static void next(struct table_out *t)
{
	if (!t->rows && !t->cells)
		fputs("],\"rows\":[", t->out);
	if (!t->cells)
		fputs(t->rows ? ",\n[" : "\n[", t->out);
	else
		fputc(',', t->out);
	t->cells++;
}

static void after(struct table_out *t)
{
	if (t->cells < t->columns)
		return;
	fputc(']', t->out);
	t->cells = 0;
	t->rows++;
}

static void text(struct table_out *t, const char *s)
{
	next(t);
	json__put_in_html(t->out, s);
	after(t);
}

static void number(struct table_out *t, uint64_t n)
{
	next(t);
	if (n == UINT64_MAX)
		fputs("null", t->out);
	else
		put_u64(t->out, n);
	after(t);
}

static void end(struct table_out *t, size_t n)
{
	if (!t->rows)
		fputs("],\"rows\":[", t->out);
	fprintf(t->out, "],\"more\":%zu}", n > t->most ? n - t->most : 0);
}

/* ── lanes ───────────────────────────────────────────────────────────────────────────────── */

static const uint64_t *states_of(const struct lane_view *view, uint64_t *ret_wall)
{
	switch (view->kind) {
	case LANE_CAPABILITY:
		*ret_wall = view->cap->end_ns - view->cap->start_ns;
		return view->cap->states_ns;
	case LANE_HASKELL:
		*ret_wall = view->tso->end_ns - view->tso->start_ns;
		return view->tso->states_ns;
	default:
		*ret_wall = view->thread->end_ns - view->thread->start_ns;
		return view->thread->states_ns;
	}
}

static void put_lane_row(struct table_out *t, const struct lane_view *view, uint32_t shown)
{
	char name[160];
	uint64_t wall;
	const uint64_t *states = states_of(view, &wall);

	view__name(view, false, name, sizeof(name));
	text(t, name);
	number(t, wall);
	if (view->kind == LANE_THREAD)
		number(t, view->thread->cpu_ns);
	for (unsigned s = 0; s < view__states(view->kind); s++)
		if (shown >> s & 1)
			number(t, states[s]);
}

static void put_lanes(struct table_out *t, const struct views *views, enum lane_kind kind)
{
	static const char *const titles[LANE_KINDS][2] = {
		[LANE_CAPABILITY] = {"What each capability was used for", "capability"},
		[LANE_THREAD] = {"Where the time went", "OS thread"},
		[LANE_HASKELL] = {"What Haskell threads did", "Haskell thread"},
	};
	uint32_t shown = 0;
	size_t n = 0;

	for (size_t i = 0; i < views->n; i++) {
		uint64_t wall;
		const uint64_t *states;

		if (views->v[i].kind != kind)
			continue;
		states = states_of(&views->v[i], &wall);
		for (unsigned s = 0; s < view__states(kind); s++)
			shown |= states[s] ? 1u << s : 0;
		n++;
	}
	if (!n)
		return;
	begin(t, titles[kind][0]);
	column(t, titles[kind][1], "text", NOT_A_STATE);
	column(t, "wall", "ns", NOT_A_STATE);
	if (kind == LANE_THREAD)
		column(t, "CPU", "ns", NOT_A_STATE);
	for (unsigned s = 0; s < view__states(kind); s++)
		if (shown >> s & 1)
			column(t, view__state_title(kind, s), "share", view__state_name(kind, s));
	for (size_t i = 0; i < views->n && t->rows < t->most; i++)
		if (views->v[i].kind == kind)
			put_lane_row(t, &views->v[i], shown);
	end(t, n);
}

/* ── calls, functions, cost centres ──────────────────────────────────────────────────────── */

static void put_safe_calls(struct table_out *t, const struct tl_target *target)
{
	if (!target->n_calls)
		return;
	begin(t, "Safe calls");
	column(t, "function", "text", NOT_A_STATE);
	column(t, "called from", "text", NOT_A_STATE);
	column(t, "calls", "count", NOT_A_STATE);
	column(t, "hand-over before", "ns", NOT_A_STATE);
	column(t, "total", "ns", NOT_A_STATE);
	column(t, "CPU", "ns", NOT_A_STATE);
	column(t, "blocked", "ns", NOT_A_STATE);
	column(t, "median", "ns", NOT_A_STATE);
	column(t, "p99", "ns", NOT_A_STATE);
	column(t, "max", "ns", NOT_A_STATE);
	column(t, "then waited for a capability", "ns", NOT_A_STATE);
	column(t, "seen", "text", NOT_A_STATE);
	for (size_t i = 0; i < target->n_calls && t->rows < t->most; i++) {
		const struct tl_call *c = &target->calls[i];
		char seen[32] = "all";

		if (!c->exact)
			snprintf(seen, sizeof(seen), "%.0f %% of the time",
				 100 * c->observed_share);
		text(t, c->function);
		text(t, c->caller);
		number(t, c->calls);
		number(t, c->handover_ns);
		number(t, c->wall_ns);
		number(t, c->cpu_ns);
		number(t, c->blocked_ns);
		number(t, c->p50_ns);
		number(t, c->p99_ns);
		number(t, c->max_ns);
		number(t, c->cap_wait_ns);
		text(t, seen);
	}
	end(t, target->n_calls);
}

static void put_unsafe_calls(struct table_out *t, const struct tl_target *target)
{
	if (!target->n_unsafe_calls)
		return;
	begin(t, "Unsafe calls (sampled)");
	column(t, "function", "text", NOT_A_STATE);
	column(t, "called from", "text", NOT_A_STATE);
	column(t, "samples", "count", NOT_A_STATE);
	column(t, "CPU", "ns", NOT_A_STATE);
	column(t, "blocked", "ns", NOT_A_STATE);
	column(t, "GC waited for it", "ns", NOT_A_STATE);
	for (size_t i = 0; i < target->n_unsafe_calls && t->rows < t->most; i++) {
		const struct tl_unsafe *c = &target->unsafe_calls[i];

		text(t, c->function);
		text(t, c->caller);
		number(t, c->samples);
		number(t, c->cpu_ns);
		number(t, c->blocked_ns);
		number(t, c->held_up_gc_ns);
	}
	end(t, target->n_unsafe_calls);
}

static void put_functions(struct table_out *t, const struct tl_target *target)
{
	if (!target->n_functions)
		return;
	begin(t, "Functions, by samples on the CPU");
	column(t, "function", "text", NOT_A_STATE);
	column(t, "self", "count", NOT_A_STATE);
	column(t, "with what it calls", "count", NOT_A_STATE);
	for (size_t i = 0; i < target->n_functions && t->rows < t->most; i++) {
		const struct tl_function *f = &target->functions[i];

		text(t, f->name);
		number(t, f->self_samples);
		number(t, f->total_samples);
	}
	end(t, target->n_functions);
}

static void put_cost_centres(struct table_out *t, const struct tl_target *target)
{
	size_t n = 0;

	for (size_t i = 0; i < target->n_cost_centres; i++)
		n += target->cost_centres[i].total_ticks != 0;
	if (!n)
		return;
	begin(t, "Cost centres");
	column(t, "cost centre", "text", NOT_A_STATE);
	column(t, "module", "text", NOT_A_STATE);
	column(t, "source", "text", NOT_A_STATE);
	column(t, "self ticks", "count", NOT_A_STATE);
	column(t, "total ticks", "count", NOT_A_STATE);
	for (size_t i = 0; i < target->n_cost_centres && t->rows < t->most; i++) {
		const struct tl_cost_centre *c = &target->cost_centres[i];

		if (!c->total_ticks)
			continue;
		text(t, c->label);
		text(t, c->module);
		text(t, c->src_loc);
		number(t, c->self_ticks);
		number(t, c->total_ticks);
	}
	end(t, n);
}

/* ── a process ───────────────────────────────────────────────────────────────────────────── */

static void put_name(FILE *out, const struct tl_target *target)
{
	char name[320];
	int at = snprintf(name, sizeof(name), "%.64s", target->comm ? target->comm : "");

	if (target->pid)
		at += snprintf(name + at, sizeof(name) - (size_t)at, " (pid %d)", (int)target->pid);
	if (target->ghc_version && *target->ghc_version)
		at += snprintf(name + at, sizeof(name) - (size_t)at, ", GHC %.32s %.32s",
			       target->ghc_version, target->way ? target->way : "");
	if (target->capabilities)
		snprintf(name + at, sizeof(name) - (size_t)at, ", %" PRIu32 " %s",
			 target->capabilities,
			 target->capabilities == 1 ? "capability" : "capabilities");
	fputs("{\"name\":", out);
	json__put_in_html(out, name);
}

static void put_target(FILE *out, const struct tl_target *target, const struct views *views,
		       bool log_alone, size_t rows)
{
	struct table_out t = {.out = out, .most = rows};

	put_name(out, target);
	fputs(",\"findings\":[", out);
	for (size_t i = 0; i < target->n_findings && i < PARAGRAPHS; i++) {
		fputs(i ? "," : "", out);
		json__put_in_html(out, target->findings[i].text);
	}
	fputs("],\"missing\":[", out);
	for (size_t i = 0; i < target->n_missing && i < PARAGRAPHS; i++) {
		fputs(i ? "," : "", out);
		json__put_in_html(out, target->missing[i]);
	}
	fputs("],\"tables\":[", out);
	put_lanes(&t, views, LANE_THREAD);
	put_lanes(&t, views, LANE_CAPABILITY);
	put_lanes(&t, views, LANE_HASKELL);
	put_safe_calls(&t, target);
	put_unsafe_calls(&t, target);
	/* With a log alone functions are cost centres, which have a table of their own. */
	if (!log_alone)
		put_functions(&t, target);
	put_cost_centres(&t, target);
	fputs("]}", out);
}

/* The views of one target out of those of all. */
static struct views views_of(const struct views *all, uint32_t target_no, struct lane_view *room)
{
	struct views views = {.v = room};

	for (size_t i = 0; i < all->n; i++)
		if (all->v[i].target_no == target_no)
			views.v[views.n++] = all->v[i];
	return views;
}

int html__put_targets(FILE *out, const struct timeline *tl, unsigned lanes)
{
	size_t n = timeline__n_targets(tl);
	struct lane_view *room;
	struct views all;
	int err = views__collect(tl, lanes, &all);

	if (err)
		return err;
	room = calloc(all.n + 1, sizeof(*room));
	if (!room) {
		views__free(&all);
		return -ENOMEM;
	}
	fputs("\"targets\":[", out);
	for (size_t i = 0; i < n && i < TARGETS; i++) {
		struct views mine = views_of(&all, (uint32_t)i, room);

		fputs(i ? ",\n" : "\n", out);
		put_target(out, timeline__target(tl, i), &mine, session__log_alone(tl),
			   MIN(MAX(ROWS_OF_ALL / n, (size_t)ROWS_LEAST), (size_t)ROWS));
	}
	fprintf(out, "],\"more_targets\":%zu", n > TARGETS ? n - TARGETS : 0);
	free(room);
	views__free(&all);
	return 0;
}
