/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * timeline: a session from its inputs to its picture. Owns the rooms that its data flows through
 * and calls them in order: what comes in goes to the intake; lanes are made of it, while it comes
 * when there is too much to be kept, the rest at the end; logs are joined; findings are made.
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

/* 0 in a field means its default. */
struct timeline_opts {
	uint32_t max_depth;    /* frames of a stack; default 1000 */
	uint32_t frequency_hz; /* of the sampler; shown in the report */
	bool plumbing;	       /* as in struct intake_opts */
	enum intake_stacks stacks;
	size_t max_slices;  /* all lanes together; beyond it neighbours are merged; default 2^20 */
	size_t max_records; /* kept at once; then lanes are made of them; default 2^20 */
	size_t max_stacks;  /* distinct stacks; default 2^20 */
	uint64_t start_ns;  /* CLOCK_MONOTONIC; default: now */
	uint64_t start_unix_ns;
	bool haskell_lanes; /* of Haskell threads, too */
};

/* `version` is safescoped's, `mode` as in the report's session.mode; both are copied. */
int timeline__new(const struct timeline_opts *opts, const char *version, const char *mode,
		  struct timeline **ret_timeline);
void timeline__free(struct timeline *tl);

/*
 * The sampler has another period from now on. The report of a window, or of the session, has the
 * longest of its time. A capture does not have it: where there is one, the period stays.
 */
void timeline__set_period(struct timeline *tl, uint64_t period_ns);

/*
 * What the wall clock shows at a time of CLOCK_MONOTONIC, where it was set since the session began:
 * the window so far, and those after it, have their times by that. A capture does not have it.
 */
void timeline__set_clock(struct timeline *tl, uint64_t monotonic_ns, uint64_t unix_ns);
/* What it shows at a time by what the timeline knows. */
uint64_t timeline__unix_ns(const struct timeline *tl, uint64_t monotonic_ns);

/* Where everything of the session goes in. */
struct intake *timeline__intake(const struct timeline *tl);

/*
 * A process that is known by its log, or its report, alone: the picture of it is made of that, and
 * the session takes the log's span. What *log points at must live until the timeline is finished.
 * -EEXIST: there is a process already; -EINVAL: the timeline is finished.
 */
int timeline__add_log_target(struct timeline *tl, const struct join_log *log);
/*
 * The eventlog of a process that is in the timeline: the two are joined when it is finished.
 * log->offset_ns is a first guess, by the log's wall clock; the real one comes from what both have
 * seen. -ENOENT; -EEXIST: it has one; -EINVAL: the timeline is finished.
 */
int timeline__join_log(struct timeline *tl, pid_t pid, const struct join_log *log);

/* What the ledgers of all processes hold at a moment. */
struct timeline_cut {
	struct timeline_reading {
		uint32_t no; /* of the process, for the whole session: it may be forgotten */
		pid_t pid;
		struct reading reading;
	} * v;
	size_t n;
};
/*
 * What the session would be if it ended at at_ns, which is no earlier than what has come in; it
 * goes on as if there had been no cut. The differences of successive cuts add up to the whole
 * session, to the nanosecond: the tests prove by this that a ledger can be cut at any moment; the
 * program itself cuts by timeline__window(). -EINVAL: the timeline is finished.
 */
int timeline__cut(struct timeline *tl, uint64_t at_ns, struct timeline_cut *ret_cut);
void timeline_cut__free(struct timeline_cut *cut);

/*
 * Whoever wants figures of processes (picture/figures.h) gets them by this callback, which only
 * reads them. `closed`: those of a part of the session that is over for this process, by a cut, the
 * session's end, or because only sums stay of the process; they are given once, and what comes
 * later is counted anew. NULL: nobody does.
 */
typedef void (*timeline_figures_fn)(void *ctx, const struct figures *figures, bool closed);
void timeline__set_figures(struct timeline *tl, timeline_figures_fn fn, void *ctx);
/*
 * Gives the figures of each process since the last cut, as if the session ended at at_ns; nothing
 * changes by it. As for timeline__window, what the kernel side knows at that moment should have
 * been taken before. Of a process that is settled they are given once.
 */
int timeline__figures(struct timeline *tl, uint64_t at_ns);
/* Makes lanes of the records that there are, as is done when there are many: a reading takes as
 * long as there are records. */
int timeline__fold(struct timeline *tl);
/*
 * The same once `n` records are kept, or twice as many as the last time left. A session in windows
 * so has its records' memory again and again, and never that of a whole window.
 */
int timeline__fold_at(struct timeline *tl, size_t n);

/*
 * The session so far as a picture of its own, which is the caller's (picture__free); at at_ns,
 * which is no earlier than the last one, the next begins, and the timeline's picture is that one.
 * What the kernel side knows at that moment should have been taken before: threads' states, calls'
 * counters, cost. Logs that were to be joined are left out. *ret_picture is NULL if only this
 * window could not be made (its error is printed) and the session goes on. Any error returned is
 * for good. -EINVAL: the timeline is finished.
 */
int timeline__window(struct timeline *tl, uint64_t at_ns, struct picture **ret_picture);
/*
 * Makes the picture. Afterwards nothing may come in but what the intake takes after its end.
 * -EINVAL: it is made already.
 */
int timeline__finish(struct timeline *tl, uint64_t end_ns);
/* Lives as long as the timeline; it is made by timeline__finish. */
const struct picture *timeline__picture(const struct timeline *tl);

#endif
