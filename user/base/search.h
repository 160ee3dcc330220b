/* SPDX-License-Identifier: GPL-2.0-or-later */
/* search: the binary search, once for all rooms. */
#ifndef SAFESCOPED_BASE_SEARCH_H
#define SAFESCOPED_BASE_SEARCH_H

#include <stddef.h>

/*
 * The lowest index `i` below n for which `cond`, an expression in i, is true; n if there is none.
 * It must be false below that index and true from there on. If that does not hold (memory that
 * somebody else writes), the result is some index up to n.
 *
 *	size_t after = search__first(n, i, v[i].start > addr);
 *
 * A macro, so that the comparison is compiled into the loop: bsearch()'s calls through a pointer
 * cost more than the search itself. It cannot be nested in its own condition.
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
