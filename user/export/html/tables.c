/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tables that the html page shares with the text report, all of one shape: {"id", "title",
 * "columns": [[title, unit]], "rows": [[cell]], "more": rows left out}. Units: "text", "ns",
 * "count", "bytes". null: not known. Tables of lanes are made by the page itself, from the lanes'
 * sums.
 */
#include <inttypes.h>

#include "export/alloc.h"
#include "export/calls.h"
#include "export/columns.h"
#include "html_priv.h"

#define ROWS	    200	 /* in a table, and */
#define ROWS_OF_ALL 1600 /* in all tables of a kind, but at least */
#define ROWS_LEAST  25
#define TARGETS	    256
#define PARAGRAPHS  64

struct table_out {
	FILE *out;
	size_t cells, rows, most;
	bool any; /* a table has been written before */
};

/* ── cells ───────────────────────────────────────────────────────────────────────────────── */

static void begin(struct table_out *t, const char *id, const char *title)
{
	fprintf(t->out, "%s\n{\"id\":\"%s\",\"title\":", t->any ? "," : "", id);
	json__put_in_html(t->out, title);
	fputs(",\"columns\":[", t->out);
	t->any = true;
	t->cells = t->rows = 0;
}

static void add_column(struct table_out *t, const char *title, const char *unit)
{
	fputs(t->cells++ ? ",[" : "[", t->out);
	json__put_in_html(t->out, title);
	fprintf(t->out, ",\"%s\"]", unit);
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

static void begin_declared(struct table_out *t, const char *id, const char *title,
			   const struct columns *columns)
{
	begin(t, id, title);
	for (size_t i = 0; i < columns->n; i++) {
		const struct column *c = &columns->v[i];

		if (c->page)
			add_column(t, c->page,
				   is_text(c)		   ? "text"
				   : c->cell == CELL_COUNT ? "count"
							   : "ns");
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

/* ── calls, functions, cost centres ──────────────────────────────────────────────────────── */

static void put_safe_call(struct table_out *t, const struct pic_call *call)
{
	struct call_row row = {.call = *call};
	struct buf notes;

	buf__init(&notes, 1024);
	call__add_notes(&notes, call);
	row.notes = or_empty(notes.data);
	add_row(t, &call_columns, &row);
	buf__free(&notes);
}

/* By wall time, the I/O manager's after all others. */
static void put_safe_calls(struct table_out *t, const struct pic_target *target)
{
	begin_declared(t, "safe_calls", "Safe calls", &call_columns);
	for (int io_manager = 0; io_manager <= 1; io_manager++)
		for (size_t i = 0; i < target->n_calls && t->rows < t->most; i++)
			if (call__is_io_manager(&target->calls[i]) == io_manager)
				put_safe_call(t, &target->calls[i]);
	end(t, target->n_calls);
}

static void put_unsafe_calls(struct table_out *t, const struct pic_target *target)
{
	begin_declared(t, "unsafe_calls", "Unsafe calls (sampled)", &unsafe_columns);
	for (size_t i = 0; i < target->n_unsafe_calls && t->rows < t->most; i++)
		add_row(t, &unsafe_columns, &target->unsafe_calls[i]);
	end(t, target->n_unsafe_calls);
}

static void put_functions(struct table_out *t, const struct pic_target *target)
{
	begin_declared(t, "functions", "Functions, by samples on the CPU", &function_columns);
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
	begin_declared(t, "cost_centres", "Cost centres", &centre_columns);
	for (size_t i = 0; i < target->n_cost_centres && t->rows < t->most; i++)
		if (target->cost_centres[i].total_ticks)
			add_row(t, &centre_columns,
				&(struct centre_row){.centre = target->cost_centres[i]});
	end(t, n);
}

/* ── allocation ──────────────────────────────────────────────────────────────────────────── */

static void put_allocators(struct table_out *t, const struct picture *pic,
			   const struct pic_alloc *alloc)
{
	static const char *const columns[][2] = {
		{"function", "text"},		{"module", "text"},
		{"allocated, itself", "bytes"}, {"allocated, with what it calls", "bytes"},
		{"samples, itself", "count"},	{"samples, with what it calls", "count"},
	};
	char title[192];

	snprintf(title, sizeof(title), "Allocation, by samples of allocation%s%.140s",
		 alloc->observed_ns ? ", " : "", alloc__part(alloc).s);
	begin(t, "allocation", title);
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		add_column(t, columns[i][0], columns[i][1]);
	begin_rows(t);
	for (size_t i = 0; i < alloc->n_allocators && t->rows < t->most; i++) {
		const struct pic_allocator *a = &alloc->allocators[i];
		const struct pic_frame *frame = picture__frame(pic, a->frame);

		begin_row(t);
		add_text(t, frame__name(frame));
		add_text(t, frame->file);
		add_number(t, a->self_bytes);
		add_number(t, a->total_bytes);
		add_number(t, a->self_samples);
		add_number(t, a->total_samples);
	}
	end(t, alloc->n_allocators);
}

/* ── a process ───────────────────────────────────────────────────────────────────────────── */

static void put_name(FILE *out, const struct pic_target *target)
{
	char name[512];
	int at = snprintf(name, sizeof(name), "%.64s", or_empty(target->comm));

	if (target->pid)
		at += snprintf(name + at, sizeof(name) - (size_t)at, " (pid %d)", (int)target->pid);
	if (target->ghc_version && *target->ghc_version)
		at += snprintf(name + at, sizeof(name) - (size_t)at, ", GHC %.32s %.32s",
			       target->ghc_version, or_empty(target->way));
	if (target->capabilities)
		at += snprintf(name + at, sizeof(name) - (size_t)at, ", %" PRIu32 " %s",
			       target->capabilities,
			       target->capabilities == 1 ? "capability" : "capabilities");
	snprintf(name + at, sizeof(name) - (size_t)at, "%s", pic_target__place(target).s);
	fputs("{\"name\":", out);
	json__put_in_html(out, name);
	fputs(",\"short\":", out);
	json__put_in_html(out, pic_target__name(target).s);
}

/* `own`: write its tables and events as well. */
static void put_target(const struct html *h, struct table_out *t, uint32_t target_no, size_t n,
		       bool own)
{
	const struct pic_target *target = picture__target(h->pic, target_no);

	t->any = false;
	put_name(t->out, target);
	if (!own) {
		fputc('}', t->out);
		return;
	}
	html__put_findings(h, target);
	html__put_events(h, target, n);
	fputs(",\n\"missing\":[", t->out);
	for (size_t i = 0; i < target->n_missing && i < PARAGRAPHS; i++) {
		fputs(i ? "," : "", t->out);
		json__put_in_html(t->out, target->missing[i]);
	}
	fputs("],\"tables\":[", t->out);
	if (target->n_calls)
		put_safe_calls(t, target);
	if (target->n_unsafe_calls)
		put_unsafe_calls(t, target);
	/* In a log alone functions are cost centres, which have their own table. */
	if (target->n_functions && !session__log_alone(h->pic))
		put_functions(t, target);
	if (target->alloc.n_allocators)
		put_allocators(t, h->pic, &target->alloc);
	put_cost_centres(t, target);
	fputs("]}", t->out);
}

void html__put_targets(const struct html *h)
{
	size_t n = picture__n_targets(h->pic);
	struct table_out t = {.out = h->out};

	fputs("\"targets\":[", h->out);
	for (size_t i = 0; i < n && i < UINT32_MAX; i++) {
		t.most = MIN(MAX(ROWS_OF_ALL / n, (size_t)ROWS_LEAST), (size_t)ROWS);
		fputs(i ? ",\n" : "\n", h->out);
		put_target(h, &t, (uint32_t)i, MIN(n, (size_t)TARGETS), i < TARGETS);
	}
	fputs("]", h->out);
}
