/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * flow: recorded safe calls, from the capability that was left to the one that was acquired again,
 * and curves: safe calls in flight, runnable Haskell threads.
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
		/* the next call, or no Haskell code follows */
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

		/* another thread with the same tid lived before or after */
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

	/* ends first, so that back-to-back calls do not count as two */
	return CMP(a->ns, b->ns) ?: a->by - b->by;
}

/* Whether a record shows what the thread's last call did after end_ns; flows are sorted by thread
 * and end. */
static bool is_recorded_later(const struct pic_flow *flows, size_t n, pid_t tid, uint64_t end_ns)
{
	size_t at = search__first(
		n, k, flows[k].tid > tid || (flows[k].tid == tid && flows[k].end_ns > end_ns));

	return at < n && flows[at].tid == tid;
}

/* The calls of a thread that are open at the end. Returns their number; `to` may be NULL. */
static size_t open_of(const struct lanes *l, const struct thread_lane *lane, struct change *to)
{
	uint64_t attach = l->seen->pub->attach_ns;
	const struct seen_thread *th = lane->seen;
	uint32_t depth = th->has_final ? MIN(th->final->depth, (uint32_t)WIRE_OPEN_MAX) : 0;
	size_t n = 0;

	for (uint32_t i = 0; i < depth; i++) {
		/* the state is read after the end */
		if (th->final->open[i].start_ns >= l->end_ns)
			continue;
		if (to)
			to[n] = (struct change){MAX(th->final->open[i].start_ns, attach), 1};
		n++;
	}
	/* a replay knows the record of a call that ends in a later window */
	for (size_t i = 0; l->goes_on && i < th->calls.n; i++) {
		const struct ev *ev = &th->calls.v[i];

		if (ev->t0 >= l->end_ns || ev->t1 <= l->end_ns ||
		    (depth && seen__has_open(th->final, ev->t0)))
			continue;
		if (to)
			to[n] = (struct change){MAX(ev->t0, attach), 1};
		n++;
	}
	if (!lane->in_first_call)
		return n;
	if (to)
		to[n] = (struct change){attach, 1};
	return n + 1;
}

/* The calls that are open at the end and have no record by then. */
static size_t open_at_end(const struct lanes *l, const struct pic_flow *flows, size_t n,
			  struct change *to)
{
	size_t open = 0;

	for (size_t i = 0; i < l->n_threads; i++) {
		const struct thread_lane *lane = &l->threads[i];
		const struct seen_thread *th = lane->seen;

		if (!th || th->end_ns || is_recorded_later(flows, n, th->tid, l->end_ns))
			continue;
		open += open_of(l, lane, to ? to + open : NULL);
	}
	return open;
}

static int in_flight(struct lanes *l, const struct pic_flow *flows, size_t n,
		     struct pic_counter *counter)
{
	size_t n_changes = 2 * n + open_at_end(l, flows, n, NULL);
	struct change *changes = calloc(n_changes + 1, sizeof(*changes));
	struct pic_point *points = picture__alloc(l->pic, n_changes, sizeof(*points));
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
	open_at_end(l, flows, n, changes + 2 * n);
	qsort(changes, n_changes, sizeof(*changes), by_ns);
	for (size_t i = 0; i < n_changes; i++) {
		value += changes[i].by;
		if (i + 1 < n_changes && changes[i + 1].ns == changes[i].ns)
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
	/* of a call that was open at a cut, this window has the rest */
	for (size_t i = 0; i < s->n_flows; i++)
		flows[i].start_ns = MAX(flows[i].start_ns, MIN(pub->attach_ns, flows[i].end_ns));
	pub->flows = flows;
	pub->n_flows = s->n_flows;
	pub->counters = counters;
	qsort(flows, s->n_flows, sizeof(*flows), by_thread);
	for (size_t i = 0; i < threads->n; i++)
		find_ends(&threads->v[i], flows, s->n_flows);
	if (s->queued.n)
		queued(points, s->queued.n, &counters[pub->n_counters++]);
	if (s->n_flows || open_at_end(l, flows, 0, NULL))
		err = in_flight(l, flows, s->n_flows, &counters[pub->n_counters++]);
	qsort(flows, s->n_flows, sizeof(*flows), by_start);
	return err;
}
