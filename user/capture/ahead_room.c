/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ahead_room_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define MAX_BYTES ((size_t)256 << 20)

int ahead_room__leave_out(struct ahead_room *room, enum ahead_kind kind)
{
	room->left_out[kind]++;
	return -E2BIG;
}

bool ahead_room__takes_bytes(struct ahead_room *room, enum ahead_kind kind)
{
	if (room->bytes <= MAX_BYTES)
		return true;
	ahead_room__leave_out(room, kind);
	return false;
}

bool ahead_room__lacks(const struct ahead_room *room, enum ahead_kind kind, char *ret_text,
		       size_t size)
{
	static const char *const texts[] = {
		[AHEAD_CUTS] =
			"what threads were doing at the ends of windows: the capture has %" PRIu64
			" more records of this than a replay in windows keeps; longer windows need "
			"fewer",
		[AHEAD_NAMES] = "names that threads took later: the capture has %" PRIu64
				" more thread starts than a replay in windows keeps; a replay "
				"without windows has these names",
		[AHEAD_HASKELL] = "how long Haskell threads waited: the capture has %" PRIu64
				  " more records of this than a replay in windows keeps; a replay "
				  "without windows shows it",
	};

	if (!room->left_out[kind])
		return false;
	snprintf(ret_text, size, texts[kind], room->left_out[kind]);
	return true;
}
