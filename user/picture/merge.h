/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * merge: reduces a run of neighbouring slices to at most three: running, waiting, idle. Each looks
 * like the face that took most of its part and is as long as the whole part, so that a lane's CPU,
 * waiting and idle time stay the same.
 */
#ifndef SAFESCOPED_PICTURE_MERGE_H
#define SAFESCOPED_PICTURE_MERGE_H

#include "picture.h"

#define MERGE_PARTS 3
#define MERGE_FACES 8 /* per part; further ones are not candidates for its look */

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
	unsigned order[MERGE_PARTS], n_parts; /* the parts that occurred, in order of appearance */
	size_t n;			      /* slices added */
};

/* The part of a state: running, waiting or idle. Less than MERGE_PARTS. */
unsigned state__part(enum lane_kind kind, unsigned state);
void merge__begin(struct merge *m, enum lane_kind kind, uint64_t start_ns);
/* Adds a slice that extends from the end of the previous one to slice->end_ns. */
void merge__add(struct merge *m, const struct pic_slice *slice);
/* Returns the number of merged slices. */
unsigned merge__end(const struct merge *m, struct pic_slice ret_slices[MERGE_PARTS]);

/* True if the slices differ only in their times, samples and exactness. */
static inline bool slice__alike(const struct pic_slice *a, const struct pic_slice *b)
{
	return a->state == b->state && a->stack == b->stack && a->cap == b->cap &&
	       a->tso == b->tso && a->tid == b->tid;
}

#endif
