/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lane: takes the slices that a log's events make, by the million. Once there are so many that
 * neighbours are merged, further ones are gathered in a group and never stored singly. Not for
 * other rooms.
 */
#ifndef SAFESCOPED_EVENTLOG_LANE_PRIV_H
#define SAFESCOPED_EVENTLOG_LANE_PRIV_H

#include "picture/merge.h"
#include "picture/slices.h"

#define LANE_MAX   ((size_t)1 << 16) /* slices per lane */
#define LANE_LEAST ((size_t)1 << 10) /* slices allowed for a lane, however many lanes there are */

/* Shared by the lanes of a model. */
struct lane_room {
	size_t used, max;   /* slices */
	uint64_t unordered; /* slices that began before the previous one ended, and were cut */
};

struct lane {
	struct slices slices;
	struct lane_room *room;
	enum lane_kind kind;
	bool grouped;	 /* `group` has what is not among the slices yet */
	uint64_t end_ns; /* of the last one taken */
	struct merge group;
};

/* Takes a slice that does not continue the group. -ENOMEM, -E2BIG. */
int lane__begin(struct lane *lane, const struct pic_slice *slice);
/* Turns what is gathered into slices. */
int lane__end(struct lane *lane);
void lane__free(struct lane *lane);

/* The time at which the group is full; 0: a slice beginning at since_ns does not continue it. */
static inline uint64_t lane__full_at(const struct lane *lane, uint64_t since_ns)
{
	uint64_t start = lane->group.start_ns, merged = lane->slices.merged_ns;

	if (!lane->grouped || since_ns != lane->end_ns)
		return 0;
	return start > UINT64_MAX - merged ? UINT64_MAX : start + merged;
}

/* Adds a slice that continues the group. */
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
