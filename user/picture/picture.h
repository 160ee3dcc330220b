/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * picture: a finished session as exporters, findings and tests read it: processes with their lanes,
 * calls, functions, collections, curves and findings. These are plain structs; everything they
 * point at belongs to the picture and lives as long as it does. A pointer whose count is 0 may be
 * NULL. Each field documents its value for "not known". make.h is for the rooms that build a
 * picture.
 *
 * What is exact and what is not: off-CPU intervals, recorded safe calls, and collections in the
 * thread that leads them have the boundaries that events gave them. The rest of the time on the CPU
 * is cut at the midpoints between samples, and a piece without any sample shows what is known at
 * its ends: slices are for drawing. Totals come only from rows, which are read from the ledger
 * (ledger/ledger.h).
 */
#ifndef SAFESCOPED_PICTURE_H
#define SAFESCOPED_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "heap.h"

/* ── lanes and their states ──────────────────────────────────────────────────────────────── */

enum lane_kind { LANE_CAPABILITY, LANE_THREAD, LANE_HASKELL, LANE_KINDS };

/* States of an OS thread. Their names in the report come from state__name. */
enum thread_state {
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
	ST_SAFE_CALL, /* from a log alone: whether the thread ran or was blocked is not known */
	ST_UNKNOWN,
	ST_MAX,
};

enum cap_state {
	CS_HASKELL,
	CS_UNSAFE_CALL,
	CS_PREEMPTED, /* its OS thread is runnable but not running */
	CS_GC,
	CS_RTS,
	CS_IDLE,
	CS_DISABLED,
	CS_UNKNOWN,
	CS_MAX,
};

/* States of a Haskell thread. */
enum haskell_state {
	HS_RUNNING,
	HS_UNSAFE_CALL,
	HS_SAFE_CALL,
	HS_RUNNABLE,
	HS_BLOCKED_MVAR,
	HS_BLOCKED_STM,
	HS_BLOCKED_BLACKHOLE,
	HS_BLOCKED_IO,
	HS_BLOCKED_DELAY,
	HS_BLOCKED_OTHER,
	HS_GC,
	HS_UNKNOWN,
	HS_MAX,
};

#define LANE_STATES ST_MAX /* no kind of lane has more */

/* The state's name and title; "unknown" if lanes of this kind have no such state. */
const char *state__name(enum lane_kind kind, unsigned state);  /* "cap_wait" */
const char *state__title(enum lane_kind kind, unsigned state); /* "waiting for a capability" */
/* True if the OS thread, the Haskell thread, or the capability's OS thread runs in this state. */
bool state__on_cpu(enum lane_kind kind, unsigned state);
/* True if nothing ran and nothing was waited for. */
bool state__is_idle(enum lane_kind kind, unsigned state);
unsigned state__count(enum lane_kind kind);

/*
 * Why a stack broke, by enum wire_cause: name ("fault") and title ("memory not readable", which is
 * also in its last frame: "[broken: memory not readable]"). NULL for a cause without a name.
 */
const char *broken__name(unsigned cause);
const char *broken__title(unsigned cause);

enum pic_frame_kind {
	TF_HASKELL,
	TF_FOREIGN, /* a foreign function, or C below one */
	TF_RTS,
	TF_GC,
	TF_KERNEL,
	TF_STATE, /* not code: "[safe call, blocked]" and the like */
	TF_MARK,  /* "[12 chunks left out]", "[truncated]", "[broken: memory not readable]" */
};

/* One interned frame. Equal frames have equal indices. */
struct pic_frame {
	const char *name;   /* as shown: "Main.fib"; `~` first if it is only the nearest symbol */
	const char *module; /* "" if none */
	const char *package;
	const char *file; /* groups colours: the module, else the library; "state" for states */
	const char *src; /* file:line or ""; not part of the identity, the first one seen is kept */
	enum pic_frame_kind kind;
	bool approximate;
};

/* True if the frame belongs to GHC's runtime: its C functions, or its Cmm code, which has the same
 * kind as Haskell code. */
bool picture__is_rts(enum pic_frame_kind kind, const char *package);

/* Where a piece of code is: in an executable mapping of a file. */
struct pic_place {
	uint64_t address;	     /* in the process */
	uint64_t start, end, offset; /* the mapping, and its offset in the file */
	const char *path;	     /* the file's path, as mapped by the process */
	const char *build_id;	     /* in hexadecimal; "": none */
};

/* One interned stack: frame indices, root first. Stack 0 is empty. */
struct pic_stack {
	const uint32_t *frames;
	uint32_t n;
};

#define NO_CAP 0xffff /* in a slice or span: no capability, or not known */

/* A part of a lane that looks the same throughout, for drawing. */
struct pic_slice {
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC; from a log alone: ns since the RTS started */
	uint64_t tso;		   /* id of the Haskell thread; 0: none, or not known */
	pid_t tid;		   /* the OS thread; 0: none, or not known */
	uint32_t stack;	  /* index of an interned stack; a thread's has the state as its leaf */
	uint32_t samples; /* samples, or cost-centre ticks, in this slice */
	uint16_t cap;	  /* the capability; NO_CAP: none */
	uint8_t state;	  /* one of the states of the lane's kind */
	uint8_t exact;	  /* both boundaries come from events rather than sampling */
};

/* A row of a lane's account. */
struct pic_row {
	uint64_t ns;
	uint64_t samples;
	uint64_t times, longest_ns; /* off the CPU: how many intervals, and the longest one */
	uint32_t stack;
	uint8_t state;
	bool on_cpu;
	bool unsampled; /* time not covered by any sample */
};

/* A thread's time off the CPU by what it waited for. */
struct pic_off_cpu {
	const char *reason; /* "futex", "epoll_wait", "capability 1", "sleep_c: nanosleep", … */
	uint64_t ns;
};

/* An OS thread, a capability or a Haskell thread. */
struct pic_lane {
	enum lane_kind kind;
	bool bound;   /* Haskell thread: bound to an OS thread */
	uint32_t cap; /* capability: its number */
	pid_t tid; /* OS thread; 0: this lane sums up `threads` threads that ended and have no lanes
		      of their own; it has no slices and is as long as all of them together */
	uint64_t tso;		   /* Haskell thread: its id */
	const char *name;	   /* OS thread: its name; Haskell thread: its label, "" if none */
	uint64_t threads;	   /* OS thread: how many threads it covers; else 1 */
	uint64_t start_ns, end_ns; /* wall time is end - start */
	uint64_t cpu_ns;	   /* OS thread; UINT64_MAX: not known */
	uint64_t states_ns[LANE_STATES]; /* they add up to end_ns - start_ns */
	uint32_t sampled_states;   /* a bit per state: some of the state's boundaries are sampled */
	uint64_t preempted_run_ns; /* capability: the part of CS_PREEMPTED amid Haskell code or
				      unsafe calls */
	/* OS thread: one of the runtime's own that does little but wait for work: the ticker, event
	 * managers, idle workers. These are sorted after all others. */
	bool housekeeping;
	/* OS thread: housekeeping, or busy for moments only */
	bool asleep;
	uint64_t short_calls; /* safe calls that are in the sums but have no slice of their own */
	const struct pic_slice *slices; /* disjoint, in time order, without gaps */
	size_t n_slices;
	const struct pic_row *rows; /* its account; the sums in all formats come from it */
	size_t n_rows;
	const struct pic_off_cpu *off_cpu; /* OS thread; descending by ns */
	size_t n_off_cpu;
	/* Neighbours that together span less than this were merged, as there were too many slices,
	 * or a piece this long was known too late to be drawn; 0: the slices show everything. */
	uint64_t merged_ns;
};

struct pic_lanes {
	const struct pic_lane *v;
	size_t n;
};

/* Time for which an OS thread ran or was kept from running, as opposed to sleeping or waiting for
 * something outside the program. */
uint64_t lane__busy_ns(const struct pic_lane *lane);

/* ── collections, marks, flows, counters ─────────────────────────────────────────────────── */

/* A collection whose start and end were both seen. Arrays of them are in time order. */
struct pic_gc_event {
	uint64_t start_ns, end_ns;
	uint64_t sync_ns;   /* from the request to the start, waiting for the capabilities;
			       UINT64_MAX: not known */
	uint64_t number;    /* GHC's count; UINT64_MAX: not known */
	int32_t generation; /* -1: not known */
	pid_t tid;	    /* the OS thread that led the collection */
	/*
	 * What the capability that this collection waited longest for did during that wait: for how
	 * long it ran Haskell code, most of it with haskell_stack, and for how long it was held
	 * without a CPU, outside unsafe calls.
	 */
	uint64_t haskell_ns, no_cpu_ns;
	uint32_t haskell_stack;
	uint16_t cap; /* NO_CAP: not known to have waited for one */
};

enum pic_mark_kind { MK_USER_MARKER, MK_USER_MESSAGE };

/* A point on the time axis, set by the program itself. Arrays of them are in time order. */
struct pic_mark {
	uint64_t ns;
	const char *text;
	uint64_t tso; /* 0: not known */
	uint32_t cap; /* UINT32_MAX: not known */
	uint8_t kind; /* enum pic_mark_kind */
};

/* A recorded safe call, from the capability that the thread left to the one it got back. */
struct pic_flow {
	uint64_t start_ns; /* the capability was left */
	uint64_t end_ns;   /* entry of resumeThread */
	uint64_t back_ns;  /* a capability is held again; 0: not seen */
	uint64_t tso;
	pid_t tid;
	uint32_t cap_from, cap_to; /* UINT32_MAX: not known */
	const char *function;
};

struct pic_point {
	uint64_t ns, value;
};

enum pic_counter_kind {
	TC_RUNNABLE,	 /* runnable Haskell threads, on all capabilities */
	TC_SAFE_CALLS,	 /* in flight */
	TC_HEAP,	 /* from the eventlog: heap size, live bytes, … */
	TC_HEAP_PROFILE, /* one band of a heap profile */
	TC_TICKY,
};

/* One curve. */
struct pic_counter {
	const char *name;
	const char *unit; /* "bytes", "threads", … */
	uint8_t kind;	  /* enum pic_counter_kind */
	const struct pic_point *points;
	size_t n_points;
	uint64_t max_value, last_value;
};

/* A part of its run that the program marked itself (START … STOP messages in the log). */
struct pic_window {
	const char *label;
	uint64_t count, total_ns, min_ns, max_ns, unfinished;
};

/* ── cost centres, findings, the eventlog ────────────────────────────────────────────────── */

struct pic_cost_centre {
	const char *label, *module, *src_loc;
	const char *kind; /* "program", "caf", "idle", "gc", "system", "overhead", … */
	uint64_t self_ticks, total_ticks;
	uint64_t self_bytes, total_bytes; /* allocated, estimated from samples; 0 if from a log */
	bool from_log;			  /* from an eventlog; else from the process's memory */
	bool from_samples; /* no tick of the RTS's timer was seen, so the profiler's samples were
			      counted */
};

/*
 * True for kinds that GHC's own reports exclude from the total (rts/ProfilerReport.c, ignoreCC):
 * runtime activity that belongs to no cost centre.
 */
bool cost_centre__is_overhead(const struct pic_cost_centre *centre);

/* A node of the tree of cost-centre stacks; parents come before their children. */
struct pic_cc_node {
	uint32_t centre; /* index into cost_centres */
	uint32_t parent; /* index of the parent node; UINT32_MAX: a root */
	uint32_t stack;	 /* as in pic_slice */
	uint64_t ticks, inherited_ticks;
};

/* A part of the session; end_ns 0: none. */
struct pic_moment {
	uint64_t start_ns, end_ns;
	const struct pic_lane *lane; /* the lane that it is in; NULL: no single one */
};

struct pic_finding {
	const char *id;		   /* "f1", …: unique in the session */
	const char *kind;	   /* "unsafe_call_held_up_gc", … */
	const char *text;	   /* one sentence, with its figures */
	const char *where;	   /* the place in the code; "" if none */
	uint64_t ns;		   /* the time it is about; findings are sorted by this */
	struct pic_moment longest; /* the longest part of that time, as far as slices show it */
};

struct pic_eventlog {
	bool known; /* an eventlog is in use */
	const char *path;
	uint64_t events, cost_centres, samples;
	int64_t offset_ns;	  /* CLOCK_MONOTONIC − the log's time */
	uint64_t offset_error_ns; /* UINT64_MAX: not known */
	uint64_t reaches_ns;	  /* session time up to which the log is complete */
	uint64_t damaged_bytes;
	double agreement_safe_calls, agreement_ticks, agreement_caps; /* < 0: not compared */
	double tick_centres_differ;				      /* < 0: not compared */
};

/* ── calls, functions, sums ──────────────────────────────────────────────────────────────── */

struct pic_call {
	const char *function; /* foreign function */
	const char *library;
	const char *caller; /* "Main.bar" */
	bool caller_approximate;
	const char *site; /* "FILE+0x123" */
	bool interruptible;
	uint64_t calls;	      /* finished calls */
	uint64_t wall_ns;     /* from the foreign function's start, as far as switches show it */
	uint64_t handover_ns; /* off the CPU before that, in suspendThread; not part of wall_ns */
	uint64_t cpu_ns, blocked_ns, cap_wait_ns;
	uint64_t cap_only_ns; /* the part of cap_wait_ns in which no CPU was lacking */
	uint64_t min_ns, p50_ns, p99_ns, max_ns; /* UINT64_MAX: none */
	double quantile_error;
	uint64_t open_at_start, open_at_end, abandoned;
	uint64_t open_wall_ns; /* the observed time of calls still open at the end; not part of
				  wall_ns */
	bool exact;
	double observed_share;
	bool called_back; /* Haskell code was seen running inside the call */
};

struct pic_unsafe {
	const char *function;
	const char *library;
	const char *caller;
	bool caller_approximate;
	uint64_t samples, cpu_ns, blocked_ns;
	uint64_t sleeps, longest_sleep_ns; /* the sleeps that add up to blocked_ns */
	uint64_t held_up_gc_ns; /* how long collections waited for it; UINT64_MAX: not known */
	uint64_t held_up_gcs, longest_held_ns; /* how many waited; the longest wait */
	struct pic_moment longest_held;	       /* that longest wait, as a whole */
	uint64_t held_caps; /* a bit for each capability in which that happened; 63: all others */
	uint32_t function_frame, caller_frame; /* UINT32_MAX: not known */
};

struct pic_function {
	const char *name; /* qualified name: "Main.fib" */
	const char *module;
	const char *file;    /* as in pic_frame */
	const char *package; /* "" or NULL: the program's own, or not known */
	enum pic_frame_kind kind;
	uint64_t self_samples, total_samples;
	uint64_t self_ns, total_ns; /* on CPU */
	bool approximate;
};

#define PIC_CAUSES 16

struct pic_quality {
	uint64_t samples, haskell_samples; /* haskell_samples: program counter in Haskell code */
	/* How the walks ended, disjoint from broken[]. elided: complete except for chunks left out;
	 * none: no walk. */
	uint64_t complete, elided, truncated, none;
	uint64_t gap;		   /* complete except for unknown C frames in between */
	uint64_t resynchronised;   /* of all samples */
	uint64_t haskell_complete; /* of haskell_samples: the walk reached STOP_FRAME at the end of
				      its STACK */
	/* in Haskell code before the runtime could be read; not counted in haskell_samples */
	uint64_t early;
	uint64_t broken[PIC_CAUSES]; /* by enum wire_cause */
};

/* Frame occurrences by the source of their names. */
struct pic_names {
	uint64_t ipe, dwarf, exact, nearest, description, module, strings, archive, none;
};

struct pic_gc {
	bool known;
	bool quiet; /* not known: its probes are on, and have reported nothing so far */
	uint64_t count, pause_ns, max_pause_ns; /* collections whose start and end were both seen */
	uint64_t wait_ns;			/* the threads' time in gc_wait, added up */
	/* The threads' CPU time in collections that had not yet begun, while the requesting thread
	 * waited for the capabilities. It is in the threads' rows as well. */
	const struct pic_row *sync_rows;
	size_t n_sync_rows;
	bool inferred; /* inferred from samples, as nothing marked the ends: pause_ns is an upper
			  bound; count and max_pause_ns are 0, not known */
	uint64_t observed_ns; /* inferred: how long the probes that mark the ends were on; the
				 collections of that time are in the target's gcs and in the next
				 two fields */
	uint64_t observed_count, observed_pause_ns;
	/*
	 * Only if not inferred, by the runtime's own count: how many collections ended unseen
	 * between those that were seen, and how many ended unseen in the process's life before the
	 * first seen one that has a number.
	 */
	uint64_t missed, before;
	/* the first and the last end seen that have the runtime's count; 0: none */
	uint64_t first_counted_ns, counted_ns;
	bool before_known; /* `before` is valid, or an earlier window has them */
	bool logged;	   /* they come from an eventlog, which has all of them */
};

/* Conditions that held in several lanes at the same time. */
struct pic_overlaps {
	uint64_t active_ns; /* at least one capability had something to do */
	/* Threads waited for a capability, in thread-time, for none of these reasons: a collection,
	 * an unsafe call that slept, a capability whose thread had no CPU. */
	uint64_t cap_wait_ns;
	/* A capability was idle while a thread waited for another one, for longer than a wake-up
	 * takes, and no capability's thread wanted a CPU. */
	uint64_t idle_wait_ns;
	/* Ticks at which a capability was idle while Haskell threads were queued at others, and no
	 * capability's thread wanted a CPU; the largest number of queued threads. */
	uint64_t starved_ticks, starved_most;
};

/* ── a process, the session ──────────────────────────────────────────────────────────────── */

/* Which +RTS options the program accepts, as set by ghc's -rtsopts. */
enum pic_rts_opts {
	RTS_OPTS_UNKNOWN,
	RTS_OPTS_NONE,
	RTS_OPTS_IGNORE,
	RTS_OPTS_IGNORE_ALL,
	RTS_OPTS_SOME, /* only harmless ones, which are very few */
	RTS_OPTS_ALL,
};

struct pic_target {
	pid_t pid, ns_pid;
	const char *comm, *exe, *build_id;
	/*
	 * Where it runs: the container's id, the Kubernetes pod's uid, the systemd unit
	 * ("nginx.service"), the path of the control group; "" or NULL: none, or not known. A unit
	 * of a user's own manager, or inside a container, follows a slash
	 * ("user@1000.service/app.service").
	 */
	const char *container, *pod, *service, *cgroup;
	const char *ghc_version, *way;
	bool version_known, threaded, profiled, layout_checked;
	enum pic_rts_opts rts_opts;
	const char *found_suspend, *found_resume, *found_tick, *found_caps;
	uint64_t start_time_ns;
	uint32_t capabilities;
	uint64_t attach_ns; /* CLOCK_MONOTONIC, when the probes were attached */
	uint64_t attach_took_ns;
	const char *end; /* "exited", "killed", "exec", "left"; "" while it lives */
	int exit_code;	 /* if it exited; -1: not known */
	int exit_signal; /* the signal that killed it; 0: none, or not known */

	struct pic_lanes lanes[LANE_KINDS]; /* OS threads: most non-idle wall time first;
					       capabilities: by number; Haskell threads, only on
					       request: most running time first */
	const struct pic_call *calls;	    /* descending by wall time */
	size_t n_calls;
	const struct pic_unsafe *unsafe_calls; /* descending by CPU + blocked time */
	size_t n_unsafe_calls;
	const struct pic_function *functions; /* descending by self samples */
	size_t n_functions;
	struct pic_quality quality;
	struct pic_names names;	     /* of all stacks */
	struct pic_names leaf_names; /* of the samples' leaf frames: what ran */
	struct pic_gc gc;
	struct pic_alloc alloc;
	struct pic_heap heap;
	struct pic_census census;

	const struct pic_gc_event *gcs;
	size_t n_gcs;
	const struct pic_mark *marks;
	size_t n_marks;
	const struct pic_flow *flows;
	size_t n_flows;
	const struct pic_counter *counters;
	size_t n_counters;
	const struct pic_window *windows;
	size_t n_windows;
	const struct pic_cost_centre *cost_centres; /* descending by self ticks */
	size_t n_cost_centres;
	const struct pic_cc_node *cc_nodes;
	size_t n_cc_nodes;
	const struct pic_finding *findings;
	size_t n_findings;
	struct pic_eventlog eventlog;
	uint64_t ticks;
	struct pic_overlaps overlaps;
	uint64_t tick_ns; /* between ticks; 0: not known */

	/* losses by cause, and the profiler's own cost: filled in by the session before export */
	struct {
		const char *cause;
		uint64_t n;
	} lost[16];
	size_t n_lost;
	double lost_share;
	uint64_t probe_hits, bpf_ns, trap_ns_estimated, user_cpu_ns, max_rss_bytes,
		probes_paused_ns;
	uint64_t own_bpf_ns; /* becomes bpf_ns if there are several targets */
	bool bpf_ns_known, own_bpf_ns_known;
	bool calls_uncounted;	   /* a capture broke off; calls are missing */
	bool pid_reused;	   /* another target has had its pid since */
	uint64_t held_up_until_ns; /* all probes were off until then; 0: they never were */
	bool calls_missed; /* it started in the session and may have run before the probes came */
	bool cost_known,   /* false: the session's end is not known, and neither are the losses */
		lost_unknown; /* a capture is damaged: what that took is in no count */
	const char **missing; /* sentences; PIC_OF_ALL at the end: about the whole session */
	size_t n_missing;
};

#define PIC_OF_ALL " (in all processes together)"

/*
 * A name for the process's program that all its processes share and no other program has: the
 * process's own name (comm); the executable's if comm is merely its beginning, cut at 15 bytes by
 * the kernel, or if there is no comm. "": neither is known.
 */
struct pic_program {
	char s[256];
};
struct pic_program pic_target__program(const struct pic_target *target);

/* The number of collections in the session that the sums leave out; PIC_GCS_UNKNOWN: not known.
 * Meaningless if the collections are inferred. */
#define PIC_GCS_UNKNOWN UINT64_MAX
uint64_t pic_target__gcs_missed(const struct pic_target *target);

/* Ended processes of one program of which only sums are kept. All other processes are targets. */
struct pic_ended {
	const char *exe; /* "": processes of all programs beyond the limit */
	uint64_t processes, threads;
	uint64_t states_ns[LANE_STATES]; /* of all their OS threads */
	uint64_t cpu_ns, samples;
	uint64_t safe_calls, safe_call_ns; /* finished calls and their total duration */
	uint64_t gcs, gc_pause_ns;	   /* collections whose start and end were both seen */
};

/* A server that this session's pictures are pushed to, with counts since the session began. */
struct pic_push {
	const char *url;    /* scheme, host and port */
	uint64_t delivered; /* requests that it accepted */
	uint64_t failures;  /* failed attempts, which were retried */
	uint64_t refused;   /* requests that it rejected for good */
	uint64_t rejected;  /* profiles in delivered requests that it did not accept */
	/* oldest requests, dropped when the queue was full; pictures that could not be queued */
	uint64_t dropped;
	uint64_t queued; /* requests waiting in the queue */
};

struct pic_session {
	const char *version;	   /* of safescoped */
	const char *mode;	   /* "pid", "system", … */
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
	uint64_t start_unix_ns;
	uint32_t frequency_hz; /* samples per second on a busy CPU, rounded; 0: no sampling */
	uint64_t period_ns;    /* between two samples */
	int exit_code;
	uint32_t window_no; /* the number of earlier windows in the session */
	/* The kernel side's run time if there are several targets: it cannot be divided among them,
	 * so theirs are not known. */
	uint64_t bpf_ns;
	bool bpf_ns_known;
	const struct pic_push *pushes;
	size_t n_pushes;
	const struct pic_ended *ended; /* in order of each program's first end */
	size_t n_ended;
};

/* ── readers ─────────────────────────────────────────────────────────────────────────────── */

struct picture;

const struct pic_session *picture__session(const struct picture *pic);
size_t picture__n_targets(const struct picture *pic);
/* NULL if `i` is out of range. */
const struct pic_target *picture__target(const struct picture *pic, size_t i);
/* NULL if `index` is not a frame's; UINT32_MAX never is. */
const struct pic_frame *picture__frame(const struct picture *pic, uint32_t index);
uint32_t picture__n_frames(const struct picture *pic);
/* Where the frame was first seen, as the address of an instruction in it; NULL: not in a file, or
 * not known. */
const struct pic_place *picture__place(const struct picture *pic, uint32_t frame);
/* An empty stack if `index` is not a stack's. */
struct pic_stack picture__stack(const struct picture *pic, uint32_t index);

#endif
