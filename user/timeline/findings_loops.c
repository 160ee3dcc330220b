/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * findings_loops: Haskell code that does not allocate does not see that a collection was asked for
 * (GHC leaves heap checks out of such loops unless told -fno-omit-yields), and all others wait.
 */
#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "findings_priv.h"

/* Where Haskell code ends and waiting for the collection begins is known to a sample or two: only
 * waits longer than this many of them tell. */
#define LEAST_SAMPLES 3
/* Of the wait: in Haskell code, with or without a CPU; and with one. */
#define LOOP_PERCENT	 80
#define LOOP_CPU_PERCENT 10
/* Of the session, all such waits together. */
#define HELD_UP_PERCENT 1

struct loop {
	uint64_t ns, longest_ns, gcs;
	uint32_t frame, cap;
	bool many_caps;
};

struct loops {
	struct loop *v;
	size_t n, cap;
};

#define MAX_LOOPS 4096

/* The first stretch that ends after ns. */
static size_t first_after(const struct tl_lane *lane, uint64_t ns)
{
	size_t low = 0, high = lane->n_stretches;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (lane->stretches[mid].end_ns > ns)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

/* What a thread did in the wait: in Haskell code on the CPU, and pushed off it there. */
struct part {
	uint64_t ns, no_cpu_ns;
	const struct tl_stretch *longest;
};

static struct part part_of(const struct tl_lane *lane, const struct tl_gc_event *gc)
{
	uint64_t start = finding__requested_ns(gc), longest = 0;
	struct part p = {0};

	for (size_t i = first_after(lane, start);
	     i < lane->n_stretches && lane->stretches[i].start_ns < gc->start_ns; i++) {
		const struct tl_stretch *s = &lane->stretches[i];
		uint64_t part = MIN(s->end_ns, gc->start_ns) - MAX(s->start_ns, start);

		if (s->state == ST_PREEMPTED && s->cap != 0xffff)
			p.no_cpu_ns += part;
		if (s->state != ST_HASKELL)
			continue;
		p.ns += part;
		if (part > longest) {
			longest = part;
			p.longest = s;
		}
	}
	return p;
}

static uint32_t leaf_of(const struct timeline *tl, uint32_t id)
{
	struct tl_stack stack = timeline__stack(tl, id);

	for (uint32_t i = stack.n; i-- > 0;) {
		const struct tl_frame *frame = timeline__frame(tl, stack.frames[i]);

		if (frame && frame->kind == TF_HASKELL)
			return stack.frames[i];
	}
	return UINT32_MAX;
}

static int charge(struct loops *loops, uint32_t frame, uint16_t cap, uint64_t ns)
{
	struct loop *loop = NULL;
	void *v = loops->v;
	int err;

	for (size_t i = 0; i < loops->n && !loop; i++)
		if (loops->v[i].frame == frame)
			loop = &loops->v[i];
	if (!loop) {
		err = array__reserve(&v, &loops->cap, loops->n + 1, MAX_LOOPS, sizeof(*loops->v));
		loops->v = v;
		if (err)
			return err == -E2BIG ? 0 : err;
		loop = &loops->v[loops->n++];
		*loop = (struct loop){.frame = frame, .cap = cap};
	}
	loop->gcs++;
	loop->ns += ns;
	loop->longest_ns = MAX(loop->longest_ns, ns);
	loop->many_caps = loop->many_caps || loop->cap != cap || cap == 0xffff;
	return 0;
}

static int look_at(struct finder *f, struct loops *loops, const struct tl_gc_event *gc)
{
	uint64_t sync = gc->start_ns - finding__requested_ns(gc);
	struct part most = {0};

	for (size_t i = 0; i < f->t->n_lanes; i++) {
		struct part p;

		if (f->t->lanes[i].tid == gc->tid)
			continue;
		p = part_of(&f->t->lanes[i], gc);
		if (p.ns > most.ns)
			most = p;
	}
	if (!most.longest || !finding__share(most.ns + most.no_cpu_ns, sync, LOOP_PERCENT) ||
	    !finding__share(most.ns, sync, LOOP_CPU_PERCENT))
		return 0;
	return charge(loops, leaf_of(f->tl, most.longest->stack), most.longest->cap, most.ns);
}

static void tell(struct finder *f, const struct loop *loop)
{
	const struct tl_frame *frame = finding__frame(f->tl, loop->frame);
	char cap[48] = "", longest[96] = "", *place;

	if (!finding__share(loop->ns, f->wall_ns, HELD_UP_PERCENT))
		return;
	place = finding__place(frame);
	if (!place) {
		f->err = -ENOMEM;
		return;
	}
	if (!loop->many_caps)
		snprintf(cap, sizeof(cap), " for capability %u", loop->cap);
	if (loop->gcs > 1)
		snprintf(longest, sizeof(longest), " (longest %s)", said__ns(loop->longest_ns).s);
	finding__add(f, "haskell_held_up_gc", loop->ns, place,
		     "GC waited %s in %s%s%s while %s ran without allocating: a loop without heap "
		     "checks cannot be stopped; compile it with -fno-omit-yields",
		     said__ns(loop->ns).s, said__count(loop->gcs, "collection", "collections").s,
		     cap, longest, frame ? frame->name : "Haskell code");
	free(place);
}

void findings__loops(struct finder *f)
{
	uint32_t hz = timeline__session(f->tl)->frequency_hz;
	struct loops loops = {0};

	if (!hz)
		return;
	for (size_t i = 0; i < f->t->n_gcs && !f->err; i++) {
		const struct tl_gc_event *gc = &f->t->gcs[i];

		if (gc->start_ns - finding__requested_ns(gc) >= LEAST_SAMPLES * 1000000000ULL / hz)
			f->err = look_at(f, &loops, gc);
	}
	for (size_t i = 0; i < loops.n && !f->err; i++)
		tell(f, &loops.v[i]);
	free(loops.v);
}
