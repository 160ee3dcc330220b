/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chrome trace: the heap and the rate of allocation as counters, and samples of allocation as
 * marks. */
#include <inttypes.h>

#include "chrome_priv.h"
#include "export/alloc.h"

/* The maximum number of points in the curve of the allocation rate. */
#define RATES 2000
/* Average sizes in the file. */
#define POINT_BYTES  420
#define SAMPLE_BYTES 700

uint64_t chrome__memory_bytes(const struct pic_target *target, size_t most)
{
	return POINT_BYTES * (uint64_t)target->heap.n_points +
	       SAMPLE_BYTES * (uint64_t)MIN(target->alloc.n_spans, most);
}

/* Live bytes, as in the reports' curve, also by generation; and bytes held from the system. */
static void put_heap(struct chrome *w, const struct pic_heap *heap, struct chrome_track at)
{
	for (size_t i = 0; i < heap->n_points; i++) {
		const struct pic_heap_point *p = &heap->points[i];

		if (p->ns < w->views.start_ns || p->ns > w->views.end_ns)
			continue;
		chrome__begin(w, 'C', at, "heap: live", "", p->ns);
		fprintf(w->out, ",\"args\":{\"bytes\":%" PRIu64 "}}", p->live_bytes);
		if (p->held_bytes) {
			chrome__begin(w, 'C', at, "heap: held from the system", "", p->ns);
			fprintf(w->out, ",\"args\":{\"bytes\":%" PRIu64 "}}", p->held_bytes);
		}
		if (!heap->n_gens)
			continue;
		chrome__begin(w, 'C', at, "heap: live by generation", "", p->ns);
		fputs(",\"args\":{", w->out);
		for (uint32_t g = 0; g < heap->n_gens; g++)
			fprintf(w->out, "%s\"generation %" PRIu32 "\":%" PRIu64, g ? "," : "", g,
				p->gens[g]);
		fputs("}}", w->out);
	}
}

static void put_rate(struct chrome *w, struct chrome_track at, uint64_t ns, uint64_t rate)
{
	chrome__begin(w, 'C', at, "allocation", "", ns);
	fprintf(w->out, ",\"args\":{\"bytes a second\":%" PRIu64 "}}", rate);
}

/* A viewer draws a counter's last value to the end of the trace: a mark shows up to where the
 * values are known. */
static void put_end(struct chrome *w, struct chrome_track at, uint64_t ns)
{
	at.tid = CHROME_TID_GC;
	chrome__begin(w, 'i', at,
		      "heap and allocation are not known from here on: the probes on collections "
		      "came off (--max-overhead)",
		      ",\"cat\":\"unknown\",\"s\":\"p\"", ns);
	fputs("}", w->out);
}

static void put_rates(struct chrome *w, const struct pic_target *target, struct chrome_track at)
{
	const struct pic_heap *heap = &target->heap;
	struct alloc_rates rates;
	uint64_t from_ns, rate, end_ns;

	if (heap->n_points < 2)
		return;
	end_ns = MIN(heap->points[heap->n_points - 1].ns, w->views.end_ns);
	for (rates = alloc_rates__of(heap, RATES); alloc_rates__next(&rates, &from_ns, &rate);)
		if (from_ns >= w->views.start_ns && from_ns <= w->views.end_ns)
			put_rate(w, at, from_ns, rate);
	/* a program whose probes came off may go on allocating: unknown is not 0 */
	if (target->alloc.observed_ns)
		put_end(w, at, end_ns);
	else
		put_rate(w, at, end_ns, 0);
}

static void put_sample(struct chrome *w, struct chrome_track at, const struct pic_alloc_span *span)
{
	struct pic_stack stack = picture__stack(w->pic, span->stack);
	const char *name = stack.n ? frame__name(picture__frame(w->pic, stack.frames[stack.n - 1]))
				   : "[unknown]";

	chrome__begin(w, 'i', at, name, ",\"cat\":\"allocation\",\"s\":\"t\"", span->to_ns);
	chrome__put_stack(w, stack);
	fprintf(w->out, ",\"args\":{\"bytes\":%" PRIu64 ",\"samples\":%" PRIu64 ",", span->bytes,
		span->samples);
	if (span->tso)
		fprintf(w->out, "\"thread\":%" PRIu64 ",", span->tso);
	if (span->tid)
		fprintf(w->out, "\"os_thread\":%d,", (int)span->tid);
	chrome__put_callers(w, stack);
	fputs("}}", w->out);
}

static uint64_t bytes_of(const struct pic_target *target, size_t i)
{
	return target->alloc.spans[i].bytes;
}

int chrome__put_memory(struct chrome *w, uint32_t target_no, size_t most, bool capabilities)
{
	const struct pic_target *target = picture__target(w->pic, target_no);
	const struct pic_alloc *alloc = &target->alloc;
	struct chrome_track at = {chrome__pid(w, target_no, GROUP_CAPABILITIES), 0};
	uint64_t least;
	int err = chrome__least_kept(target, alloc->n_spans, most, bytes_of, &least);

	if (err)
		return err;
	put_heap(w, &target->heap, at);
	put_rates(w, target, at);
	for (size_t i = 0; i < alloc->n_spans; i++) {
		const struct pic_alloc_span *span = &alloc->spans[i];

		if (!span->samples || span->bytes < least || span->to_ns > w->views.end_ns)
			continue;
		at.tid = capabilities && span->cap != NO_CAP ? (uint64_t)span->cap + 1
							     : CHROME_TID_GC;
		put_sample(w, at, span);
	}
	return w->err;
}
