/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * clock: finds the offset of the log's clock from ours. Both are CLOCK_MONOTONIC, but the log
 * counts from the runtime's start, so there is one constant offset. Every pair of events that could
 * be the same one votes for the offset that would make it so; votes of true pairs agree within
 * microseconds, those of false pairs are spread.
 */
#include "base/search.h"
#include "join_priv.h"

#define VOTES_MAX      (1U << 18)
#define SOURCE_MAX     4096  /* the most events of ours that vote */
#define PAIRS_MAX      64    /* the most votes of one of them */
#define AGREEMENT_NS   20000 /* votes this close to each other mean the same offset */
#define LEAST_ERROR_NS 1000  /* the probe comes some hundred ns before the log's event */
#define ENOUGH	       8

/*
 * The guess by the wall clock may be off by this much; as a rule it is off by little. Small ranges
 * are tried first, since a program that calls often has more calls in the whole range than can
 * vote.
 */
static const int64_t ranges[] = {100000, 1000000, 10000000, 100000000};

struct votes {
	int64_t *v;
	size_t n;
};

static int by_value(const void *pa, const void *pb)
{
	int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;

	return (a > b) - (a < b);
}

static void vote(struct votes *votes, int64_t offset)
{
	if (votes->n < VOTES_MAX)
		votes->v[votes->n++] = offset;
}

/*
 * Finds where votes are densest: the middle, and the spread there. Returns false if they do not
 * agree, or hardly more than votes spread evenly over the range would.
 */
static bool count(struct votes *votes, size_t voters, int64_t range, int64_t *ret_offset,
		  uint64_t *ret_error)
{
	uint64_t by_chance = votes->n * (uint64_t)AGREEMENT_NS / (2 * (uint64_t)range);
	size_t best = 0, best_n = 0, to = 0;
	int64_t middle;
	uint64_t error;

	qsort(votes->v, votes->n, sizeof(*votes->v), by_value);
	for (size_t from = 0; from < votes->n; from++) {
		while (to < votes->n && votes->v[to] - votes->v[from] <= AGREEMENT_NS)
			to++;
		if (to - from > best_n) {
			best = from;
			best_n = to - from;
		}
	}
	if (best_n < ENOUGH || best_n < voters / 4 || best_n < 2 * by_chance)
		return false;
	middle = votes->v[best + best_n / 2];
	error = (uint64_t)MAX(middle - votes->v[best + best_n / 10],
			      votes->v[best + best_n - 1 - best_n / 10] - middle);
	*ret_offset = middle;
	*ret_error = MAX(error, (uint64_t)LEAST_ERROR_NS);
	return true;
}

/* The step that lets at most SOURCE_MAX of n vote, taken from the whole session. */
static size_t step_of(size_t n)
{
	return n / SOURCE_MAX + 1;
}

static int64_t guess_of(const struct join *j, uint64_t ns)
{
	return (int64_t)ns - j->b->in.offset_ns;
}

/* Pairs suspendThread's entry with the STOP_THREAD event in it. */
static size_t by_calls(const struct join *j, int64_t range, struct votes *votes)
{
	const struct pic_target *pub = j->b->pub;
	size_t voters = 0;

	for (size_t i = 0; i < pub->n_flows; i += step_of(pub->n_flows)) {
		const struct pic_flow *f = &pub->flows[i];
		int64_t around = guess_of(j, f->start_ns);
		size_t at, pairs = 0;

		if (!f->tso || around < 0)
			continue;
		at = join__first_call(j, f->tso, (uint64_t)MAX(around - range, (int64_t)0));
		for (; at < j->n_calls && pairs < PAIRS_MAX; at++) {
			const struct el_match_call *c = &j->calls[at];

			if (c->thread != f->tso || (int64_t)c->start > around + range)
				break;
			/* RUN_THREAD comes after resumeThread's entry. */
			if (c->end - c->start + AGREEMENT_NS < f->end_ns - f->start_ns)
				continue;
			vote(votes, (int64_t)f->start_ns - (int64_t)c->start);
			pairs++;
		}
		voters += pairs > 0;
	}
	return voters;
}

static size_t by_gcs(const struct join *j, int64_t range, struct votes *votes)
{
	const struct seen *seen = j->seen;
	const struct el_match *m = j->b->in.match;
	size_t n = m ? el_match__info(m).n_gcs : 0, at = 0, voters = 0;
	const uint64_t *gcs = m ? el_match__gcs(m) : NULL;

	for (size_t i = 0; i < seen->gcs.n && voters < SOURCE_MAX; i++) {
		uint64_t work = seen->gcs.v[i].work ? seen->gcs.v[i].work : seen->gcs.v[i].start;
		int64_t around = guess_of(j, work);

		while (at < n && (int64_t)gcs[at] < around - range)
			at++;
		voters += at < n && (int64_t)gcs[at] <= around + range;
		for (size_t k = at; k < n && k < at + PAIRS_MAX; k++)
			if ((int64_t)gcs[k] <= around + range)
				vote(votes, (int64_t)work - (int64_t)gcs[k]);
	}
	return voters;
}

/* Ticks come at equal steps: only those within half a step of the guess can be the same one. */
static size_t by_ticks(const struct join *j, int64_t range, struct votes *votes)
{
	const struct seen *seen = j->seen;
	const struct el_match *m = j->b->in.match;
	size_t n = m ? el_match__info(m).n_ticks : 0, at = 0, voters = 0;
	const struct el_match_tick *ticks = m ? el_match__ticks(m) : NULL;
	int64_t half = (int64_t)(el_profile__info(j->b->in.profile).interval_ns / 2);

	if (!half)
		half = 5000000;
	half = MIN(half, range);
	for (size_t i = 0; i < seen->n_ticks && voters < SOURCE_MAX; i++) {
		int64_t around = guess_of(j, seen->ticks[i].ns);

		if (i && seen->ticks[i].ns == seen->ticks[i - 1].ns)
			continue;
		while (at < n && (int64_t)ticks[at].time < around - half)
			at++;
		if (at < n && (int64_t)ticks[at].time < around + half) {
			vote(votes, (int64_t)seen->ticks[i].ns - (int64_t)ticks[at].time);
			voters++;
		}
	}
	return voters;
}

/* Tries all sources around one guess, b->in.offset_ns. `near`: it is off by less than a tick. */
static bool try_guess(struct join *j, struct votes *votes, bool near)
{
	static size_t (*const sources[])(const struct join *, int64_t,
					 struct votes *) = {by_calls, by_gcs, by_ticks};
	bool found = false;

	for (size_t i = 0; !found && i < ARRAY_SIZE(sources) * ARRAY_SIZE(ranges); i++) {
		size_t source = i / ARRAY_SIZE(ranges);
		int64_t range = ranges[i % ARRAY_SIZE(ranges)];
		size_t voters;

		if (sources[source] == by_ticks && (!near || !j->b->in.profile))
			continue;
		votes->n = 0;
		voters = sources[source](j, range, votes);
		found = count(votes, voters, range, &j->b->in.offset_ns, &j->b->in.offset_error_ns);
	}
	return found;
}

int join__clock(struct join *j)
{
	struct votes votes = {.v = calloc(VOTES_MAX, sizeof(int64_t))};
	struct join_log *in = &j->b->in;
	int64_t first = in->offset_ns;

	if (!votes.v)
		return -ENOMEM;
	in->offset_error_ns = UINT64_MAX;
	if (!try_guess(j, &votes, !in->unsure) && in->other_offset_ns != first) {
		in->offset_ns = in->other_offset_ns;
		if (!try_guess(j, &votes, false))
			in->offset_ns = first;
	}
	free(votes.v);
	return 0;
}

size_t join__first_call(const struct join *j, uint64_t tso, uint64_t at_ns)
{
	return search__first(j->n_calls, i,
			     j->calls[i].thread > tso ||
				     (j->calls[i].thread == tso && j->calls[i].start >= at_ns));
}
