/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a thread's lane is made with. Private to lane*.c. */
#ifndef SAFESCOPED_TIMELINE_LANE_PRIV_H
#define SAFESCOPED_TIMELINE_LANE_PRIV_H

#include "private.h"

struct lane_builder {
	struct timeline *tl;
	struct target_state *tg;
	struct thread *th;
	struct tl_lane *lane;
	struct cover_list covers;
	struct tl_stretch *v; /* of this part, none merged */
	size_t n, cap;
	uint64_t cursor;       /* all before it is done */
	size_t seg, sample;    /* next of each */
	const struct ev *prev; /* the stay off the CPU before the cursor */
	bool edge_exact;       /* an event marked the cursor */
	bool start_exact;      /* and the start of the last stretch */
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
	enum ledger_class class;   /* that its time is booked to, if it was on the CPU */
	const struct cover *cover; /* the call or collection; NULL: none */
	bool cap_told;		   /* `cap` is known, or that there is none; else ev tells */
	uint16_t cap;
};

/* The time from the cursor to the piece's end: a slice, and its line in the ledger. */
int lane__emit(struct lane_builder *b, const struct lane_piece *p);
/*
 * Books that `short_cpu_ns` of the thread's time so far were safe calls too short for a record, as
 * the kernel has counted them.
 */
int lane__book_shorts(struct timeline *tl, struct target_state *tg, struct thread *th,
		      uint64_t short_cpu_ns);
/* Appends slices to the thread's lane; beyond max neighbours are merged. */
int lane__append(struct thread *th, const struct tl_stretch *v, size_t n, size_t max);

#endif
