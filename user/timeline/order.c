/* SPDX-License-Identifier: GPL-2.0-or-later */
/* order: records in the order of time, and collections found by time. */
#include "private.h"

static int by_time(const void *pa, const void *pb)
{
	const struct ev *a = pa, *b = pb;

	if (a->t0 != b->t0)
		return a->t0 < b->t0 ? -1 : 1;
	return (a->t1 > b->t1) - (a->t1 < b->t1);
}

/* The ring buffer keeps nearly all of them in order. */
static void sort(struct evs *evs)
{
	for (size_t i = 1; i < evs->n; i++) {
		if (by_time(&evs->v[i - 1], &evs->v[i]) > 0) {
			qsort(evs->v, evs->n, sizeof(*evs->v), by_time);
			return;
		}
	}
}

void thread__sort(struct thread *th)
{
	sort(&th->samples);
	sort(&th->offs);
	sort(&th->calls);
}

bool gc__overlaps(const struct target_state *tg, uint64_t start, uint64_t end)
{
	size_t low = 0, high = tg->n_gcs;

	/* The first collection that ends after start: they are in order and disjoint. */
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		/* Only the last can still be open. */
		if (!tg->gcs[mid].end || tg->gcs[mid].end > start)
			high = mid;
		else
			low = mid + 1;
	}
	return low < tg->n_gcs && tg->gcs[low].start <= end;
}
