/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Chrome trace: what is no lane's stretch. Collections have a track of their own above the
 * capabilities' and a mark each; safe calls are flows (arrows) from the capability that was left to
 * the one that was got back; then the program's own marks, and counters.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chrome.h"

/* Beyond these a viewer shows nothing but arrows, or lines: the longest ones are kept. */
#define MAX_FLOWS 20000
#define MAX_GCS	  50000
#define MAX_MARKS 50000
/* Of one counter. */
#define MAX_POINTS 50000

/* ── the longest of many ─────────────────────────────────────────────────────────────────── */

static int descending(const void *pa, const void *pb)
{
	uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

	return (a < b) - (a > b);
}

/* Of n durations (sorted by this): the shortest that is among the `max` longest. */
static uint64_t shortest_kept(uint64_t *ns, size_t n, size_t max)
{
	if (n <= max)
		return 0;
	qsort(ns, n, sizeof(*ns), descending);
	/* of equal ones all would be kept */
	return ns[max - 1] == ns[max] ? ns[max] + 1 : ns[max - 1];
}

/* ── collections ─────────────────────────────────────────────────────────────────────────── */

static void put_gc_track(struct chrome *w, uint64_t pid)
{
	chrome__begin(w, 'M', pid, CHROME_TID_GC, "thread_name");
	fputs(",\"args\":{\"name\":\"GC\"}", w->out);
	chrome__end(w);
	chrome__begin(w, 'M', pid, CHROME_TID_GC, "thread_sort_index");
	fputs(",\"args\":{\"sort_index\":-1}", w->out);
	chrome__end(w);
}

static void put_gc_slice(struct chrome *w, uint64_t pid, const char *name, const char *colour,
			 uint64_t start, uint64_t end)
{
	chrome__begin(w, 'B', pid, CHROME_TID_GC, name);
	fprintf(w->out, ",\"cat\":\"gc\",\"cname\":\"%s\"", colour);
	chrome__put_ts(w, start);
	chrome__end(w);
	chrome__begin(w, 'E', pid, CHROME_TID_GC, name);
	chrome__put_ts(w, end);
}

static void put_gc_args(struct chrome *w, const struct tl_gc_event *gc)
{
	const char *comma = "";

	fputs(",\"args\":{", w->out);
	if (gc->number != UINT64_MAX) {
		fprintf(w->out, "\"number\":%" PRIu64, gc->number);
		comma = ",";
	}
	if (gc->tid)
		fprintf(w->out, "%s\"os_thread\":%d", comma, (int)gc->tid);
	fputc_unlocked('}', w->out);
}

static void put_gc(struct chrome *w, uint64_t pid, const struct tl_gc_event *gc, uint64_t after)
{
	uint64_t start = MAX(gc->start_ns, after), end = MAX(gc->end_ns, start), request = start;
	char name[64] = "GC";

	if (gc->sync_ns != UINT64_MAX)
		request = MAX(start > gc->sync_ns ? start - gc->sync_ns : 0, after);
	if (request < start) {
		put_gc_slice(w, pid, "waiting for the capabilities", "thread_state_iowait", request,
			     start);
		chrome__end(w);
	}
	if (gc->generation >= 0)
		snprintf(name, sizeof(name), "GC, generation %" PRId32, gc->generation);
	if (start < end) {
		put_gc_slice(w, pid, name, "rail_animation", start, end);
		put_gc_args(w, gc);
		chrome__end(w);
	}
	chrome__begin(w, 'i', pid, CHROME_TID_GC, name);
	fputs(",\"cat\":\"gc\",\"s\":\"p\"", w->out);
	chrome__put_ts(w, start);
	chrome__end(w);
}

static int put_gcs(struct chrome *w, const struct tl_target *target, uint64_t pid)
{
	uint64_t *ns, shortest, after = w->views.start_ns;

	if (!target->n_gcs)
		return 0;
	ns = calloc(target->n_gcs, sizeof(*ns));
	if (!ns)
		return -ENOMEM;
	for (size_t i = 0; i < target->n_gcs; i++)
		ns[i] = target->gcs[i].end_ns - target->gcs[i].start_ns;
	shortest = shortest_kept(ns, target->n_gcs, MAX_GCS);
	free(ns);
	put_gc_track(w, pid);
	for (size_t i = 0; i < target->n_gcs; i++) {
		const struct tl_gc_event *gc = &target->gcs[i];

		if (gc->end_ns - gc->start_ns < shortest)
			continue;
		put_gc(w, pid, gc, after);
		after = MAX(gc->end_ns, after);
	}
	return 0;
}

/* ── the program's own marks ─────────────────────────────────────────────────────────────── */

static void put_user_marks(struct chrome *w, const struct tl_target *target, uint64_t pid)
{
	for (size_t i = 0; i < MIN(target->n_marks, (size_t)MAX_MARKS); i++) {
		const struct tl_mark *mark = &target->marks[i];
		bool on_cap = mark->cap != UINT32_MAX;

		chrome__begin(w, 'i', pid, on_cap ? (uint64_t)mark->cap + 1 : CHROME_TID_GC,
			      mark->text);
		fprintf(w->out, ",\"cat\":\"%s\",\"s\":\"%c\"",
			mark->kind == MK_USER_MARKER ? "marker" : "message", on_cap ? 't' : 'p');
		chrome__put_ts(w, mark->ns);
		if (mark->tso)
			fprintf(w->out, ",\"args\":{\"thread\":%" PRIu64 "}", mark->tso);
		chrome__end(w);
	}
}

/* ── flows ───────────────────────────────────────────────────────────────────────────────── */

static const struct tl_cap_lane *cap_lane(const struct tl_target *target, uint32_t no)
{
	for (size_t i = 0; i < target->n_cap_lanes; i++)
		if (target->cap_lanes[i].no == no)
			return &target->cap_lanes[i];
	return NULL;
}

/* The stretch that ns falls into, if it is drawn: an arrow ends at a slice or nowhere. */
static const struct tl_cap_stretch *drawn_at(const struct tl_cap_lane *lane, uint64_t ns)
{
	size_t low = 0, high = lane ? lane->n_stretches : 0;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (lane->stretches[mid].end_ns <= ns)
			low = mid + 1;
		else
			high = mid;
	}
	if (!lane || low == lane->n_stretches || lane->stretches[low].start_ns > ns ||
	    lane->stretches[low].state == CS_IDLE)
		return NULL;
	return &lane->stretches[low];
}

static void put_flow_end(struct chrome *w, char phase, uint64_t pid, uint32_t cap,
			 const struct tl_flow *flow, uint64_t ns, uint64_t id)
{
	chrome__begin(w, phase, pid, (uint64_t)cap + 1, flow->function);
	fprintf(w->out, ",\"cat\":\"safe_call\",\"id\":%" PRIu64 "%s", id,
		phase == 'f' ? ",\"bp\":\"e\"" : "");
	chrome__put_ts(w, ns);
	if (phase == 's')
		fprintf(w->out,
			",\"args\":{\"thread\":%" PRIu64 ",\"os_thread\":%d,\"call_ns\":%" PRIu64
			"}",
			flow->tso, (int)flow->tid, flow->end_ns - flow->start_ns);
	chrome__end(w);
}

static uint64_t flow_ns(const struct tl_flow *flow)
{
	return flow->back_ns > flow->start_ns ? flow->back_ns - flow->start_ns : 0;
}

static int put_flows(struct chrome *w, const struct tl_target *target, uint32_t target_no,
		     uint64_t pid)
{
	uint64_t *ns, shortest;

	if (!target->n_flows || !target->n_cap_lanes)
		return 0;
	ns = calloc(target->n_flows, sizeof(*ns));
	if (!ns)
		return -ENOMEM;
	for (size_t i = 0; i < target->n_flows; i++)
		ns[i] = flow_ns(&target->flows[i]);
	shortest = MAX(shortest_kept(ns, target->n_flows, MAX_FLOWS), 1);
	free(ns);
	for (size_t i = 0; i < target->n_flows; i++) {
		const struct tl_flow *flow = &target->flows[i];
		const struct tl_cap_stretch *from, *to;

		if (flow_ns(flow) < shortest || !flow->start_ns)
			continue;
		from = drawn_at(cap_lane(target, flow->cap_from), flow->start_ns - 1);
		to = drawn_at(cap_lane(target, flow->cap_to), flow->back_ns);
		if (!from || !to)
			continue;
		put_flow_end(w, 's', pid, flow->cap_from, flow, flow->start_ns - 1,
			     (uint64_t)target_no << 32 | i);
		put_flow_end(w, 'f', pid, flow->cap_to, flow, flow->back_ns,
			     (uint64_t)target_no << 32 | i);
	}
	return 0;
}

/* ── counters ────────────────────────────────────────────────────────────────────────────── */

static void put_counter(struct chrome *w, const struct tl_counter *counter, uint64_t pid)
{
	size_t stride = counter->n_points / MAX_POINTS + 1;
	const char *kind = counter->kind == TC_HEAP_PROFILE ? "heap profile: "
			   : counter->kind == TC_TICKY	    ? "ticky: "
							    : "";
	char name[256];

	snprintf(name, sizeof(name), "%s%.200s", kind, counter->name);
	for (size_t i = 0; i < counter->n_points; i += stride) {
		const struct tl_point *point = &counter->points[i];

		/* of all that lies before the axis the last one is where the curve begins */
		if (i + stride < counter->n_points && point[stride].ns <= w->views.start_ns &&
		    point->ns < w->views.start_ns)
			continue;
		if (point->ns > w->views.end_ns)
			break;
		chrome__begin(w, 'C', pid, 0, name);
		chrome__put_ts(w, point->ns);
		fputs(",\"args\":{", w->out);
		json__put_string(w->out, counter->unit && *counter->unit ? counter->unit : "value");
		fprintf(w->out, ":%" PRIu64 "}", point->value);
		chrome__end(w);
	}
}

int chrome__put_marks(struct chrome *w, uint32_t target_no)
{
	const struct tl_target *target = timeline__target(w->tl, target_no);
	uint64_t pid = chrome__pid(w, target_no, LANE_CAPABILITY);
	int err = put_gcs(w, target, pid);

	if (err)
		return err;
	put_user_marks(w, target, pid);
	for (size_t i = 0; i < target->n_counters; i++)
		put_counter(w, &target->counters[i], pid);
	return put_flows(w, target, target_no, pid);
}
