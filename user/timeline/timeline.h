/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * timeline: the one place where records meet. Takes kernel records in the order in which they
 * arrive, makes lanes of disjoint stretches, interns stacks, adds up calls, and hands exporters a
 * finished picture in which nothing tells where it came from.
 *
 * Life: timeline__new · timeline__add_target · any number of timeline__record / __snapshot ·
 * __site_counters · __thread_state · timeline__finish (sorts, makes and closes lanes, adds up) ·
 * read by exporters · timeline__free.
 *
 * What is exact and what is not. Stays off the CPU, recorded safe calls and a collection in the
 * thread that does it have the boundaries that events gave them. The rest of the time on the CPU is
 * split at the midpoints between its samples; a piece without any sample takes its state from
 * what is known at its ends, and where samples in like pieces say more, its share from them (stack
 * "[no sample]"). Safe calls too short for a record are found by those same means, so their share
 * in the stretches is an estimate. The kernel knows their CPU time exactly; the totals
 * (tl_lane.states_ns), not the stretches, are put right with it: nanoseconds are moved between
 * `haskell` and `safe_call_cpu`, never below zero, the sum unchanged. (For a thread that ended
 * before its counters could be read there is nothing to correct with.)
 */
#ifndef SAFESCOPED_TIMELINE_H
#define SAFESCOPED_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "log.h"
#include "picture.h"
#include "target/target.h"
#include "wire.h"

/* ── making it ───────────────────────────────────────────────────────────────────────────── */

/* What the Haskell part of a stack is made of. */
enum tl_stacks {
	TL_STACKS_AUTO, /* cost centres in profiled programs, else what is on the Haskell stack */
	TL_STACKS_STG,
	TL_STACKS_CCS,
	/* the cost centres' path from its root, then a mark, then the frames of the Haskell stack
	 */
	TL_STACKS_BOTH,
};

/* 0 in a field means its default. */
struct timeline_opts {
	uint32_t max_depth;    /* frames of a stack; default 1000 */
	uint32_t frequency_hz; /* of the sampler; told in the report */
	bool plumbing; /* show the RTS's return frames that tell nothing: update, catch, stop */
	enum tl_stacks stacks;
	size_t max_stretches; /* all lanes together; beyond it neighbours are merged; default 2^20
			       */
	size_t max_records;   /* kept at once; then lanes are made of them; default 2^21 */
	size_t max_stacks;    /* distinct stacks; default 2^20 */
	uint64_t start_ns;    /* CLOCK_MONOTONIC; default: now */
	uint64_t start_unix_ns;
	bool haskell_lanes; /* of Haskell threads, too */
};

struct timeline;

/* `version` is safescoped's, `mode` as in the contract's session.mode; both are copied. */
int timeline__new(const struct timeline_opts *opts, const char *version, const char *mode,
		  struct timeline **ret_timeline);
void timeline__free(struct timeline *tl);

/*
 * Where frames get their names: callbacks, so that this room needs no live target. They are called
 * as records come in, once for each distinct frame, while the process is most likely still there.
 * Strings are copied. `site` returns a negative errno when nothing is known of the address.
 */
struct tl_namer {
	void *ctx;
	void (*name)(void *ctx, uint64_t frame, struct code_name *ret_name);
	int (*site)(void *ctx, uint64_t ret_addr, struct target_site *ret_site);
	/* Both NULL: cost-centre stacks are not looked at. See target__read_ccs, target__ccs. */
	int (*read_ccs)(void *ctx, const uint64_t *addrs, size_t n);
	int (*ccs)(void *ctx, uint64_t addr, struct target_ccs *ret_ccs);
};

/*
 * A process joins. Its info is copied; namer->ctx must live until timeline__finish. A pid may be
 * added again after its target has ended (exec): records go to the newest. -EEXIST while it lives.
 */
int timeline__add_target(struct timeline *tl, const struct target_info *info,
			 const struct tl_namer *namer, uint64_t attach_ns, uint64_t attach_took_ns);

/*
 * More is known of the process: its runtime was not initialised when it joined. -ENOENT.
 */
int timeline__update_target(struct timeline *tl, const struct target_info *info);

/*
 * One record as it came from the ring buffer; `size` bytes are readable. -EBADMSG: type, size,
 * counts or times contradict each other (nothing was taken); -ENOENT: of a process that is not in
 * the timeline; -ENOSPC: left out because max_records are kept and none of them can go (counted;
 * the lanes end there); -ENOMEM.
 */
int timeline__record(struct timeline *tl, const void *rec, size_t size);

/* The threads as they were at at_ns; at_end: the session's (or the target's) last one. */
int timeline__snapshot(struct timeline *tl, pid_t pid, const struct snapshot *snapshot,
		       uint64_t at_ns, bool at_end);

/* The latest values replace earlier ones. */
int timeline__site_counters(struct timeline *tl, const struct wire_site_key *key,
			    const struct wire_site *site);

/* A thread's entry in the kernel's map, read at the end: closes its lane. */
int timeline__thread_state(struct timeline *tl, pid_t tid, const struct wire_thread *state);
/* The stack of the stay off the CPU that the thread is still in (has_stack). After thread_state. */
int timeline__thread_off_stack(struct timeline *tl, pid_t pid, pid_t tid,
			       const struct wire_off_stack *stack);

/* What the session knows beside the records; may come before or after finish. */
struct tl_cost {
	uint64_t probe_hits, bpf_ns, trap_ns_estimated, user_cpu_ns, max_rss_bytes,
		probes_paused_ns;
	bool bpf_ns_known;
};
int timeline__set_cost(struct timeline *tl, pid_t pid, const struct tl_cost *cost);
int timeline__set_lost(struct timeline *tl, pid_t pid, const char *cause, uint64_t n);
int timeline__set_lost_share(struct timeline *tl, pid_t pid, double share);
int timeline__add_missing(struct timeline *tl, pid_t pid, const char *text);
void timeline__set_exit_code(struct timeline *tl, int exit_code);
/* The process ended or left: "exited", "exec". The first end counts. */
int timeline__end_target(struct timeline *tl, pid_t pid, const char *end, uint64_t at_ns);
/*
 * The target that was added last with this pid was none: nothing of it is in the picture. -EBUSY:
 * something was taken of it already, and it stays.
 */
int timeline__forget_target(struct timeline *tl, pid_t pid);

/* Makes the picture. Afterwards only the setters, the readers and timeline__free may be called. */
int timeline__finish(struct timeline *tl, uint64_t end_ns);

/* ── the histogram of wire_site.hist ─────────────────────────────────────────────────────── */

/* Bounds of a slot: from *ret_low (included) to *ret_high (not included; UINT64_MAX for the last).
 */
void hist__bounds(unsigned slot, uint64_t *ret_low, uint64_t *ret_high);
/*
 * The q-quantile (0 < q <= 1): the middle of its slot, kept inside min…max. *ret_error is a bound
 * of its relative error: 1/16 in the regular slots. UINT64_MAX if the histogram is empty.
 */
uint64_t hist__quantile(const uint32_t hist[WIRE_HIST_SLOTS], double q, uint64_t min_ns,
			uint64_t max_ns, double *ret_error);

/* ── the readers (picture.h says what they give) ──────────────────────────────────────────── */

/* NULL, 0 or nothing before timeline__finish. */
const struct tl_session *timeline__session(const struct timeline *tl);
size_t timeline__n_targets(const struct timeline *tl);
const struct tl_target *timeline__target(const struct timeline *tl, size_t i);
const struct tl_frame *timeline__frame(const struct timeline *tl, uint32_t index);
uint32_t timeline__n_frames(const struct timeline *tl);
struct tl_stack timeline__stack(const struct timeline *tl, uint32_t index);

#endif
