/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the log_*.c files share: the parts of a picture that a log's models fill. Each part can be
 * made alone, so that the kernel's records may fill the others. Private to the timeline room.
 */
#ifndef SAFESCOPED_TIMELINE_LOG_PRIV_H
#define SAFESCOPED_TIMELINE_LOG_PRIV_H

#include "eventlog/eventlog.h"
#include "private.h"

/* The log of a target while its picture is made, and what the picture then points at. */
struct log_build {
	struct tl_log in;
	struct cctree *tree;	 /* what is shown: the models' own, or `filtered` */
	struct cctree *filtered; /* NULL: nothing is hidden */
	uint32_t *map;		 /* node of the models' tree to node of `tree`; NULL: the same */
	uint32_t *node_stacks;	 /* stack of a node of `tree`; UINT32_MAX: not made yet */
	size_t n_node_stacks;
	uint64_t from_ns, to_ns; /* the part that is wanted, in the picture's time */
	uint64_t merged_ns;	 /* capability lanes: shorter stretches were merged; 0: none were */
	void **owned;
	size_t n_owned, owned_cap;
};

/* Zeroed memory that lives as long as the target; NULL without memory. */
void *elog__alloc(struct log_build *b, size_t n, size_t size);
/* Takes over an array that array__reserve has made, without what is behind n; NULL as above. */
void *elog__keep(struct log_build *b, void *array, size_t n, size_t size);
void elog__free(struct log_build *b);
/* The log's time in the picture's. */
uint64_t elog__time(const struct log_build *b, uint64_t log_ns);
/* Clips to the wanted part. False: nothing is left. */
bool elog__clip(const struct log_build *b, uint64_t *start_ns, uint64_t *end_ns);
/* Tells what could not be had, once. */
int elog__missing(struct timeline *tl, struct target_state *tg, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* ── cost centres (log_centres.c) ────────────────────────────────────────────────────────── */

/* Hides centres, adds up, fills cost_centres, cc_nodes and functions. */
int elog__centres(struct timeline *tl, struct target_state *tg, struct log_build *b);
/* The stack of a node of the models' tree, hidden centres left out; CC_NO_NODE: the empty one. */
int elog__node_stack(struct timeline *tl, struct log_build *b, uint32_t node, uint32_t *ret_stack);

/* The rows of an account with the sums that the lane has by state. */
int elog__fit_rows(struct log_build *b, const struct ledger_account *account,
		   struct tl_cap_lane *lane);

/* ── lanes (log_caps.c, log_tsos.c, log_calls.c) ─────────────────────────────────────────── */

int elog__caps(struct timeline *tl, struct target_state *tg, struct log_build *b);
int elog__tsos(struct timeline *tl, struct target_state *tg, struct log_build *b);
/* OS threads and safe calls by hs-safescope's annotations. */
int elog__calls(struct timeline *tl, struct target_state *tg, struct log_build *b);

/* ── points and curves (log_points.c) ────────────────────────────────────────────────────── */

int elog__gcs(struct target_state *tg, struct log_build *b);
int elog__marks(struct timeline *tl, struct target_state *tg, struct log_build *b);
int elog__windows(struct timeline *tl, struct target_state *tg, struct log_build *b);
int elog__counters(struct timeline *tl, struct target_state *tg, struct log_build *b);

/* ── all of it (log.c) ───────────────────────────────────────────────────────────────────── */

/* The picture of a target that nothing but its log tells of. */
int elog__build(struct timeline *tl, struct target_state *tg);
/* pub.eventlog, as far as the log alone tells. */
void elog__fill(struct timeline *tl, struct target_state *tg, const struct log_build *b);

/* ── the join (join*.c) ──────────────────────────────────────────────────────────────────── */

/* What a process's records and its log have in common, while the picture is made. */
struct join {
	struct timeline *tl;
	struct target_state *tg;
	struct log_build *b;
	struct el_match_call *calls; /* the log's, by thread and start */
	size_t n_calls;
	uint64_t calls_until; /* log time up to which all calls are there */
	uint64_t end_ns;      /* of the target's part of the session */
};

/* Index of the first call of that thread at or after at_ns (log time). */
size_t join__first_call(const struct join *j, uint64_t tso, uint64_t at_ns);
/* The clock offset from matched events: b->in.offset_ns and its error. */
int join__clock(struct join *j);
/* On how much of what both tell they agree. */
int join__agree(struct join *j);
/* Which Haskell thread ran when, as the log has it, in the capability lanes. */
int join__caps(struct join *j);

#endif
