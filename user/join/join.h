/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * join: the models of an eventlog, or of a report that GHC wrote, come into the picture: of a
 * process that nothing else is known of, or beside what the kernel's records say of it. The models
 * are read when the picture is made: they must live until then, and be finished by then.
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
struct picture;
struct seen;

/* What a log, or a report of GHC's own, brings. A model that is NULL was not read. */
struct join_log {
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
	uint64_t left_out;   /* items that did not fit into the models */
	bool own_cost;	     /* of a log alone: to read it is all that this program has done */

	/* The part of the log that is wanted, in its own time. */
	uint64_t from_ns, to_ns;
	/* CLOCK_MONOTONIC − the log's time; error UINT64_MAX: not known. Of a log alone: 0, 0 */
	int64_t offset_ns;
	uint64_t offset_error_ns;

	/* To join: */
	int64_t other_offset_ns; /* what the offset may be else; the same: nothing else */
	bool unsure; /* the clocks do not agree: it is right only if what both saw matches */
	bool early;  /* by it the log ends before the session, and the system has been suspended */

	/* To join: CLOCK_MONOTONIC from which on every probe was hit; 0: since the attach */
	uint64_t observed_ns;

	/* Cost centres left out of stacks and tables, as cctree__filter takes them. */
	const char *const *hide, *const *only;
	size_t n_hide, n_only;
	/* Names of the C functions that annotations have by address. May be NULL; false: none. */
	bool (*function)(void *ctx, uint64_t addr, struct code_name *ret_name);
	void *ctx;
};

/* Why a log is not joined. */
#define LOG_CLOCKS_DIFFER                                                                          \
	"its clock and the system's do not match: that was set, or the system was suspended, "     \
	"since the program started"

struct join_opts {
	uint32_t max_depth; /* frames of a stack */
	uint64_t period_ns; /* of the sampler; 0: there is none */
	bool haskell;	    /* lanes of Haskell threads are wanted */
};

/*
 * *log is copied, not what it points at. `seen`: the process that the log is of; NULL: it is known
 * by its log alone, and gets into the picture now.
 */
int log_build__new(const struct join_opts *opts, const struct join_log *log, struct picture *pic,
		   const struct seen *seen, struct log_build **ret_build);
void log_build__free(struct log_build *b);
/*
 * Makes the picture of a process that is known by its log alone; the session takes the log's span.
 */
int log_build__alone(struct log_build *b);
/*
 * Brings the log together with what the records, which end at end_ns, have made of the process: all
 * of that is in the picture already. The clocks are matched first, by what both have seen; then it
 * is compared what both say, and where only the log says something, it goes into the picture.
 */
int log_build__join(struct log_build *b, uint64_t end_ns);

#endif
