/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gc_infer: collections of a program in which nothing marks them. The collector's code cannot be
 * distinguished from the rest of the runtime there, and thousands of collections a second are
 * shorter than the time between two samples. So no single collection is reported; but samples give
 * an upper bound on the time that the program was paused.
 */
#include <math.h>

#include "lanes_priv.h"

/* Fewer samples show nothing. */
#define LEAST_SAMPLES 20
/* The share measured with n samples is off by more than this many deviations once in a thousand. */
#define DEVIATIONS 3.0

/* True if all collections up to the time when the probes came off are known, with their pauses. */
static bool all_before(const struct seen_gcs *gcs, const struct pic_target *pub)
{
	return gcs->known && gcs->off_ns && gcs->n && !gcs->missed && !pub->held_up_until_ns &&
	       (!pub->calls_missed || (gcs->before_known && !gcs->before));
}

bool gc_infer__is_needed(const struct seen_gcs *gcs)
{
	return gcs->known ? !seen_gcs__all(gcs) : !gcs->has_probes || gcs->off_ns;
}

/* The end of the last collection that was marked: the next one's end may be missing. */
uint64_t gc_infer__unmarked_from(const struct seen *seen)
{
	const struct seen_gcs *gcs = &seen->gcs;

	if (!gc_infer__is_needed(gcs))
		return UINT64_MAX;
	return all_before(gcs, seen->pub) ? gcs->v[gcs->n - 1].end : 0;
}

/* The upper bound of a share that was measured with n samples. */
static double at_most(double share, double n)
{
	if (n < LEAST_SAMPLES)
		return 1;
	return MIN(1.0, share + DEVIATIONS * sqrt((share * (1 - share) + 1 / n) / n));
}

/*
 * During a collection at least one thread is in the runtime's code, and none is in Haskell code, on
 * or off the CPU: all threads that run are then in the runtime. With each sample divided by the
 * number of threads that ran, the share of those in the runtime is therefore at least the share of
 * collections; samples at other moments can only add to it. Time in which no thread runs may all be
 * collections.
 */
static double by_running(const struct unmarked *u)
{
	double share = u->all > 0 ? u->runtime / u->all : 1;
	double n = u->all > 0 ? u->all * u->all / u->squares : 0;

	return at_most(share, n) * (double)u->running_ns + (double)u->stopped_ns;
}

/*
 * Outside of collections at most as many threads run Haskell code as there are capabilities. A
 * running thread loses its CPU now and then, during collections as often as otherwise.
 */
static double by_active(const struct unmarked *u, size_t n_caps)
{
	double weighed = (double)u->in_runtime * (double)n_caps;
	double all = weighed + (double)u->in_program;

	return at_most(all > 0 ? weighed / all : 1, (double)(u->in_runtime + u->in_program)) *
	       (double)u->active_ns;
}

void gc_infer__fill(struct lanes *l)
{
	struct pic_target *pub = l->seen->pub;
	const struct seen_gcs *gcs = &l->seen->gcs;
	const struct unmarked *u = &l->overlaps.unmarked;
	const bool marked = all_before(gcs, pub);
	uint64_t marked_ns = marked ? pub->gc.pause_ns : 0;
	size_t n_caps = pub->lanes[LANE_CAPABILITY].n;
	struct pic_gc *gc = &pub->gc;

	if (gcs->off_ns) {
		gc->observed_ns = gcs->off_ns - MIN(gcs->off_ns, pub->attach_ns);
		gc->observed_count = gc->count;
		gc->observed_pause_ns = gc->pause_ns;
	}
	gc->count = gc->pause_ns = gc->max_pause_ns = 0;
	gc->known = false;
	if (!n_caps || (!marked && u->in_runtime + u->in_program < LEAST_SAMPLES))
		return;
	gc->known = gc->inferred = true;
	gc->pause_ns = marked_ns + (uint64_t)MIN(by_running(u), by_active(u, n_caps));
}
