/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * merge: neighbouring slices become three at most: what ran, what was waited for, idleness. Each
 * looks like what took most of its part and is as long as all of it: what a lane shows as CPU time,
 * as waiting and as idle is the same as before.
 */
#ifndef SAFESCOPED_PICTURE_MERGE_H
#define SAFESCOPED_PICTURE_MERGE_H

#include "picture.h"

#define MERGE_PARTS 3
#define MERGE_FACES 8 /* of a part; what comes when there are this many is no candidate */

struct merge_part {
	struct pic_slice faces[MERGE_FACES];
	uint64_t faces_ns[MERGE_FACES];
	unsigned n_faces;
	uint64_t ns;
	uint32_t samples;
};

struct merge {
	enum lane_kind kind;
	uint64_t start_ns, end_ns;
	struct merge_part parts[MERGE_PARTS];
	unsigned order[MERGE_PARTS], n_parts; /* the parts there are, as they came */
	size_t n;			      /* slices */
};

/* What ran, what was waited for, idleness: below MERGE_PARTS. */
unsigned state__part(enum lane_kind kind, unsigned state);
void merge__begin(struct merge *m, enum lane_kind kind, uint64_t start_ns);
/* From where the one before it ended to slice->end_ns. */
void merge__add(struct merge *m, const struct pic_slice *slice);
/* How many there are now. */
unsigned merge__end(const struct merge *m, struct pic_slice ret_slices[MERGE_PARTS]);

/* They differ in nothing but their times. */
static inline bool slice__alike(const struct pic_slice *a, const struct pic_slice *b)
{
	return a->state == b->state && a->stack == b->stack && a->cap == b->cap &&
	       a->tso == b->tso && a->tid == b->tid;
}

#endif
