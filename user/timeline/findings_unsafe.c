/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * findings_unsafe: unsafe calls that held up everybody's garbage collection, and those that slept
 * with a capability in hand. Each collection whose wait is known (from the request to the start) is
 * charged to the unsafe call that ended last in it: the others had stopped by then.
 */
#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

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
	uint64_t blocked_ns, longest_ns, stays;
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

static struct call *call_get(struct looker *l, const struct tl_stretch *s)
{
	struct call *call;
	struct key key;

	finding__call_of(l->f->tl, s->stack, &key.function, &key.caller);
	HASH_FIND(hh, l->calls, &key, sizeof(key), call);
	if (call)
		return call;
	call = calloc(1, sizeof(*call));
	if (!call)
		return NULL;
	call->key = key;
	HASH_ADD(hh, l->calls, key, sizeof(call->key), call);
	if (!call->hh.tbl) {
		free(call);
		return NULL;
	}
	return call;
}

/* The part of the stretch that lies in this collection's wait. */
static void blame(struct blame *b, struct call *call, const struct tl_stretch *s, size_t lane,
		  pid_t tid, const struct tl_gc_event *gc)
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
	const struct tl_lane *v = &l->f->t->lanes[lane];
	const struct tl_target *t = l->f->t;
	struct call *call = NULL;
	size_t gc = 0;

	for (size_t i = 0; i < v->n_stretches; i++) {
		const struct tl_stretch *s = &v->stretches[i];

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
			call->stays++;
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

/* " for capability 1", " for capabilities 0 and 1"; "" if there are too many to be told. */
static void say_caps(const struct call *call, char *out, size_t size)
{
	unsigned n = (unsigned)__builtin_popcountll(call->caps), put = 0;
	size_t len = 0;

	*out = '\0';
	if (call->many_caps || !n || n > 4)
		return;
	len += (size_t)snprintf(out, size, n == 1 ? " for capability" : " for capabilities");
	for (unsigned cap = 0; cap < 64 && len < size; cap++) {
		if (!(call->caps >> cap & 1))
			continue;
		len += (size_t)snprintf(out + len, size - len, "%s %u",
					!put	       ? ""
					: put + 1 == n ? " and"
						       : ",",
					cap);
		put++;
	}
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

static void tell_held_up(struct finder *f, const struct call *call, const char *function,
			 const char *caller, const char *place)
{
	char caps[64], longest[96] = "", slept[96] = "";

	say_caps(call, caps, sizeof(caps));
	if (call->gcs > 1)
		snprintf(longest, sizeof(longest), " (longest %s)",
			 said__ns(call->held_longest_ns).s);
	if (blocked(f, call))
		snprintf(slept, sizeof(slept), "; it slept for %s in all",
			 said__ns(call->blocked_ns).s);
	finding__add(f, "unsafe_call_held_up_gc", call->held_ns, place,
		     "GC waited %s in %s%s%s, inside the unsafe call %s%s%s: a candidate for "
		     "`safe`",
		     said__ns(call->held_ns).s,
		     said__count(call->gcs, "collection", "collections").s, caps, longest, function,
		     caller, slept);
}

static void tell_blocked(struct finder *f, const struct call *call, const char *function,
			 const char *caller, const char *place)
{
	finding__add(f, "blocking_unsafe_call", call->blocked_ns, place,
		     "The unsafe call %s%s slept for %s with its capability in hand (%s, longest "
		     "%s): a candidate for `safe`",
		     function, caller, said__ns(call->blocked_ns).s,
		     said__count(call->stays, "time", "times").s, said__ns(call->longest_ns).s);
}

static void tell(struct finder *f, const struct call *call)
{
	const struct tl_frame *function = finding__frame(f->tl, call->key.function);
	const struct tl_frame *caller = finding__frame(f->tl, call->key.caller);
	char *from, *place;

	if (!held_up(f, call) && !blocked(f, call))
		return;
	from = finding__caller(caller ? caller->name : "");
	place = finding__place(caller ? caller : function);
	if (!from || !place)
		f->err = -ENOMEM;
	else if (held_up(f, call))
		tell_held_up(f, call, function ? function->name : "[not known]", from, place);
	/* one that slept since before the session: there is no advice for what has no name */
	else if (function)
		tell_blocked(f, call, function->name, from, place);
	free(from);
	free(place);
}

void findings__unsafe(struct finder *f)
{
	struct looker l = {.f = f};
	struct call *call, *next;

	l.blames = calloc(f->t->n_gcs + 1, sizeof(*l.blames));
	if (!l.blames) {
		f->err = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < f->t->n_lanes && !f->err; i++)
		f->err = look_at_lane(&l, i);
	if (!f->err)
		add_up(&l);
	HASH_ITER (hh, l.calls, call, next) {
		/* cppcheck-suppress uninitvar ; set by the loop's head */
		tell(f, call);
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the analyzer loses track of uthash */
		HASH_DEL(l.calls, call);
		free(call);
	}
	free(l.blames);
}
