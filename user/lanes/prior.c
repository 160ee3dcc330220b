/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * prior: the state of time on the CPU that no sample fell into. A server that wakes a thousand
 * times a second for 100 us each is on the CPU for a tenth of the time, yet hardly any of its wakes
 * has a sample. All samples in such wakes taken together are the best estimate for the rest.
 */
#include "lanes_priv.h"

#define LEAST_SAMPLES 8 /* fewer show nothing */
/* At this many samples all weights are halved: old ones count for less, and no sum overflows. */
#define MOST_SAMPLES (1U << 20)

static void halve(struct prior_between *between)
{
	between->n_samples = 0;
	between->all_given_ns = 0;
	for (unsigned i = 0; i < ST_MAX; i++) {
		between->samples[i] /= 2;
		between->given_ns[i] /= 2;
		between->n_samples += between->samples[i];
		between->all_given_ns += between->given_ns[i];
	}
}

void prior__learn(struct lanes *l, const struct seen_thread *th)
{
	size_t next = 0;

	for (size_t i = 0; i < th->samples.n; i++) {
		const struct ev *s = &th->samples.v[i];
		enum thread_state state = ev__state_on(s, l->seen, s->t0, s->t0);
		struct prior_between *between;

		while (next < th->offs.n && th->offs.v[next].t1 <= s->t0)
			next++;
		/* Safe calls have better evidence of their own. */
		if (!next || next == th->offs.n || s->flags & EV_AHEAD ||
		    state == ST_SAFE_CALL_CPU || state == ST_UNKNOWN)
			continue;
		/* The time of a collection is known if there are probes on its ends. */
		if (state == ST_GC_WORK && seen_gcs__all(&l->seen->gcs))
			continue;
		between = &l->prior->between[th->offs.v[next - 1].where][th->offs.v[next].where];
		between->samples[state]++;
		if (++between->n_samples >= MOST_SAMPLES)
			halve(between);
	}
}

bool prior__state(struct prior *prior, unsigned before, unsigned after, uint64_t ns,
		  enum thread_state *ret_state)
{
	struct prior_between *between = &prior->between[before][after];
	double n = between->n_samples, all = (double)(between->all_given_ns + ns), best = 0;
	int chosen = -1;

	if (between->n_samples < LEAST_SAMPLES)
		return false;
	for (int state = 0; state < ST_MAX; state++) {
		double missing;

		if (!between->samples[state])
			continue;
		missing = between->samples[state] / n * all - (double)between->given_ns[state];
		if (chosen < 0 || missing > best) {
			best = missing;
			chosen = state;
		}
	}
	between->given_ns[chosen] += ns;
	between->all_given_ns += ns;
	*ret_state = (enum thread_state)chosen;
	return true;
}
