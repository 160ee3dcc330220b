/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * timeline: the one place where records meet. Takes kernel records in the order in which they
 * arrive, makes lanes of disjoint stretches, interns stacks, adds up calls, and hands exporters a
 * finished picture in which nothing tells where it came from.
 *
 * Life: timeline__new · timeline__add_target · any number of timeline__record / __snapshot ·
 * timeline__finish (sorts, closes lanes, resolves names) · read by exporters · timeline__free.
 */
#ifndef SAFESCOPED_TIMELINE_H
#define SAFESCOPED_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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
	const char *name;   /* as shown, `~` in front where it is only the nearest symbol */
	const char *module; /* "" if none */
	const char *package;
	const char *file;   /* what groups colours: the module, else the library; for states "state" */
	const char *src;    /* file:line or "" */
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
};

struct tl_lane {
	pid_t tid;
	char name[16];
	uint64_t start_ns, end_ns; /* wall time: end - start */
	uint64_t cpu_ns;
	uint64_t states_ns[ST_MAX]; /* sums to end_ns - start_ns */
	uint32_t sampled_states;    /* bit per state: some of its boundaries are sampled */
	uint64_t short_calls;	    /* safe calls that are in the sums but have no stretch of their own */
	const struct tl_stretch *stretches; /* disjoint, in time order, cover the lane without a gap */
	size_t n_stretches;
};

struct tl_call {
	const char *function; /* foreign function */
	const char *library;
	const char *caller;   /* "Main.bar" */
	bool caller_approximate;
	const char *site;     /* "FILE+0x123" */
	bool interruptible;
	uint64_t calls;	      /* finished */
	uint64_t wall_ns, cpu_ns, blocked_ns, cap_wait_ns;
	uint64_t min_ns, p50_ns, p99_ns, max_ns; /* UINT64_MAX: none */
	double quantile_error;
	uint64_t open_at_start, open_at_end, abandoned;
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
	uint64_t complete, elided, resynchronised, truncated, none;
	uint64_t haskell_complete; /* of haskell_samples: reached STOP_FRAME at its STACK's end */
	uint64_t broken[TL_CAUSES]; /* by enum wire_cause */
};

/* Distinct frames, by where their names came from. */
struct tl_names {
	uint64_t ipe, dwarf, exact, nearest, description, none;
};

struct tl_gc {
	bool known;
	uint64_t count, pause_ns, max_pause_ns;
};

struct tl_target {
	pid_t pid, ns_pid;
	const char *comm, *exe, *build_id;
	const char *ghc_version, *way;
	bool version_known, threaded, profiled, layout_checked;
	const char *found_suspend, *found_resume, *found_tick, *found_caps;
	uint64_t start_time_ns;
	uint32_t capabilities;
	uint64_t attach_ns;  /* CLOCK_MONOTONIC, when the probes were on */
	uint64_t attach_took_ns;
	const char *end;     /* "exited", "exec", "" while it lives */

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
	struct { const char *cause; uint64_t n; } lost[16];
	size_t n_lost;
	double lost_share;
	uint64_t probe_hits, bpf_ns, trap_ns_estimated, user_cpu_ns, max_rss_bytes, probes_paused_ns;
	bool bpf_ns_known;
	const char **missing;
	size_t n_missing;
};

struct tl_session {
	const char *version; /* of safescoped */
	const char *mode;    /* "pid", "system", … */
	uint64_t start_ns, end_ns;   /* CLOCK_MONOTONIC */
	uint64_t start_unix_ns;
	uint32_t frequency_hz;
	int exit_code;
};

struct timeline;

const struct tl_session *timeline__session(const struct timeline *tl);
size_t timeline__n_targets(const struct timeline *tl);
const struct tl_target *timeline__target(const struct timeline *tl, size_t i);
const struct tl_frame *timeline__frame(const struct timeline *tl, uint32_t index);
uint32_t timeline__n_frames(const struct timeline *tl);
struct tl_stack timeline__stack(const struct timeline *tl, uint32_t index);

#endif
