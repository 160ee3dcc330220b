/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * findings: loops that hold up collections. Haskell code that does not allocate does not notice
 * that a collection was requested (GHC omits heap checks from such loops unless compiled with
 * -fno-omit-yields), and all other threads wait.
 */
#include <errno.h>
#include <stdlib.h>

#include "findings_priv.h"

/* The point where Haskell code ends and waiting for the collection begins is known only to within a
 * sample or two: only waits of at least this many samples count. */
#define LEAST_SAMPLES 3
/* Shares of the wait: in Haskell code, with or without a CPU; and with one. */
#define LOOP_PERCENT	 80
#define LOOP_CPU_PERCENT 10
/* The share of the session, for all such waits of a loop together. */
#define HELD_UP_PERCENT 1

struct loop {
	uint64_t ns, longest_ns, gcs;
	struct pic_moment longest; /* the whole wait that longest_ns is part of */
	uint32_t frame, cap;
	bool many_caps;
};

struct loops {
	struct loop *v;
	size_t n, cap;
};

#define MAX_LOOPS 4096

static int charge(struct loops *loops, uint32_t frame, const struct pic_gc_event *gc)
{
	uint64_t ns = gc->haskell_ns;
	uint16_t cap = gc->cap;
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
	if (ns > loop->longest_ns) {
		loop->longest_ns = ns;
		loop->longest = (struct pic_moment){gc->start_ns - MIN(gc->sync_ns, gc->start_ns),
						    gc->start_ns, NULL};
	}
	loop->many_caps = loop->many_caps || loop->cap != cap || cap == NO_CAP;
	return 0;
}

static int look_at(struct finder *f, struct loops *loops, const struct pic_gc_event *gc)
{
	if (!gc->haskell_ns ||
	    !finding__share(gc->haskell_ns + gc->no_cpu_ns, gc->sync_ns, LOOP_PERCENT) ||
	    !finding__share(gc->haskell_ns, gc->sync_ns, LOOP_CPU_PERCENT))
		return 0;
	return charge(loops, finding__leaf(f->pic, gc->haskell_stack, false), gc);
}

static void report(struct finder *f, const struct loop *loop)
{
	const struct pic_frame *frame = picture__frame(f->pic, loop->frame);
	const char *cap = "";

	if (!finding__share(loop->ns, f->wall_ns, HELD_UP_PERCENT))
		return;
	if (!loop->many_caps)
		cap = finding__text(f, " for capability %u", loop->cap);
	f->longest = loop->longest;
	finding__add(f, "haskell_held_up_gc", loop->ns, finding__place(f, frame),
		     "%s while %s ran without allocating: a loop without heap checks cannot be "
		     "stopped; compile it with -fno-omit-yields",
		     finding__gc_waited(f, loop->ns, loop->gcs, cap, loop->longest_ns),
		     frame ? frame->name : "Haskell code");
}

void findings__loops(struct finder *f)
{
	uint64_t period = picture__session(f->pic)->period_ns;
	struct loops loops = {0};

	if (!period)
		return;
	for (size_t i = 0; i < f->t->n_gcs && !f->err; i++) {
		const struct pic_gc_event *gc = &f->t->gcs[i];

		if (gc->sync_ns != UINT64_MAX && gc->sync_ns >= LEAST_SAMPLES * period)
			f->err = look_at(f, &loops, gc);
	}
	for (size_t i = 0; i < loops.n && !f->err; i++)
		report(f, &loops.v[i]);
	free(loops.v);
}
