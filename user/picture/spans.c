/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "spans.h"

/* The grain of the first merge. */
#define LEAST_GRAIN_NS UINT64_C(1000000)
/* About 13 days: spans that are too many even then differ in more than time. */
#define MOST_GRAIN_NS (UINT64_C(1) << 50)

static int by_thread(const struct pic_alloc_span *a, const struct pic_alloc_span *b)
{
	return CMP(a->stack, b->stack) ?: CMP(a->tid, b->tid) ?: CMP(a->cap, b->cap)
		?: CMP(a->tso, b->tso);
}

static int by_cell(const void *pa, const void *pb, void *grain)
{
	const struct pic_alloc_span *a = pa, *b = pb;
	uint64_t ns = *(const uint64_t *)grain;

	return CMP(a->to_ns / ns, b->to_ns / ns) ?: by_thread(a, b);
}

static void merge(struct alloc_spans *s, uint64_t grain_ns)
{
	size_t kept = 0;

	qsort_r(s->v, s->n, sizeof(*s->v), by_cell, &grain_ns);
	for (size_t i = 0; i < s->n; i++) {
		struct pic_alloc_span *last = kept ? &s->v[kept - 1] : NULL;
		const struct pic_alloc_span *span = &s->v[i];

		if (!last || by_cell(last, span, &grain_ns)) {
			s->v[kept++] = *span;
			continue;
		}
		last->from_ns = MIN(last->from_ns, span->from_ns);
		last->to_ns = MAX(last->to_ns, span->to_ns);
		last->bytes += span->bytes;
		last->samples += span->samples;
	}
	s->n = kept;
	s->grain_ns = grain_ns;
}

int alloc_spans__put(struct alloc_spans *s, const struct pic_alloc_span *span, size_t max)
{
	int err;

	/* free a quarter of the array, so that the next merge is not due at once */
	if (s->n >= max)
		for (uint64_t grain = MAX(s->grain_ns, LEAST_GRAIN_NS);
		     s->n > max - max / 4 && grain <= MOST_GRAIN_NS; grain *= 2)
			merge(s, grain);
	if (s->n >= max)
		return -E2BIG;
	err = ARRAY_RESERVE(s->v, s->cap, s->n + 1, max);
	if (!err)
		s->v[s->n++] = *span;
	return err;
}

static int by_time(const void *pa, const void *pb)
{
	const struct pic_alloc_span *a = pa, *b = pb;

	return CMP(a->to_ns, b->to_ns) ?: CMP(a->from_ns, b->from_ns) ?: by_thread(a, b);
}

void alloc_spans__order(struct alloc_spans *s)
{
	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), by_time);
}

void alloc_spans__free(struct alloc_spans *s)
{
	free(s->v);
	*s = (struct alloc_spans){0};
}
