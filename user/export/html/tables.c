/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tables of the html page, all of one shape: {"title", "columns": [[title, unit, state]],
 * "rows": [[cell]], "more": rows left out}. Units: "text", "ns", "count", and "share", which is
 * nanoseconds in a state, shown as a share of the row's wall time. null: not known.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "export/columns.h"
#include "html_priv.h"

#define ROWS	    200	 /* of a table, and */
#define ROWS_OF_ALL 1600 /* of the tables of a kind, but no less than */
#define ROWS_LEAST  25
#define TARGETS	    256
#define PARAGRAPHS  64

struct table_out {
	FILE *out;
	size_t cells, rows, most;
	bool any; /* another table is before it */
};

/* ── cells ───────────────────────────────────────────────────────────────────────────────── */

static void begin(struct table_out *t, const char *title)
{
	fputs(t->any ? ",\n{\"title\":" : "\n{\"title\":", t->out);
	json__put_in_html(t->out, title);
	fputs(",\"columns\":[", t->out);
	t->any = true;
	t->cells = t->rows = 0;
}

/* `state`: NULL if it is not one's. */
static void add_column(struct table_out *t, const char *title, const char *unit, const char *state)
{
	fputs(t->cells++ ? ",[" : "[", t->out);
	json__put_in_html(t->out, title);
	fprintf(t->out, ",\"%s\"", unit);
	if (state)
		fprintf(t->out, ",\"%s\"", state);
	fputc(']', t->out);
}

static void begin_rows(struct table_out *t)
{
	fputs("],\"rows\":[", t->out);
}

static void begin_row(struct table_out *t)
{
	fputs(t->rows++ ? "],\n[" : "\n[", t->out);
	t->cells = 0;
}

static void add_text(struct table_out *t, const char *s)
{
	fputs(t->cells++ ? "," : "", t->out);
	json__put_in_html(t->out, s);
}

static void add_number(struct table_out *t, uint64_t n)
{
	fputs(t->cells++ ? "," : "", t->out);
	if (n == UINT64_MAX)
		fputs("null", t->out);
	else
		put_u64(t->out, n);
}

static void end(struct table_out *t, size_t n)
{
	fprintf(t->out, "%s],\"more\":%zu}", t->rows ? "]" : "", n > t->most ? n - t->most : 0);
}

static bool is_text(const struct column *c)
{
	return c->cell == CELL_TEXT || c->cell == CELL_NAME;
}

static void begin_declared(struct table_out *t, const char *title, const struct columns *columns)
{
	begin(t, title);
	for (size_t i = 0; i < columns->n; i++) {
		const struct column *c = &columns->v[i];

		if (c->page)
			add_column(t, c->page,
				   is_text(c)		   ? "text"
				   : c->cell == CELL_COUNT ? "count"
							   : "ns",
				   NULL);
	}
	begin_rows(t);
}

static void add_row(struct table_out *t, const struct columns *columns, const void *row)
{
	begin_row(t);
	for (size_t i = 0; i < columns->n; i++) {
		const struct column *c = &columns->v[i];
		const void *member = (const char *)row + c->offset;

		if (c->page && is_text(c))
			add_text(t, *(const char *const *)member);
		else if (c->page)
			add_number(t, *(const uint64_t *)member);
	}
}

/* ── lanes ───────────────────────────────────────────────────────────────────────────────── */

static void put_lanes(struct table_out *t, const struct views *views, uint32_t target_no,
		      enum lane_kind kind)
{
	static const char *const titles[LANE_KINDS][2] = {
		[LANE_CAPABILITY] = {"What each capability was used for", "capability"},
		[LANE_THREAD] = {"Where the time went", "OS thread"},
		[LANE_HASKELL] = {"What Haskell threads did", "Haskell thread"},
	};
	uint32_t shown = 0;
	size_t n = 0;

	for (size_t i = 0; i < views->n; i++) {
		const struct pic_lane *lane = views->v[i].lane;

		if (lane->kind != kind || views->v[i].target_no != target_no)
			continue;
		for (unsigned s = 0; s < state__count(kind); s++)
			shown |= lane->states_ns[s] ? 1u << s : 0;
		n++;
	}
	if (!n)
		return;
	begin(t, titles[kind][0]);
	add_column(t, titles[kind][1], "text", NULL);
	add_column(t, "wall", "ns", NULL);
	if (kind == LANE_THREAD)
		add_column(t, "CPU", "ns", NULL);
	for (unsigned s = 0; s < state__count(kind); s++)
		if (shown >> s & 1)
			add_column(t, state__title(kind, s), "share", state__name(kind, s));
	begin_rows(t);
	for (size_t i = 0; i < views->n && t->rows < t->most; i++) {
		const struct pic_lane *lane = views->v[i].lane;

		if (lane->kind != kind || views->v[i].target_no != target_no)
			continue;
		begin_row(t);
		add_text(t, view__name(&views->v[i], false).s);
		add_number(t, lane->end_ns - lane->start_ns);
		if (kind == LANE_THREAD)
			add_number(t, lane->cpu_ns);
		for (unsigned s = 0; s < state__count(kind); s++)
			if (shown >> s & 1)
				add_number(t, lane->states_ns[s]);
	}
	end(t, n);
}

/* ── calls, functions, cost centres ──────────────────────────────────────────────────────── */

static void put_safe_calls(struct table_out *t, const struct pic_target *target)
{
	begin_declared(t, "Safe calls", &call_columns);
	for (size_t i = 0; i < target->n_calls && t->rows < t->most; i++) {
		struct call_row row = {.call = target->calls[i], .seen = "all"};
		char seen[32];

		snprintf(seen, sizeof(seen), "%.0f %% of the time", 100 * row.call.observed_share);
		if (!row.call.exact)
			row.seen = seen;
		add_row(t, &call_columns, &row);
	}
	end(t, target->n_calls);
}

static void put_unsafe_calls(struct table_out *t, const struct pic_target *target)
{
	begin_declared(t, "Unsafe calls (sampled)", &unsafe_columns);
	for (size_t i = 0; i < target->n_unsafe_calls && t->rows < t->most; i++)
		add_row(t, &unsafe_columns, &target->unsafe_calls[i]);
	end(t, target->n_unsafe_calls);
}

static void put_functions(struct table_out *t, const struct pic_target *target)
{
	begin_declared(t, "Functions, by samples on the CPU", &function_columns);
	for (size_t i = 0; i < target->n_functions && t->rows < t->most; i++)
		add_row(t, &function_columns,
			&(struct function_row){.function = target->functions[i]});
	end(t, target->n_functions);
}

static void put_cost_centres(struct table_out *t, const struct pic_target *target)
{
	size_t n = 0;

	for (size_t i = 0; i < target->n_cost_centres; i++)
		n += target->cost_centres[i].total_ticks != 0;
	if (!n)
		return;
	begin_declared(t, "Cost centres", &centre_columns);
	for (size_t i = 0; i < target->n_cost_centres && t->rows < t->most; i++)
		if (target->cost_centres[i].total_ticks)
			add_row(t, &centre_columns,
				&(struct centre_row){.centre = target->cost_centres[i]});
	end(t, n);
}

/* ── a process ───────────────────────────────────────────────────────────────────────────── */

static void put_name(FILE *out, const struct pic_target *target)
{
	char name[320];
	int at = snprintf(name, sizeof(name), "%.64s", or_empty(target->comm));

	if (target->pid)
		at += snprintf(name + at, sizeof(name) - (size_t)at, " (pid %d)", (int)target->pid);
	if (target->ghc_version && *target->ghc_version)
		at += snprintf(name + at, sizeof(name) - (size_t)at, ", GHC %.32s %.32s",
			       target->ghc_version, or_empty(target->way));
	if (target->capabilities)
		snprintf(name + at, sizeof(name) - (size_t)at, ", %" PRIu32 " %s",
			 target->capabilities,
			 target->capabilities == 1 ? "capability" : "capabilities");
	fputs("{\"name\":", out);
	json__put_in_html(out, name);
}

static void put_target(struct table_out *t, const struct pic_target *target,
		       const struct views *views, uint32_t target_no, bool log_alone)
{
	t->any = false;
	put_name(t->out, target);
	fputs(",\"findings\":[", t->out);
	for (size_t i = 0; i < target->n_findings && i < PARAGRAPHS; i++) {
		fputs(i ? "," : "", t->out);
		json__put_in_html(t->out, target->findings[i].text);
	}
	fputs("],\"missing\":[", t->out);
	for (size_t i = 0; i < target->n_missing && i < PARAGRAPHS; i++) {
		fputs(i ? "," : "", t->out);
		json__put_in_html(t->out, target->missing[i]);
	}
	fputs("],\"tables\":[", t->out);
	put_lanes(t, views, target_no, LANE_THREAD);
	put_lanes(t, views, target_no, LANE_CAPABILITY);
	put_lanes(t, views, target_no, LANE_HASKELL);
	if (target->n_calls)
		put_safe_calls(t, target);
	if (target->n_unsafe_calls)
		put_unsafe_calls(t, target);
	/* With a log alone functions are cost centres, which have a table of their own. */
	if (target->n_functions && !log_alone)
		put_functions(t, target);
	put_cost_centres(t, target);
	fputs("]}", t->out);
}

void html__put_targets(FILE *out, const struct picture *pic, const struct views *views)
{
	size_t n = picture__n_targets(pic);
	struct table_out t = {.out = out};

	fputs("\"targets\":[", out);
	for (size_t i = 0; i < n && i < TARGETS; i++) {
		t.most = MIN(MAX(ROWS_OF_ALL / n, (size_t)ROWS_LEAST), (size_t)ROWS);
		fputs(i ? ",\n" : "\n", out);
		put_target(&t, picture__target(pic, i), views, (uint32_t)i,
			   session__log_alone(pic));
	}
	fprintf(out, "],\"more_targets\":%zu", n > TARGETS ? n - TARGETS : 0);
}
