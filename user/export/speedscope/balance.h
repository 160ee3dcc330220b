/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * balance: makes a drawn lane show as much time in each state as its account has.
 *
 * Slices alone do not: on the CPU they end at the midpoints between samples, safe calls without a
 * record have no slice, and merging keeps only what took most. Where the slices of a state are too
 * long, parts of some of them are drawn as states whose slices are too short. Where slices are
 * merged or boundaries are sampled, this is no less accurate than what it replaces; slices with
 * exact boundaries are cut only if the others are not long enough.
 */
#ifndef SAFESCOPED_EXPORT_SPEEDSCOPE_BALANCE_H
#define SAFESCOPED_EXPORT_SPEEDSCOPE_BALANCE_H

#include "export/lanes.h"

struct balance {
	enum lane_kind kind;
	struct balance_state {
		uint64_t drawn;	 /* total length of the slices that can give */
		uint64_t seen;	 /* the length of these seen so far */
		uint64_t over;	 /* the total to be given */
		uint64_t given;	 /* given so far */
		uint64_t under;	 /* still to be received */
		bool from_exact; /* exact slices give as well */
	} of[LANE_STATES];
};

#define BALANCE_PARTS (LANE_STATES + 1)

/* Prepares for a walk over the lane's slices, merged to the grain. */
void balance__begin(struct balance *b, const struct pic_lane *lane, uint64_t grain_ns);
/*
 * Splits the walk's next slice into the parts that are drawn: at least one, together as long as the
 * slice. A part in another state has no stack. Returns their number.
 */
unsigned balance__split(struct balance *b, const struct pic_slice *slice,
			struct pic_slice ret_parts[BALANCE_PARTS]);

#endif
