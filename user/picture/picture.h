/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * picture: a finished session as exporters, findings and tests read it: processes with their lanes,
 * calls, functions, collections, curves and findings. Plain structs; all that they point at belongs
 * to the picture and lives as long as it. A pointer with a count of 0 may be NULL. What is not
 * known is said so field by field. make.h is for those who make one.
 *
 * What is exact and what is not. Off-CPU intervals, recorded safe calls and a collection in the
 * thread that leads it have the boundaries that events gave them. The rest of the time on the CPU
 * is cut at the midpoints between samples, and a piece without any sample shows what is known at
 * its ends: slices are for drawing. Totals come from rows, which are read from the ledger
 * (ledger/ledger.h), and from nothing else.
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

/* Of an OS thread. Names as in the contract (state__name). */
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
	ST_SAFE_CALL, /* a log alone: it does not say whether the thread ran or was blocked */
	ST_UNKNOWN,
	ST_MAX,
};

enum cap_state {
	CS_HASKELL,
	CS_UNSAFE_CALL,
	CS_PREEMPTED, /* its OS thread is runnable, not running */
	CS_GC,
	CS_RTS,
	CS_IDLE,
	CS_DISABLED,
	CS_UNKNOWN,
	CS_MAX,
};

/* Of a Haskell thread. */
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

#define LANE_STATES ST_MAX /* no kind has more */

/* Of the kind's states; "unknown" for others. */
const char *state__name(enum lane_kind kind, unsigned state);  /* "cap_wait" */
const char *state__title(enum lane_kind kind, unsigned state); /* "waiting for a capability" */
/* The OS thread, or the Haskell thread, or one for the capability, runs. */
bool state__on_cpu(enum lane_kind kind, unsigned state);
/* Nothing ran and nothing was waited for. */
bool state__is_idle(enum lane_kind kind, unsigned state);
unsigned state__count(enum lane_kind kind);

/*
 * Why a stack broke, by enum wire_cause: "fault", and "memory not readable", which its last frame
 * has too ("[broken: memory not readable]"); NULL for a cause without a name.
 */
const char *broken__name(unsigned cause);
const char *broken__title(unsigned cause);

enum pic_frame_kind {
	TF_HASKELL,
	TF_FOREIGN, /* a foreign function, or C below one */
	TF_RTS,
	TF_GC,
	TF_KERNEL,
	TF_STATE, /* "[safe call, blocked]" and the like: no code */
	TF_MARK,  /* "[12 chunks left out]", "[truncated]", "[broken: memory not readable]" */
};

/* One interned frame. Equal frames have equal indices. */
struct pic_frame {
	const char
		*name; /* as shown: "Main.fib"; `~` in front where it is only the nearest symbol */
	const char *module; /* "" if none */
	const char *package;
	const char
		*file;	 /* what groups colours: the module, else the library; for states "state" */
	const char *src; /* file:line or "" (no part of the identity: the first one seen) */
	enum pic_frame_kind kind;
	bool approximate;
};

/* Whether it is GHC's runtime's: its functions in C, and its code in Cmm, which is of the kind that
 * Haskell code is. */
bool picture__is_rts(enum pic_frame_kind kind, const char *package);

/* Where code is: in an executable mapping of a file. */
struct pic_place {
	uint64_t address;	     /* in the process */
	uint64_t start, end, offset; /* the mapping, and where it begins in the file */
	const char *path;	     /* the file's, as the process maps it */
	const char *build_id;	     /* in hexadecimal; "": it has none */
};

/* One interned stack: frame indices, root first. Stack 0 is empty. */
struct pic_stack {
	const uint32_t *frames;
	uint32_t n;
};

#define NO_CAP 0xffff /* in a slice: no capability */

/* A part of a lane with one face, for drawing. */
struct pic_slice {
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC; of a log alone: ns since the RTS started */
	uint64_t tso;		   /* id of the Haskell thread; 0: none, or not known */
	pid_t tid;		   /* the OS thread; 0: none, or not known */
	uint32_t stack;	  /* index of an interned stack; a thread's has its state at the leaf */
	uint32_t samples; /* samples, or cost-centre ticks, that fell into it */
	uint16_t cap;	  /* the capability; NO_CAP: none */
	uint8_t state;	  /* of the lane's kind */
	uint8_t exact;	  /* both boundaries come from events, not from sampling */
};

/* A line of a lane's account. */
struct pic_row {
	uint64_t ns;
	uint64_t samples;
	uint64_t times, longest_ns; /* off the CPU: how often it came to that, and the longest */
	uint32_t stack;
	uint8_t state;
	bool on_cpu;
	bool unsampled; /* time that no sample stands for */
};

/* A thread's time off the CPU by what it waited for. */
struct pic_off_cpu {
	const char *reason; /* "futex", "epoll_wait", "capability 1", "sleep_c: nanosleep", … */
	uint64_t ns;
};

/* An OS thread, a capability or a Haskell thread. */
struct pic_lane {
	enum lane_kind kind;
	bool bound;   /* Haskell thread: to an OS thread */
	uint32_t cap; /* capability: its number */
	pid_t tid;    /* OS thread; 0: of `threads` threads that ended and have no lanes of their
			 own: without slices, and as long as all of them together */
	uint64_t tso; /* Haskell thread: its id */
	const char *name;	   /* OS thread: its name; Haskell thread: its label, "" if none */
	uint64_t threads;	   /* OS thread: how many it is of; else 1 */
	uint64_t start_ns, end_ns; /* wall time: end - start */
	uint64_t cpu_ns;	   /* OS thread; UINT64_MAX: not known */
	uint64_t states_ns[LANE_STATES]; /* sums to end_ns - start_ns */
	uint32_t sampled_states;	 /* bit per state: some of its boundaries are sampled */
	uint64_t preempted_run_ns; /* capability: of CS_PREEMPTED, amid Haskell code or unsafe calls
				    */
	/* OS thread: the runtime's own, which hardly does anything but wait for something to do:
	   the ticker, event managers, idle workers. They come after all others. */
	bool housekeeping;
	/* OS thread: that one, or busy for moments only */
	bool asleep;
	uint64_t short_calls;		/* safe calls in the sums that have no slice of their own */
	const struct pic_slice *slices; /* disjoint, in time order, without a gap */
	size_t n_slices;
	const struct pic_row *rows; /* its account: the sums of all formats come from it */
	size_t n_rows;
	const struct pic_off_cpu *off_cpu; /* OS thread; by ns, descending */
	size_t n_off_cpu;
	/* So many slices that neighbours shorter than this became one, or something as long was
	 * known too late to be drawn; 0: the slices show all. */
	uint64_t merged_ns;
};

struct pic_lanes {
	const struct pic_lane *v;
	size_t n;
};

/* Time in which an OS thread ran, or was kept from it: not that it slept, or waited for the world.
 */
uint64_t lane__busy_ns(const struct pic_lane *lane);

/* ── collections, marks, flows, counters ─────────────────────────────────────────────────── */

/* One collection whose both ends were seen, in time order. */
struct pic_gc_event {
	uint64_t start_ns, end_ns;
	uint64_t sync_ns;   /* from the request to the start: the wait for the capabilities;
			       UINT64_MAX: not known */
	uint64_t number;    /* GHC's count; UINT64_MAX: not known */
	int32_t generation; /* -1: not known */
	pid_t tid;	    /* the OS thread that led it */
	/*
	 * What the capability that it waited for most did meanwhile: it ran Haskell code, longest
	 * with this stack, or was held without a CPU, outside of unsafe calls.
	 */
	uint64_t haskell_ns, no_cpu_ns;
	uint32_t haskell_stack;
	uint16_t cap; /* NO_CAP: it is not known to have waited for one */
};

enum pic_mark_kind { MK_USER_MARKER, MK_USER_MESSAGE };

/* A point on the time axis that the program itself set, in time order. */
struct pic_mark {
	uint64_t ns;
	const char *text;
	uint64_t tso; /* 0: not known */
	uint32_t cap; /* UINT32_MAX: not known */
	uint8_t kind; /* enum pic_mark_kind */
};

/* A recorded safe call, from the capability that was left to the one that was got back. */
struct pic_flow {
	uint64_t start_ns; /* the capability was left */
	uint64_t end_ns;   /* resumeThread's entry */
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
	TC_RUNNABLE,	 /* Haskell threads that could run, over all capabilities */
	TC_SAFE_CALLS,	 /* in flight */
	TC_HEAP,	 /* of the eventlog: heap size, live bytes, … */
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

/* A part of the program that it marked itself (START … STOP messages of the log). */
struct pic_window {
	const char *label;
	uint64_t count, total_ns, min_ns, max_ns, unfinished;
};

/* ── cost centres, findings, the eventlog ────────────────────────────────────────────────── */

struct pic_cost_centre {
	const char *label, *module, *src_loc;
	const char *kind; /* "program", "caf", "idle", "gc", "system", "overhead", … */
	uint64_t self_ticks, total_ticks;
	uint64_t self_bytes, total_bytes; /* allocated, by samples; 0 of a log */
	bool from_log;			  /* else from the process's memory */
	bool from_samples; /* no tick of the RTS's timer was seen: samples of ours were counted */
};

/*
 * Of a kind that GHC's own reports leave out of the whole (rts/ProfilerReport.c, ignoreCC):
 * nobody's cost centre, but what the runtime does.
 */
bool cost_centre__is_overhead(const struct pic_cost_centre *centre);

/* A node of the tree of cost-centre stacks; parents come before their children. */
struct pic_cc_node {
	uint32_t centre; /* index into cost_centres */
	uint32_t parent; /* UINT32_MAX: a root */
	uint32_t stack;	 /* as in pic_slice */
	uint64_t ticks, inherited_ticks;
};

/* A part of the session; end_ns 0: there is none. */
struct pic_moment {
	uint64_t start_ns, end_ns;
	const struct pic_lane *lane; /* where; NULL: it is no single one's */
};

struct pic_finding {
	const char *id;		   /* "f1", …: one of a kind in the session */
	const char *kind;	   /* "unsafe_call_held_up_gc", … */
	const char *text;	   /* one sentence, with its numbers */
	const char *where;	   /* the place in the code; "" if none */
	uint64_t ns;		   /* the time it is about: findings are sorted by it */
	struct pic_moment longest; /* the longest part of that, as far as slices show it */
};

struct pic_eventlog {
	bool known; /* there is one in use */
	const char *path;
	uint64_t events, cost_centres, samples;
	int64_t offset_ns;	  /* CLOCK_MONOTONIC − the log's time */
	uint64_t offset_error_ns; /* UINT64_MAX: not known */
	uint64_t reaches_ns;	  /* session time up to which the log was complete */
	uint64_t damaged_bytes;
	double agreement_safe_calls, agreement_ticks, agreement_caps; /* < 0: not compared */
	double tick_centres_differ;				      /* < 0: not compared */
};

/* ── calls, functions, sums ───────────────────────────────────────────────────────────────── */

struct pic_call {
	const char *function; /* foreign function */
	const char *library;
	const char *caller; /* "Main.bar" */
	bool caller_approximate;
	const char *site; /* "FILE+0x123" */
	bool interruptible;
	uint64_t calls;	  /* finished */
	uint64_t wall_ns; /* from the foreign function's begin, as far as context switches show */
	uint64_t handover_ns; /* off the CPU before that, in suspendThread; not in wall_ns */
	uint64_t cpu_ns, blocked_ns, cap_wait_ns;
	uint64_t cap_only_ns; /* of cap_wait_ns in which a CPU was not what they lacked */
	uint64_t min_ns, p50_ns, p99_ns, max_ns; /* UINT64_MAX: none */
	double quantile_error;
	uint64_t open_at_start, open_at_end, abandoned;
	uint64_t open_wall_ns; /* calls open at the end: what the session saw; not in wall_ns */
	bool exact;
	double observed_share;
	bool called_back; /* Haskell code was seen to run inside of it */
};

struct pic_unsafe {
	const char *function;
	const char *library;
	const char *caller;
	bool caller_approximate;
	uint64_t samples, cpu_ns, blocked_ns;
	uint64_t sleeps, longest_sleep_ns; /* what blocked_ns is made of */
	uint64_t held_up_gc_ns; /* collections waited so long for it; UINT64_MAX: not known */
	uint64_t held_up_gcs, longest_held_ns; /* so many did; in one of them */
	struct pic_moment longest_held;	       /* the whole wait of that one */
	uint64_t held_caps; /* a bit for each capability in which they did; 63: all others */
	uint32_t function_frame, caller_frame; /* UINT32_MAX: not known */
};

struct pic_function {
	const char *name; /* qualified: "Main.fib" */
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
	uint64_t samples, haskell_samples; /* the latter: program counter in Haskell code */
	/* how they ended, disjoint with broken[]; elided: complete, but for chunks left out; none:
	 * no walk */
	uint64_t complete, elided, truncated, none;
	uint64_t gap;		   /* complete, but for C frames between that are not known */
	uint64_t resynchronised;   /* of all */
	uint64_t haskell_complete; /* of haskell_samples: reached STOP_FRAME at its STACK's end */
	/* in Haskell code before the runtime could be read; none of haskell_samples */
	uint64_t early;
	uint64_t broken[PIC_CAUSES]; /* by enum wire_cause */
};

/* Frames, each as often as it occurs, by where their names came from. */
struct pic_names {
	uint64_t ipe, dwarf, exact, nearest, description, module, strings, archive, none;
};

struct pic_gc {
	bool known;
	uint64_t count, pause_ns, max_pause_ns; /* of collections whose both ends were seen */
	uint64_t wait_ns;			/* the threads' time in gc_wait, summed */
	/* The threads' CPU time in collections that had not begun: whoever asked for them waited
	 * for the capabilities. It is in the threads' rows, too. */
	const struct pic_row *sync_rows;
	size_t n_sync_rows;
	bool inferred; /* from samples: nothing marked the ends. pause_ns is how long they took at
			  most; count and max_pause_ns are 0, not known */
	uint64_t observed_ns; /* inferred: how long the marks were there; what there was of
				 collections meanwhile is in the target's gcs, and in these two */
	uint64_t observed_count, observed_pause_ns;
	/* Not inferred, by the runtime's own count of them: how many ended among those that were
	 * seen and were not, and how many that were not before the first one of them that has a
	 * number, in the process's life. */
	uint64_t missed, before;
	uint64_t counted_ns; /* the last end that has that count; 0: none */
	bool before_known;   /* or they are an earlier window's */
	bool logged;	     /* they are an eventlog's, which has them all */
};

/* What was so at the same time in several lanes. */
struct pic_overlaps {
	uint64_t active_ns; /* a capability had something to do */
	/* A thread waited for a capability (times the threads that did), and none of these was the
	 * reason: a collection, an unsafe call that slept, a capability whose thread had no CPU. */
	uint64_t cap_wait_ns;
	/* A capability was idle while a thread waited for another one for longer than it takes to
	 * wake it, and no capability's thread wanted a CPU. */
	uint64_t idle_wait_ns;
	/* Ticks at which a capability was idle while Haskell threads were queued at others, and no
	 * capability's thread wanted a CPU; how many were queued at most. */
	uint64_t starved_ticks, starved_most;
};

/* ── a process, the session ───────────────────────────────────────────────────────────────── */

/* Which +RTS options the program takes: as ghc's -rtsopts has it. */
enum pic_rts_opts {
	RTS_OPTS_UNKNOWN,
	RTS_OPTS_NONE,
	RTS_OPTS_IGNORE,
	RTS_OPTS_IGNORE_ALL,
	RTS_OPTS_SOME, /* only what can do no harm: hardly any */
	RTS_OPTS_ALL,
};

struct pic_target {
	pid_t pid, ns_pid;
	const char *comm, *exe, *build_id;
	/*
	 * Where it runs: the container's id, the Kubernetes pod's uid, systemd's name of the
	 * service ("nginx.service"), the path of its control group; "" or NULL: none, or not known.
	 * What a user has himself, or is within a container, comes after a slash
	 * ("user@1000.service/app.service").
	 */
	const char *container, *pod, *service, *cgroup;
	const char *ghc_version, *way;
	bool version_known, threaded, profiled, layout_checked;
	enum pic_rts_opts rts_opts;
	const char *found_suspend, *found_resume, *found_tick, *found_caps;
	uint64_t start_time_ns;
	uint32_t capabilities;
	uint64_t attach_ns; /* CLOCK_MONOTONIC, when the probes were on */
	uint64_t attach_took_ns;
	const char *end; /* "exited", "killed", "exec", "left", "" while it lives */
	int exit_code;	 /* of one that exited; -1: not known */
	int exit_signal; /* that killed it; 0: none, or not known */

	struct pic_lanes lanes[LANE_KINDS]; /* OS threads: most non-idle wall time first;
					       capabilities by number; Haskell threads, only when
					       asked for: most running time first */
	const struct pic_call *calls;	    /* by wall time, descending */
	size_t n_calls;
	const struct pic_unsafe *unsafe_calls; /* by cpu + blocked time, descending */
	size_t n_unsafe_calls;
	const struct pic_function *functions; /* by self samples, descending */
	size_t n_functions;
	struct pic_quality quality;
	struct pic_names names;	     /* of all stacks */
	struct pic_names leaf_names; /* of the samples' leaves: what ran */
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
	const struct pic_cost_centre *cost_centres; /* by self ticks, descending */
	size_t n_cost_centres;
	const struct pic_cc_node *cc_nodes;
	size_t n_cc_nodes;
	const struct pic_finding *findings;
	size_t n_findings;
	struct pic_eventlog eventlog;
	uint64_t ticks;
	struct pic_overlaps overlaps;
	uint64_t tick_ns; /* between ticks; 0: not known */

	/* losses by cause, own cost: filled in by the session before export */
	struct {
		const char *cause;
		uint64_t n;
	} lost[16];
	size_t n_lost;
	double lost_share;
	uint64_t probe_hits, bpf_ns, trap_ns_estimated, user_cpu_ns, max_rss_bytes,
		probes_paused_ns;
	bool bpf_ns_known, calls_uncounted; /* calls without a record, where a capture breaks off */
	uint64_t
		held_up_until_ns; /* until then all probes were off for a while; 0: they were not */
	bool calls_missed; /* it began in the session, and may have worked before the probes came */
	bool cost_known; /* false: a session whose end is not known; losses are not known either */
	const char **missing; /* sentences; what ends with PIC_OF_ALL is the session's, in all */
	size_t n_missing;
};

#define PIC_OF_ALL " (in all processes together)"

/*
 * What its program is called where that is to be one name of all its processes and no other's: its
 * own name, but the executable's where the former is no more than the beginning of that, which the
 * kernel cuts at 15 bytes; the executable's if it has none. "": neither is known.
 */
struct pic_program {
	char s[256];
};
struct pic_program pic_target__program(const struct pic_target *target);

/* Collections of the session that are not in its sums; PIC_GCS_UNKNOWN: nobody knows how many, if
 * any. Only if they are not inferred. */
#define PIC_GCS_UNKNOWN UINT64_MAX
uint64_t pic_target__gcs_missed(const struct pic_target *target);

/* Processes of one program that ended, and of which only sums are kept; see `targets` for others.
 */
struct pic_ended {
	const char *exe; /* "": of more programs than are kept apart */
	uint64_t processes, threads;
	uint64_t states_ns[LANE_STATES]; /* of their OS threads */
	uint64_t cpu_ns, samples;
	uint64_t safe_calls, safe_call_ns; /* finished, and how long they took */
	uint64_t gcs, gc_pause_ns;	   /* of those whose both ends were seen */
};

/* A server that this session's pictures are pushed to, and what became of them since it began. */
struct pic_push {
	const char *url;    /* scheme, host and port */
	uint64_t delivered; /* requests that it took */
	uint64_t failures;  /* attempts that did not succeed, and were made again */
	uint64_t refused;   /* requests that it will never take */
	uint64_t rejected;  /* profiles in delivered requests that it did not take */
	uint64_t dropped;   /* requests that were too old when the queue was full */
	uint64_t queued;    /* requests that wait */
};

struct pic_session {
	const char *version;	   /* of safescoped */
	const char *mode;	   /* "pid", "system", … */
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
	uint64_t start_unix_ns;
	uint32_t frequency_hz; /* of samples on a busy CPU, rounded; 0: there is none */
	uint64_t period_ns;    /* between two of them */
	int exit_code;
	uint32_t window_no; /* how many windows of the session were before this one */
	/* The kernel side's run time, when there are several targets: which of them it was for
	 * cannot be found out, so that theirs are not known. */
	uint64_t bpf_ns;
	bool bpf_ns_known;
	const struct pic_push *pushes;
	size_t n_pushes;
	const struct pic_ended *ended; /* in the order in which the first of each ended */
	size_t n_ended;
};

/* ── readers ─────────────────────────────────────────────────────────────────────────────── */

struct picture;

const struct pic_session *picture__session(const struct picture *pic);
size_t picture__n_targets(const struct picture *pic);
/* NULL beyond the last one. */
const struct pic_target *picture__target(const struct picture *pic, size_t i);
/* NULL for an index that no frame has, UINT32_MAX for one. */
const struct pic_frame *picture__frame(const struct picture *pic, uint32_t index);
uint32_t picture__n_frames(const struct picture *pic);
/* Where the frame was first seen, as an instruction of it; NULL: in no file, or not known. */
const struct pic_place *picture__place(const struct picture *pic, uint32_t frame);
/* An empty one for an index that no stack has. */
struct pic_stack picture__stack(const struct picture *pic, uint32_t index);

#endif
