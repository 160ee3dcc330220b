/* SPDX-License-Identifier: GPL-2.0-or-later */
/* search: the binary search, once for all rooms. */
#ifndef SAFESCOPED_BASE_SEARCH_H
#define SAFESCOPED_BASE_SEARCH_H

#include <stddef.h>

/*
 * The lowest index `i` below n for which `cond`, an expression in i, holds; n if there is none.
 * It must not hold below that index and must hold above it. Where the order is broken (memory that
 * somebody else writes) the result is some index up to n.
 *
 *	size_t after = search__first(n, i, v[i].start > addr);
 *
 * A macro, so that the comparison is compiled into the loop: the calls through a pointer that
 * bsearch() makes cost more than the search. One cannot stand in the condition of another.
 */
#define search__first(n, i, cond)                                                                  \
	({                                                                                         \
		size_t search_low = 0, search_high = (n);                                          \
                                                                                                   \
		while (search_low < search_high) {                                                 \
			size_t i = search_low + (search_high - search_low) / 2;                    \
                                                                                                   \
			if (cond)                                                                  \
				search_high = i;                                                   \
			else                                                                       \
				search_low = i + 1;                                                \
		}                                                                                  \
		search_low;                                                                        \
	})

#endif
