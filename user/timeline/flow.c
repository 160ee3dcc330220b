/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * flow: recorded safe calls as ways from the capability that was left to the one that was got
 * back, and the curves: safe calls in flight, Haskell threads that could run.
 */
#include "private.h"

int flow__add(struct target_state *tg, pid_t tid, const struct ev *ev)
{
	struct tl_flow flow = {
		.start_ns = ev->t0,
		.end_ns = ev->t1,
		.tso = ev->tso,
		.tid = tid,
		.cap_from = ev->left < TL_MAX_CAPS ? ev->left : UINT32_MAX,
		.cap_to = UINT32_MAX,
		.function = ev->site ? tg->site_v[ev->site - 1]->function_name : "",
	};

	/* Beyond the limit the rest of the picture is still whole. */
	if (tg->n_flows >= TL_MAX_FLOWS)
		return 0;
	if (TL_RESERVE(tg->flows, tg->flows_cap, tg->n_flows + 1, TL_MAX_FLOWS))
		return -ENOMEM;
	tg->flows[tg->n_flows++] = flow;
	return 0;
}

int flow__queued(struct target_state *tg, uint64_t ns, uint64_t queued)
{
	size_t n = tg->n_queued;

	if (n && tg->queued[n - 1].value == queued)
		return 0;
	if (n && tg->queued[n - 1].ns >= ns)
		return 0;
	if (n >= TL_MAX_POINTS)
		return 0;
	if (TL_RESERVE(tg->queued, tg->queued_cap, n + 1, TL_MAX_POINTS))
		return -ENOMEM;
	tg->queued[tg->n_queued++] = (struct tl_point){.ns = ns, .value = queued};
	return 0;
}

int flow__starved(struct target_state *tg, uint64_t ns, uint64_t queued)
{
	size_t n = tg->pub.n_starved;

	if (n >= TL_MAX_POINTS || (n && tg->starved[n - 1].ns >= ns))
		return 0;
	if (TL_RESERVE(tg->starved, tg->starved_cap, n + 1, TL_MAX_POINTS))
		return -ENOMEM;
	tg->starved[n] = (struct tl_point){.ns = ns, .value = queued};
	tg->pub.starved = tg->starved;
	tg->pub.n_starved = n + 1;
	return 0;
}

/* ── where a call got its capability back ────────────────────────────────────────────────── */

static int by_thread(const void *pa, const void *pb)
{
	const struct tl_flow *a = pa, *b = pb;

	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return (a->end_ns > b->end_ns) - (a->end_ns < b->end_ns);
}

static int by_start(const void *pa, const void *pb)
{
	const struct tl_flow *a = pa, *b = pb;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return (a->tid > b->tid) - (a->tid < b->tid);
}

/* The first stretch at or after t in which the lane holds a capability. */
static const struct tl_stretch *held_after(const struct tl_lane *lane, uint64_t t)
{
	size_t low = 0, high = lane->n_stretches;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (lane->stretches[mid].start_ns < t)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < lane->n_stretches; low++) {
		const struct tl_stretch *s = &lane->stretches[low];

		if (s->cap < TL_MAX_CAPS)
			return s;
		/* the next call, or no Haskell any more */
		if (s->state == ST_SAFE_CALL_CPU || s->state == ST_SAFE_CALL_BLOCKED ||
		    s->state == ST_IDLE)
			return NULL;
	}
	return NULL;
}

static int find_ends(struct target_state *tg)
{
	qsort(tg->flows, tg->n_flows, sizeof(*tg->flows), by_thread);
	for (size_t l = 0; l < tg->pub.n_lanes; l++) {
		const struct tl_lane *lane = &tg->lanes[l];
		size_t low = 0, high = tg->n_flows;

		while (low < high) {
			size_t mid = low + (high - low) / 2;

			if (tg->flows[mid].tid < lane->tid)
				low = mid + 1;
			else
				high = mid;
		}
		for (; low < tg->n_flows && tg->flows[low].tid == lane->tid; low++) {
			struct tl_flow *flow = &tg->flows[low];
			const struct tl_stretch *s;

			/* another thread had the same number before, or has it later */
			if (flow->start_ns < lane->start_ns || flow->end_ns > lane->end_ns)
				continue;
			s = held_after(lane, flow->end_ns);
			if (s) {
				flow->back_ns = s->start_ns;
				flow->cap_to = s->cap;
			}
		}
	}
	qsort(tg->flows, tg->n_flows, sizeof(*tg->flows), by_start);
	return 0;
}

/* ── curves ──────────────────────────────────────────────────────────────────────────────── */

struct change {
	uint64_t ns;
	int by;
};

static int by_ns(const void *pa, const void *pb)
{
	const struct change *a = pa, *b = pb;

	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return a->by - b->by; /* ends first: a call that follows another is not a second one */
}

static int in_flight(struct target_state *tg, struct tl_counter *counter)
{
	size_t n = tg->n_flows, points = 0;
	struct change *changes = calloc(2 * n + 1, sizeof(*changes));
	int64_t value = 0;

	tg->in_flight = calloc(2 * n + 1, sizeof(*tg->in_flight));
	if (!changes || !tg->in_flight) {
		free(changes);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		changes[2 * i] = (struct change){tg->flows[i].start_ns, 1};
		changes[2 * i + 1] = (struct change){tg->flows[i].end_ns, -1};
	}
	qsort(changes, 2 * n, sizeof(*changes), by_ns);
	for (size_t i = 0; i < 2 * n; i++) {
		value += changes[i].by;
		if (i + 1 < 2 * n && changes[i + 1].ns == changes[i].ns)
			continue;
		tg->in_flight[points++] = (struct tl_point){changes[i].ns, (uint64_t)value};
		counter->max_value = MAX(counter->max_value, (uint64_t)value);
	}
	free(changes);
	counter->last_value = (uint64_t)value;
	counter->points = tg->in_flight;
	counter->n_points = points;
	return 0;
}

int flow__build(struct target_state *tg)
{
	struct tl_counter *c;
	int err;

	if (tg->n_flows)
		find_ends(tg);
	tg->pub.flows = tg->flows;
	tg->pub.n_flows = tg->n_flows;
	tg->counters_v = calloc(2, sizeof(*tg->counters_v));
	if (!tg->counters_v)
		return -ENOMEM;
	tg->pub.counters = tg->counters_v;
	if (tg->n_queued) {
		c = &tg->counters_v[tg->pub.n_counters++];
		*c = (struct tl_counter){.name = "runnable threads",
					 .unit = "threads",
					 .kind = TC_RUNNABLE,
					 .points = tg->queued,
					 .n_points = tg->n_queued};
		for (size_t i = 0; i < tg->n_queued; i++)
			c->max_value = MAX(c->max_value, tg->queued[i].value);
		c->last_value = tg->queued[tg->n_queued - 1].value;
	}
	if (!tg->n_flows)
		return 0;
	c = &tg->counters_v[tg->pub.n_counters];
	*c = (struct tl_counter){
		.name = "safe calls in flight", .unit = "calls", .kind = TC_SAFE_CALLS};
	err = in_flight(tg, c);
	if (!err)
		tg->pub.n_counters++;
	return err;
}

void flow__free(struct target_state *tg)
{
	free(tg->flows);
	free(tg->queued);
	free(tg->starved);
	free(tg->in_flight);
	free(tg->counters_v);
}
