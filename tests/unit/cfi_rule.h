/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Looks up an address in unwind rows, as the kernel side does. */
#ifndef TEST_CFI_RULE_H
#define TEST_CFI_RULE_H

#include "base/search.h"
#include "unwind/cfi.h"
#include "wire.h"

/* The rule for an address as in the file; WIRE_CFI_NONE if there is no row. */
static inline uint32_t cfi_rule(const struct cfi_rows *rows, uint64_t vaddr)
{
	uint64_t rel = vaddr - rows->base, bucket = rel >> WIRE_UNWIND_BUCKET_SHIFT;
	const uint64_t *row = rows->words + rows->n_buckets;
	size_t first, n;

	if (vaddr < rows->base || bucket >= rows->n_buckets)
		return WIRE_CFI_NONE;
	/* the row before the bucket's first one may extend into it */
	first = (uint32_t)rows->words[bucket];
	n = rows->words[bucket] >> 32;
	first += search__first(n, i, row[first + i] >> 32 > rel);
	return first ? (uint32_t)row[first - 1] : WIRE_CFI_NONE;
}

#endif
