/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sums: functions, unsafe calls and cost centres of a process, added up from its accounts. */
#ifndef SAFESCOPED_LEDGER_SUMS_H
#define SAFESCOPED_LEDGER_SUMS_H

#include <stddef.h>
#include <stdint.h>

struct pic_target;
struct picture;
struct seen;

/* From the rows of the threads' lanes, which must be in the picture; unsafe__fill likewise. */
int functions__fill(struct picture *pic, struct pic_target *target);

/* Functions by what they have allocated, from target->alloc.rows. */
int allocators__fill(struct picture *pic, struct pic_target *target);

/* For a collection known from its request on: the time that the capability that it waited for most
 * spent in an unsafe call with this stack; 0: none. */
struct unsafe_hold {
	uint64_t ns;
	uint64_t start_ns, end_ns; /* of the whole wait */
	uint32_t stack;
	uint32_t cap;
};
/* Unsafe calls by function and caller, and how long collections waited for them. */
int unsafe__fill(struct picture *pic, struct pic_target *target, const struct unsafe_hold *holds,
		 size_t n_holds);

/* Bytes allocated in each cost-centre stack; v[0] is for stack number 1. */
struct centres_bytes {
	uint64_t *v;
	size_t n, cap;
};
/* Cost centres, and the tree of their stacks. */
int centres__fill(struct picture *pic, const struct seen *seen, const struct centres_bytes *bytes);

#endif
