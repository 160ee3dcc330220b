/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * findings: Haskell code that does not allocate does not see that a collection was asked for
 * (GHC leaves heap checks out of such loops unless told -fno-omit-yields), and all others wait.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/search.h"
#include "findings_priv.h"

/* Where Haskell code ends and waiting for the collection begins is known to a sample or two: only
 * waits longer than this many of them count. */
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

/* What a thread did in the wait: in Haskell code on the CPU, and pushed off it there. */
struct part {
	uint64_t ns, no_cpu_ns;
	const struct pic_slice *longest;
};

static struct part part_of(const struct pic_lane *lane, const struct pic_gc_event *gc)
{
	uint64_t start = finding__requested_ns(gc), longest = 0;
	struct part p = {0};

	for (size_t i = search__first(lane->n_slices, k, lane->slices[k].end_ns > start);
	     i < lane->n_slices && lane->slices[i].start_ns < gc->start_ns; i++) {
		const struct pic_slice *s = &lane->slices[i];
		uint64_t part = MIN(s->end_ns, gc->start_ns) - MAX(s->start_ns, start);

		if (s->state == ST_PREEMPTED && s->cap != NO_CAP)
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

static int charge(struct loops *loops, uint32_t frame, uint16_t cap, uint64_t ns)
{
	struct loop *loop = NULL;
	int err;

	for (size_t i = 0; i < loops->n && !loop; i++)
		if (loops->v[i].frame == frame)
			loop = &loops->v[i];
	if (!loop) {
		err = ARRAY_RESERVE(loops->v, loops->cap, loops->n + 1, MAX_LOOPS);
		if (err)
			return err == -E2BIG ? 0 : err;
		loop = &loops->v[loops->n++];
		*loop = (struct loop){.frame = frame, .cap = cap};
	}
	loop->gcs++;
	loop->ns += ns;
	loop->longest_ns = MAX(loop->longest_ns, ns);
	loop->many_caps = loop->many_caps || loop->cap != cap || cap == NO_CAP;
	return 0;
}

static int look_at(struct finder *f, struct loops *loops, const struct pic_gc_event *gc)
{
	uint64_t sync = gc->start_ns - finding__requested_ns(gc);
	struct part most = {0};

	for (size_t i = 0; i < f->threads->n; i++) {
		struct part p;

		if (f->threads->v[i].tid == gc->tid)
			continue;
		p = part_of(&f->threads->v[i], gc);
		if (p.ns > most.ns)
			most = p;
	}
	if (!most.longest || !finding__share(most.ns + most.no_cpu_ns, sync, LOOP_PERCENT) ||
	    !finding__share(most.ns, sync, LOOP_CPU_PERCENT))
		return 0;
	return charge(loops, finding__leaf(f->pic, most.longest->stack, false), most.longest->cap,
		      most.ns);
}

static void report(struct finder *f, const struct loop *loop)
{
	const struct pic_frame *frame = picture__frame(f->pic, loop->frame);
	const char *cap = "";

	if (!finding__share(loop->ns, f->wall_ns, HELD_UP_PERCENT))
		return;
	if (!loop->many_caps)
		cap = finding__text(f, " for capability %u", loop->cap);
	finding__add(f, "haskell_held_up_gc", loop->ns, finding__place(f, frame),
		     "%s while %s ran without allocating: a loop without heap checks cannot be "
		     "stopped; compile it with -fno-omit-yields",
		     finding__gc_waited(f, loop->ns, loop->gcs, cap, loop->longest_ns),
		     frame ? frame->name : "Haskell code");
}

void findings__loops(struct finder *f)
{
	uint32_t hz = picture__session(f->pic)->frequency_hz;
	struct loops loops = {0};

	if (!hz)
		return;
	for (size_t i = 0; i < f->t->n_gcs && !f->err; i++) {
		const struct pic_gc_event *gc = &f->t->gcs[i];

		if (gc->start_ns - finding__requested_ns(gc) >= LEAST_SAMPLES * 1000000000ULL / hz)
			f->err = look_at(f, &loops, gc);
	}
	for (size_t i = 0; i < loops.n && !f->err; i++)
		report(f, &loops.v[i]);
	free(loops.v);
}
