/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * replay_windows: a replay in windows. At each cut a live session asks the kernel what its threads
 * are doing; in a capture only the records of what they did show it, and those come later. So a
 * first pass finds them (ahead_priv.h).
 */
#ifndef SAFESCOPED_CAPTURE_REPLAY_WINDOWS_PRIV_H
#define SAFESCOPED_CAPTURE_REPLAY_WINDOWS_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ahead;
struct intake_input;
struct picture;
struct timeline;
struct wire_thread_event;

struct replay_windows {
	uint64_t every_ns;			     /* 0: no windows */
	uint64_t next_ns;			     /* the next cut */
	int (*take)(void *ctx, struct picture *pic); /* takes over the picture */
	void *ctx;
	bool haskell;	     /* lanes of Haskell threads are made */
	size_t max_kept;     /* as in struct replay_hooks */
	int stopped;	     /* error that ends the replay */
	uint64_t latest_ns;  /* of the records so far */
	uint64_t n_records;  /* so far, including the next one */
	size_t n_live_cuts;  /* the session's own cuts still to come, if it was in windows */
	struct ahead *ahead; /* what the first pass has found */
};

void replay_windows__free(struct replay_windows *w);
/* Takes one input of the first pass, before which so many of the capture's blocks were lost.
 * -ENOMEM. */
int replay_windows__look(struct replay_windows *w, const struct intake_input *input, uint64_t lost);
/* Call after the first pass. -ENOMEM. */
int replay_windows__looked(struct replay_windows *w);
/* Whether the first pass had no room for something, which all processes' windows then lack. */
bool replay_windows__lacks(const struct replay_windows *w);
/* Another target has joined, with this pid. */
int replay_windows__joined(struct replay_windows *w, struct timeline *tl, pid_t pid);
/* Takes the snapshot of a process as it joined, for the current window. -ENOENT: the caller must
 * take it as it is; -ENOMEM. */
int replay_windows__snapshot(struct replay_windows *w, struct timeline *tl,
			     const struct intake_input *input);
/* Call before the record of a thread's start is taken; the record may be changed. -ENOMEM. */
int replay_windows__begin(struct replay_windows *w, struct timeline *tl,
			  struct wire_thread_event *rec);
/*
 * Call before a record of time `ns` (UINT64_MAX: damaged): makes the windows that end before it and
 * have no records still to come. -ERANGE: there would be so many windows that `ns` can hardly be
 * right; none is made.
 */
int replay_windows__record(struct replay_windows *w, struct timeline *tl, uint64_t ns);
/* Whether ns is in none of the windows that are still to be made. */
bool replay_windows__is_over(const struct replay_windows *w, uint64_t ns);
/* All records have come: makes the windows that end before `ns`, the session's end; UINT64_MAX: the
 * end found by the first pass, if any. Errors as replay_windows__record. */
int replay_windows__end(struct replay_windows *w, struct timeline *tl, uint64_t ns);

#endif
