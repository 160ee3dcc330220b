/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lane of a Haskell thread. Shared by haskell.c and haskell_gaps.c only. */
#ifndef SAFESCOPED_HASKELL_PRIV_H
#define SAFESCOPED_HASKELL_PRIV_H

#include "lanes_priv.h"

struct haskell_lane {
	UT_hash_handle hh;
	uint64_t tso;
	uint32_t no; /* number of its account */
	uint32_t sampled_states;
	uint32_t last_cap; /* the one it last ran on; UINT32_MAX: unknown */
	/* About last_cap, once what it did at the cursor is forgotten: how long it had been idle up
	 * to the cursor, and when after it the capability had been idle for so long that the thread
	 * cannot have been ready any more (UINT64_MAX: not yet). */
	uint64_t idle_ns, ready_ns;
	uint64_t start_ns, cursor;
	/* What it waited for when another one was last seen in its place, since the beginning of
	 * its last piece (of which the end lies in the middle between two signs) that is no guess;
	 * HS_UNKNOWN: none was, or not known. */
	uint8_t left;
	uint64_t left_ns;
	uint8_t waits;	 /* enum haskell_state at the last cut, the cursor; HS_UNKNOWN: unknown */
	bool unsure;	 /* it may still be waiting: the next window's look shows it */
	bool ran_unseen; /* before the last cut: what it does is unknown until its next piece */
	struct slices slices;
};

/* State while a lane advances. */
struct haskell_builder {
	struct lanes *l;
	struct haskell_lane *lane;
	const struct tso_note *notes; /* of this thread, in time order: when it stopped, … */
	size_t n_notes, note;
	const struct tso_note *looks; /* … and what it waited for later */
	size_t n_looks, look;
	uint64_t *cursor;
	enum haskell_state at_last; /* at the end of a gap at whose start it was ready */
	bool lost;		    /* it was in a black hole, and may have left it */
	bool unsure;		    /* no look has come since it was seen to wait */
	bool dead;		    /* a look has found it dead; it ended at the cursor */
};

/* Finds out what the thread waited for if another one is seen in its place from the cursor to
 * `end`. */
void haskell__find_left(struct haskell_builder *b, uint64_t end);
int haskell__put(struct haskell_builder *b, const struct claim *c, const struct pic_slice *s);
/* Puts the gap from the cursor to `end`, where `next` begins; NULL: it is not seen again. */
int haskell__put_gap(void *ctx, uint64_t end, const struct claim *next);
/* The same, of a gap in which the thread waits only once. */
int haskell__put_wait(struct haskell_builder *b, uint64_t end, const struct claim *next);
/* Puts the gap from the cursor as far as the thread's notes up to `end` show that it has left a
 * black hole and run on. */
int haskell__leave_holes(struct haskell_builder *b, uint64_t end);
/* Puts the time from the cursor up to the last look at the thread before `end`; `next` as above. */
int haskell__put_looks(struct haskell_builder *b, uint64_t end, const struct claim *next);
/* Puts the time from the cursor to `end`, in which nothing is known of the thread. */
int haskell__put_unknown(struct haskell_builder *b, uint64_t end);
/* Whether a record beyond the cut at `end` shows the thread, as a replay knows ahead. */
bool haskell__is_seen_later(const struct haskell_builder *b, uint64_t end);
/* Where the thread's lane ends: where the thread did, or with the session if it is known what the
 * thread waits for. */
uint64_t haskell__end_of(struct haskell_builder *b, uint64_t end, uint8_t *ret_waits);
/* Keeps what the thread's capability did since the end of the lane, before that is forgotten. */
void haskell__keep_idle(const struct lanes *l, struct haskell_lane *lane);

#endif
