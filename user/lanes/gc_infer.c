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

static void count(const struct pic_lane *lane, uint64_t *ret_runtime, uint64_t *ret_mutator)
{
	for (size_t i = 0; i < lane->n_rows; i++) {
		const struct pic_row *r = &lane->rows[i];

		if (r->state == ST_RTS || r->state == ST_GC_WORK)
			*ret_runtime += r->samples;
		else if (r->state == ST_HASKELL || r->state == ST_UNSAFE_CALL_CPU)
			*ret_mutator += r->samples;
	}
}

/*
 * During a collection at least one thread is in the runtime's code and none runs Haskell code; at
 * other times at most as many threads run Haskell code as there are capabilities.
 */
void gc_infer__fill(struct lanes *l)
{
	uint64_t runtime = 0, mutator = 0;
	struct pic_target *pub = l->seen->pub;
	const struct pic_lanes *threads = &pub->lanes[LANE_THREAD];
	const struct pic_lanes *caps = &pub->lanes[LANE_CAPABILITY];
	uint64_t off_ns = l->seen->gcs.off_ns;
	struct pic_gc *gc = &pub->gc;
	double weighed, n, share;

	for (size_t i = 0; i < threads->n; i++)
		count(&threads->v[i], &runtime, &mutator);
	if (off_ns) {
		gc->observed_ns = off_ns - MIN(off_ns, pub->attach_ns);
		gc->observed_count = gc->count;
		gc->observed_pause_ns = gc->pause_ns;
	}
	gc->count = gc->pause_ns = gc->max_pause_ns = 0;
	gc->known = false;
	if (runtime + mutator < LEAST_SAMPLES || !caps->n)
		return;
	n = (double)(runtime + mutator);
	weighed = (double)runtime * (double)caps->n;
	share = weighed / (weighed + (double)mutator);
	share = MIN(1.0, share + DEVIATIONS * sqrt((share * (1 - share) + 1 / n) / n));
	gc->known = gc->inferred = true;
	gc->pause_ns = (uint64_t)(share * (double)pub->overlaps.active_ns);
}
