/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Chrome trace: everything that is not a lane's slice. Collections have their own track above the
 * capabilities' and a mark each; safe calls are flows (arrows) from the capability that was left to
 * the one that was got back; then the program's own marks, findings at their longest moment, and
 * the program's counters.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "chrome_priv.h"

/* Limits for all processes together. With more, a viewer would show nothing but arrows or lines:
 * the longest are kept. */
#define MAX_FLOWS  20000
#define MAX_GCS	   50000
#define MAX_MARKS  50000
#define MAX_ALLOCS 10000
#define MAX_POINTS 200000
/* Average sizes in the file. */
#define FLOW_BYTES  280
#define GC_BYTES    400
#define MARK_BYTES  160
#define POINT_BYTES 110

/* A process's share of `max`. */
static size_t share(const struct chrome *w, size_t max)
{
	return max / MAX(picture__n_targets(w->pic), (size_t)1) + 1;
}

/* Of how many points of a counter one is written. */
static size_t stride_of(const struct chrome *w, const struct pic_target *target, size_t n_points)
{
	return n_points / (share(w, MAX_POINTS) / MAX(target->n_counters, (size_t)1) + 1) + 1;
}

uint64_t chrome__marks_bytes(const struct chrome *w, bool capabilities)
{
	uint64_t bytes = 0;

	for (size_t t = 0; t < picture__n_targets(w->pic); t++) {
		const struct pic_target *target = picture__target(w->pic, t);

		bytes += GC_BYTES * MIN(target->n_gcs, share(w, MAX_GCS));
		bytes += chrome__memory_bytes(target, share(w, MAX_ALLOCS));
		bytes += MARK_BYTES * MIN(target->n_marks, share(w, MAX_MARKS));
		if (capabilities)
			bytes += FLOW_BYTES * MIN(target->n_flows, share(w, MAX_FLOWS));
		for (size_t i = 0; i < target->n_counters; i++) {
			size_t n = target->counters[i].n_points;

			bytes += POINT_BYTES * (n / stride_of(w, target, n));
		}
	}
	return bytes;
}

/* ── the longest of many ─────────────────────────────────────────────────────────────────── */

static int descending(const void *pa, const void *pb)
{
	uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

	return (a < b) - (a > b);
}

int chrome__least_kept(const struct pic_target *target, size_t n, size_t max,
		       uint64_t (*size_of)(const struct pic_target *target, size_t i),
		       uint64_t *ret_least)
{
	uint64_t *sizes;

	*ret_least = 0;
	if (n <= max)
		return 0;
	sizes = calloc(n, sizeof(*sizes));
	if (!sizes)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		sizes[i] = size_of(target, i);
	qsort(sizes, n, sizeof(*sizes), descending);
	/* of equal ones at the limit keep none rather than all */
	*ret_least = sizes[max - 1] == sizes[max] ? sizes[max] + 1 : sizes[max - 1];
	free(sizes);
	return 0;
}

/* ── collections ─────────────────────────────────────────────────────────────────────────── */

static void put_gc_args(struct chrome *w, const struct pic_gc_event *gc)
{
	const char *comma = "";

	fputs(",\"args\":{", w->out);
	if (gc->number != UINT64_MAX) {
		fprintf(w->out, "\"number\":%" PRIu64, gc->number);
		comma = ",";
	}
	if (gc->tid)
		fprintf(w->out, "%s\"os_thread\":%d", comma, (int)gc->tid);
	fputs("}}", w->out);
}

static void put_gc(struct chrome *w, struct chrome_track at, const struct pic_gc_event *gc,
		   uint64_t after)
{
	uint64_t start = MAX(gc->start_ns, after), end = MAX(gc->end_ns, start), request = start;
	const char *colour = chrome__colour(LANE_THREAD, ST_GC_WORK);
	char name[64] = "GC";

	if (gc->sync_ns != UINT64_MAX)
		request = MAX(start > gc->sync_ns ? start - gc->sync_ns : 0, after);
	if (request < start) {
		chrome__slice(w, at, "waiting for the capabilities", request, start);
		chrome__put_colour(w, chrome__colour(LANE_THREAD, ST_GC_WAIT));
		fputc('}', w->out);
	}
	if (gc->generation >= 0)
		snprintf(name, sizeof(name), "GC, generation %" PRId32, gc->generation);
	if (start < end) {
		chrome__slice(w, at, name, start, end);
		chrome__put_colour(w, colour);
		put_gc_args(w, gc);
	}
	chrome__begin(w, 'i', at, name, ",\"cat\":\"gc\",\"s\":\"p\"", start);
	chrome__put_colour(w, colour);
	fputc('}', w->out);
}

static uint64_t gc_ns(const struct pic_target *target, size_t i)
{
	return target->gcs[i].end_ns - target->gcs[i].start_ns;
}

static int put_gcs(struct chrome *w, const struct pic_target *target, struct chrome_track at)
{
	uint64_t shortest, after = w->views.start_ns;
	int err = chrome__least_kept(target, target->n_gcs, share(w, MAX_GCS), gc_ns, &shortest);

	if (err || !target->n_gcs)
		return err;
	chrome__name(w, at, "thread_name", "GC");
	chrome__order(w, at, "thread_sort_index", -1);
	for (size_t i = 0; i < target->n_gcs; i++) {
		if (gc_ns(target, i) < shortest)
			continue;
		put_gc(w, at, &target->gcs[i], after);
		after = MAX(target->gcs[i].end_ns, after);
	}
	return 0;
}

/* ── the program's own marks ─────────────────────────────────────────────────────────────── */

static void put_user_marks(struct chrome *w, const struct pic_target *target,
			   struct chrome_track at)
{
	for (size_t i = 0; i < MIN(target->n_marks, share(w, MAX_MARKS)); i++) {
		const struct pic_mark *mark = &target->marks[i];
		bool on_cap = mark->cap != UINT32_MAX;
		char head[48];

		at.tid = on_cap ? (uint64_t)mark->cap + 1 : CHROME_TID_GC;
		snprintf(head, sizeof(head), ",\"cat\":\"%s\",\"s\":\"%c\"",
			 mark->kind == MK_USER_MARKER ? "marker" : "message", on_cap ? 't' : 'p');
		chrome__begin(w, 'i', at, mark->text, head, mark->ns);
		if (mark->tso)
			fprintf(w->out, ",\"args\":{\"thread\":%" PRIu64 "}", mark->tso);
		fputc('}', w->out);
	}
}

/* ── findings ────────────────────────────────────────────────────────────────────────────── */

static void put_findings(struct chrome *w, const struct pic_target *target, struct chrome_track at)
{
	for (size_t i = 0; i < target->n_findings; i++) {
		const struct pic_finding *finding = &target->findings[i];

		if (!finding->longest.end_ns)
			continue;
		chrome__begin(w, 'i', at, finding->kind, ",\"cat\":\"finding\",\"s\":\"p\"",
			      finding->longest.start_ns);
		fputs(",\"args\":{\"id\":", w->out);
		json__put_string(w->out, or_empty(finding->id));
		fputs(",\"text\":", w->out);
		json__put_string(w->out, finding->text);
		fputs("}}", w->out);
	}
}

/* ── flows ───────────────────────────────────────────────────────────────────────────────── */

/* A part of a lane that is covered by drawn slices. */
struct span {
	uint64_t start_ns, end_ns;
};

/* The covered parts of a capability's lane. */
struct drawn {
	uint32_t cap;
	struct span *v;
	size_t n, size;
};

static int find_drawn(const struct chrome *w, const struct pic_lane *lane, struct drawn *d)
{
	struct walk walk = {.lane = lane, .grain_ns = w->views.grain_ns};
	struct pic_slice slice;
	int err = 0;

	d->cap = lane->cap;
	while (!err && walk__next(&walk, &slice)) {
		if (slice__is_gap(LANE_CAPABILITY, &slice))
			continue;
		if (d->n && d->v[d->n - 1].end_ns == slice.start_ns) {
			d->v[d->n - 1].end_ns = slice.end_ns;
			continue;
		}
		err = ARRAY_RESERVE(d->v, d->size, d->n + 1, EXPORT_MAX_ENTRIES);
		if (!err)
			d->v[d->n++] = (struct span){slice.start_ns, slice.end_ns};
	}
	return err;
}

/* True if a slice is drawn there: an arrow's ends need one. */
static bool drawn_at(const struct drawn *drawn, size_t n, uint32_t cap, uint64_t ns)
{
	for (size_t i = 0; i < n; i++) {
		const struct drawn *d = &drawn[i];
		size_t k;

		if (d->cap != cap)
			continue;
		k = search__first(d->n, s, d->v[s].end_ns > ns);
		return k < d->n && d->v[k].start_ns <= ns;
	}
	return false;
}

static void put_flow(struct chrome *w, struct chrome_track at, const struct pic_flow *flow,
		     uint64_t id)
{
	char head[80];

	snprintf(head, sizeof(head), ",\"cat\":\"safe_call\",\"id\":%" PRIu64, id);
	at.tid = (uint64_t)flow->cap_from + 1;
	chrome__begin(w, 's', at, flow->function, head, flow->start_ns - 1);
	fprintf(w->out,
		",\"args\":{\"thread\":%" PRIu64 ",\"os_thread\":%d,\"call_ns\":%" PRIu64 "}}",
		flow->tso, (int)flow->tid, flow->end_ns - flow->start_ns);
	snprintf(head, sizeof(head), ",\"cat\":\"safe_call\",\"id\":%" PRIu64 ",\"bp\":\"e\"", id);
	at.tid = (uint64_t)flow->cap_to + 1;
	chrome__begin(w, 'f', at, flow->function, head, flow->back_ns);
	fputc('}', w->out);
}

static uint64_t flow_ns(const struct pic_target *target, size_t i)
{
	const struct pic_flow *flow = &target->flows[i];

	return flow->back_ns > flow->start_ns ? flow->back_ns - flow->start_ns : 0;
}

static int put_flows(struct chrome *w, const struct pic_target *target, uint32_t target_no,
		     struct chrome_track at)
{
	const struct pic_lanes *caps = &target->lanes[LANE_CAPABILITY];
	struct drawn *drawn = calloc(caps->n + 1, sizeof(*drawn));
	uint64_t shortest = 0;
	int err = drawn ? chrome__least_kept(target, target->n_flows, share(w, MAX_FLOWS), flow_ns,
					     &shortest)
			: -ENOMEM;

	for (size_t i = 0; i < caps->n && !err; i++)
		err = find_drawn(w, &caps->v[i], &drawn[i]);
	for (size_t i = 0; i < target->n_flows && !err; i++) {
		const struct pic_flow *flow = &target->flows[i];

		if (flow_ns(target, i) >= MAX(shortest, 1) && flow->start_ns &&
		    drawn_at(drawn, caps->n, flow->cap_from, flow->start_ns - 1) &&
		    drawn_at(drawn, caps->n, flow->cap_to, flow->back_ns))
			put_flow(w, at, flow, (uint64_t)target_no << 32 | i);
	}
	for (size_t i = 0; drawn && i < caps->n; i++)
		free(drawn[i].v);
	free(drawn);
	return err;
}

/* ── counters ────────────────────────────────────────────────────────────────────────────── */

static void put_counter(struct chrome *w, const struct pic_target *target,
			const struct pic_counter *counter, struct chrome_track at)
{
	size_t stride = stride_of(w, target, counter->n_points);
	const char *kind = counter->kind == TC_HEAP_PROFILE ? "heap profile: "
			   : counter->kind == TC_TICKY	    ? "ticky: "
							    : "";
	char name[256];

	snprintf(name, sizeof(name), "%s%.200s", kind, counter->name);
	at.tid = 0;
	for (size_t i = 0; i < counter->n_points; i += stride) {
		const struct pic_point *point = &counter->points[i];

		/* of the points before the axis, only the last one is kept: the curve begins
		 * there */
		if (i + stride < counter->n_points && point[stride].ns <= w->views.start_ns &&
		    point->ns < w->views.start_ns)
			continue;
		if (point->ns > w->views.end_ns)
			break;
		chrome__begin(w, 'C', at, name, "", point->ns);
		fputs(",\"args\":{", w->out);
		json__put_string(w->out, counter->unit && *counter->unit ? counter->unit : "value");
		fprintf(w->out, ":%" PRIu64 "}}", point->value);
	}
}

int chrome__put_marks(struct chrome *w, uint32_t target_no, bool capabilities)
{
	const struct pic_target *target = picture__target(w->pic, target_no);
	struct chrome_track at = {chrome__pid(w, target_no, GROUP_CAPABILITIES), CHROME_TID_GC};
	int err = put_gcs(w, target, at);

	if (err)
		return err;
	put_user_marks(w, target, at);
	put_findings(w, target, at);
	for (size_t i = 0; i < target->n_counters; i++)
		put_counter(w, target, &target->counters[i], at);
	err = chrome__put_memory(w, target_no, share(w, MAX_ALLOCS), capabilities);
	if (err)
		return err;
	return capabilities ? put_flows(w, target, target_no, at) : 0;
}
