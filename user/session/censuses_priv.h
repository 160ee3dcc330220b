/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The session's state for heap censuses of a member. Shared by the files of this room only. */
#ifndef SAFESCOPED_SESSION_CENSUSES_PRIV_H
#define SAFESCOPED_SESSION_CENSUSES_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct member;
struct session;
struct target_census;
struct wire_heap;

struct census_state {
	bool due, failed;
	unsigned tries, n_disturbed, again;
	/* the collection that the census in progress follows; 0: none in progress */
	uint64_t began_ns, began_live_bytes;
	/* the last major collection since then, which may have moved what was being read; 0: none
	 */
	uint64_t disturbed_ns, disturbed_live_bytes;
	/* the latest census, as long as its collection may have been the one at the program's end;
	 * and when it was taken */
	struct target_census *fresh;
	uint64_t fresh_ns, taken_at_ns;
	bool fresh_disturbed;
	struct target_census *best; /* the best of those that were not good */
	uint64_t best_ns;
	uint64_t taken_ns, live_bytes; /* of the census that was passed on */
};

/*
 * Requests a census of a member's heap: it is taken after a major collection, if opts->heap_census
 * is set, and again once considerably more is live.
 */
void censuses__want(struct session *s, struct member *m);
void censuses__want_all(struct session *s);
/* To be called for each WIRE_HEAP: a collection has ended. */
void censuses__on_heap(struct session *s, const struct wire_heap *rec, size_t size);
/* Takes the census in progress, if it is finished. */
void censuses__take(struct session *s, struct member *m);
/* To be called in each turn of the loop. */
void censuses__turn(struct session *s, uint64_t now);
/* Before the end of the member or the session: passes on the best census so far. */
void censuses__end(struct session *s, struct member *m, bool exited);
void censuses__end_all(struct session *s);

#endif
