/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lane: slices as a log's events bring them, by millions. Once they are so many that neighbours are
 * merged, those that come are gathered in a group and never stored one by one. Not for other rooms.
 */
#ifndef SAFESCOPED_EVENTLOG_LANE_PRIV_H
#define SAFESCOPED_EVENTLOG_LANE_PRIV_H

#include "picture/merge.h"
#include "picture/slices.h"

#define LANE_MAX   ((size_t)1 << 16) /* slices of one lane */
#define LANE_LEAST ((size_t)1 << 10) /* that a lane may have, however many lanes there are */

/* What the lanes of a model share. */
struct lane_room {
	size_t used, max;   /* slices */
	uint64_t unordered; /* began before the one before them ended: cut */
};

struct lane {
	struct slices slices;
	struct lane_room *room;
	enum lane_kind kind;
	bool grouped;	 /* `group` has what is not among the slices yet */
	uint64_t end_ns; /* of what came last */
	struct merge group;
};

/* What does not continue the group. -ENOMEM, -E2BIG. */
int lane__begin(struct lane *lane, const struct pic_slice *slice);
/* What is gathered becomes slices. */
int lane__end(struct lane *lane);
void lane__free(struct lane *lane);

/* The time from which on the group is full; 0: what begins at since_ns does not continue it. */
static inline uint64_t lane__full_at(const struct lane *lane, uint64_t since_ns)
{
	uint64_t start = lane->group.start_ns, merged = lane->slices.merged_ns;

	if (!lane->grouped || since_ns != lane->end_ns)
		return 0;
	return start > UINT64_MAX - merged ? UINT64_MAX : start + merged;
}

/* Adds to the group, which it continues. */
static inline void lane__join(struct lane *lane, const struct pic_slice *slice)
{
	merge__add(&lane->group, slice);
	lane->end_ns = slice->end_ns;
}

static inline int lane__put(struct lane *lane, const struct pic_slice *slice)
{
	if (slice->end_ns >= lane__full_at(lane, slice->start_ns) ||
	    slice->end_ns <= slice->start_ns)
		return lane__begin(lane, slice);
	lane__join(lane, slice);
	return 0;
}

#endif
