/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * log: how the models of an eventlog come into a timeline. Part of the room's public face;
 * include timeline.h. The models are read when the timeline is finished: they must live until
 * then, and be finished themselves by then.
 */
#ifndef SAFESCOPED_TIMELINE_LOG_H
#define SAFESCOPED_TIMELINE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cctree;
struct el_annot;
struct el_heap;
struct el_info;
struct el_match;
struct el_profile;
struct el_sched;
struct eventlog_stats;
struct code_name;
struct timeline;

/* What a log, or a report of GHC's own, brings. A model that is NULL was not read. */
struct tl_log {
	const char *path;		    /* as the user gave it */
	const struct eventlog_stats *stats; /* NULL: no log, but a report */
	const struct el_sched *sched;
	struct el_profile *profile;
	const struct el_annot *annot; /* its nodes are of the profile's tree */
	const struct el_heap *heap;
	const struct el_info *info;
	const struct el_match *match; /* only to join it with a process's records */

	/* Instead of `profile`: the tree of a .prof, its interval and capabilities. */
	struct cctree *tree;
	uint64_t interval_ns;
	uint32_t capabilities;
	const char *program; /* NULL: as the log says */
	bool no_ticks;	     /* the report has percentages only: its ticks are rounded */

	/* The part of the log that is wanted, in its own time. */
	uint64_t from_ns, to_ns;
	/* CLOCK_MONOTONIC − the log's time; error UINT64_MAX: not known. Of a log alone: 0, 0 */
	int64_t offset_ns;
	uint64_t offset_error_ns;

	/* To join: CLOCK_MONOTONIC from which on every probe was hit; 0: since the attach */
	uint64_t observed_ns;

	/* Cost centres left out of stacks and tables, as cctree__filter takes them. */
	const char *const *hide, *const *only;
	size_t n_hide, n_only;
	/* Names of the C functions that annotations tell by address. May be NULL; false: none. */
	bool (*function)(void *ctx, uint64_t addr, struct code_name *ret_name);
	void *ctx;
};

/*
 * A process that is known by its log, or its report, alone: the picture of it is made of that.
 * The session takes the log's span. *log is copied, not what it points at. -EEXIST: of a process
 * that is there already.
 */
int timeline__add_log_target(struct timeline *tl, const struct tl_log *log);

/*
 * The eventlog of a process that is in the timeline: the two are joined when it is finished.
 * offset_ns is a first guess, by the log's wall clock; the real one comes from what both have seen.
 * *log is copied, not what it points at. -ENOENT, -EEXIST.
 */
int timeline__join_log(struct timeline *tl, pid_t pid, const struct tl_log *log);

#endif
