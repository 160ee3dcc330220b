/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ahead_room: how much the first pass of a replay in windows keeps, and what it had no room for: a
 * replay that knows less about its cuts than the capture has must report that. Shared by the files
 * of this room only.
 */
#ifndef SAFESCOPED_CAPTURE_AHEAD_ROOM_PRIV_H
#define SAFESCOPED_CAPTURE_AHEAD_ROOM_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

/* By what a report lacks without it. */
enum ahead_kind {
	AHEAD_CUTS,    /* what threads do at cuts, and which records are from before a cut */
	AHEAD_NAMES,   /* the final names of threads */
	AHEAD_HASKELL, /* which Haskell threads are still alive */
	AHEAD_KINDS
};

struct ahead_room {
	size_t max; /* the most of each thing, if below its limit; 0: the limits apply */
	size_t bytes;
	uint64_t left_out[AHEAD_KINDS];
};

/* Whether n has reached the most that may be kept: `limit`, or room->max if that is lower. */
static inline bool ahead_room__has(const struct ahead_room *room, size_t n, size_t limit)
{
	return n >= (room->max ? MIN(room->max, limit) : limit);
}

/* Reserves room for n in an array. -E2BIG: there is no room, which is counted; -ENOMEM. */
#define AHEAD_RESERVE(room, kind, v, cap, n, limit)                                                \
	(ahead_room__has(room, (n)-1, limit) ? ahead_room__leave_out(room, kind)                   \
					     : ARRAY_RESERVE(v, cap, n, limit))

/* Counts one as left out. Returns -E2BIG. */
int ahead_room__leave_out(struct ahead_room *room, enum ahead_kind kind);
/* Whether more bytes may be kept; if not, counts one as left out. */
bool ahead_room__takes_bytes(struct ahead_room *room, enum ahead_kind kind);
/* What a report lacks because something was left out; false: nothing of this kind was. */
bool ahead_room__lacks(const struct ahead_room *room, enum ahead_kind kind, char *ret_text,
		       size_t size);

#endif
