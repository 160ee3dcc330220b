/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * replay_windows: a replay in windows. A live session asks the kernel at each cut what its threads
 * are just doing; a capture says it with the records of what they did, which come later. So these
 * are looked for first, in a pass of its own (ahead_priv.h).
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
	uint64_t every_ns;			     /* 0: there are none */
	uint64_t next_ns;			     /* the next cut */
	int (*take)(void *ctx, struct picture *pic); /* whose the picture is then */
	void *ctx;
	bool haskell;	     /* lanes of Haskell threads are made */
	size_t max_kept;     /* as in struct replay_hooks */
	int stopped;	     /* by an error that ends the replay */
	uint64_t latest_ns;  /* of the records so far */
	uint64_t n_records;  /* so far, with the one that comes next */
	size_t n_live_cuts;  /* of the session itself, where it was in windows: those to come */
	struct ahead *ahead; /* what the first pass has found */
};

void replay_windows__free(struct replay_windows *w);
/* One input of the first pass. -ENOMEM. */
int replay_windows__look(struct replay_windows *w, const struct intake_input *input);
/* After the first pass. -ENOMEM. */
int replay_windows__looked(struct replay_windows *w);
/* The first pass had no room for something: the windows of all that join lack it. */
bool replay_windows__lacks(const struct replay_windows *w);
/* Another target has joined, with this pid. */
int replay_windows__joined(struct replay_windows *w, struct timeline *tl, pid_t pid);
/* A snapshot as a process joined, for the window that goes on. -ENOENT: it is to be taken as it is;
 * -ENOMEM. */
int replay_windows__snapshot(struct replay_windows *w, struct timeline *tl,
			     const struct intake_input *input);
/* The record of a thread's begin is taken next; it may be changed. -ENOMEM. */
int replay_windows__begin(struct replay_windows *w, struct timeline *tl,
			  struct wire_thread_event *rec);
/*
 * A record of `ns` (UINT64_MAX: damaged) comes next: makes the windows that end before it, and for
 * which no record is still to come. -ERANGE, and none is made: they would be so many that `ns`
 * can hardly be true.
 */
int replay_windows__record(struct replay_windows *w, struct timeline *tl, uint64_t ns);
/* The records have all come: makes the windows that end before `ns`, the session's end; UINT64_MAX:
 * before that which the first pass has found, if it has. As above. */
int replay_windows__end(struct replay_windows *w, struct timeline *tl, uint64_t ns);

#endif
