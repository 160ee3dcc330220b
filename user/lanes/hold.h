/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hold: what collections waited for, from their request to their start: for the capability that had
 * most to do meanwhile, since that one stopped last. A thread in an unsafe call does not hear of a
 * collection before it returns, and Haskell code that does not allocate not before it ends.
 */
#ifndef SAFESCOPED_LANES_HOLD_H
#define SAFESCOPED_LANES_HOLD_H

#include "intake/seen.h"

/* What a capability did while a collection waited. */
struct hold {
	uint64_t busy_ns; /* the next three, and the runtime's own work; 0: it did nothing */
	uint64_t haskell_ns, unsafe_ns;
	uint64_t no_cpu_ns; /* held by a thread without a CPU, outside of unsafe calls */
	uint32_t haskell_stack, unsafe_stack; /* of the longest slice */
	uint16_t cap;
};

/* One capability's, while its slices are put down. */
struct holding {
	size_t gc; /* the next collection */
	struct hold hold;
	uint64_t longest_haskell_ns, longest_unsafe_ns;
	bool in_unsafe;
};

/* By the numbers of collections: what the capability did that did most. */
struct holds {
	struct hold *v;
	size_t n, cap;
};

/*
 * The slices of one capability come in time order, none of them merged. A collection whose thread
 * is not known (tid 0) is not told from the runtime's other work. -ENOMEM.
 */
int holds__see(struct holds *holds, const struct seen_gcs *gcs, struct holding *h,
	       const struct pic_slice *s);
/* The first n_gone collections are forgotten, and what their capabilities did. */
void holds__cut(struct holds *holds, size_t n_gone);
void holding__cut(struct holding *h, size_t n_gone);
/* The event's part of it. */
void holds__fill(const struct holds *holds, size_t gc, struct pic_gc_event *event);
/* Unsafe calls, and how long collections waited for them, into the picture. */
int holds__fill_unsafe(const struct holds *holds, const struct seen_gcs *gcs, struct picture *pic,
		       struct pic_target *target);

#endif
