/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ahead_room: how much the first pass of a replay in windows keeps, and what it had no room for: a
 * replay that knows less of its cuts than there is to know has to report it. Shared by the files of
 * this room only.
 */
#ifndef SAFESCOPED_CAPTURE_AHEAD_ROOM_PRIV_H
#define SAFESCOPED_CAPTURE_AHEAD_ROOM_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

/* By what a report lacks without it. */
enum ahead_kind {
	AHEAD_CUTS,    /* what threads do at cuts, and which records are of the time before one */
	AHEAD_NAMES,   /* what threads are called in the end */
	AHEAD_HASKELL, /* which Haskell threads live on */
	AHEAD_KINDS
};

struct ahead_room {
	size_t max; /* of each thing, where the limits are not less; 0: the limits hold */
	size_t bytes;
	uint64_t left_out[AHEAD_KINDS];
};

/* Whether there are n of up to `limit`, or more. */
static inline bool ahead_room__has(const struct ahead_room *room, size_t n, size_t limit)
{
	return n >= (room->max ? MIN(room->max, limit) : limit);
}

/* For n of them in an array. -E2BIG: there is no room, which is counted; -ENOMEM. */
#define AHEAD_RESERVE(room, kind, v, cap, n, limit)                                                \
	(ahead_room__has(room, (n)-1, limit) ? ahead_room__leave_out(room, kind)                   \
					     : ARRAY_RESERVE(v, cap, n, limit))

/* One is left out: -E2BIG. */
int ahead_room__leave_out(struct ahead_room *room, enum ahead_kind kind);
/* Whether more bytes may be kept; it is counted where not. */
bool ahead_room__takes_bytes(struct ahead_room *room, enum ahead_kind kind);
/* What a report lacks without what was left out; false: nothing of the kind was. */
bool ahead_room__lacks(const struct ahead_room *room, enum ahead_kind kind, char *ret_text,
		       size_t size);

#endif
