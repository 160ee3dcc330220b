/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * findings: unsafe calls that held up everybody's garbage collection, and those that slept
 * with a capability in hand. Each collection whose wait is known (from the request to the start) is
 * charged to the unsafe call that ended last in it: the others had stopped by then.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "findings_priv.h"

/* Below a hundredth of the time there are better places to look; and what comes to less than a few
 * milliseconds in all is an accident of a short session. */
#define HELD_UP_PERCENT	 1
#define HELD_UP_LEAST_NS 5000000
#define BLOCKED_PERCENT	 1
#define BLOCKED_LEAST_NS 10000000

struct key {
	uint32_t function, caller; /* frames; UINT32_MAX: not known */
};

struct call {
	UT_hash_handle hh;
	struct key key;
	uint64_t blocked_ns, longest_ns, sleeps;
	uint64_t held_ns, held_longest_ns, gcs;
	uint64_t caps; /* bit for each of the first 64 in which a collection waited for it */
	bool many_caps;
};

/* Who kept one collection waiting, as far as the lanes that were looked at tell. */
struct blame {
	struct call *call;
	uint64_t ns, last_ns;
	size_t lane;
	uint16_t cap;
};

struct looker {
	struct finder *f;
	struct call *calls;
	struct blame *blames; /* by collection */
};

static struct call *call_get(struct looker *l, const struct pic_slice *s)
{
	struct call *call;
	struct key key;

	finding__call_of(l->f->pic, s->stack, &key.function, &key.caller);
	HASH_FIND(hh, l->calls, &key, sizeof(key), call);
	if (call)
		return call;
	call = calloc(1, sizeof(*call));
	if (!call)
		return NULL;
	call->key = key;
	return HASH_INSERT(l->calls, key, sizeof(call->key), call) ? NULL : call;
}

/* The part of the slice that lies in this collection's wait. */
static void blame(struct blame *b, struct call *call, const struct pic_slice *s, size_t lane,
		  pid_t tid, const struct pic_gc_event *gc)
{
	uint64_t from = MAX(s->start_ns, finding__requested_ns(gc)),
		 to = MIN(s->end_ns, gc->start_ns);

	/* whoever leads the collection waits for others, whatever its C frames look like */
	if (from >= to || tid == gc->tid)
		return;
	if (b->call == call && b->lane == lane) {
		b->ns += to - from;
		b->last_ns = to;
	} else if (to > b->last_ns) {
		*b = (struct blame){
			.call = call, .ns = to - from, .last_ns = to, .lane = lane, .cap = s->cap};
	}
}

static int look_at_lane(struct looker *l, size_t lane)
{
	const struct pic_lane *v = &l->f->threads->v[lane];
	const struct pic_target *t = l->f->t;
	struct call *call = NULL;
	size_t gc = 0;

	for (size_t i = 0; i < v->n_slices; i++) {
		const struct pic_slice *s = &v->slices[i];

		/* pushed off the CPU in the middle of an unsafe call: the capability is held on */
		if (s->state == ST_UNSAFE_CALL_CPU || s->state == ST_UNSAFE_CALL_BLOCKED) {
			call = call_get(l, s);
			if (!call)
				return -ENOMEM;
		} else if (s->state != ST_PREEMPTED) {
			call = NULL;
		}
		if (!call)
			continue;
		if (s->state == ST_UNSAFE_CALL_BLOCKED) {
			call->blocked_ns += s->end_ns - s->start_ns;
			call->longest_ns = MAX(call->longest_ns, s->end_ns - s->start_ns);
			call->sleeps++;
		}
		while (gc < t->n_gcs && t->gcs[gc].start_ns <= s->start_ns)
			gc++;
		for (size_t k = gc; k < t->n_gcs && finding__requested_ns(&t->gcs[k]) < s->end_ns;
		     k++)
			blame(&l->blames[k], call, s, lane, v->tid, &t->gcs[k]);
	}
	return 0;
}

static void add_up(struct looker *l)
{
	for (size_t i = 0; i < l->f->t->n_gcs; i++) {
		const struct blame *b = &l->blames[i];

		if (!b->call)
			continue;
		b->call->gcs++;
		b->call->held_ns += b->ns;
		b->call->held_longest_ns = MAX(b->call->held_longest_ns, b->ns);
		if (b->cap < 64)
			b->call->caps |= 1ULL << b->cap;
		else
			b->call->many_caps = true;
	}
}

/* " for capability 1", " for capabilities 0 and 1"; "" if there are too many. */
static const char *list_caps(struct finder *f, const struct call *call)
{
	int n = __builtin_popcountll(call->caps), left = n;
	const char *list = n == 1 ? " for capability" : " for capabilities";

	if (call->many_caps || !n || n > 4)
		return "";
	for (unsigned cap = 0; cap < 64; cap++)
		if (call->caps >> cap & 1) {
			list = finding__text(f, "%s%s %u", list,
					     left == n	 ? ""
					     : left == 1 ? " and"
							 : ",",
					     cap);
			left--;
		}
	return list;
}

static bool held_up(const struct finder *f, const struct call *call)
{
	return call->held_ns >= HELD_UP_LEAST_NS &&
	       finding__share(call->held_ns, f->wall_ns, HELD_UP_PERCENT);
}

static bool blocked(const struct finder *f, const struct call *call)
{
	return call->blocked_ns >= BLOCKED_LEAST_NS &&
	       finding__share(call->blocked_ns, f->wall_ns, BLOCKED_PERCENT);
}

static void report(struct finder *f, const struct call *call)
{
	const struct pic_frame *function = picture__frame(f->pic, call->key.function);
	const struct pic_frame *caller = picture__frame(f->pic, call->key.caller);
	const char *from, *place, *slept = "";

	if (!held_up(f, call) && !blocked(f, call))
		return;
	from = finding__caller(f, caller ? caller->name : "");
	place = finding__place(f, caller ? caller : function);
	if (held_up(f, call)) {
		if (blocked(f, call))
			slept = finding__text(f, "; it slept for %s in all",
					      human__duration(call->blocked_ns).s);
		finding__add(f, "unsafe_call_held_up_gc", call->held_ns, place,
			     "%s, inside the unsafe call %s%s%s: a candidate for `safe`",
			     finding__gc_waited(f, call->held_ns, call->gcs, list_caps(f, call),
						call->held_longest_ns),
			     function ? function->name : "[not known]", from, slept);
	} else if (function) {
		/* one that slept since before the session: no advice for what has no name */
		finding__add(f, "blocking_unsafe_call", call->blocked_ns, place,
			     "The unsafe call %s%s slept for %s with its capability in hand (%s, "
			     "longest %s): a candidate for `safe`",
			     function->name, from, human__duration(call->blocked_ns).s,
			     finding__counted(call->sleeps, "time", "times").s,
			     human__duration(call->longest_ns).s);
	}
}

void findings__unsafe(struct finder *f)
{
	struct looker l = {.f = f};
	struct call *call;

	l.blames = calloc(f->t->n_gcs + 1, sizeof(*l.blames));
	if (!l.blames) {
		f->err = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < f->threads->n && !f->err; i++)
		f->err = look_at_lane(&l, i);
	if (!f->err)
		add_up(&l);
	for (call = l.calls; call; call = call->hh.next)
		report(f, call);
	HASH_FREE(l.calls);
	free(l.blames);
}
