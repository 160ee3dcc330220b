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

/* The end of the last collection that was marked: the next one's end may be missing. */
uint64_t gc_infer__unmarked_from(const struct seen *seen)
{
	const struct seen_gcs *gcs = &seen->gcs;

	if (seen_gcs__all(gcs))
		return UINT64_MAX;
	return all_before(gcs, seen->pub) ? gcs->v[gcs->n - 1].end : 0;
}

/*
 * During a collection at least one thread is in the runtime's code, and none is in Haskell code, on
 * or off the CPU: all threads that run are then in the runtime. With each sample divided by the
 * number of threads that ran, the share of those in the runtime is therefore at least the share of
 * collections; samples at other moments can only add to it.
 */
static double most_of_running(const struct unmarked *u)
{
	double n, share;

	if (u->all <= 0)
		return 1;
	n = u->all * u->all / u->squares;
	if (n < LEAST_SAMPLES)
		return 1;
	share = u->runtime / u->all;
	return MIN(1.0, share + DEVIATIONS * sqrt((share * (1 - share) + 1 / n) / n));
}

static uint64_t count_samples(const struct pic_lanes *threads)
{
	uint64_t n = 0;

	for (size_t i = 0; i < threads->n; i++)
		for (size_t k = 0; k < threads->v[i].n_rows; k++) {
			const struct pic_row *r = &threads->v[i].rows[k];

			if (r->state == ST_RTS || r->state == ST_GC_WORK ||
			    r->state == ST_HASKELL || r->state == ST_UNSAFE_CALL_CPU)
				n += r->samples;
		}
	return n;
}

void gc_infer__fill(struct lanes *l)
{
	struct pic_target *pub = l->seen->pub;
	const struct seen_gcs *gcs = &l->seen->gcs;
	const struct unmarked *u = &l->overlaps.unmarked;
	uint64_t marked_ns = all_before(gcs, pub) ? pub->gc.pause_ns : 0, n, unmarked_ns;
	struct pic_gc *gc = &pub->gc;

	if (gcs->off_ns) {
		gc->observed_ns = gcs->off_ns - MIN(gcs->off_ns, pub->attach_ns);
		gc->observed_count = gc->count;
		gc->observed_pause_ns = gc->pause_ns;
	}
	gc->count = gc->pause_ns = gc->max_pause_ns = 0;
	gc->known = false;
	n = count_samples(&pub->lanes[LANE_THREAD]);
	if (n < LEAST_SAMPLES || !pub->lanes[LANE_CAPABILITY].n)
		return;
	unmarked_ns = (uint64_t)(most_of_running(u) * (double)u->running_ns) + u->stopped_ns;
	gc->known = gc->inferred = true;
	gc->pause_ns = marked_ns + unmarked_ns;
}
