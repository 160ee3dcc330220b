/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * join: brings the models of an eventlog, or of a report written by GHC, into the picture: either
 * for a process known only by them, or in addition to what the kernel's records show. The models
 * are read when the picture is made, so they must be finished by then and live until then.
 */
#ifndef SAFESCOPED_JOIN_H
#define SAFESCOPED_JOIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cctree;
struct code_name;
struct el_annot;
struct el_heap;
struct el_info;
struct el_match;
struct el_profile;
struct el_sched;
struct eventlog_stats;
struct log_build;
struct pic_target;
struct picture;
struct seen;

/* What an eventlog, or a report written by GHC, provides. Models that were not read are NULL. */
struct join_log {
	const char *path;		    /* as given by the user */
	const struct eventlog_stats *stats; /* NULL: this is a report, not a log */
	const struct el_sched *sched;
	struct el_profile *profile;
	const struct el_annot *annot; /* its nodes are in the profile's tree */
	const struct el_heap *heap;
	const struct el_info *info;
	const struct el_match *match; /* only for log_build__join */

	/* Instead of `profile`: the tree of a .prof, its interval and capabilities. */
	struct cctree *tree;
	uint64_t interval_ns;
	uint32_t capabilities;
	const char *program; /* NULL: take it from the log */
	bool no_ticks;	     /* the report has percentages only: its ticks are rounded */
	uint64_t left_out;   /* items that did not fit into the models */
	bool own_cost;	     /* log alone: all that this program has done is to read it */

	/* The part of the log that is wanted, in log time. */
	uint64_t from_ns, to_ns;
	/* CLOCK_MONOTONIC − log time; error UINT64_MAX: unknown. Both are 0 for a log alone. */
	int64_t offset_ns;
	uint64_t offset_error_ns;

	/* For log_build__join only: */
	int64_t other_offset_ns; /* an alternative offset; equal to offset_ns if there is none */
	bool unsure; /* the clocks disagree: it is right only if what both saw matches */
	bool early;  /* by the offset the log ends before the session; the system was suspended */

	/* For log_build__join: CLOCK_MONOTONIC since when every probe was hit; 0: the attach */
	uint64_t observed_ns;

	/* Cost centres to leave out of stacks and tables, as for cctree__filter. */
	const char *const *hide, *const *only;
	size_t n_hide, n_only;
	/* Names C functions that annotations give by address. May be NULL; returns false if there
	 * is no name. */
	bool (*function)(void *ctx, uint64_t addr, struct code_name *ret_name);
	void *ctx;
};

/* Why a log is not joined. */
#define LOG_CLOCKS_DIFFER                                                                          \
	"its clock and the system clock do not match: the latter was set, or the system was "      \
	"suspended, since the program started"

struct join_opts {
	uint32_t max_depth; /* frames per stack */
	uint64_t period_ns; /* of the sampler; 0: no sampler */
	bool haskell;	    /* make lanes of Haskell threads */
};

/*
 * *log is copied, but not what it points at. `seen`: the process that the log is of; NULL: the
 * process is known by its log alone, and is added to the picture.
 */
int log_build__new(const struct join_opts *opts, const struct join_log *log, struct picture *pic,
		   const struct seen *seen, struct log_build **ret_build);
void log_build__free(struct log_build *b);
/* Makes the picture of a process known by its log alone; the session gets the log's span. */
int log_build__alone(struct log_build *b, struct pic_target **ret_target);
/*
 * Joins the log with what the records, which end at end_ns, have made of the process; all of that
 * must be in the picture already. Matches the clocks by events that both have seen, compares what
 * both have, and adds to the picture what only the log has.
 */
int log_build__join(struct log_build *b, uint64_t end_ns);

#endif
