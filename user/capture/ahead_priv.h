/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ahead: what a replay in windows looks for in the capture before it begins. At a cut, each thread
 * is told what comes next of it: what it does just then is known by that, as in a session without
 * windows.
 */
#ifndef SAFESCOPED_CAPTURE_AHEAD_PRIV_H
#define SAFESCOPED_CAPTURE_AHEAD_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ahead;
struct ahead_room;
struct intake;
struct intake_input;
struct wire_thread_event;

/* There is a cut at first_ns and every every_ns from there. `haskell`: lanes of Haskell threads are
 * made. `max`: see struct ahead_room. */
int ahead__new(uint64_t first_ns, uint64_t every_ns, bool haskell, size_t max,
	       struct ahead **ret_ahead);
void ahead__free(struct ahead *ahead);
/* One input, in the order in which they are taken later. -ENOMEM. */
int ahead__look(struct ahead *ahead, const struct intake_input *input);
/* After the last of them. -ENOMEM. */
int ahead__looked(struct ahead *ahead);
/* Then, as inputs are taken: another target has joined, with this pid. The intake gets what it is
 * to know of it from its first window on. -ENOMEM. */
int ahead__joined(struct ahead *ahead, struct intake *in, pid_t pid);
/* When the session ended; 0: not known. */
uint64_t ahead__end(const struct ahead *ahead);
/* What there was no room for. */
const struct ahead_room *ahead__room(const struct ahead *ahead);
/*
 * The number, from 1, of the last record of the time before the cut at cut_ns, if one of later time
 * came before it; else one that is earlier. For one cut after the other.
 */
uint64_t ahead__last_before(struct ahead *ahead, uint64_t cut_ns);
/*
 * Takes a snapshot for the intake, without the threads that began after the cut at cut_ns: these
 * have records of their own. -ENOENT: the first pass has not kept it; -ENOMEM.
 */
int ahead__snapshot(struct ahead *ahead, struct intake *in, const struct intake_input *input,
		    uint64_t cut_ns);
/*
 * The next record of a thread's begin, which is taken now: the thread gets the name that it has in
 * the end, and the intake what a snapshot has of it that was taken without it. -ENOMEM.
 */
int ahead__begin(struct ahead *ahead, struct intake *in, struct wire_thread_event *rec);
/*
 * Gives the intake what its threads do at the cut at cut_ns, when record number n_records is the
 * next one. For one cut after the other. -ENOMEM.
 */
int ahead__give(struct ahead *ahead, struct intake *in, uint64_t cut_ns, uint64_t n_records);

#endif
