/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text report on the heap: what is live, how it grows, how much is wasted; and a curve. */
#include <math.h>
#include <string.h>

#include "export/alloc.h"
#include "text_priv.h"

#define CURVE  60 /* columns, on a page that is wide enough */
#define SHORT  16
#define N_BARS 8

/* Reports growth with its sign, or nothing if the error exceeds it: then not even the sign is
 * known. */
static void put_growth(const struct text *t, const struct pic_heap *heap)
{
	double growth = fabs(heap->growth), error = heap->growth_error;

	if (growth <= error)
		return;
	fprintf(t->out, ", %s%s ± %s a minute", heap->growth < 0 ? "−" : "+",
		human__bytes(human__whole(growth)).s, human__bytes(human__whole(error)).s);
}

/* More is held than live: the collector needs room to copy to, and returns memory slowly. */
static void put_held(const struct text *t, const struct pic_heap *heap)
{
	fprintf(t->out, "; %s held from the system", human__bytes(heap->held_bytes).s);
	if (heap->most_held_bytes > heap->held_bytes)
		fprintf(t->out, ", at most %s", human__bytes(heap->most_held_bytes).s);
}

/* Figures from after collections of younger generations include what has died in older ones. */
static void put_most(const struct text *t, const struct pic_heap *heap)
{
	if (!heap->majors) {
		fprintf(t->out, "; at most %s", human__bytes(heap->most_live_bytes).s);
		return;
	}
	fprintf(t->out, "; at most %s after one", human__bytes(heap->most_major_bytes).s);
	if (heap->most_live_bytes > heap->most_major_bytes)
		fprintf(t->out, ", and %s between them, including dead data",
			human__bytes(heap->most_live_bytes).s);
}

/* The number of major collections, as in the table of collections: the heap cannot be read after
 * the first ones of a program, nor after the one at its exit. */
static void put_majors(const struct text *t)
{
	const struct pic_target *target = t->target;
	const struct pic_heap *heap = &target->heap;
	int32_t oldest = heap->n_gens ? (int32_t)heap->n_gens - 1 : 1;
	bool more = !target->gc.inferred && pic_target__gcs_missed(target);
	uint64_t n = 0, later = 0;

	for (size_t i = 0; i < target->n_gcs; i++) {
		const struct pic_gc_event *gc = &target->gcs[i];
		bool is_later = gc->start_ns > heap->last.ns;

		n += gc->generation >= oldest && !is_later;
		later += gc->generation >= oldest && is_later;
	}
	n = MAX(n, heap->majors);
	fprintf(t->out, " of %s%s major %s%s", more ? "at least " : "", human__count(n).s,
		plural(n, "collection", "collections"),
		later && !strcmp(or_empty(target->end), "exited") ? " before the one at its end"
								  : "");
}

static void put_live(const struct text *t)
{
	const struct pic_heap *heap = &t->target->heap;
	const struct pic_alloc *alloc = &t->target->alloc;

	if (alloc->observed_ns)
		fprintf(t->out, "  %s; what came later is not known\n", alloc__part(alloc).s);
	fprintf(t->out, "  %s live after the last", human__bytes(heap->last.live_bytes).s);
	if (heap->majors)
		put_majors(t);
	else
		fputs(" collection; none was a major one, so this includes dead data", t->out);
	/* if only the beginning was observed, growth is that of a program starting up */
	if (heap->growth_known && !alloc->observed_ns)
		put_growth(t, heap);
	put_most(t, heap);
	if (heap__survival(heap) >= 0)
		fprintf(t->out, "; %.1f %% of what is allocated survives the youngest generation",
			100 * heap__survival(heap));
	if (heap->slop_bytes)
		fprintf(t->out, "; %s of its blocks are not live",
			human__bytes(heap->slop_bytes).s);
	if (heap->held_bytes)
		put_held(t, heap);
	if (heap->haskell_threads)
		fprintf(t->out, "; %s%s Haskell %s", human__count(heap->haskell_threads).s,
			heap->haskell_threads == PIC_HEAP_THREADS ? " or more" : "",
			plural(heap->haskell_threads, "thread", "threads"));
	fputc('\n', t->out);
}

/* Each column shows the most that was live in its interval. */
static void put_curve(const struct text *t)
{
	static const char *const bars[N_BARS] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	const struct pic_heap *heap = &t->target->heap;
	uint64_t most[CURVE] = {0}, start, span, last = 0;
	size_t columns, used;
	char label[64];

	if (heap->n_points < 2 || !heap->most_live_bytes)
		return;
	snprintf(label, sizeof(label), " after collections, 0 to %s",
		 human__bytes(heap->most_live_bytes).s);
	used = 2 + text__width(label, strlen(label));
	/* a curve that is broken over two lines shows nothing */
	columns = MIN(MAX(t->width, used + SHORT) - used, (size_t)CURVE);
	start = heap->points[0].ns;
	span = heap->points[heap->n_points - 1].ns - start;
	for (size_t i = 0; span && i < heap->n_points; i++) {
		const struct pic_heap_point *p = &heap->points[i];
		size_t at =
			(size_t)((double)(p->ns - start) / (double)span * (double)(columns - 1));

		at = MIN(at, columns - 1);
		most[at] = MAX(most[at], p->live_bytes);
	}
	fputs("  ", t->out);
	for (size_t i = 0; span && i < columns; i++) {
		double part;

		/* no collection in this interval: keep the last value */
		last = most[i] ? most[i] : last;
		part = (double)MIN(last, heap->most_live_bytes) / (double)heap->most_live_bytes;
		fputs(bars[MIN((size_t)(part * N_BARS), (size_t)N_BARS - 1)], t->out);
	}
	fprintf(t->out, "%s\n", label);
}

static int put_generations(const struct text *t)
{
	static const struct table_column columns[] = {
		{"generation", COL_LEFT, NULL, 0},     {"live", COL_RIGHT, NULL, 0},
		{"large objects", COL_RIGHT, NULL, 0}, {"compact", COL_RIGHT, NULL, 0},
		{"blocks", COL_RIGHT, NULL, 0},
	};
	const struct pic_heap *heap = &t->target->heap;
	struct table *table;
	int err = table__new(columns, ARRAY_SIZE(columns), &table);

	if (err)
		return err;
	for (uint32_t i = 0; i < heap->n_gens; i++) {
		table__cellf(table, "%" PRIu32, i);
		table__cell(table, human__bytes(heap->gens[i].live_bytes).s);
		table__cell(table, human__bytes(heap->gens[i].large_bytes).s);
		table__cell(table, human__bytes(heap->gens[i].compact_bytes).s);
		table__cell(table, human__bytes(heap->gens[i].block_bytes).s);
	}
	if (heap->nursery_bytes) {
		table__cell(table, "nurseries");
		for (size_t i = 1; i + 1 < ARRAY_SIZE(columns); i++)
			table__cell(table, "");
		table__cell(table, human__bytes(heap->nursery_bytes).s);
	}
	return text__print(t, NULL, table, 0, "");
}

/* ── the census ──────────────────────────────────────────────────────────────────────────── */

static uint64_t census_bytes(const struct pic_census *c)
{
	uint64_t bytes = c->others_bytes;

	for (size_t i = 0; i < c->n; i++)
		bytes += c->v[i].bytes;
	return bytes;
}

static void put_census_head(const struct text *t)
{
	const struct pic_census *c = &t->target->census;
	uint64_t start = t->session->start_ns, lost = c->unknown_bytes + c->gap_bytes;
	uint64_t found = c->blocks_bytes + c->large_bytes + c->compact_bytes;

	fprintf(t->out, "  What it is made of, %s into the session",
		human__duration(c->at_ns - MIN(c->at_ns, start)).s);
	if (c->walked_bytes < c->blocks_bytes)
		fprintf(t->out, " (of %s of blocks, %s were examined)",
			human__bytes(c->blocks_bytes).s, human__bytes(c->walked_bytes).s);
	if (c->frozen_ns)
		fprintf(t->out, ", while the process was stopped for %s%s",
			human__duration(c->frozen_ns).s, c->frozen_whole ? "" : ", and after that");
	if (c->pinned_bytes || c->mutable_bytes)
		fprintf(t->out, "; %s of pinned objects, %s of mutable lists",
			human__bytes(c->pinned_bytes).s, human__bytes(c->mutable_bytes).s);
	if (lost)
		fprintf(t->out, "; %.1f %% could not be identified",
			human__percent(lost, c->walked_bytes + c->large_bytes));
	if (c->compact_bytes)
		fprintf(t->out, "; %s in compact regions were not examined",
			human__bytes(c->compact_bytes).s);
	if (found + found / 10 < c->live_bytes)
		fprintf(t->out, "; %s of %s of live data were found", human__bytes(found).s,
			human__bytes(c->live_bytes).s);
	if (c->cut)
		fputs("; not all blocks were found, as the program kept running", t->out);
	fputs(":\n", t->out);
}

static int put_census(const struct text *t)
{
	static const char *const kinds[PC_KINDS] = {"constructor", "function", "thunk",
						    "array",	   "thread",   ""};
	static const struct table_column columns[] = {
		{"%", COL_RIGHT, NULL, 0},	     {"bytes", COL_RIGHT, NULL, 0},
		{"since first", COL_RIGHT, NULL, 0}, {"count", COL_RIGHT, NULL, 0},
		{"closure", COL_LEFT, NULL, 0},	     {"kind", COL_LEFT, NULL, 0},
		{"package", COL_LEFT, NULL, 0},
	};
	const struct pic_census *c = &t->target->census;
	uint64_t all = census_bytes(c);
	struct table *table;
	int err;

	if (!c->at_ns || !all)
		return 0;
	put_census_head(t);
	err = table__new(columns, ARRAY_SIZE(columns), &table);
	if (err)
		return err;
	for (size_t i = 0; i < MIN(c->n, t->rows); i++) {
		const struct pic_closure *v = &c->v[i];
		uint64_t more = MAX(v->bytes, v->first_bytes) - MIN(v->bytes, v->first_bytes);

		table__cellf(table, "%.1f", human__percent(v->bytes, all));
		table__cell(table, human__bytes(v->bytes).s);
		table__cellf(table, "%s%s",
			     c->first_ns == c->at_ns	 ? ""
			     : v->bytes < v->first_bytes ? "−"
							 : "+",
			     c->first_ns == c->at_ns ? "" : human__bytes(more).s);
		table__cell(table, human__count(v->count).s);
		table__cell(table, v->name);
		table__cell(table, kinds[v->kind]);
		table__cell(table, v->package);
	}
	return text__print(t, NULL, table, c->n, "closures");
}

int text__heap_curves(const struct text *t)
{
	const struct pic_heap *heap = &t->target->heap;
	int err;

	if (!heap->known)
		return 0;
	text__section(t, "Heap");
	err = text__wrapped(t, put_live);
	if (!err)
		put_curve(t);
	if (!err && !t->brief && heap->n_gens)
		err = put_generations(t);
	return err ? err : put_census(t);
}
