/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lane of a Haskell thread. Shared by haskell.c and haskell_gaps.c only. */
#ifndef SAFESCOPED_HASKELL_PRIV_H
#define SAFESCOPED_HASKELL_PRIV_H

#include "lanes_priv.h"

struct haskell_lane {
	UT_hash_handle hh;
	uint64_t tso;
	uint32_t no; /* of its account */
	uint32_t sampled_states;
	uint32_t last_cap; /* that it ran on; UINT32_MAX: not known */
	/* Of that one, where what it did at the cursor is forgotten: how long it had been idle
	 * before, and when after it had been idle for so long that the thread cannot have been
	 * ready any more (UINT64_MAX: not yet). */
	uint64_t idle_ns, ready_ns;
	uint64_t start_ns, cursor;
	uint8_t waits; /* at the last cut, which is the cursor; HS_UNKNOWN: nothing is known */
	bool unsure;   /* it may wait on: the next window's look shows it */
	struct slices slices;
};

/* While one advances. */
struct haskell_builder {
	struct lanes *l;
	struct haskell_lane *lane;
	const struct tso_note *notes; /* of this one, in time order */
	size_t n_notes, note;
	uint64_t *cursor;
	enum haskell_state at_last; /* at the end of a gap in which it was ready first */
	bool unsure;		    /* no look came since it was seen to wait */
};

int haskell__put(struct haskell_builder *b, const struct claim *c, const struct pic_slice *s);
/* From the cursor to `end`, where `next` begins; NULL: it is not seen any more. */
int haskell__put_gap(void *ctx, uint64_t end, const struct claim *next);
/* Where its lane ends: where it did, or with the session if what it waits for is known. */
uint64_t haskell__end_of(struct haskell_builder *b, uint64_t end, uint8_t *ret_waits);
/* What its capability did since its lane's end, before that is forgotten. */
void haskell__keep_idle(const struct lanes *l, struct haskell_lane *lane);

#endif
