/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of the join room only. */
#ifndef SAFESCOPED_JOIN_PRIV_H
#define SAFESCOPED_JOIN_PRIV_H

#include "eventlog/eventlog.h"
#include "intake/seen.h"
#include "join.h"
#include "lanes/hold.h"
#include "picture/slices.h"
#include "ledger/ledger.h"

#define NEAR_NS 20000 /* difference of two clocks' readings of one event */

/* The log of a process while its picture is being made. */
struct log_build {
	struct join_opts opts;
	struct join_log in;
	struct picture *pic;
	struct pic_target *pub;
	const struct seen *seen; /* NULL: only the log is known */
	struct ledger *ledger[LANE_KINDS];
	struct cctree *tree;	 /* what is shown: the models' own tree, or `filtered` */
	struct cctree *filtered; /* NULL: nothing is hidden */
	uint32_t *map;		 /* nodes of the models' tree to nodes of `tree`; NULL: identity */
	uint32_t *node_stacks;	 /* stacks by node of `tree`; UINT32_MAX: not made yet */
	size_t n_node_stacks;
	uint64_t from_ns, to_ns; /* the wanted part, in the picture's time */
	uint64_t merged_ns;	 /* capability lanes: shorter slices were merged; 0: none were */
};

/* Converts log time to the picture's time. */
uint64_t elog__time(const struct log_build *b, uint64_t log_ns);
/* Clips to the wanted part. Returns false if nothing is left. */
bool elog__clip(const struct log_build *b, uint64_t *start_ns, uint64_t *end_ns);
/* Scales rows to the lane's sums by state; stacks: for states without any row. */
int elog__fit_rows(struct log_build *b, const struct pic_row *rows, size_t n,
		   const uint32_t *stacks, struct pic_lane *lane);
/* Fills in the rows from a ledger's accounts, scaled to the lanes' sums; lane i has account i. */
int elog__fill_rows(struct log_build *b, enum lane_kind kind, struct pic_lane *lanes, size_t n);
/* Fills in pub->eventlog, as far as the log alone has it. */
void elog__fill(struct log_build *b);

/* ── cost centres (log_centres.c) ────────────────────────────────────────────────────────── */

/* Hides centres, adds up, and fills in cost_centres, cc_nodes and functions. */
int elog__centres(struct log_build *b);
/* The stack of a node of the models' tree, without hidden centres; CC_NO_NODE: the empty stack. */
int elog__node_stack(struct log_build *b, uint32_t node, uint32_t *ret_stack);

/* ── lanes (log_caps.c, log_haskell.c, log_calls.c) ──────────────────────────────────────── */

int elog__caps(struct log_build *b);
/* What the scheduler's events have on a capability; NULL: nothing. */
const struct el_cap *elog__cap(const struct log_build *b, uint32_t no);
/* Makes lanes of Haskell threads, if wanted; existing lanes keep their stacks and calls. */
int elog__haskell(struct log_build *b);
/* Makes OS threads and safe calls from hs-safescope's annotations. */
int elog__calls(struct log_build *b);

/* ── points and curves (log_points.c) ────────────────────────────────────────────────────── */

int elog__gcs(struct log_build *b);
int elog__marks(struct log_build *b);
int elog__windows(struct log_build *b);
int elog__counters(struct log_build *b);

/* ── the join (join.c, clock.c, agree.c, overlay.c) ──────────────────────────────────────── */

/* What a process's records and its log have in common, while the picture is being made. */
struct join {
	struct log_build *b;
	const struct seen *seen;
	struct el_match_call *calls; /* the log's calls, by thread and start */
	size_t n_calls;
	uint64_t calls_until; /* log time up to which `calls` is complete */
	uint64_t end_ns;      /* of the target's part of the session */
	uint32_t n_unwritten; /* capabilities of the program without a buffer in the log */
};

/* Whether the log has what that capability did, as far as the log reaches. */
static inline bool join__has_cap(const struct join *j, uint32_t cap)
{
	return j->b->in.stats->ended || eventlog_stats__has_cap(j->b->in.stats, cap);
}

/* Index of the thread's first call at or after at_ns (log time). */
size_t join__first_call(const struct join *j, uint64_t tso, uint64_t at_ns);
/* Finds the clock offset from matched events: b->in.offset_ns and its error. */
int join__clock(struct join *j);
/* Computes the share of common events on which the two agree. */
int join__agree(struct join *j);
/* Puts which Haskell thread ran when, as the log has it, into the capabilities' lanes. */
int join__caps(struct join *j);

#endif
