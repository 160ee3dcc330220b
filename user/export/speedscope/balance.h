/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * balance: a drawn lane shows as much time in each state as its account has.
 *
 * Slices alone do not: on the CPU they end at the midpoints between samples, safe calls that have
 * no record have no slice, and merging keeps what took most. Where the slices of a state are too
 * long, a part of some of them is drawn as a state whose slices are too short. Where slices are
 * merged and where boundaries are sampled this is no less true than what it replaces; slices with
 * exact boundaries are cut only if the others are not long enough.
 */
#ifndef SAFESCOPED_EXPORT_SPEEDSCOPE_BALANCE_H
#define SAFESCOPED_EXPORT_SPEEDSCOPE_BALANCE_H

#include "export/lanes.h"

struct balance {
	enum lane_kind kind;
	struct balance_state {
		uint64_t drawn;	 /* by the slices that give, all together */
		uint64_t seen;	 /* of these, so far */
		uint64_t over;	 /* to be given, all together */
		uint64_t given;	 /* of this, so far */
		uint64_t under;	 /* still to be got */
		bool from_exact; /* exact slices give as well */
	} of[LANE_STATES];
};

#define BALANCE_PARTS (LANE_STATES + 1)

/* For a walk over the lane's slices, merged to the grain. */
void balance__begin(struct balance *b, const struct pic_lane *lane, uint64_t grain_ns);
/*
 * What the walk's next slice is drawn as: at least one part, as long as the slice together. A part
 * in another state has no stack.
 */
unsigned balance__split(struct balance *b, const struct pic_slice *slice,
			struct pic_slice ret_parts[BALANCE_PARTS]);

#endif
