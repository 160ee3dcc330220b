/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the session knows of the census of a member's heap. Shared by the files of this room only.
 */
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
	unsigned tries, again;
	/* of the one that goes on, by its collection; 0: none does */
	uint64_t began_ns, began_live_bytes;
	bool disturbed; /* another major collection has come meanwhile */
	/* the last one, as long as it may be of the program's end; when it was there */
	struct target_census *fresh;
	uint64_t fresh_ns, taken_at_ns;
	bool fresh_disturbed;
	struct target_census *best; /* of those that were not good */
	uint64_t best_ns;
	uint64_t taken_ns, live_bytes; /* of what was given */
};

/*
 * What a member's heap is made of is counted when a major collection has ended, if it is wanted
 * (opts->heap_census), and again when much more is live.
 */
void censuses__want(struct session *s, struct member *m);
void censuses__want_all(struct session *s);
/* A collection has ended. */
void censuses__on_heap(struct session *s, const struct wire_heap *rec, size_t size);
/* Takes the one that goes on, if it is over. */
void censuses__take(struct session *s, struct member *m);
/* To be called in each turn of the loop. */
void censuses__turn(struct session *s, uint64_t now);
/* Before the member's end, or the session's: gives what there is. */
void censuses__end(struct session *s, struct member *m, bool exited);
void censuses__end_all(struct session *s);

#endif
