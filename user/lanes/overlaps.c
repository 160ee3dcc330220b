/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * overlaps: what happened at the same time in several lanes, added up while their pieces are put. A
 * thread's sleep is reported only when it wakes, so edges are kept as long as there are not too
 * many; an edge that comes later counts from the time reached so far.
 */
#include "base/search.h"
#include "lanes_priv.h"

#define MAX_EDGES  ((size_t)1 << 27)
#define KEEP_EDGES ((size_t)1 << 14)

/* Shorter waits for a capability are just the time needed to wake a thread. */
#define LONG_WAIT_NS 200000

enum {
	CAP_BUSY = 1,
	CAP_IDLE = 2,
	CAP_NO_CPU = 4,
	CAP_WAIT = 8, /* a thread waits for a capability */
	LONG_CAP_WAIT = 16,
	UNSAFE_SLEEP = 32,
	COLLECTION = 64,
	RUNNING = 128,	  /* a thread is on the CPU, and not in a safe call */
	IN_PROGRAM = 256, /* off the CPU in Haskell code, so there is no collection */
};

void overlaps__free(struct overlaps *o)
{
	free(o->v);
	memset(o, 0, sizeof(*o));
}

static int add(struct overlaps *o, uint64_t ns, unsigned ends, unsigned begins)
{
	int err = ends == begins ? 0 : ARRAY_RESERVE(o->v, o->cap, o->n + 1, MAX_EDGES);

	if (!err && ends != begins)
		o->v[o->n++] = (struct overlap_edge){ns, (uint16_t)ends, (uint16_t)begins, 0, 0};
	return err;
}

static int add_both(struct overlaps *o, uint64_t start, uint64_t end, unsigned bits)
{
	int err = add(o, start, 0, bits);

	return err ? err : add(o, end, bits, 0);
}

int overlaps__cap(struct overlaps *o, uint8_t *was, const struct pic_slice *s)
{
	unsigned is = state__is_idle(LANE_CAPABILITY, s->state) ? 0 : CAP_BUSY, before = *was;

	if (s->state == CS_IDLE)
		is |= CAP_IDLE;
	else if (s->state == CS_PREEMPTED)
		is |= CAP_NO_CPU;
	*was = (uint8_t)is;
	return add(o, s->start_ns, before, is);
}

static bool in_runtime(const struct pic_slice *s)
{
	return s->state == ST_RTS || s->state == ST_GC_WORK;
}

static bool runs(const struct pic_slice *s)
{
	return in_runtime(s) || s->state == ST_HASKELL || s->state == ST_UNSAFE_CALL_CPU;
}

/* Only samples show what a running thread did; they are taken to be evenly spread over the slice.
 */
static int add_samples_of(struct overlaps *o, const struct pic_slice *s)
{
	uint64_t step = (s->end_ns - s->start_ns) / MAX(s->samples, 1U);
	int err = 0;

	for (uint32_t i = 0; !err && i < s->samples; i++) {
		err = ARRAY_RESERVE(o->v, o->cap, o->n + 1, MAX_EDGES);
		if (!err)
			o->v[o->n++] = (struct overlap_edge){
				.ns = s->start_ns + step / 2 + i * step,
				.runtime = in_runtime(s),
				.program = !in_runtime(s),
			};
	}
	return err;
}

/* Adds v[i], whose neighbours may belong to the same stretch on the CPU. */
static int add_run(struct overlaps *o, const struct piece *v, size_t n, size_t i)
{
	const struct pic_slice *s = &v[i].s;
	bool before = i && runs(&v[i - 1].s) && v[i - 1].s.end_ns == s->start_ns;
	bool after = i + 1 < n && runs(&v[i + 1].s) && v[i + 1].s.start_ns == s->end_ns;
	int err = before ? 0 : add(o, s->start_ns, 0, RUNNING);

	if (!err && !after)
		err = add(o, s->end_ns, RUNNING, 0);
	return err ? err : add_samples_of(o, s);
}

/* Adds what the bound of unmarked collections needs, at several edges for each stretch of time. */
static int add_unmarked(struct overlaps *o, const struct piece *v, size_t n)
{
	int err = 0;

	for (size_t i = 0; !err && i < n; i++) {
		if (runs(&v[i].s))
			err = add_run(o, v, n, i);
		if (!err && v[i].in_program)
			err = add_both(o, v[i].s.start_ns, v[i].s.end_ns, IN_PROGRAM);
	}
	return err;
}

int overlaps__thread(struct overlaps *o, const struct seen *seen, const struct piece *v, size_t n)
{
	int err = gc_infer__is_needed(&seen->gcs) ? add_unmarked(o, v, n) : 0;

	for (size_t i = 0; !err && i < n; i++) {
		const struct pic_slice *s = &v[i].s;

		if (s->state == ST_UNSAFE_CALL_BLOCKED)
			err = add_both(o, s->start_ns, s->end_ns, UNSAFE_SLEEP);
		else if (s->state == ST_CAP_WAIT)
			err = add_both(o, s->start_ns, s->end_ns,
				       s->end_ns - s->start_ns < LONG_WAIT_NS
					       ? CAP_WAIT
					       : CAP_WAIT | LONG_CAP_WAIT);
	}
	return err;
}

static int by_time(const void *pa, const void *pb)
{
	const struct overlap_edge *a = pa, *b = pb;

	return CMP(a->ns, b->ns);
}

static bool any(const struct overlaps *o, unsigned bits)
{
	return o->present & bits;
}

/* Adds `by` to the count of each kind in `bits`. An edge has one or two of them. */
static void change(struct overlaps *o, unsigned bits, int by)
{
	for (; bits; bits &= bits - 1) {
		unsigned i = (unsigned)__builtin_ctz(bits);

		o->count[i] += by;
		o->present = (o->present & ~(1U << i)) | (unsigned)(o->count[i] > 0) << i;
	}
}

/* Nothing changed up to `ns`: adds the time to the sums. */
static void stay(struct overlaps *o, const struct seen_points *starved, uint64_t ns)
{
	uint64_t took = ns - MIN(o->at_ns, ns);

	for (; o->tick < starved->n && starved->v[o->tick].ns < ns; o->tick++) {
		if (any(o, CAP_NO_CPU))
			continue;
		o->sums.starved_ticks++;
		o->sums.starved_most = MAX(o->sums.starved_most, starved->v[o->tick].value);
	}
	if (any(o, CAP_BUSY))
		o->sums.active_ns += took;
	if (any(o, CAP_WAIT) && !any(o, COLLECTION | UNSAFE_SLEEP | CAP_NO_CPU))
		o->sums.cap_wait_ns += took * (uint64_t)o->count[3];
	if (any(o, CAP_IDLE) && any(o, LONG_CAP_WAIT) && !any(o, CAP_NO_CPU))
		o->sums.idle_wait_ns += took;
	o->at_ns = MAX(o->at_ns, ns);
}

/* The same for the time after `from`, in which nothing marks collections. */
static void stay_unmarked(struct overlaps *o, uint64_t from, uint64_t ns)
{
	uint64_t start = MAX(o->at_ns, from);

	if (ns <= start)
		return;
	if (any(o, CAP_BUSY))
		o->unmarked.active_ns += ns - start;
	if (any(o, RUNNING))
		o->unmarked.running_ns += ns - start;
	else if (any(o, CAP_BUSY) && !any(o, IN_PROGRAM))
		o->unmarked.stopped_ns += ns - start;
}

static void add_samples(struct overlaps *o, const struct overlap_edge *edge, uint64_t from)
{
	double weight = 1.0 / MAX(o->count[7], 1);

	if (edge->ns < from)
		return;
	if (!any(o, IN_PROGRAM))
		o->unmarked.runtime += edge->runtime * weight;
	o->unmarked.in_runtime += edge->runtime;
	o->unmarked.in_program += edge->program;
	o->unmarked.all += (edge->runtime + edge->program) * weight;
	o->unmarked.squares += (edge->runtime + edge->program) * weight * weight;
}

int overlaps__advance(struct overlaps *o, const struct seen *seen, uint64_t until, bool last)
{
	const uint64_t from = gc_infer__unmarked_from(seen);
	size_t n;
	int err = 0;

	if (!last && o->n < KEEP_EDGES)
		return 0;
	for (; !err && o->gc < seen->gcs.n && seen->gcs.v[o->gc].end; o->gc++)
		err = add_both(o, seen->gcs.v[o->gc].start, seen->gcs.v[o->gc].end, COLLECTION);
	if (err)
		return err;
	array__sort(o->v, o->n, sizeof(*o->v), by_time);
	n = search__first(o->n, i, o->v[i].ns > until);
	for (size_t i = 0; i < n; i++) {
		stay_unmarked(o, from, o->v[i].ns);
		stay(o, &seen->starved, o->v[i].ns);
		add_samples(o, &o->v[i], from);
		change(o, o->v[i].ends, -1);
		change(o, o->v[i].begins, 1);
	}
	stay_unmarked(o, from, until);
	stay(o, &seen->starved, until);
	/* if n is 0, there may be no array */
	if (n)
		memmove(o->v, o->v + n, (o->n - n) * sizeof(*o->v));
	o->n -= n;
	if (last && !o->n) {
		free(o->v);
		o->v = NULL;
		o->cap = 0;
	}
	return 0;
}

void overlaps__cut(struct overlaps *o, const struct seen *seen, uint64_t end_ns)
{
	o->at_ns = MAX(o->at_ns, end_ns);
	o->sums = (struct pic_overlaps){0};
	o->unmarked = (struct unmarked){0};
	o->gc -= MIN(o->gc, seen->cut_gcs);
	o->tick -= MIN(o->tick, seen->cut_starved);
}
