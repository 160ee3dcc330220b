/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Looks for Haskell threads that a capture has (intake__living), for a replay in windows: it cuts
 * where none was made, and which threads wait on at a cut is what the looks after it have shown, or
 * that they were seen later. Shared by the files of this room only.
 */
#ifndef SAFESCOPED_AHEAD_LIVING_PRIV_H
#define SAFESCOPED_AHEAD_LIVING_PRIV_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ahead_room;
struct intake;
struct intake_input;
struct living_look;
struct living_sign;
struct living_seen;

struct ahead_living {
	uint64_t first_ns, every_ns; /* of cuts */
	struct living_look *v;
	size_t n, cap;
	struct living_sign *signs; /* while records come */
	struct living_seen *seen;  /* then */
	size_t n_seen;
};

/* The number of the first cut at t or later. */
static inline size_t ahead__cut_at(uint64_t first_ns, uint64_t every_ns, uint64_t t)
{
	return t <= first_ns ? 0 : (size_t)((t - first_ns + every_ns - 1) / every_ns);
}

void ahead_living__free(struct ahead_living *living);
/* Keeps a look (TI_LIVING) of the target with this number. -E2BIG, -ENOMEM. */
int ahead_living__add(struct ahead_living *living, struct ahead_room *room, size_t no,
		      const struct intake_input *input);
/* A record of that target. -ENOMEM. */
int ahead_living__record(struct ahead_living *living, struct ahead_room *room, size_t no,
			 const struct intake_input *input);
/* After the last of them. -ENOMEM. */
int ahead_living__looked(struct ahead_living *living);
/* Gives what is known of the target to the intake, which has just taken it; what that has no room
 * for is counted. -ENOMEM. */
int ahead_living__give(const struct ahead_living *living, struct ahead_room *room, size_t no,
		       struct intake *in, pid_t pid);

#endif
