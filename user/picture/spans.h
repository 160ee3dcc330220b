/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * spans: when and where memory was allocated, in bounded memory. At the limit, spans that differ
 * only in their times and are close to each other are merged.
 */
#ifndef SAFESCOPED_PICTURE_SPANS_H
#define SAFESCOPED_PICTURE_SPANS_H

#include "picture.h"

struct alloc_spans {
	struct pic_alloc_span *v;
	size_t n, cap;
	uint64_t grain_ns; /* how far apart merged spans can be; 0: none were merged */
};

/* Adds a span, merging others if there are `max`. -ENOMEM; -E2BIG: merging made no room, as there
 * are too many stacks and threads, and the span was not added. */
int alloc_spans__put(struct alloc_spans *s, const struct pic_alloc_span *span, size_t max);
/* Sorts the spans by to_ns. */
void alloc_spans__order(struct alloc_spans *s);
void alloc_spans__free(struct alloc_spans *s);

#endif
