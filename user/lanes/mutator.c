/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mutator: what the Haskell thread did in pieces without a sample of their own, before a safe call
 * or a collection: it ran Haskell code, or C code called unsafely. Each piece is too short to
 * decide; together they are a large part of a thread that makes many calls. The thread's samples
 * outside calls and collections show how its time is divided, so each such piece goes to the kind
 * that is below its share, with the stack of the nearest sample of that kind.
 */
#include "lanes_priv.h"

/* Fewer samples show nothing. */
#define LEAST_SAMPLES 8
/* How far to search, in samples and in time. */
#define NEAREST_SAMPLES 64
#define NEAREST_MAX_NS	1000000000ULL

static int kind_of(enum thread_state state)
{
	if (state == ST_HASKELL)
		return MUTATOR_HASKELL;
	return state == ST_UNSAFE_CALL_CPU ? MUTATOR_UNSAFE : -1;
}

void mutator__learn(struct mutator *m, const struct seen_thread *th,
		    const struct cover_list *covers)
{
	size_t seg = 0;

	memset(m, 0, sizeof(*m));
	for (size_t i = 0; i < th->samples.n; i++) {
		const struct ev *s = &th->samples.v[i];
		const struct cover *cover;
		int kind;

		while (seg + 1 < covers->n_segs && covers->segs[seg + 1].start <= s->t0)
			seg++;
		cover = seg < covers->n_segs && covers->segs[seg].cover >= 0
				? &covers->v[covers->segs[seg].cover]
				: NULL;
		if (s->where != WIRE_WHERE_HASKELL || (cover && !cover->callback))
			continue;
		kind = kind_of(ev__state_on(s, NULL, 0, 0));
		if (kind >= 0)
			m->samples[kind]++;
	}
}

void mutator__spent(struct mutator *m, enum thread_state state, uint64_t ns)
{
	int kind = kind_of(state);

	if (kind >= 0)
		m->ns[kind] += ns;
}

static uint64_t distance(const struct ev *s, uint64_t at)
{
	return s->t0 > at ? s->t0 - at : at - s->t0;
}

static bool shows(const struct ev *s, enum thread_state state)
{
	return s->where == WIRE_WHERE_HASKELL && ev__state_on(s, NULL, 0, 0) == state;
}

/*
 * The sample of that state nearest to `at`; `next` is the first sample after it. Samples are in
 * time order, so on either side the first one found is the nearest.
 */
static const struct ev *nearest(const struct evs *samples, size_t next, uint64_t at,
				enum thread_state state)
{
	size_t after = MIN(samples->n, next + NEAREST_SAMPLES);
	size_t before = next - MIN(next, (size_t)NEAREST_SAMPLES);
	uint64_t best_far = NEAREST_MAX_NS;
	const struct ev *best = NULL;

	for (size_t i = next; i < after && distance(&samples->v[i], at) < best_far; i++) {
		if (!shows(&samples->v[i], state))
			continue;
		best = &samples->v[i];
		best_far = distance(best, at);
	}
	for (size_t i = next; i > before && distance(&samples->v[i - 1], at) < best_far; i--)
		if (shows(&samples->v[i - 1], state))
			return &samples->v[i - 1];
	return best;
}

enum thread_state mutator__choose(const struct mutator *m, const struct seen_thread *th,
				  size_t next_sample, uint64_t at, uint64_t ns,
				  const struct ev **ret_ev)
{
	uint64_t samples = m->samples[MUTATOR_HASKELL] + m->samples[MUTATOR_UNSAFE];
	enum thread_state state = ST_HASKELL;

	if (samples >= LEAST_SAMPLES) {
		double total = (double)(m->ns[MUTATOR_HASKELL] + m->ns[MUTATOR_UNSAFE] + ns);
		double share = (double)m->samples[MUTATOR_UNSAFE] / (double)samples;

		/* below its share by more than half of this piece, so adding it brings it closer */
		if (share * total - (double)m->ns[MUTATOR_UNSAFE] > (double)ns / 2)
			state = ST_UNSAFE_CALL_CPU;
	}
	*ret_ev = nearest(&th->samples, next_sample, at, state);
	return *ret_ev ? state : ST_HASKELL;
}
