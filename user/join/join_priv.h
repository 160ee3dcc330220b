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

#define NEAR_NS 20000 /* two clocks' readings of one event */

/* The log of a process while its picture is made. */
struct log_build {
	struct join_opts opts;
	struct join_log in;
	struct picture *pic;
	struct pic_target *pub;
	const struct seen *seen; /* NULL: nothing but the log is known */
	struct ledger *ledger[LANE_KINDS];
	struct cctree *tree;	 /* what is shown: the models' own, or `filtered` */
	struct cctree *filtered; /* NULL: nothing is hidden */
	uint32_t *map;		 /* node of the models' tree to node of `tree`; NULL: the same */
	uint32_t *node_stacks;	 /* stack of a node of `tree`; UINT32_MAX: not made yet */
	size_t n_node_stacks;
	uint64_t from_ns, to_ns; /* the part that is wanted, in the picture's time */
	uint64_t merged_ns;	 /* capability lanes: shorter slices were merged; 0: none were */
};

/* The log's time in the picture's. */
uint64_t elog__time(const struct log_build *b, uint64_t log_ns);
/* Clips to the wanted part. False: nothing is left. */
bool elog__clip(const struct log_build *b, uint64_t *start_ns, uint64_t *end_ns);
/* Brings rows to the sums that the lane has by state; stacks: of states without any row. */
int elog__fit_rows(struct log_build *b, const struct pic_row *rows, size_t n,
		   const uint32_t *stacks, struct pic_lane *lane);
/* The accounts of a ledger, brought to the lanes' sums; lane number i has account i. */
int elog__fill_rows(struct log_build *b, enum lane_kind kind, struct pic_lane *lanes, size_t n);
/* pub->eventlog, as far as the log alone has it. */
void elog__fill(struct log_build *b);

/* ── cost centres (log_centres.c) ────────────────────────────────────────────────────────── */

/* Hides centres, adds up, fills cost_centres, cc_nodes and functions. */
int elog__centres(struct log_build *b);
/* The stack of a node of the models' tree, hidden centres left out; CC_NO_NODE: the empty one. */
int elog__node_stack(struct log_build *b, uint32_t node, uint32_t *ret_stack);

/* ── lanes (log_caps.c, log_haskell.c, log_calls.c) ──────────────────────────────────────── */

int elog__caps(struct log_build *b);
/* What the scheduler's events have of a capability; NULL: nothing. */
const struct el_cap *elog__cap(const struct log_build *b, uint32_t no);
/* Lanes of Haskell threads, if wanted; those that there are already keep their stacks and calls. */
int elog__haskell(struct log_build *b);
/* OS threads and safe calls by hs-safescope's annotations. */
int elog__calls(struct log_build *b);

/* ── points and curves (log_points.c) ────────────────────────────────────────────────────── */

int elog__gcs(struct log_build *b);
int elog__marks(struct log_build *b);
int elog__windows(struct log_build *b);
int elog__counters(struct log_build *b);

/* ── the join (join.c, clock.c, agree.c, overlay.c) ──────────────────────────────────────── */

/* What a process's records and its log have in common, while the picture is made. */
struct join {
	struct log_build *b;
	const struct seen *seen;
	struct el_match_call *calls; /* the log's, by thread and start */
	size_t n_calls;
	uint64_t calls_until; /* log time up to which all calls are there */
	uint64_t end_ns;      /* of the target's part of the session */
	uint32_t n_unwritten; /* the program's capabilities of which the log has no buffer */
};

/* Has the log what that capability did, as far as it reaches? */
static inline bool join__has_cap(const struct join *j, uint32_t cap)
{
	return j->b->in.stats->ended || eventlog_stats__has_cap(j->b->in.stats, cap);
}

/* Index of the first call of that thread at or after at_ns (log time). */
size_t join__first_call(const struct join *j, uint64_t tso, uint64_t at_ns);
/* The clock offset from matched events: b->in.offset_ns and its error. */
int join__clock(struct join *j);
/* On how much of what both have they agree. */
int join__agree(struct join *j);
/* Which Haskell thread ran when, as the log has it, in the capabilities' lanes. */
int join__caps(struct join *j);

#endif
