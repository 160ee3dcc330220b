/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lane_fast: adding to a lane that merges already, inlined where millions of stretches come: all
 * stays in registers. Not for other rooms.
 */
#ifndef SAFESCOPED_EVENTLOG_LANE_FAST_H
#define SAFESCOPED_EVENTLOG_LANE_FAST_H

#include "eventlog.h"

static inline uint64_t lane_key(uint32_t what, uint16_t kind, uint16_t aux)
{
	return (uint64_t)what << 32 | (uint64_t)kind << 16 | aux;
}

/* Adds to what the last stretch's group is made of; the heaviest of four gives it its name. */
static inline __attribute__((always_inline)) void lane_part(struct el_lane *lane,
							    struct el_stretch *last, uint64_t key,
							    uint64_t ns)
{
	unsigned i = 0;

	while (i < lane->n_parts && lane->parts[i].key != key)
		i++;
	if (i == lane->n_parts) {
		if (i == sizeof(lane->parts) / sizeof(lane->parts[0]))
			return;
		lane->parts[i].key = key;
		lane->parts[i].ns = 0;
		lane->n_parts++;
	}
	lane->parts[i].ns += ns;
	if (i == lane->best || lane->parts[i].ns <= lane->parts[lane->best].ns)
		return;
	lane->best = i;
	last->what = (uint32_t)(key >> 32);
	last->kind = (uint16_t)(key >> 16);
	last->aux = (uint16_t)key;
}

/* The last stretch begins a group. */
static inline void lane_parts_begin(struct el_lane *lane, const struct el_stretch *last)
{
	if (lane->n_parts)
		return;
	lane->parts[0].key = lane_key(last->what, last->kind, last->aux);
	lane->parts[0].ns = last->end - last->start;
	lane->n_parts = 1;
	lane->best = 0;
}

/* A lane that merges takes a short neighbour into its last stretch. False: it is none. */
static inline __attribute__((always_inline)) bool lane_join(struct el_lane *lane, uint64_t start,
							    uint64_t end, uint64_t key, uint32_t n)
{
	struct el_stretch *last = lane->s + lane->n - 1;

	if (start != last->end || end <= start || end - last->start >= lane->merged_ns)
		return false;
	lane_parts_begin(lane, last);
	lane_part(lane, last, key, end - start);
	last->end = end;
	last->n += n;
	return true;
}

/* lane.c: where it does not join. */
int lane__put_apart(struct el_lane *lane, uint64_t start, uint64_t end, uint32_t what,
		    uint16_t kind, uint16_t aux);

/* A stretch without ticks. */
static inline int lane_put(struct el_lane *lane, uint64_t start, uint64_t end, uint32_t what,
			   uint16_t kind, uint16_t aux)
{
	if (lane->merged_ns && lane->n && lane_join(lane, start, end, lane_key(what, kind, aux), 0))
		return 0;
	return lane__put_apart(lane, start, end, what, kind, aux);
}

#endif
