/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Looks for Haskell threads in a capture (intake__living), for a replay in windows: it cuts where
 * the session made no look, so which threads are still waiting at a cut must come from later looks,
 * or from later signs of the threads. Shared by the files of this room only.
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
	struct living_sign *signs; /* while records come in */
	struct living_seen *seen;  /* made from the signs after that */
	size_t n_seen;
};

/* The number of the first cut at t or later. */
static inline size_t ahead__cut_at(uint64_t first_ns, uint64_t every_ns, uint64_t t)
{
	return t <= first_ns ? 0 : (size_t)((t - first_ns + every_ns - 1) / every_ns);
}

void ahead_living__free(struct ahead_living *living);
/* Keeps a look (TI_LIVING) of target number `no`. -E2BIG, -ENOMEM. */
int ahead_living__add(struct ahead_living *living, struct ahead_room *room, size_t no,
		      const struct intake_input *input);
/* Takes a record of that target. -ENOMEM. */
int ahead_living__record(struct ahead_living *living, struct ahead_room *room, size_t no,
			 const struct intake_input *input);
/* Call after the last input. -ENOMEM. */
int ahead_living__looked(struct ahead_living *living);
/* Gives what is known of target number `no` to the intake, which has just added it; what the intake
 * has no room for is counted. -ENOMEM. */
int ahead_living__give(const struct ahead_living *living, struct ahead_room *room, size_t no,
		       struct intake *in, pid_t pid);

#endif
