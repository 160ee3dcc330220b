/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which Haskell threads members have at the end of a window, or of the session. Shared by the files
 * of this room only. */
#ifndef SAFESCOPED_LIVING_PRIV_H
#define SAFESCOPED_LIVING_PRIV_H

#include <stdbool.h>
#include <stdint.h>

struct member;
struct session;
struct target_living;

/* What a member has of it. */
struct living_state {
	bool going;		      /* a look of this kind goes on */
	uint64_t window_ns;	      /* the window's end that it was begun, or given up, for */
	uint64_t began_ns;	      /* the last one */
	uint64_t not_before_ns;	      /* the next one */
	uint64_t took_ns;	      /* the last one, that came to its end */
	struct target_living *living; /* of this window; NULL: it is not there (yet) */
};

/*
 * A Haskell thread that was seen to wait may have gone on and ended where nobody saw it. Where
 * lanes of Haskell threads are wanted, members' lists of threads are read a little before each
 * window's end: in each turn of the loop.
 */
void living__turn(struct session *s, uint64_t now);
/* When that has something to do; 0: it has nothing, or now. */
uint64_t living__next_due(const struct session *s, uint64_t now);
/* Takes what goes on, if it is over; for its own window only. */
void living__take(struct session *s, struct member *m);
/* Of all members, at the session's end; until then at the latest. */
void living__last(struct session *s, uint64_t until_ns);
/* Reports to the timeline what there is, at the window's or the session's end: once all records up
 * to then are taken. */
void living__give(struct session *s, uint64_t at_ns);
/* The member ends, or its look was cancelled. */
void living__drop(struct member *m);

#endif
