/* SPDX-License-Identifier: GPL-2.0-or-later */
/* order: records in the order of time. */
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
