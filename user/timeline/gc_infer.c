/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gc_infer: collections of a program in which nothing marks them. What is the collector's and what
 * is the rest of the runtime cannot be told apart there, and thousands of collections a second are
 * shorter than the time between two samples. So no single collection is told; what the samples do
 * bound is the time that the program was paused.
 */
#include <math.h>

#include "private.h"

/* Fewer say nothing. */
#define LEAST_SAMPLES 20
/* A share of n samples is off by more than this many times its deviation once in a thousand. */
#define DEVIATIONS 3.0

static void count(const struct tl_lane *lane, uint64_t *ret_runtime, uint64_t *ret_mutator)
{
	for (size_t i = 0; i < lane->n_stretches; i++) {
		const struct tl_stretch *s = &lane->stretches[i];

		if (s->state == ST_RTS || s->state == ST_GC_WORK)
			*ret_runtime += s->samples;
		else if (s->state == ST_HASKELL || s->state == ST_UNSAFE_CALL_CPU)
			*ret_mutator += s->samples;
	}
}

/* What the capability does at t, or that it is idle; *end: up to when, if that is before. */
static bool busy(const struct tl_cap_lane *lane, size_t *at, uint64_t t, uint64_t *end)
{
	const struct tl_cap_stretch *s;

	while (*at < lane->n_stretches && lane->stretches[*at].end_ns <= t)
		++*at;
	if (*at == lane->n_stretches)
		return false;
	s = &lane->stretches[*at];
	if (s->start_ns > t) {
		*end = MIN(*end, s->start_ns);
		return false;
	}
	*end = MIN(*end, s->end_ns);
	return s->state != CS_IDLE && s->state != CS_DISABLED;
}

/* The time in which some capability did anything. */
static int active(const struct target_state *tg, uint64_t *ret_ns)
{
	size_t n = tg->pub.n_cap_lanes, *at = calloc(n + 1, sizeof(*at));
	uint64_t t = UINT64_MAX, end, sum = 0;

	if (!at)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		t = MIN(t, tg->cap_lanes[i].start_ns);
	for (; t != UINT64_MAX; t = end) {
		bool any = false;

		end = UINT64_MAX;
		for (size_t i = 0; i < n; i++)
			any |= busy(&tg->cap_lanes[i], &at[i], t, &end);
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
int gc_infer__build(struct target_state *tg)
{
	uint64_t runtime = 0, mutator = 0, active_ns;
	struct tl_gc *gc = &tg->pub.gc;
	double weighed, n, share;
	int err;

	for (size_t i = 0; i < tg->pub.n_lanes; i++)
		count(&tg->lanes[i], &runtime, &mutator);
	if (tg->gc_off_ns) {
		gc->observed_ns = tg->gc_off_ns - MIN(tg->gc_off_ns, tg->pub.attach_ns);
		gc->observed_count = gc->count;
		gc->observed_pause_ns = gc->pause_ns;
	}
	gc->count = gc->pause_ns = gc->max_pause_ns = 0;
	gc->known = false;
	if (runtime + mutator < LEAST_SAMPLES || !tg->pub.n_cap_lanes)
		return 0;
	err = active(tg, &active_ns);
	if (err)
		return err;
	n = (double)(runtime + mutator);
	weighed = (double)runtime * (double)tg->pub.n_cap_lanes;
	share = weighed / (weighed + (double)mutator);
	share = MIN(1.0, share + DEVIATIONS * sqrt((share * (1 - share) + 1 / n) / n));
	gc->known = gc->inferred = true;
	gc->pause_ns = (uint64_t)(share * (double)active_ns);
	return 0;
}
