/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which Haskell threads members have at the end of a window or of the session. Shared by the files
 * of this room only. */
#ifndef SAFESCOPED_LIVING_PRIV_H
#define SAFESCOPED_LIVING_PRIV_H

#include <stdbool.h>
#include <stdint.h>

struct member;
struct session;
struct target_living;

/* A member's state for these looks. */
struct living_state {
	bool going;		/* a look of this kind is in progress */
	uint64_t window_ns;	/* the end of the window for which it was started or given up */
	uint64_t began_ns;	/* start of the last one */
	uint64_t not_before_ns; /* earliest start of the next one */
	uint64_t took_ns;	/* duration of the last one that succeeded */
	struct target_living *living; /* result for this window; NULL: none (yet) */
};

/*
 * A Haskell thread that was seen waiting may have continued and ended unseen. If lanes of Haskell
 * threads are requested, the members' lists of threads are therefore read shortly before the end of
 * each window. To be called in each turn of the loop.
 */
void living__turn(struct session *s, uint64_t now);
/* When living__turn() next has something to do; 0: nothing to do, or now. */
uint64_t living__next_due(const struct session *s, uint64_t now);
/* Takes the look in progress, if it is finished; its result counts for its own window only. */
void living__take(struct session *s, struct member *m);
/* Looks at all members at the end of the session, until until_ns at the latest. */
void living__last(struct session *s, uint64_t until_ns);
/* Passes the results to the intake, at the end of a window or of the session, once all records up
 * to then have been taken. */
void living__give(struct session *s, uint64_t at_ns);
/* To be called when the member ends or its look was cancelled. */
void living__drop(struct member *m);

#endif
