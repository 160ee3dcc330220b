/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Everything that is not a lane's slice: collections, the program's own marks, safe calls that came
 * back on another capability, curves. If there are too many, the longest are kept, and the page
 * shows how many are missing.
 */
#include <stdlib.h>
#include <string.h>

#include "export/alloc.h"
#include "html_priv.h"

/* Limits for all processes together, but at least LEAST for each. */
#define MAX_GCS	   30000
#define MAX_FLOWS  20000
#define MAX_MARKS  20000
#define MAX_POINTS 60000
#define LEAST	   200
/* Per process, the first ones: a heap profile has many bands. */
#define CURVES		 24
#define ALLOCATION_PARTS 1000

static size_t most_of(size_t most, size_t n_targets)
{
	return MAX(most / MAX(n_targets, (size_t)1), (size_t)LEAST);
}

void html__put_int(FILE *out, int64_t n)
{
	if (n < 0)
		fputc_unlocked('-', out);
	put_u64(out, n < 0 ? 0 - (uint64_t)n : (uint64_t)n);
}

void html__put_known(FILE *out, uint64_t n)
{
	if (n == UINT64_MAX)
		fputs("null", out);
	else
		put_u64(out, n);
}

/* ── the longest of many ─────────────────────────────────────────────────────────────────── */

static int descending(const void *pa, const void *pb)
{
	return CMP(*(const uint64_t *)pb, *(const uint64_t *)pa);
}

/* The shortest of the `max` longest of n durations; on allocation failure UINT64_MAX, so that none
 * is kept. */
static uint64_t shortest_kept(const struct pic_target *target, size_t n, size_t max,
			      uint64_t (*ns_of)(const struct pic_target *target, size_t i))
{
	uint64_t *ns, shortest;

	if (n <= max)
		return 0;
	ns = calloc(n, sizeof(*ns));
	if (!ns)
		return UINT64_MAX;
	for (size_t i = 0; i < n; i++)
		ns[i] = ns_of(target, i);
	qsort(ns, n, sizeof(*ns), descending);
	/* of equal ones at the limit keep none rather than all */
	shortest = ns[max - 1] == ns[max] ? ns[max] + 1 : ns[max - 1];
	free(ns);
	return shortest;
}

/* ── collections ─────────────────────────────────────────────────────────────────────────── */

static uint64_t gc_ns(const struct pic_target *target, size_t i)
{
	const struct pic_gc_event *gc = &target->gcs[i];

	return gc->end_ns - gc->start_ns + (gc->sync_ns == UINT64_MAX ? 0 : gc->sync_ns);
}

/* [start, end, wait before it, number, generation, OS thread, capability waited for, in Haskell
 * code, without a CPU, node] */
static void put_gc(const struct html *h, const struct pic_gc_event *gc)
{
	fputc('[', h->out);
	html__put_int(h->out, html__time(h, gc->start_ns));
	fputc(',', h->out);
	html__put_int(h->out, html__time(h, gc->end_ns));
	fputc(',', h->out);
	html__put_known(h->out, gc->sync_ns);
	fputc(',', h->out);
	html__put_known(h->out, gc->number);
	fprintf(h->out, ",%d,%d,%d,", (int)gc->generation, (int)gc->tid,
		gc->cap == NO_CAP ? -1 : (int)gc->cap);
	put_u64(h->out, gc->haskell_ns);
	fputc(',', h->out);
	put_u64(h->out, gc->no_cpu_ns);
	fputc(',', h->out);
	put_u64(h->out, gc->haskell_ns ? html_stacks__node(&h->stacks, gc->haskell_stack) : 0);
	fputc(']', h->out);
}

/* gcs_rest: of those that are left out, the pauses and the waits before them; gcs_missed: there
 * were more than the session has seen. */
static size_t put_gcs(const struct html *h, const struct pic_target *target, size_t most)
{
	uint64_t shortest = shortest_kept(target, target->n_gcs, most, gc_ns);
	uint64_t pause_ns = 0, sync_ns = 0;
	size_t left = 0;
	bool any = false;

	fputs(",\n\"gcs\":[", h->out);
	for (size_t i = 0; i < target->n_gcs; i++) {
		const struct pic_gc_event *gc = &target->gcs[i];

		if (gc_ns(target, i) < shortest) {
			left++;
			pause_ns += gc->end_ns - gc->start_ns;
			sync_ns += gc->sync_ns == UINT64_MAX ? 0 : gc->sync_ns;
			continue;
		}
		html__comma(h->out, &any);
		put_gc(h, gc);
	}
	fputs("],\"gcs_rest\":[", h->out);
	put_u64(h->out, pause_ns);
	fputc(',', h->out);
	put_u64(h->out, sync_ns);
	fprintf(h->out, "],\"gcs_missed\":%s",
		target->gc.inferred || pic_target__gcs_missed(target) ? "true" : "false");
	return left;
}

/* ── marks ───────────────────────────────────────────────────────────────────────────────── */

/* [when, text, capability, Haskell thread] */
static size_t put_marks(const struct html *h, const struct pic_target *target, size_t most)
{
	size_t n = MIN(target->n_marks, most);

	fputs(",\n\"marks\":[", h->out);
	for (size_t i = 0; i < n; i++) {
		const struct pic_mark *mark = &target->marks[i];

		fputs(i ? ",[" : "[", h->out);
		html__put_int(h->out, html__time(h, mark->ns));
		fputc(',', h->out);
		json__put_in_html(h->out, mark->text);
		fprintf(h->out, ",%lld,", mark->cap == UINT32_MAX ? -1LL : (long long)mark->cap);
		put_u64(h->out, mark->tso);
		fputc(']', h->out);
	}
	fputc(']', h->out);
	return target->n_marks - n;
}

/* ── safe calls that came back elsewhere ─────────────────────────────────────────────────── */

static bool is_flow(const struct pic_flow *flow)
{
	return flow->cap_from != UINT32_MAX && flow->cap_to != UINT32_MAX &&
	       flow->cap_from != flow->cap_to && flow->back_ns > flow->start_ns && flow->start_ns;
}

/* 0: it is not drawn as an arrow. */
static uint64_t flow_ns(const struct pic_target *target, size_t i)
{
	const struct pic_flow *flow = &target->flows[i];

	return is_flow(flow) ? flow->back_ns - flow->start_ns : 0;
}

/* [capability left, got back, from, to, function, OS thread, Haskell thread] */
static void put_flow(const struct html *h, const struct pic_flow *flow)
{
	fputc('[', h->out);
	html__put_int(h->out, html__time(h, flow->start_ns));
	fputc(',', h->out);
	html__put_int(h->out, html__time(h, flow->back_ns));
	fprintf(h->out, ",%u,%u,", flow->cap_from, flow->cap_to);
	json__put_in_html(h->out, flow->function);
	fprintf(h->out, ",%d,", (int)flow->tid);
	put_u64(h->out, flow->tso);
	fputc(']', h->out);
}

static size_t put_flows(const struct html *h, const struct pic_target *target, size_t most)
{
	uint64_t shortest = shortest_kept(target, target->n_flows, most, flow_ns);
	size_t left = 0;
	bool any = false;

	fputs(",\n\"flows\":[", h->out);
	for (size_t i = 0; i < target->n_flows; i++) {
		uint64_t ns = flow_ns(target, i);

		if (ns && ns < shortest)
			left++;
		if (!ns || ns < shortest)
			continue;
		html__comma(h->out, &any);
		put_flow(h, &target->flows[i]);
	}
	fputc(']', h->out);
	return left;
}

/* ── curves ──────────────────────────────────────────────────────────────────────────────── */

/* [time since the last point, value, …]; if there are too many points, the highest of each
 * stretch. */
static void put_points(const struct html *h, const struct pic_counter *counter, size_t most)
{
	size_t stride = counter->n_points / MAX(most, (size_t)1) + 1;
	uint64_t at = h->zero_ns;
	bool any = false;

	for (size_t i = 0; i < counter->n_points; i += stride) {
		struct pic_point point = counter->points[i];

		for (size_t k = i; k < MIN(i + stride, counter->n_points); k++)
			point.value = MAX(point.value, counter->points[k].value);
		html__comma(h->out, &any);
		html__put_int(h->out, (int64_t)(point.ns - at));
		fputc_unlocked(',', h->out);
		put_u64(h->out, point.value);
		at = point.ns;
	}
}

static void put_point(const struct html *h, uint64_t *at, uint64_t ns, uint64_t value, bool *any)
{
	html__comma(h->out, any);
	html__put_int(h->out, (int64_t)(ns - *at));
	fputc_unlocked(',', h->out);
	put_u64(h->out, value);
	*at = ns;
}

/* Ends a curve made from collections: it extends no further than these were seen. */
static void end_heap(const struct html *h, const struct pic_target *target, uint64_t last_ns)
{
	if (target->alloc.observed_ns) {
		fputs(",\"to\":", h->out);
		html__put_int(h->out, html__time(h, last_ns));
	}
	fputc('}', h->out);
}

static uint64_t live_at(const struct pic_heap_point *point)
{
	return point->live_bytes;
}

static uint64_t held_at(const struct pic_heap_point *point)
{
	return point->held_bytes;
}

/* The value after each collection; if there are too many, the highest of each stretch. */
static void put_heap(const struct html *h, const struct pic_target *target, const char *name,
		     uint64_t (*value)(const struct pic_heap_point *point), uint64_t max,
		     size_t most)
{
	const struct pic_heap *heap = &target->heap;
	size_t stride = heap->n_points / MAX(most, (size_t)1) + 1;
	uint64_t at = h->zero_ns;
	bool any = false;

	fprintf(h->out, "\n{\"name\":\"%s\",\"unit\":\"bytes\",\"max\":%llu,\"points\":[", name,
		(unsigned long long)max);
	for (size_t i = 0; i < heap->n_points; i += stride) {
		uint64_t bytes = 0;

		for (size_t k = i; k < MIN(i + stride, heap->n_points); k++)
			bytes = MAX(bytes, value(&heap->points[k]));
		put_point(h, &at, heap->points[i].ns, bytes, &any);
	}
	fputc(']', h->out);
	end_heap(h, target, heap->points[heap->n_points - 1].ns);
}

static void put_allocation(const struct html *h, const struct pic_target *target)
{
	struct alloc_rates rates = alloc_rates__of(&target->heap, ALLOCATION_PARTS);
	uint64_t at = h->zero_ns, max = 0, from_ns, rate;
	bool any = false;

	fputs(",\n{\"name\":\"allocation\",\"unit\":\"bytes a second\",\"points\":[", h->out);
	while (alloc_rates__next(&rates, &from_ns, &rate)) {
		max = MAX(max, rate);
		put_point(h, &at, from_ns, rate, &any);
	}
	/* the rate is not known after that */
	put_point(h, &at, rates.last->ns, 0, &any);
	fputs("],\"max\":", h->out);
	put_u64(h->out, max);
	end_heap(h, target, rates.last->ns);
}

static size_t put_curves(const struct html *h, const struct pic_target *target, size_t most)
{
	const struct pic_heap *heap = &target->heap;
	size_t n = MIN(target->n_counters, (size_t)CURVES);

	fputs(",\n\"curves\":[", h->out);
	for (size_t i = 0; i < n; i++) {
		const struct pic_counter *counter = &target->counters[i];
		const char *kind = counter->kind == TC_HEAP_PROFILE ? "heap profile: "
				   : counter->kind == TC_TICKY	    ? "ticky: "
								    : "";
		char name[224];

		snprintf(name, sizeof(name), "%s%.200s", kind, counter->name);
		fputs(i ? ",\n{\"name\":" : "\n{\"name\":", h->out);
		json__put_in_html(h->out, name);
		fputs(",\"unit\":", h->out);
		json__put_in_html(h->out, or_empty(counter->unit));
		fputs(",\"max\":", h->out);
		put_u64(h->out, counter->max_value);
		fputs(",\"points\":[", h->out);
		put_points(h, counter, most / MAX(n, (size_t)1));
		fputs("]}", h->out);
	}
	if (heap->known && heap->n_points) {
		fputs(n ? "," : "", h->out);
		put_heap(h, target, "live heap", live_at, heap->most_live_bytes, most);
	}
	if (heap->known && heap->n_points && heap->held_bytes) {
		fputc(',', h->out);
		put_heap(h, target, "held from the system", held_at, heap->most_held_bytes, most);
	}
	if (heap->known && heap->n_points > 1)
		put_allocation(h, target);
	fputc(']', h->out);
	return target->n_counters - n;
}

void html__put_events(const struct html *h, const struct pic_target *target, size_t n)
{
	size_t gcs = put_gcs(h, target, most_of(MAX_GCS, n));
	size_t marks = put_marks(h, target, most_of(MAX_MARKS, n));
	size_t flows = put_flows(h, target, most_of(MAX_FLOWS, n));
	size_t curves = put_curves(h, target, most_of(MAX_POINTS, n));

	fprintf(h->out, ",\n\"left_out\":{\"gcs\":%zu,\"marks\":%zu,\"flows\":%zu,\"curves\":%zu}",
		gcs, marks, flows, curves);
}
