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

#include "target/target.h"
#include "wire.h"

/* ── making it ───────────────────────────────────────────────────────────────────────────── */

/* 0 in a field means its default. */
struct timeline_opts {
	uint32_t max_depth;    /* frames of a stack; default 1000 */
	uint32_t frequency_hz; /* of the sampler; told in the report */
	size_t max_stretches;  /* all lanes together; beyond it neighbours are merged; default 2^20
				*/
	size_t max_records;    /* kept at once; then lanes are made of them; default 2^21 */
	size_t max_stacks;     /* distinct stacks; default 2^20 */
	uint64_t start_ns;     /* CLOCK_MONOTONIC; default: now */
	uint64_t start_unix_ns;
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

/* ── the finished picture ────────────────────────────────────────────────────────────────── */

/* States of an OS thread's lane; names as in the contract (state__name). */
enum tl_state {
	ST_HASKELL,
	ST_UNSAFE_CALL_CPU,
	ST_SAFE_CALL_CPU,
	ST_GC_WORK,
	ST_RTS,
	ST_FOREIGN_CPU,
	ST_HASKELL_BLOCKED,
	ST_UNSAFE_CALL_BLOCKED,
	ST_SAFE_CALL_BLOCKED,
	ST_CAP_WAIT,
	ST_GC_WAIT,
	ST_RTS_BLOCKED,
	ST_IDLE,
	ST_FOREIGN_BLOCKED,
	ST_PREEMPTED,
	ST_UNKNOWN,
	ST_MAX,
};
const char *state__name(enum tl_state state);  /* "haskell" */
const char *state__title(enum tl_state state); /* "waiting for a capability": for people */
bool state__on_cpu(enum tl_state state);

enum tl_frame_kind {
	TF_HASKELL,
	TF_FOREIGN, /* a foreign function, or C below one */
	TF_RTS,
	TF_GC,
	TF_KERNEL,
	TF_STATE, /* "[safe call, blocked]" and the like: no code */
	TF_MARK,  /* "[12 chunks left out]", "[truncated]", "[broken: fault]" */
};

/* One interned frame. Equal frames have equal indices. */
struct tl_frame {
	const char
		*name; /* as shown: "Main.fib"; `~` in front where it is only the nearest symbol */
	const char *module; /* "" if none */
	const char *package;
	const char
		*file;	 /* what groups colours: the module, else the library; for states "state" */
	const char *src; /* file:line or "" (no part of the identity: the first one seen) */
	enum tl_frame_kind kind;
	bool approximate;
};

/* One interned stack: frame indices, root first. Stack 0 is empty. */
struct tl_stack {
	const uint32_t *frames;
	uint32_t n;
};

struct tl_stretch {
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
	uint32_t stack;		   /* index of an interned stack, the state's frame at its leaf */
	uint8_t state;		   /* enum tl_state */
	uint8_t exact;		   /* both boundaries come from events, not from sampling */
	uint16_t cap;		   /* capability held, 0xffff: none */
	uint32_t samples;	   /* samples that fell into it */
};

struct tl_lane {
	pid_t tid;
	char name[16];
	uint64_t start_ns, end_ns; /* wall time: end - start */
	uint64_t cpu_ns;
	uint64_t states_ns[ST_MAX]; /* sums to end_ns - start_ns */
	uint32_t sampled_states;    /* bit per state: some of its boundaries are sampled */
	uint64_t short_calls; /* safe calls that are in the sums but have no stretch of their own */
	const struct tl_stretch
		*stretches; /* disjoint, in time order, cover the lane without a gap */
	size_t n_stretches;
	bool coarse; /* beyond the budget: short neighbours were merged; states_ns are still right
		      */
};

struct tl_call {
	const char *function; /* foreign function */
	const char *library;
	const char *caller; /* "Main.bar" */
	bool caller_approximate;
	const char *site; /* "FILE+0x123" */
	bool interruptible;
	uint64_t calls; /* finished */
	uint64_t wall_ns, cpu_ns, blocked_ns, cap_wait_ns;
	uint64_t min_ns, p50_ns, p99_ns, max_ns; /* UINT64_MAX: none */
	double quantile_error;
	uint64_t open_at_start, open_at_end, abandoned;
	uint64_t open_wall_ns; /* of the calls open at the end: what the session saw; not in wall_ns
				*/
	bool exact;
	double observed_share;
};

struct tl_unsafe {
	const char *function;
	const char *library;
	const char *caller;
	bool caller_approximate;
	uint64_t samples, cpu_ns, blocked_ns;
};

struct tl_function {
	const char *name; /* qualified: "Main.fib" */
	const char *module;
	enum tl_frame_kind kind;
	uint64_t self_samples, total_samples;
	uint64_t self_ns, total_ns; /* on CPU */
	bool approximate;
};

#define TL_CAUSES 16

struct tl_quality {
	uint64_t samples, haskell_samples; /* the latter: program counter in Haskell code */
	/* how they ended, disjoint with broken[]; elided: complete, but for chunks left out; none:
	 * no walk */
	uint64_t complete, elided, truncated, none;
	uint64_t gap;		    /* complete, but for C frames between that are not known */
	uint64_t resynchronised;    /* of all */
	uint64_t haskell_complete;  /* of haskell_samples: reached STOP_FRAME at its STACK's end */
	uint64_t broken[TL_CAUSES]; /* by enum wire_cause */
};

/* Distinct frames, by where their names came from. */
struct tl_names {
	uint64_t ipe, dwarf, exact, nearest, description, none;
};

struct tl_gc {
	bool known;
	uint64_t count, pause_ns, max_pause_ns; /* of collections whose both ends were seen */
};

struct tl_target {
	pid_t pid, ns_pid;
	const char *comm, *exe, *build_id;
	const char *ghc_version, *way;
	bool version_known, threaded, profiled, layout_checked;
	const char *found_suspend, *found_resume, *found_tick, *found_caps;
	uint64_t start_time_ns;
	uint32_t capabilities;
	uint64_t attach_ns; /* CLOCK_MONOTONIC, when the probes were on */
	uint64_t attach_took_ns;
	const char *end; /* "exited", "exec", "" while it lives */

	const struct tl_lane *lanes; /* heaviest (non-idle wall time) first */
	size_t n_lanes;
	const struct tl_call *calls; /* by wall time, descending */
	size_t n_calls;
	const struct tl_unsafe *unsafe_calls; /* by cpu + blocked time, descending */
	size_t n_unsafe_calls;
	const struct tl_function *functions; /* by self samples, descending */
	size_t n_functions;
	struct tl_quality quality;
	struct tl_names names;
	struct tl_gc gc;
	uint64_t ticks;

	/* losses by cause, own cost: filled in by the session before export */
	struct {
		const char *cause;
		uint64_t n;
	} lost[16];
	size_t n_lost;
	double lost_share;
	uint64_t probe_hits, bpf_ns, trap_ns_estimated, user_cpu_ns, max_rss_bytes,
		probes_paused_ns;
	bool bpf_ns_known;
	const char **missing;
	size_t n_missing;
};

struct tl_session {
	const char *version;	   /* of safescoped */
	const char *mode;	   /* "pid", "system", … */
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
	uint64_t start_unix_ns;
	uint32_t frequency_hz;
	int exit_code;
};

/* NULL, 0 or nothing before timeline__finish. */
const struct tl_session *timeline__session(const struct timeline *tl);
size_t timeline__n_targets(const struct timeline *tl);
const struct tl_target *timeline__target(const struct timeline *tl, size_t i);
const struct tl_frame *timeline__frame(const struct timeline *tl, uint32_t index);
uint32_t timeline__n_frames(const struct timeline *tl);
struct tl_stack timeline__stack(const struct timeline *tl, uint32_t index);

#endif
