/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * timeline: a session from its inputs to its picture. Owns the rooms that its data flows through
 * and calls them in order: inputs go to the intake; lanes are made of them, at the end or, if there
 * are too many to be kept, earlier; logs are joined; findings are made.
 *
 * Life: timeline__new · timeline__intake, which takes targets, records, snapshots · any number of
 * timeline__cut · timeline__finish · timeline__picture, for exporters · timeline__free.
 */
#ifndef SAFESCOPED_TIMELINE_H
#define SAFESCOPED_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "intake/intake.h"
#include "lanes/lanes.h"

struct figures;
struct join_log;
struct picture;
struct timeline;

/* A field that is 0 means its default. */
struct timeline_opts {
	uint32_t max_depth;    /* limit on frames of a stack; default 1000 */
	uint32_t frequency_hz; /* of the sampler; for the report */
	bool plumbing;	       /* as in struct intake_opts */
	enum intake_stacks stacks;
	size_t max_slices;  /* limit for all lanes together, beyond which neighbours are merged;
			       default 2^20 */
	size_t max_records; /* limit on records kept; then lanes are made of them; default 2^20 */
	size_t max_stacks;  /* limit on distinct stacks; default 2^20 */
	uint64_t start_ns;  /* CLOCK_MONOTONIC; default: now */
	uint64_t start_unix_ns;
	bool haskell_lanes; /* make lanes of Haskell threads, too */
};

/* `version` is safescoped's; `mode` as in the report's session.mode. Both are copied. */
int timeline__new(const struct timeline_opts *opts, const char *version, const char *mode,
		  struct timeline **ret_timeline);
void timeline__free(struct timeline *tl);

/*
 * Changes the sampler's period from now on. The report of a window or of the session has the
 * longest period during it. Not recorded in captures: the period must not change while one is
 * saved.
 */
void timeline__set_period(struct timeline *tl, uint64_t period_ns);

/*
 * Sets the wall-clock time that corresponds to a CLOCK_MONOTONIC time, after the wall clock was
 * set: it applies to the current window and those after it. Not recorded in captures.
 */
void timeline__set_clock(struct timeline *tl, uint64_t monotonic_ns, uint64_t unix_ns);
/* The wall-clock time that corresponds to a CLOCK_MONOTONIC time, as far as the timeline knows. */
uint64_t timeline__unix_ns(const struct timeline *tl, uint64_t monotonic_ns);

/* The intake, which takes all inputs of the session. */
struct intake *timeline__intake(const struct timeline *tl);

/*
 * Adds a process that is known only by its log or its report: its picture is made of that, and the
 * session spans the log. What *log points at must live until the timeline is finished. -EEXIST:
 * there is a process already; -EINVAL: the timeline is finished.
 */
int timeline__add_log_target(struct timeline *tl, const struct join_log *log);
/*
 * Adds the eventlog of a process in the timeline, to be joined when the timeline is finished.
 * log->offset_ns is an initial guess, from the log's wall clock; the real offset comes from events
 * that both have seen. -ENOENT; -EEXIST: it has one; -EINVAL: the timeline is finished.
 */
int timeline__join_log(struct timeline *tl, pid_t pid, const struct join_log *log);

/* The contents of all processes' ledgers at a moment. */
struct timeline_cut {
	struct timeline_reading {
		uint32_t no; /* number of the process, unique in the session even if the process is
				forgotten */
		pid_t pid;
		struct reading reading;
	} * v;
	size_t n;
};
/*
 * What the session would be if it ended at at_ns, which must not be earlier than any input; the
 * session goes on as if there had been no cut. The differences of successive cuts add up to the
 * whole session, to the nanosecond: the tests prove by this that a ledger can be cut at any moment;
 * the program itself uses timeline__window(). -EINVAL: the timeline is finished.
 */
int timeline__cut(struct timeline *tl, uint64_t at_ns, struct timeline_cut *ret_cut);
void timeline_cut__free(struct timeline_cut *cut);

/*
 * Receives figures of processes (picture/figures.h), which it must only read. `closed`: the part of
 * the session that they cover is over for this process, by a cut, by the session's end, or because
 * only sums are kept of the process; they are given once, and later inputs are counted from zero.
 * NULL: no callback.
 */
typedef void (*timeline_figures_fn)(void *ctx, const struct figures *figures, bool closed);
void timeline__set_figures(struct timeline *tl, timeline_figures_fn fn, void *ctx);
/*
 * Gives the figures of each process since the last cut, as if the session ended at at_ns; changes
 * nothing. As for timeline__window(), the kernel side's state at that moment should have been taken
 * before. For a settled process they are given only once.
 */
int timeline__figures(struct timeline *tl, uint64_t at_ns);
/* Makes lanes of all records received so far, as happens when there are many: a reading takes time
 * proportional to the number of records. */
int timeline__fold(struct timeline *tl);
/*
 * The same once `n` records are kept, or twice as many as were left the last time. A session in
 * windows thus reuses the memory of its records, instead of keeping those of a whole window.
 */
int timeline__fold_at(struct timeline *tl, size_t n);

/*
 * Returns the session so far as a picture owned by the caller (picture__free). The next window
 * starts at at_ns, which must not be earlier than the previous one, in a picture that becomes the
 * timeline's. The kernel side's state at that moment should have been taken before: threads'
 * states, calls' counters, cost. Logs that were to be joined are left out. *ret_picture is NULL if
 * only this window could not be made (its error is printed) and the session goes on. Any error
 * returned is permanent. -EINVAL: the timeline is finished.
 */
int timeline__window(struct timeline *tl, uint64_t at_ns, struct picture **ret_picture);
/*
 * Makes the picture. Afterwards only inputs that the intake accepts after its end may be added.
 * -EINVAL: it is made already.
 */
int timeline__finish(struct timeline *tl, uint64_t end_ns);
/* Owned by the timeline; complete after timeline__finish(). */
const struct picture *timeline__picture(const struct timeline *tl);

#endif
