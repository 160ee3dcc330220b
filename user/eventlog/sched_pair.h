/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sched_pair: a capability and a thread that go back and forth between running and a safe call,
 * the pair of events that a program with many safe calls is made of. While all that they add would
 * be joined to the last stretch of both lanes, their sums are kept here instead, at a fraction of
 * the cost; pair_settle puts them where they belong. Inlined into sched.c; not for other files.
 */
#ifndef SAFESCOPED_EVENTLOG_SCHED_PAIR_H
#define SAFESCOPED_EVENTLOG_SCHED_PAIR_H

#include "base/base.h"
#include "lane_fast.h"
#include "sched.h"

/* The time from which on the lane would begin another stretch; 0: what comes is not joined. */
static inline uint64_t lane_joins_until(const struct el_lane *lane, uint64_t since)
{
	const struct el_stretch *last = lane->s + lane->n - 1;

	if (!lane->merged_ns || !lane->n || last->end != since)
		return 0;
	return last->start > UINT64_MAX - lane->merged_ns ? UINT64_MAX
							  : last->start + lane->merged_ns;
}

/* To begin and to settle costs as much as so many single events. */
#define PAIR_WORTH 8

/*
 * If these two go back and forth now, their next events are summed up here. `last_ns`: how far
 * apart the last two were.
 */
static inline void pair_begin(struct el_sched *s, struct cap_state *c, struct thread_state *t,
			      uint64_t last_ns)
{
	bool runs = c->state == ECS_RUN && t->pub.state == ETS_RUNNING && c->thread == t->pub.tid;
	bool calls = c->state == ECS_IDLE && t->pub.state == ETS_SAFE_CALL;
	uint64_t until;

	if ((!runs && !calls) || !c->seen || t->pub.cap != c->pub.cap || !t->pub.lane ||
	    t->pub.since != c->since || s->opts.window || s->opts.on_call)
		return;
	until = MIN(lane_joins_until(&c->pub.lane, c->since),
		    lane_joins_until(t->pub.lane, c->since));
	if (until <= c->since || (until - c->since) / PAIR_WORTH <= last_ns)
		return;
	c->pair = (struct pair){.thread = t,
				.tid = t->pub.tid,
				.next = calls ? EL_RUN_THREAD : EL_STOP_THREAD,
				.since = c->since,
				.until = until,
				.call_min = UINT64_MAX};
	t->paired = c;
}

/* One more event of the pair: RUN_THREAD, or STOP_THREAD for a foreign call. False: it is none. */
static inline bool pair_goes(struct pair *p, const struct el_event *ev)
{
	uint64_t ns = ev->time - p->since;

	/* The thread's number is the same field of both events. */
	if (ev->id != p->next || ev->thread.tid != p->tid || ev->time <= p->since ||
	    ev->time >= p->until)
		return false;
	if (ev->id == EL_STOP_THREAD) {
		if (ev->stop.status != EL_STOP_FOREIGN_CALL)
			return false;
		p->next = EL_RUN_THREAD;
		p->stops++;
		p->run_ns += ns;
	} else {
		p->next = EL_STOP_THREAD;
		p->runs++;
		p->call_ns += ns;
		p->call_min = MIN(p->call_min, ns);
		p->call_max = MAX(p->call_max, ns);
	}
	p->since = ev->time;
	return true;
}

/*
 * What single joins would have made of the lane. Parts get their places in the order in which they
 * began; the one that grew last has the name only if it is truly the heavier one.
 */
static inline void lane_join_pair(struct el_lane *lane, const struct pair *p, uint64_t run_key,
				  uint64_t call_key)
{
	const uint64_t key[] = {run_key, call_key}, ns[] = {p->run_ns, p->call_ns};
	unsigned latest = p->next == EL_RUN_THREAD ? 0 : 1,
		 first = p->stops == p->runs ? !latest : latest;
	struct el_stretch *last = lane->s + lane->n - 1;

	lane_parts_begin(lane, last);
	lane_part(lane, last, key[first], 0);
	if (ns[!first])
		lane_part(lane, last, key[!first], 0);
	if (ns[!latest])
		lane_part(lane, last, key[!latest], ns[!latest]);
	lane_part(lane, last, key[latest], ns[latest]);
	last->end = p->since;
}

/* The two go their own ways, or are looked at: all is as if each event had been taken alone. */
static inline void pair_settle(struct el_sched *s, struct cap_state *c)
{
	struct pair *p = &c->pair;
	struct thread_state *t = p->thread;
	struct el_thread *pub;
	bool in_call = p->next == EL_RUN_THREAD;

	if (!t)
		return;
	pub = &t->pub;
	t->paired = NULL;
	p->thread = NULL;
	p->until = 0;
	if (!p->stops && !p->runs)
		return;
	lane_join_pair(&c->pub.lane, p, lane_key(p->tid, ECS_RUN, EL_STOP_FOREIGN_CALL),
		       lane_key(0, ECS_IDLE, 0));
	lane_join_pair(pub->lane, p, lane_key(c->pub.cap, ETS_RUNNING, 0),
		       lane_key(c->pub.cap, ETS_SAFE_CALL, 0));
	c->pub.state_ns[ECS_RUN] += p->run_ns;
	c->pub.state_ns[ECS_IDLE] += p->call_ns;
	c->pub.runs += p->runs;
	c->state = in_call ? ECS_IDLE : ECS_RUN;
	c->thread = in_call ? 0 : p->tid;
	c->since = p->since;
	pub->state_ns[ETS_RUNNING] += p->run_ns;
	pub->state_ns[ETS_SAFE_CALL] += p->call_ns;
	pub->runs += p->runs;
	pub->safe_calls += p->runs;
	pub->call_min_ns = MIN(pub->call_min_ns, p->call_min);
	pub->call_max_ns = MAX(pub->call_max_ns, p->call_max);
	pub->state = in_call ? ETS_SAFE_CALL : ETS_RUNNING;
	pub->since = pub->end = p->since;
	s->info.stops[EL_STOP_FOREIGN_CALL] += p->stops;
	s->info.last = MAX(s->info.last, p->since);
}

static inline void pair_settle_all(struct el_sched *s)
{
	for (size_t i = 0; i < s->n_caps; i++)
		pair_settle(s, s->caps[i]);
}

#endif
