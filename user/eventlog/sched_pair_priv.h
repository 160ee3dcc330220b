/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sched_pair: a capability and a thread that alternate between running and a safe call, which is
 * what most events of a program with many safe calls come from. Their contribution to a lane is
 * summed up here for as long as it would only be joined to the lane's group, at a fraction of the
 * cost. Inlined into sched.c; not for other files.
 */
#ifndef SAFESCOPED_EVENTLOG_SCHED_PAIR_PRIV_H
#define SAFESCOPED_EVENTLOG_SCHED_PAIR_PRIV_H

#include <errno.h>

#include "base/base.h"
#include "sched_priv.h"

/* The slice for lane number i, without its times. */
static inline struct pic_slice pair_slice(const struct pair *p, unsigned i, unsigned what)
{
	if (i)
		return thread_slice(p->thread, what == PAIR_RUN ? HS_RUNNING : HS_SAFE_CALL);
	return what == PAIR_RUN ? cap_slice(CS_HASKELL, p->tid, EL_STOP_FOREIGN_CALL)
				: cap_slice(CS_IDLE, 0, 0);
}

/* If the two are alternating, starts to sum up their next events here. */
static inline void pair_begin(struct el_sched *s, struct sched_cap *c, struct sched_thread *t)
{
	bool runs = c->state == CS_HASKELL && t->pub.state == HS_RUNNING && c->thread == t->pub.tid;
	bool calls = c->state == CS_IDLE && t->pub.state == HS_SAFE_CALL;
	struct pair *p = &c->pair;

	if ((!runs && !calls) || !c->seen || t->pub.cap != c->pub.cap || !t->lane ||
	    t->pub.since != c->since || s->opts.window || s->opts.on_call)
		return;
	/* member by member, since this runs for every event that belongs to no pair */
	p->thread = t;
	p->tid = t->pub.tid;
	p->next = calls ? EL_RUN_THREAD : EL_STOP_THREAD;
	p->since = c->since;
	p->sums = p->lanes[0].in = p->lanes[1].in = (struct pair_sums){{0}, {0}};
	p->lanes[0].lane = &c->lane;
	p->lanes[1].lane = t->lane;
	p->lanes[0].until = lane__full_at(&c->lane, c->since);
	p->lanes[1].until = lane__full_at(t->lane, c->since);
	p->until = MIN(p->lanes[0].until, p->lanes[1].until);
	t->paired = c;
}

/* Whether the event is the RUN_THREAD, or STOP_THREAD for a foreign call, whose turn it is. Both
 * have the thread's number in the same field. */
static inline bool pair_has(const struct pair *p, const struct el_event *ev)
{
	return ev->id == p->next && ev->thread.tid == p->tid && ev->time > p->since && p->thread &&
	       (ev->id == EL_RUN_THREAD || ev->stop.status == EL_STOP_FOREIGN_CALL);
}

static inline void pair_add(struct pair *p, const struct el_event *ev)
{
	unsigned what = ev->id == EL_STOP_THREAD ? PAIR_RUN : PAIR_CALL;

	p->next = what == PAIR_RUN ? EL_RUN_THREAD : EL_STOP_THREAD;
	p->sums.n[what]++;
	p->sums.ns[what] += ev->time - p->since;
	p->since = ev->time;
}

/* Joins the sums to the group as single joins would have: the one that came first stays first. */
static inline void pair_lane_settle(struct pair *p, unsigned i)
{
	struct pair_lane *l = &p->lanes[i];
	unsigned latest = p->next == EL_RUN_THREAD ? PAIR_RUN : PAIR_CALL;
	bool even = p->sums.n[PAIR_RUN] - l->in.n[PAIR_RUN] ==
		    p->sums.n[PAIR_CALL] - l->in.n[PAIR_CALL];
	unsigned first = even ? !latest : latest;

	for (unsigned k = 0; k < 2; k++) {
		unsigned what = k ? !first : first;
		struct pic_slice s = pair_slice(p, i, what);

		s.start_ns = l->lane->end_ns;
		s.end_ns = s.start_ns + p->sums.ns[what] - l->in.ns[what];
		if (s.end_ns > s.start_ns)
			lane__join(l->lane, &s);
	}
	l->in = p->sums;
}

/* Takes an event of the pair with which at least one lane begins a new slice. */
static inline int pair_turn(struct pair *p, const struct el_event *ev, uint64_t *ret_dropped)
{
	unsigned what = ev->id == EL_STOP_THREAD ? PAIR_RUN : PAIR_CALL;
	uint64_t since = p->since;
	bool put[2];
	int err = 0;

	for (unsigned i = 0; i < 2; i++) {
		struct pair_lane *l = &p->lanes[i];
		struct pic_slice s = pair_slice(p, i, what);
		int full;

		put[i] = ev->time >= l->until;
		if (!put[i])
			continue;
		pair_lane_settle(p, i);
		s.start_ns = since;
		s.end_ns = ev->time;
		full = lane__put(l->lane, &s);
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
		p->lanes[i].until = lane__full_at(p->lanes[i].lane, ev->time);
	}
	p->until = MIN(p->lanes[0].until, p->lanes[1].until);
	return err;
}

static inline void pair_settle_sums(struct el_sched *s, struct sched_cap *c, struct sched_thread *t)
{
	struct pair *p = &c->pair;
	const struct pair_sums *sums = &p->sums;
	bool in_call = p->next == EL_RUN_THREAD;

	pair_lane_settle(p, 0);
	pair_lane_settle(p, 1);
	c->pub.state_ns[CS_HASKELL] += sums->ns[PAIR_RUN];
	c->pub.state_ns[CS_IDLE] += sums->ns[PAIR_CALL];
	c->pub.runs += sums->n[PAIR_CALL];
	c->state = in_call ? CS_IDLE : CS_HASKELL;
	c->thread = in_call ? 0 : p->tid;
	c->since = p->since;
	t->pub.state_ns[HS_RUNNING] += sums->ns[PAIR_RUN];
	t->pub.state_ns[HS_SAFE_CALL] += sums->ns[PAIR_CALL];
	t->pub.safe_calls += sums->n[PAIR_CALL];
	t->pub.state = in_call ? HS_SAFE_CALL : HS_RUNNING;
	t->pub.since = t->pub.end = p->since;
	s->info.last = MAX(s->info.last, p->since);
}

/* Ends the pair, or makes it readable: everything is as if each event had been taken singly. */
static inline void pair_settle(struct el_sched *s, struct sched_cap *c)
{
	struct pair *p = &c->pair;

	if (!p->thread)
		return;
	p->thread->paired = NULL;
	p->until = 0;
	if (p->sums.n[PAIR_RUN] || p->sums.n[PAIR_CALL])
		pair_settle_sums(s, c, p->thread);
	p->thread = NULL;
}

static inline void pair_settle_all(struct el_sched *s)
{
	for (size_t i = 0; i < s->n_caps; i++)
		pair_settle(s, s->caps[i]);
}

#endif
