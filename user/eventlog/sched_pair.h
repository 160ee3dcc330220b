/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sched_pair: a capability and a thread that go back and forth between running and a safe call,
 * the pair of events that a program with many safe calls is made of. What they add to a lane is
 * summed up here for as long as it would only be joined to the lane's last stretch, at a fraction
 * of the cost. Inlined into sched.c; not for other files.
 */
#ifndef SAFESCOPED_EVENTLOG_SCHED_PAIR_H
#define SAFESCOPED_EVENTLOG_SCHED_PAIR_H

#include <errno.h>

#include "base/base.h"
#include "lane_fast.h"
#include "sched.h"

/* The time from which on the lane begins another stretch; 0: what comes next is not joined. */
static inline uint64_t lane_joins_until(const struct el_lane *lane, uint64_t since)
{
	const struct el_stretch *last;

	if (!lane->merged_ns || !lane->n)
		return 0;
	last = lane->s + lane->n - 1;
	if (last->end != since)
		return 0;
	return last->start > UINT64_MAX - lane->merged_ns ? UINT64_MAX
							  : last->start + lane->merged_ns;
}

/* If these two go back and forth now, their next events are summed up here. */
static inline void pair_begin(struct el_sched *s, struct cap_state *c, struct thread_state *t)
{
	bool runs = c->state == ECS_RUN && t->pub.state == ETS_RUNNING && c->thread == t->pub.tid;
	bool calls = c->state == ECS_IDLE && t->pub.state == ETS_SAFE_CALL;
	struct pair *p = &c->pair;

	if ((!runs && !calls) || !c->seen || t->pub.cap != c->pub.cap || !t->pub.lane ||
	    t->pub.since != c->since || s->opts.window || s->opts.on_call)
		return;
	*p = (struct pair){
		.thread = t,
		.tid = t->pub.tid,
		.next = calls ? EL_RUN_THREAD : EL_STOP_THREAD,
		.since = c->since,
		.call_min = UINT64_MAX,
		.lanes = {{.lane = &c->pub.lane,
			   .run_key = lane_key(t->pub.tid, ECS_RUN, EL_STOP_FOREIGN_CALL),
			   .call_key = lane_key(0, ECS_IDLE, 0),
			   .until = lane_joins_until(&c->pub.lane, c->since)},
			  {.lane = t->pub.lane,
			   .run_key = lane_key(c->pub.cap, ETS_RUNNING, 0),
			   .call_key = lane_key(c->pub.cap, ETS_SAFE_CALL, 0),
			   .until = lane_joins_until(t->pub.lane, c->since)}},
	};
	p->until = MIN(p->lanes[0].until, p->lanes[1].until);
	t->paired = c;
}

/* RUN_THREAD, or STOP_THREAD for a foreign call, in its turn? The number is the same field of both.
 */
static inline bool pair_has(const struct pair *p, const struct el_event *ev)
{
	return ev->id == p->next && ev->thread.tid == p->tid && ev->time > p->since && p->thread &&
	       (ev->id == EL_RUN_THREAD || ev->stop.status == EL_STOP_FOREIGN_CALL);
}

static inline void pair_add(struct pair *p, const struct el_event *ev)
{
	uint64_t ns = ev->time - p->since;

	if (ev->id == EL_STOP_THREAD) {
		p->next = EL_RUN_THREAD;
		p->sums.stops++;
		p->sums.run_ns += ns;
	} else {
		p->next = EL_STOP_THREAD;
		p->sums.runs++;
		p->sums.call_ns += ns;
		p->call_min = MIN(p->call_min, ns);
		p->call_max = MAX(p->call_max, ns);
	}
	p->since = ev->time;
}

/*
 * What single joins would have made of the lane. Parts get their places in the order in which they
 * began; the one that grew last has the name only if it is truly the heavier one.
 */
static inline void pair_lane_settle(const struct pair *p, struct pair_lane *l)
{
	const uint64_t key[] = {l->run_key, l->call_key},
		       ns[] = {p->sums.run_ns - l->in.run_ns, p->sums.call_ns - l->in.call_ns};
	bool even = p->sums.stops - l->in.stops == p->sums.runs - l->in.runs;
	unsigned latest = p->next == EL_RUN_THREAD ? 0 : 1, first = even ? !latest : latest;
	struct el_stretch *last;

	if (!ns[latest])
		return;
	last = l->lane->s + l->lane->n - 1;
	lane_parts_begin(l->lane, last);
	lane_part(l->lane, last, key[first], 0);
	if (ns[!first])
		lane_part(l->lane, last, key[!first], 0);
	if (ns[!latest])
		lane_part(l->lane, last, key[!latest], ns[!latest]);
	lane_part(l->lane, last, key[latest], ns[latest]);
	last->end = p->since;
	l->in = p->sums;
}

/* An event of the pair with which at least one lane begins something new. */
static inline int pair_turn(struct pair *p, const struct el_event *ev, uint64_t *ret_dropped)
{
	uint64_t since = p->since;
	bool put[2];
	int err = 0;

	for (unsigned i = 0; i < 2; i++) {
		struct pair_lane *l = &p->lanes[i];
		uint64_t key = ev->id == EL_STOP_THREAD ? l->run_key : l->call_key;
		int full;

		put[i] = ev->time >= l->until;
		if (!put[i])
			continue;
		pair_lane_settle(p, l);
		full = lane_put(l->lane, since, ev->time, (uint32_t)(key >> 32),
				(uint16_t)(key >> 16), (uint16_t)key);
		if (full == -E2BIG)
			++*ret_dropped;
		else if (full)
			err = full;
	}
	pair_add(p, ev);
	for (unsigned i = 0; i < 2; i++) {
		if (!put[i])
			continue;
		p->lanes[i].in = p->sums;
		p->lanes[i].until = lane_joins_until(p->lanes[i].lane, ev->time);
	}
	p->until = MIN(p->lanes[0].until, p->lanes[1].until);
	return err;
}

/* The two go their own ways, or are looked at: all is as if each event had been taken alone. */
static inline void pair_settle(struct el_sched *s, struct cap_state *c)
{
	struct pair *p = &c->pair;
	const struct pair_sums *sums = &p->sums;
	struct thread_state *t = p->thread;
	struct el_thread *pub;
	bool in_call = p->next == EL_RUN_THREAD;

	if (!t)
		return;
	pub = &t->pub;
	t->paired = NULL;
	p->thread = NULL;
	p->until = 0;
	if (!sums->runs && !sums->stops)
		return;
	pair_lane_settle(p, &p->lanes[0]);
	pair_lane_settle(p, &p->lanes[1]);
	c->pub.state_ns[ECS_RUN] += sums->run_ns;
	c->pub.state_ns[ECS_IDLE] += sums->call_ns;
	c->pub.runs += sums->runs;
	c->state = in_call ? ECS_IDLE : ECS_RUN;
	c->thread = in_call ? 0 : p->tid;
	c->since = p->since;
	pub->state_ns[ETS_RUNNING] += sums->run_ns;
	pub->state_ns[ETS_SAFE_CALL] += sums->call_ns;
	pub->runs += sums->runs;
	pub->safe_calls += sums->runs;
	pub->call_min_ns = MIN(pub->call_min_ns, p->call_min);
	pub->call_max_ns = MAX(pub->call_max_ns, p->call_max);
	pub->state = in_call ? ETS_SAFE_CALL : ETS_RUNNING;
	pub->since = pub->end = p->since;
	s->info.stops[EL_STOP_FOREIGN_CALL] += sums->stops;
	s->info.last = MAX(s->info.last, p->since);
}

static inline void pair_settle_all(struct el_sched *s)
{
	for (size_t i = 0; i < s->n_caps; i++)
		pair_settle(s, s->caps[i]);
}

#endif
