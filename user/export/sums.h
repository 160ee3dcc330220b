/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sums: what accounts add up to by stack. Aggregates of all formats are made here, from the lanes'
 * accounts and never from their slices.
 */
#ifndef SAFESCOPED_EXPORT_SUMS_H
#define SAFESCOPED_EXPORT_SUMS_H

#include "lanes.h"

/* One stack of one owner: a lane, a process, whatever the format keeps apart. */
struct sum {
	uint32_t owner, stack;
	uint64_t by[WEIGHTS];
};

struct sums {
	struct sum *v;
	size_t n, cap;
};

/* A thread is in a safe call, and in no other state meanwhile, as preempted or called back. */
bool state__in_safe_call(enum lane_kind kind, unsigned state);
/* The lane's time is in the sums: an OS thread's; a capability's where there are none. */
bool sums__counts(const struct view *view, bool log_alone);

void sums__free(struct sums *sums);
int sums__add(struct sums *sums, const struct sum *sum);
/* One for each (owner, stack), in that order. */
void sums__merge(struct sums *sums);

enum sums_owner {
	SUMS_BY_TARGET, /* its number */
	SUMS_BY_LANE,	/* the view's number; beyond these the target's, where it has no lane */
	SUMS_BY_STATE,	/* that times LANE_STATES, and the lane's state */
};
/*
 * All processes, merged: their OS threads; of a log alone, which knows of those in annotated calls
 * only, the capabilities too; of a report that GHC wrote, which has no lanes, its ticks, each worth
 * the time between two. What was allocated is by process, whichever the owner. *ret_title: "all
 * threads", "all capabilities", "all cost centres".
 */
int sums__collect(const struct picture *pic, const struct views *views, enum sums_owner owner,
		  struct sums *ret_sums, const char **ret_title);
/*
 * Only what has that weight and a stack, or may be without one, in the order of owners and stacks
 * by the frames' numbers in map; what looks alike is one.
 */
void sums__arrange(struct sums *sums, const struct picture *pic, const uint32_t *map,
		   enum export_weight weight, bool without_stack);

#endif
