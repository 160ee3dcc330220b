/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What reports say of samples of allocation, and of the heap. */
#ifndef SAFESCOPED_EXPORT_ALLOC_H
#define SAFESCOPED_EXPORT_ALLOC_H

#include <math.h>

#include "export_priv.h"

/* The standard error of a share of all that was sampled, relative to the share itself where that is
 * half: one over the root of their number. < 0: there is no sample. */
static inline double alloc__error(const struct pic_alloc *alloc)
{
	return alloc->samples ? 1 / sqrt((double)alloc->samples) : -1;
}

/* What of the bytes that were allocated for a collection of the youngest generation it has copied;
 * < 0: there was none. */
static inline double heap__survival(const struct pic_heap *heap)
{
	return heap->minor_bytes
		       ? MIN((double)heap->minor_copied_bytes / (double)heap->minor_bytes, 1.0)
		       : -1;
}

#endif
