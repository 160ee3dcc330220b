/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hold: what collections waited for between their request and their start: the capability that had
 * most to do meanwhile, since it stopped last. A thread in an unsafe call notices the request only
 * when the call returns, and Haskell code that does not allocate only when it ends.
 */
#ifndef SAFESCOPED_LANES_HOLD_H
#define SAFESCOPED_LANES_HOLD_H

#include "intake/seen.h"

/* What a capability did while a collection waited. */
struct hold {
	uint64_t busy_ns; /* the sum of the next three and the runtime's own work; 0: not busy */
	uint64_t haskell_ns, unsafe_ns;
	uint64_t no_cpu_ns; /* held by a thread without a CPU, outside unsafe calls */
	uint32_t haskell_stack, unsafe_stack; /* of the longest slice */
	uint16_t cap;
};

/* State of one capability while its slices are put. */
struct holding {
	size_t gc; /* the next collection */
	struct hold hold;
	uint64_t longest_haskell_ns, longest_unsafe_ns;
	bool in_unsafe;
};

/* By number of the collection: what the busiest capability did. */
struct holds {
	struct hold *v;
	size_t n, cap;
};

/*
 * Takes the slices of one capability, in time order and unmerged. A collection whose thread is
 * unknown (tid 0) cannot be distinguished from the runtime's other work. -ENOMEM.
 */
int holds__see(struct holds *holds, const struct seen_gcs *gcs, struct holding *h,
	       const struct pic_slice *s);
/* Drops the first n_gone collections, and what capabilities did during them. */
void holds__cut(struct holds *holds, size_t n_gone);
void holding__cut(struct holding *h, size_t n_gone);
/* Fills in the event's fields. */
void holds__fill(const struct holds *holds, size_t gc, struct pic_gc_event *event);
/* Puts unsafe calls, and how long collections waited for them, into the picture. */
int holds__fill_unsafe(const struct holds *holds, const struct seen_gcs *gcs, struct picture *pic,
		       struct pic_target *target);

#endif
