/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * flow: recorded safe calls, from the capability that was left to the one that was got back, and
 * the curves: safe calls in flight, Haskell threads that could run.
 */
#include "base/search.h"
#include "lanes_priv.h"

/* ── where a call got its capability back ────────────────────────────────────────────────── */

static int by_thread(const void *pa, const void *pb)
{
	const struct pic_flow *a = pa, *b = pb;

	return CMP(a->tid, b->tid) ?: CMP(a->end_ns, b->end_ns);
}

static int by_start(const void *pa, const void *pb)
{
	const struct pic_flow *a = pa, *b = pb;

	return CMP(a->start_ns, b->start_ns) ?: CMP(a->tid, b->tid);
}

/* The first slice at or after t in which the thread holds a capability. */
static const struct pic_slice *held_after(const struct pic_lane *lane, uint64_t t)
{
	size_t at = search__first(lane->n_slices, k, lane->slices[k].start_ns >= t);

	for (; at < lane->n_slices; at++) {
		const struct pic_slice *s = &lane->slices[at];

		if (s->cap < MAX_CAPS)
			return s;
		/* the next call, or no Haskell any more */
		if (s->state == ST_SAFE_CALL_CPU || s->state == ST_SAFE_CALL_BLOCKED ||
		    s->state == ST_IDLE)
			return NULL;
	}
	return NULL;
}

static void find_ends(const struct pic_lane *lane, struct pic_flow *flows, size_t n)
{
	size_t at = search__first(n, k, flows[k].tid >= lane->tid);

	for (; at < n && flows[at].tid == lane->tid; at++) {
		const struct pic_slice *s;

		/* another thread had the same number before, or has it later */
		if (flows[at].start_ns < lane->start_ns || flows[at].end_ns > lane->end_ns)
			continue;
		s = held_after(lane, flows[at].end_ns);
		if (s) {
			flows[at].back_ns = s->start_ns;
			flows[at].cap_to = s->cap;
		}
	}
}

/* ── curves ──────────────────────────────────────────────────────────────────────────────── */

struct change {
	uint64_t ns;
	int by;
};

static int by_ns(const void *pa, const void *pb)
{
	const struct change *a = pa, *b = pb;

	/* ends first: a call that follows another is not a second one */
	return CMP(a->ns, b->ns) ?: a->by - b->by;
}

static int in_flight(struct lanes *l, const struct pic_flow *flows, size_t n,
		     struct pic_counter *counter)
{
	struct change *changes = calloc(2 * n + 1, sizeof(*changes));
	struct pic_point *points = picture__alloc(l->pic, 2 * n, sizeof(*points));
	int64_t value = 0;

	if (!changes || !points) {
		free(changes);
		return -ENOMEM;
	}
	*counter = (struct pic_counter){.name = "safe calls in flight",
					.unit = "calls",
					.kind = TC_SAFE_CALLS,
					.points = points};
	for (size_t i = 0; i < n; i++) {
		changes[2 * i] = (struct change){flows[i].start_ns, 1};
		changes[2 * i + 1] = (struct change){flows[i].end_ns, -1};
	}
	qsort(changes, 2 * n, sizeof(*changes), by_ns);
	for (size_t i = 0; i < 2 * n; i++) {
		value += changes[i].by;
		if (i + 1 < 2 * n && changes[i + 1].ns == changes[i].ns)
			continue;
		points[counter->n_points++] = (struct pic_point){changes[i].ns, (uint64_t)value};
		counter->max_value = MAX(counter->max_value, (uint64_t)value);
	}
	free(changes);
	counter->last_value = (uint64_t)value;
	return 0;
}

static void queued(const struct pic_point *points, size_t n, struct pic_counter *counter)
{
	*counter = (struct pic_counter){.name = "runnable threads",
					.unit = "threads",
					.kind = TC_RUNNABLE,
					.points = points,
					.n_points = n,
					.last_value = points[n - 1].value};
	for (size_t i = 0; i < n; i++)
		counter->max_value = MAX(counter->max_value, points[i].value);
}

/* ── all of it ───────────────────────────────────────────────────────────────────────────── */

static void *copy(struct lanes *l, const void *array, size_t n, size_t size)
{
	void *to = picture__alloc(l->pic, n, size);

	return to && n ? memcpy(to, array, n * size) : to;
}

int flow__fill(struct lanes *l)
{
	const struct seen *s = l->seen;
	struct pic_target *pub = s->pub;
	const struct pic_lanes *threads = &pub->lanes[LANE_THREAD];
	struct pic_flow *flows = copy(l, s->flows, s->n_flows, sizeof(*flows));
	struct pic_point *points = copy(l, s->queued.v, s->queued.n, sizeof(*points));
	struct pic_counter *counters = picture__alloc(l->pic, 2, sizeof(*counters));
	int err = 0;

	if (!flows || !points || !counters)
		return -ENOMEM;
	/* of a call that was open at a cut this window has the rest */
	for (size_t i = 0; i < s->n_flows; i++)
		flows[i].start_ns = MAX(flows[i].start_ns, MIN(pub->attach_ns, flows[i].end_ns));
	pub->flows = flows;
	pub->n_flows = s->n_flows;
	pub->counters = counters;
	qsort(flows, s->n_flows, sizeof(*flows), by_thread);
	for (size_t i = 0; i < threads->n; i++)
		find_ends(&threads->v[i], flows, s->n_flows);
	qsort(flows, s->n_flows, sizeof(*flows), by_start);
	if (s->queued.n)
		queued(points, s->queued.n, &counters[pub->n_counters++]);
	if (s->n_flows)
		err = in_flight(l, flows, s->n_flows, &counters[pub->n_counters++]);
	return err;
}
