/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bounded: what a session of hours lets go of: room that ended threads do not need any more, all
 * that lanes were made of once they are made, and, where threads come and go by the hundred
 * thousand, the lanes of those that did least.
 */
#include <inttypes.h>
#include <stdio.h>

#include "private.h"

/* Ended threads that keep their lanes when records become stretches. */
#define MAX_ENDED ((size_t)1 << 16)

/* ── room ────────────────────────────────────────────────────────────────────────────────── */

static void *fit(void *array, size_t *cap, size_t n, size_t elem)
{
	void *smaller;

	if (!n) {
		free(array);
		*cap = 0;
		return NULL;
	}
	smaller = *cap > n ? realloc(array, n * elem) : NULL;
	if (!smaller)
		return array;
	*cap = n;
	return smaller;
}

static void fit_evs(struct evs *evs)
{
	evs->v = fit(evs->v, &evs->cap, evs->n, sizeof(*evs->v));
}

void thread__fit(struct thread *th)
{
	fit_evs(&th->samples);
	fit_evs(&th->offs);
	fit_evs(&th->calls);
	if (!th->lane.n_stretches && th->stretches)
		return;
	th->stretches = fit(th->stretches, &th->stretches_cap, th->lane.n_stretches,
			    sizeof(*th->stretches));
}

static void free_evs(struct evs *evs)
{
	free(evs->v);
	memset(evs, 0, sizeof(*evs));
}

void target__made(struct target_state *tg)
{
	struct addr_name *addr, *next;

	for (struct thread *th = tg->thread_list; th; th = th->next) {
		free_evs(&th->samples);
		free_evs(&th->offs);
		free_evs(&th->calls);
	}
	HASH_ITER (hh, tg->addrs, addr, next) {
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the analyzer loses track of uthash */
		HASH_DEL(tg->addrs, addr);
		free(addr);
	}
	sums__free(&tg->sums);
	free(tg->prior);
	tg->prior = NULL;
}

/* ── threads ─────────────────────────────────────────────────────────────────────────────── */

void thread__free(struct thread *th)
{
	free(th->samples.v);
	free(th->offs.v);
	free(th->calls.v);
	free(th->final);
	free(th->stretches);
	free(th);
}

/* What its lane would show: time that is not idleness. */
static uint64_t weight(const struct thread *th)
{
	uint64_t wall = th->end_ns > th->start_ns ? th->end_ns - th->start_ns : 0;

	return wall > th->idle_ns ? wall - th->idle_ns : 0;
}

static bool has_ended(const struct target_state *tg, const struct thread *th)
{
	return th->end_ns || tg->ended;
}

static int descending(const void *pa, const void *pb)
{
	uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

	return (a < b) - (a > b);
}

static size_t count_ended(const struct timeline *tl, uint64_t *weights)
{
	size_t n = 0;

	for (size_t i = 0; i < tl->n_targets; i++)
		for (const struct thread *th = tl->targets[i]->thread_list; th; th = th->next) {
			if (!has_ended(tl->targets[i], th))
				continue;
			if (weights)
				weights[n] = weight(th);
			n++;
		}
	return n;
}

/* What it did stays in the ledger, as one of all that have no lanes. */
static int drop_of(struct timeline *tl, struct target_state *tg, uint64_t least, size_t *left,
		   uint32_t *to)
{
	struct thread **link = &tg->thread_list, *th, *newest;
	int err;

	while ((th = *link)) {
		if (!*left || !has_ended(tg, th) || weight(th) > least) {
			link = &th->next;
			continue;
		}
		err = lane__build(tl, tg, th, th->end_ns ? th->end_ns : tg->end_ns, SIZE_MAX);
		if (err)
			return err;
		to[th->owner] = 0;
		err = TL_RESERVE(tg->free_owners, tg->free_owners_cap, tg->n_free_owners + 1,
				 TL_MAX_THREADS);
		if (err)
			return err;
		tg->free_owners[tg->n_free_owners++] = th->owner;
		*link = th->next;
		HASH_FIND_INT(tg->threads, &th->tid, newest);
		if (newest == th)
			HASH_DEL(tg->threads, th);
		tl->n_records -= th->samples.n + th->offs.n + th->calls.n;
		tg->n_threads--;
		tg->dropped_threads++;
		tg->dropped_ns += weight(th);
		--*left;
		thread__free(th);
	}
	return 0;
}

int threads__drop(struct timeline *tl)
{
	size_t n = count_ended(tl, NULL), left;
	uint64_t *weights, least;
	int err = 0;

	if (n <= MAX_ENDED)
		return 0;
	weights = calloc(n, sizeof(*weights));
	if (!weights)
		return -ENOMEM;
	count_ended(tl, weights);
	qsort(weights, n, sizeof(*weights), descending);
	/* half of them, so that this is seldom */
	least = weights[MAX_ENDED / 2];
	left = n - MAX_ENDED / 2;
	free(weights);
	for (size_t i = 0; !err && i < tl->n_targets && left; i++) {
		struct target_state *tg = tl->targets[i];
		uint32_t n_owners = tg->n_owners + 1;
		uint32_t *to = malloc((size_t)n_owners * sizeof(*to));

		if (!to)
			return -ENOMEM;
		memset(to, 0xff, (size_t)n_owners * sizeof(*to));
		err = drop_of(tl, tg, least, &left, to);
		if (!err && tg->ledger)
			err = ledger__merge_owners(tg->ledger, to, n_owners);
		free(to);
	}
	return err;
}

int threads__tell_dropped(struct timeline *tl, struct target_state *tg)
{
	char text[160];

	if (!tg->dropped_threads)
		return 0;
	snprintf(text, sizeof(text),
		 "the lanes of %" PRIu64
		 " threads that ended, in all %.3f s long: there were too many, "
		 "and others did more; their samples and calls are in the tables",
		 tg->dropped_threads, (double)tg->dropped_ns / 1e9);
	return input__add_missing(tl, tg->pub.pid, text);
}
