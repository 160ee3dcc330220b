/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gc_infer: collections of a program in which nothing marks them. What is the collector's and what
 * is the rest of the runtime cannot be told apart there, and thousands of collections a second are
 * shorter than the time between two samples. So no single collection is reported; what the samples
 * do bound is the time that the program was paused.
 */
#include <math.h>

#include "lanes_priv.h"

/* Fewer say nothing. */
#define LEAST_SAMPLES 20
/* A share of n samples is off by more than this many times its deviation once in a thousand. */
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

/* Whether the capability does anything at t; *end: up to when, if that is before. */
static bool busy(const struct pic_lane *lane, size_t *at, uint64_t t, uint64_t *end)
{
	const struct pic_slice *s;

	while (*at < lane->n_slices && lane->slices[*at].end_ns <= t)
		++*at;
	if (*at == lane->n_slices)
		return false;
	s = &lane->slices[*at];
	*end = MIN(*end, s->start_ns > t ? s->start_ns : s->end_ns);
	return s->start_ns <= t && !state__is_idle(LANE_CAPABILITY, s->state);
}

/* The time in which some capability did anything. */
static int active(const struct pic_lanes *caps, uint64_t *ret_ns)
{
	size_t *at = calloc(caps->n + 1, sizeof(*at));
	uint64_t t = UINT64_MAX, end, sum = 0;

	if (!at)
		return -ENOMEM;
	for (size_t i = 0; i < caps->n; i++)
		t = MIN(t, caps->v[i].start_ns);
	for (; t != UINT64_MAX; t = end) {
		bool any = false;

		end = UINT64_MAX;
		for (size_t i = 0; i < caps->n; i++)
			any |= busy(&caps->v[i], &at[i], t, &end);
		sum += any && end != UINT64_MAX ? end - t : 0;
	}
	free(at);
	*ret_ns = sum;
	return 0;
}

/*
 * In a collection at least one thread is in the runtime's code, and none runs Haskell code, which
 * else at most as many do as there are capabilities.
 */
int gc_infer__fill(struct lanes *l)
{
	uint64_t runtime = 0, mutator = 0, active_ns;
	struct pic_target *pub = l->seen->pub;
	const struct pic_lanes *threads = &pub->lanes[LANE_THREAD];
	const struct pic_lanes *caps = &pub->lanes[LANE_CAPABILITY];
	uint64_t off_ns = l->seen->gcs.off_ns;
	struct pic_gc *gc = &pub->gc;
	double weighed, n, share;
	int err;

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
		return 0;
	err = active(caps, &active_ns);
	if (err)
		return err;
	n = (double)(runtime + mutator);
	weighed = (double)runtime * (double)caps->n;
	share = weighed / (weighed + (double)mutator);
	share = MIN(1.0, share + DEVIATIONS * sqrt((share * (1 - share) + 1 / n) / n));
	gc->known = gc->inferred = true;
	gc->pause_ns = (uint64_t)(share * (double)active_ns);
	return 0;
}
