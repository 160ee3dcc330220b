/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * spans: when and where memory was allocated, in bounded memory. At the limit those that differ in
 * their times only, and are near to each other, become one.
 */
#ifndef SAFESCOPED_PICTURE_SPANS_H
#define SAFESCOPED_PICTURE_SPANS_H

#include "picture.h"

struct alloc_spans {
	struct pic_alloc_span *v;
	size_t n, cap;
	uint64_t grain_ns; /* how far those can be apart that became one; 0: none did */
};

/* Adds one; of those that stay there are at most `max`. -ENOMEM; -E2BIG: they are of too many
 * stacks and threads, and this one was not added. */
int alloc_spans__put(struct alloc_spans *s, const struct pic_alloc_span *span, size_t max);
/* By to_ns. */
void alloc_spans__order(struct alloc_spans *s);
void alloc_spans__free(struct alloc_spans *s);

#endif
