/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sums: accounts added up by stack. The aggregates of all formats are computed here, from the
 * lanes' accounts and never from their slices.
 */
#ifndef SAFESCOPED_EXPORT_SUMS_H
#define SAFESCOPED_EXPORT_SUMS_H

#include "lanes.h"

/* The sum for one stack of one owner: a lane, a process, or whatever the format keeps apart. */
struct sum {
	uint32_t owner, stack;
	uint64_t by[WEIGHTS];
};

struct sums {
	struct sum *v;
	size_t n, cap;
};

/* True for states of an OS thread inside a safe call, as opposed to preempted or called back. */
bool state__in_safe_call(enum lane_kind kind, unsigned state);
/* True if the lane's time is in the sums: an OS thread's, or a capability's if there are no
 * threads. */
bool sums__counts(const struct view *view, bool log_alone);

void sums__free(struct sums *sums);
int sums__add(struct sums *sums, const struct sum *sum);
/* Merges the sums into one for each (owner, stack), sorted by these. */
void sums__merge(struct sums *sums);

enum sums_owner {
	SUMS_BY_TARGET, /* the target's number */
	SUMS_BY_LANE,	/* the view's number; for what belongs to no lane, the number of views plus
			   the target's */
	SUMS_BY_STATE,	/* the same times LANE_STATES, plus the lane's state */
};
/*
 * Collects the merged sums of all processes: of their OS threads; for a log alone, which knows OS
 * threads only in annotated calls, of capabilities as well; for a report that GHC wrote, which has
 * no lanes, of its ticks, each worth the time between two. Allocation is by process whatever the
 * owner. *ret_title: "all threads", "all capabilities", "all cost centres".
 */
int sums__collect(const struct picture *pic, const struct views *views, enum sums_owner owner,
		  struct sums *ret_sums, const char **ret_title);
/*
 * Keeps only sums with a nonzero `weight` and a stack (or, if without_stack, without one), sorts
 * them by owner and by stack according to the frames' numbers in map, and merges those that look
 * alike.
 */
void sums__arrange(struct sums *sums, const struct picture *pic, const uint32_t *map,
		   enum export_weight weight, bool without_stack);

#endif
