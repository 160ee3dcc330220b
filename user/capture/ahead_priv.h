/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ahead: what a replay in windows reads from the capture before it begins. At a cut, the intake
 * gets what comes next of each thread, which shows what the thread is doing at the cut, as in a
 * session without windows.
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

/* There is a cut at first_ns and every every_ns after it. `haskell`: lanes of Haskell threads are
 * made. `max`: see struct ahead_room. */
int ahead__new(uint64_t first_ns, uint64_t every_ns, bool haskell, size_t max,
	       struct ahead **ret_ahead);
void ahead__free(struct ahead *ahead);
/* First pass: takes one input, in the order in which they are replayed later; so many of the
 * capture's blocks were lost before it. -ENOMEM. */
int ahead__look(struct ahead *ahead, const struct intake_input *input, uint64_t lost);
/* Call after the last input of the first pass. -ENOMEM. */
int ahead__looked(struct ahead *ahead);
/* During the replay: another target has joined, with this pid. Gives the intake what it must know
 * of the target from its first window on. -ENOMEM. */
int ahead__joined(struct ahead *ahead, struct intake *in, pid_t pid);
/* When the session ended; 0: unknown. */
uint64_t ahead__end(const struct ahead *ahead);
/* What there was no room for. */
const struct ahead_room *ahead__room(const struct ahead *ahead);
/*
 * The number, from 1, of the last record that is from before the cut at cut_ns but came after a
 * record from beyond it; if there is none, an earlier number. Call for one cut after the other.
 */
uint64_t ahead__last_before(struct ahead *ahead, uint64_t cut_ns);
/*
 * Takes a snapshot for the intake, without the threads that began after the cut at cut_ns, which
 * have records of their own. -ENOENT: the first pass has not kept it; -ENOMEM.
 */
int ahead__snapshot(struct ahead *ahead, struct intake *in, const struct intake_input *input,
		    uint64_t cut_ns);
/*
 * Call before the next record of a thread's start is taken: the thread gets its final name, and the
 * intake the thread's part of a snapshot that was taken without it. -ENOMEM.
 */
int ahead__begin(struct ahead *ahead, struct intake *in, struct wire_thread_event *rec);
/*
 * Gives the intake what its threads do at the cut at cut_ns; n_records is the number of the next
 * record. Call for one cut after the other. -ENOMEM.
 */
int ahead__give(struct ahead *ahead, struct intake *in, uint64_t cut_ns, uint64_t n_records);

#endif
