/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a thread's lane is made with. Private to lane*.c. */
#ifndef SAFESCOPED_TIMELINE_LANE_PRIV_H
#define SAFESCOPED_TIMELINE_LANE_PRIV_H

#include "private.h"

struct lane_builder {
	struct timeline *tl;
	struct target_state *tg;
	struct thread *th;
	struct sums *sums;
	struct tl_lane *lane;
	struct cover_list covers;
	struct tl_stretch *v;
	size_t n, cap, max;
	uint64_t cursor;       /* all before it is done */
	size_t seg, sample;    /* next of each */
	const struct ev *prev; /* the stay off the CPU before the cursor */
	bool edge_exact;       /* an event marked the cursor */
	bool start_exact;      /* and the start of the last stretch */
	uint64_t short_cpu_ns; /* safe_call_cpu outside recorded calls */
	uint16_t held;	       /* the capability before the cursor */
	uint64_t tso;	       /* and the Haskell thread */
	struct mutator mutator;
};

struct lane_piece {
	uint64_t end;
	enum tl_state state;
	const struct ev *ev; /* whose stack; NULL: none */
	uint32_t samples;
	bool sampled; /* the state is known from sampling or context, not from an event */
	bool end_exact;
	bool recorded; /* in a call whose time is not among the short ones' */
	bool cap_told; /* `cap` is known, or that there is none; else ev tells */
	uint16_t cap;
};

/* The time from the cursor to the piece's end: a stretch, and its share of all sums. */
int lane__emit(struct lane_builder *b, const struct lane_piece *p);

#endif
