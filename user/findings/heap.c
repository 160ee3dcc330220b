/* SPDX-License-Identifier: GPL-2.0-or-later */
/* findings: a heap that keeps growing, major collections that free nothing, large objects allocated
 * one after the other, one function that allocates most. */
#include "findings_priv.h"

/* The growth, between the first major collection and the last, relative to what is live at the end;
 * less may be a cache filling up. */
#define GROWTH_PERCENT 20
/* The least number of major collections, the least time that they span, and the least live
 * bytes. */
#define GROWTH_MAJORS  6
#define GROWTH_SPAN_NS 5000000000ULL
#define GROWTH_LIVE    10000000ULL
/* The maximum number of closure types named, and the least share of the growth for each. */
#define MOST_GROWING	3
#define GROWING_PERCENT 10

/* A single major collection may happen at a bad moment. */
#define FUTILE_MAJORS	    3
#define FUTILE_PERCENT	    80
#define FUTILE_WALL_PERCENT 2

/* Allocation costs little except through its collections. */
#define ALLOC_GC_PERCENT 5
#define LARGE_PERCENT	 50
#define ONE_PERCENT	 50
/* Fewer are unreliable: the error exceeds 10 %. */
#define LEAST_SAMPLES 100

/* The total pause of major collections. */
static uint64_t majors_ns(const struct pic_target *t)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < t->n_gcs; i++)
		if (t->gcs[i].generation > 0)
			ns += t->gcs[i].end_ns - t->gcs[i].start_ns;
	return ns;
}

/* The measured pauses, and the time they are from. If the probes on collections came off, only the
 * time before that is measured: for the rest there is just an upper bound. */
struct paused {
	uint64_t ns, of_ns;
	bool in_part;
};

static struct paused paused(const struct finder *f)
{
	const struct pic_gc *gc = &f->t->gc;

	if (gc->inferred)
		return (struct paused){gc->observed_pause_ns, gc->observed_ns, true};
	return (struct paused){gc->pause_ns, f->wall_ns, false};
}

static uint64_t grown(const struct pic_closure *c)
{
	return c->bytes - MIN(c->bytes, c->first_bytes);
}

/* Iterates over the closures that grew from the first census to the last, in descending order of
 * growth: returns the one after `last` (NULL: the first); NULL: no more. */
static const struct pic_closure *next_grown(const struct pic_census *c,
					    const struct pic_closure *last)
{
	const struct pic_closure *best = NULL;

	for (size_t i = 0; i < c->n; i++) {
		const struct pic_closure *v = &c->v[i];

		if (last && (grown(v) > grown(last) || (grown(v) == grown(last) && v <= last)))
			continue;
		if (grown(v) && (!best || grown(v) > grown(best)))
			best = v;
	}
	return best;
}

/* What most of the growth consists of; "" without two censuses. */
static const char *growing(struct finder *f)
{
	const struct pic_census *c = &f->t->census;
	const struct pic_closure *v = NULL;
	const char *text = "";
	uint64_t all = 0;

	if (c->first_ns == c->at_ns)
		return text;
	for (size_t i = 0; i < c->n; i++)
		all += grown(&c->v[i]);
	for (unsigned i = 0; i < MOST_GROWING && (v = next_grown(c, v)); i++) {
		if (!finding__share(grown(v), all, GROWING_PERCENT))
			break;
		text = finding__text(f, "%s%s %s (+%s)", text, i ? "," : "; growing:", v->name,
				     human__bytes(grown(v)).s);
	}
	return text;
}

static void find_growth(struct finder *f)
{
	const struct pic_heap *heap = &f->t->heap;
	uint64_t span = heap->growth_span_ns, live = heap->last.live_bytes;
	double least = heap->growth - heap->growth_error;

	/* what a program builds up and releases, or ends with, is not a leak; nor is growth at its
	 * start */
	if (f->t->alloc.observed_ns || !heap->growth_known || !heap->growth_goes_on ||
	    heap->whole_run || heap->majors < GROWTH_MAJORS || span < GROWTH_SPAN_NS ||
	    live < GROWTH_LIVE ||
	    least * ((double)span / 60e9) * 100 < (double)live * GROWTH_PERCENT)
		return;
	finding__add(f, "heap_grows", paused(f).ns, NULL,
		     "The heap grows by %s a minute (± %s), and live data after major collections "
		     "was %s at the end%s: the program keeps data it no longer needs, or a cache "
		     "has no limit",
		     human__bytes(human__whole(heap->growth)).s,
		     human__bytes(human__whole(heap->growth_error)).s, human__bytes(live).s,
		     growing(f));
}

/* The qualification of figures on allocation and the heap if the probes on collections came off. */
static const char *in_part(const struct finder *f)
{
	return f->t->alloc.observed_ns ? " while they were observed" : "";
}

/* A larger factor only makes those collections rarer that are due to the heap's growth. */
static const char *fewer_majors(struct finder *f)
{
	switch (finding__majors_reason(&f->t->heap)) {
	case GC_REASON_FORCED:
		return "the program requests most of them itself (performGC or performMajorGC): "
		       "request fewer";
	case GC_REASON_IDLE:
		if (f->t->threaded)
			return finding__text(f,
					     "most of them ran while the program was idle: a "
					     "longer idle time makes them rarer: %s",
					     finding__rts(f, "-I10"));
		/* rts/Schedule.c, scheduleDetectDeadlock */
		return "most of them ran because no Haskell thread could run, to find threads that "
		       "wait forever (BlockedIndefinitely): without such threads there are none";
	default:
		return finding__text(f, "a larger factor makes them rarer: %s",
				     finding__rts(f, "-F4"));
	}
}

static void find_futile(struct finder *f)
{
	const struct pic_heap *heap = &f->t->heap;
	uint64_t ns = majors_ns(f->t);

	if (heap->futile_majors < FUTILE_MAJORS ||
	    !finding__share(heap->futile_majors, heap->majors, FUTILE_PERCENT) ||
	    !finding__share(ns, f->wall_ns, FUTILE_WALL_PERCENT))
		return;
	finding__add(f, "futile_major_gcs", ns, NULL,
		     "%s of %s freed less than %d %% of what was live (%s), and paused the program "
		     "for %s%s: %s",
		     human__count(heap->futile_majors).s,
		     finding__counted(heap->majors, "major collection", "major collections").s,
		     MAJOR_FREED_LITTLE_PERCENT, human__bytes(heap->last.live_bytes).s,
		     human__duration(ns).s, in_part(f), fewer_majors(f));
}

/* The function that allocated most itself. */
static const struct pic_allocator *first_of(const struct pic_alloc *alloc)
{
	return alloc->n_allocators && alloc->allocators[0].self_bytes ? &alloc->allocators[0]
								      : NULL;
}

static void find_large(struct finder *f)
{
	const struct pic_alloc *alloc = &f->t->alloc;

	if (!finding__share(alloc->large_bytes, alloc->large_of_bytes, LARGE_PERCENT) ||
	    !finding__share(alloc->reasons[GC_REASON_LARGE], alloc->collections, LARGE_PERCENT))
		return;
	finding__add(f, "large_objects", paused(f).ns, NULL,
		     "Large objects are %.0f %% of what is allocated (%s a second), and triggered "
		     "%s of %s%s: reuse buffers, or raise the limit: %s",
		     human__percent(alloc->large_bytes, alloc->large_of_bytes),
		     human__bytes(pic_alloc__rate(alloc)).s,
		     human__count(alloc->reasons[GC_REASON_LARGE]).s,
		     finding__counted(alloc->collections, "collection", "collections").s,
		     in_part(f), finding__rts(f, "-AL256m"));
}

static void find_one(struct finder *f)
{
	const struct pic_alloc *alloc = &f->t->alloc;
	const struct pic_allocator *first = first_of(alloc);
	struct paused gcs = paused(f);
	const struct pic_frame *frame;

	if (!first || !finding__share(first->self_bytes, alloc->sampled_bytes, ONE_PERCENT))
		return;
	frame = picture__frame(f->pic, first->frame);
	finding__add(f, "one_allocator", gcs.ns, finding__place(f, frame),
		     "%s allocates %.0f %% of %s a second, and collections paused the program for "
		     "%.0f %% of the time%s",
		     frame->name, human__percent(first->self_bytes, alloc->sampled_bytes),
		     human__bytes(pic_alloc__rate(alloc)).s, human__percent(gcs.ns, gcs.of_ns),
		     gcs.in_part ? " during which they were observed" : "");
}

void findings__heap(struct finder *f)
{
	struct paused gcs = paused(f);

	find_growth(f);
	find_futile(f);
	if (!f->t->alloc.known || f->t->alloc.samples < LEAST_SAMPLES ||
	    !finding__share(gcs.ns, gcs.of_ns, ALLOC_GC_PERCENT))
		return;
	find_large(f);
	find_one(f);
}
