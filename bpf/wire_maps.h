/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Keys and values of the maps that the kernel side and user space share. Included by wire.h, which
 * has the rules for all of them.
 */
#ifndef SAFESCOPED_WIRE_MAPS_H
#define SAFESCOPED_WIRE_MAPS_H

#include "wire.h"

/* Offsets into the structs of one GHC's runtime, in bytes (from the layout table). */
struct wire_layout {
	__u16 cap_r; /* Capability.r, which BaseReg (r13) points to */
	__u16 cap_no;
	__u16 cap_running_task;
	__u16 cap_in_haskell;
	__u16 cap_disabled;
	__u16 cap_current_tso; /* Capability.r.rCurrentTSO */
	__u16 cap_cccs;	       /* Capability.r.rCCCS */
	__u16 task_id;
	__u16 task_cap;
	__u16 task_incall;
	__u16 incall_suspended_tso;
	__u16 incall_suspended_cap;
	__u16 incall_prev_stack;
	__u16 incall_task;
	__u16 tso_stackobj;
	__u16 tso_why_blocked;
	__u16 tso_flags;
	__u16 tso_id;
	__u16 tso_bound;
	__u16 tso_cccs;	  /* StgTSO.prof.cccs; 0 if not profiled */
	__u16 stack_size; /* StgStack.stack_size, u32, in words */
	__u16 stack_sp;
	__u16 stack_stack; /* StgStack.stack */
	__u16 bco_bitmap;
	__u16 updframe_updatee;
	__u8 tso_id_size;  /* 4 or 8 */
	__u8 tso_why_size; /* 2 or 4 */
	__u16 cap_n_run_queue;
	__u16 alt_task_incall; /* unconfirmed targets: alternative offset of task_incall; 0: none */
	__u16 tso_label;       /* 0: not in this release */
	/* for allocation; 0: not confirmed, and not used */
	__u16 cap_nursery;	   /* Capability.r.rNursery, then rCurrentNursery, rCurrentAlloc */
	__u16 cap_run_queue;	   /* Capability.run_queue_hd, followed by run_queue_tl */
	__u16 cap_total_allocated; /* in words */
};
WIRE_ASSERT_SIZE(struct wire_layout, 64);

/*
 * User space counts as held up if its loop has not turned for this long. Slightly less than the
 * keeper's timeout (user/kernel/keeper_child.c), so that a call that starts while the probes are
 * being removed is not taken for one whose whole course was seen.
 */
#define WIRE_HELD_UP_NS 1900000000ULL

enum wire_target_flag {
	WIRE_TARGET_THREADED = 1,      /* my_task is thread-local */
	WIRE_TARGET_PROFILED = 2,      /* 24-byte closure headers, CCS */
	WIRE_TARGET_CAPS_ARRAY = 4,    /* `capabilities` is the array, not a pointer to it */
	WIRE_TARGET_UPDATEES = 8,      /* put WIRE_FRAME_UPDATEE frames after update frames */
	WIRE_TARGET_PROBES_OFF = 16,   /* call probes are off at present: a running thread may start
					  and end calls unseen */
	WIRE_TARGET_UNCONFIRMED = 32,  /* the runtime may not be initialised yet: calls are counted
					  and threads whose structures prove the layout are read;
					  everything else waits for the confirmation */
	WIRE_TARGET_ARMED = 64,	       /* a child before its exec: the entry survives the exec */
	WIRE_TARGET_TICK_THREAD = 256, /* ticks by the timer thread: the handler has no probe */
	WIRE_TARGET_CALLED = 128,      /* WIRE_READY was sent; set by the probe program */
	/* Which probes are the target's own. The shared ones, attached for all processes of the
	 * file on behalf of other targets, do not count for it. */
	WIRE_TARGET_OWN_SUSPEND = 512,
	WIRE_TARGET_OWN_RESUME = 1024,
	WIRE_TARGET_OWN_TICK = 2048,
	WIRE_TARGET_OWN_GC_SYNC = 4096,
	WIRE_TARGET_OWN_GC_START = 8192,
	WIRE_TARGET_OWN_GC_END = 16384,
};

/* Cookie of a probe that belongs to a single process; 0: a probe shared by all that map the
 * file. */
#define WIRE_PROBE_OWN 1

/* What user space puts into `targets`. A field that is 0 is not known and not used. */
struct wire_target {
	struct wire_layout layout;
	__u32 flags;		 /* enum wire_target_flag */
	__s32 my_task_tls;	 /* threaded: my_task's offset from the thread's fs base, or … */
	__u64 main_cap;		 /* non-threaded: the one Capability */
	__u64 capabilities;	 /* address of the symbol */
	__u64 n_capabilities;	 /* address of the symbol */
	__u64 stgrun_ret;	 /* return address of the call to StgRun in schedule() */
	__u64 call_record_ns;	 /* shorter safe calls are only counted */
	__u64 off_record_ns;	 /* shorter off-CPU intervals carry no stack */
	__u64 start_boottime_ns; /* start time of the process: detects a reused PID */
	__u64 stats; /* address of the symbol: RTSStats, whose first field is the u32 `gcs` */
	__u32 epoch; /* 1 once the call probes are on, incremented each time they come back on; 0:
			they have not been on yet */
	__u32 my_task_module; /* … if not 0: the offset into this block of the thread's DTV */
	__u32 gct_clock;      /* gc_thread's offset of gc_sync_start_elapsed, gc_start_elapsed */
	__u32 user;	      /* slot in `users` of the user that the process is accounted to */
};
WIRE_ASSERT_SIZE(struct wire_target, 152);

/* Value of `targets`, keyed by tgid: also has what only the kernel side uses, which is 0 whenever
 * user space writes the entry. */
struct wire_target_entry {
	struct wire_target t;
	__u64 samples;	 /* taken by the sampler; counted only if the number of stacks follows it */
	__u64 preempted; /* samples already used up by stacks of preempted threads */
};
WIRE_ASSERT_SIZE(struct wire_target_entry, 168);

/* Entries of the maps that all targets share; see struct wire_user. */
#define WIRE_MAX_TARGETS 4096
#define WIRE_MAX_THREADS 16384
#define WIRE_MAX_SITES	 8192
#define WIRE_MAX_OPEN	 65536

/*
 * The one rule by which users share a limited resource (base/shares.h in user/): true if a user who
 * has `has` of the `all` entries in use, out of `max`, may have `more`. With them he has at most
 * half of what the others leave. The two counts may change concurrently, so `has` may exceed `all`.
 */
static inline __attribute__((always_inline)) int wire_share_fits(__u64 max, __u64 all, __u64 has,
								 __u64 more)
{
	__u64 others = all > has ? all - has : 0, half = max > others ? (max - others) / 2 : 0;

	return has <= half && more <= half - has;
}

/*
 * One user's share of `threads` and `call_sites`. An entry is created only if wire_share_fits()
 * allows it; refusals are counted. Slot 0 is for processes that user space has not inspected, and
 * for users without a slot.
 */
struct wire_user {
	__u32 threads, sites;
	__u64 refused_threads; /* how often a thread had no entry */
	__u64 refused_calls;
};
WIRE_ASSERT_SIZE(struct wire_user, 24);

#define WIRE_MAX_USERS 256 /* a power of two */

/* Key of `call_sites`. */
struct wire_site_key {
	__u64 site;
	__u32 tgid;
	__u32 flags; /* WIRE_CALL_INTERRUPTIBLE or 0 */
};
WIRE_ASSERT_SIZE(struct wire_site_key, 16);

/* Histogram: 8 steps per power of two, from 2^WIRE_HIST_MIN_LOG2 ns; slot 0 holds everything
 * below. */
#define WIRE_HIST_MIN_LOG2 4
#define WIRE_HIST_MAX_LOG2 43 /* 2.4 hours; the last slot holds everything above */
#define WIRE_HIST_SLOTS	   ((WIRE_HIST_MAX_LOG2 - WIRE_HIST_MIN_LOG2) * 8 + 2)

/* Value of `heaps`, keyed by tgid: state kept between the probes of a collection, and between two
 * collections. */
struct wire_heap_state {
	__u64 hits; /* hits of the GC probes */
	__u64 large_words;
	__u64 period_ns;
	__u32 taken;	 /* collections inspected in this period */
	__u32 every;	 /* one collection in this many is inspected */
	__u64 cap;	 /* address of any capability */
	__u64 new_large; /* words of large objects for this collection */
	__u64 skipped_copied_words;
	__u32 skipped; /* collections that were not inspected and are in no record yet */
	__u32 begun;   /* one of this collection's probes has been hit, … */
	__u32 looked;  /* … it is one to be inspected, … */
	__u32 started; /* … and its start has been seen */
	__u32 reason;
	__u32 sampled; /* number of the capability that was sampled at the request, plus one … */
	__u32 stopped; /* … and of the one sampled because it was stopped, plus one; 0: none */
	__u32 large_seen;
	__u32 most; /* limit of inspections in this period, if it follows the target's samples */
	__u32 _pad;
	__u64 samples;		      /* wire_target_entry.samples at the start of this period */
	__u64 before[WIRE_HEAP_CAPS]; /* bytes each had allocated by its last sample; 0: unknown */
};
WIRE_ASSERT_SIZE(struct wire_heap_state, 616);

/* How many of a target's TSOs are looked at between their turns; a power of two. */
#define WIRE_OFF_TSOS 256

struct wire_off_tso {
	__u64 tso, id; /* id 0: none */
	__u64 looked_ns;
	__u32 why; /* why_blocked at that time */
	__u32 _pad;
};

/* Value of `off_tsos`, keyed by tgid: TSOs that have stopped and were not seen to run since, each
 * in the place that its id gives it. */
struct wire_off_tsos {
	__u32 next; /* the place to look at next */
	__u32 _pad;
	struct wire_off_tso v[WIRE_OFF_TSOS];
};
WIRE_ASSERT_SIZE(struct wire_off_tsos, 8200);

/* Value of `call_sites`; counters only grow. */
struct wire_site {
	__u64 calls;	   /* finished calls */
	__u64 wall_ns;	   /* from the start of the foreign function; also the basis of min, max and
			      hist */
	__u64 handover_ns; /* off CPU before that, in suspendThread; not in wall_ns */
	__u64 blocked_ns;
	__u64 runnable_ns;
	__u64 cap_wait_ns; /* from the end of the call until a capability is held again; not in
			      wall_ns */
	__u64 min_ns;	   /* 0: no call yet */
	__u64 max_ns;
	__u64 abandoned;    /* the thread ended or jumped away while the process went on */
	__u64 open_at_exit; /* the process ended or became another program */
	__u32 hist[WIRE_HIST_SLOTS];
	__u32 user;	  /* slot in `users` of the user it is accounted to */
	__u32 calls_back; /* 1: a call was seen to call back into Haskell */
	/* duration of the open_at_exit calls whose start was seen; not in wall_ns */
	__u64 exit_wall_ns;
};
WIRE_ASSERT_SIZE(struct wire_site, 1352);

#define WIRE_OPEN_MAX 16

/* One open safe call of a thread. */
struct wire_open {
	__u64 start_ns; /* entry of suspendThread */
	__u64 site;
	__u64 incall;	   /* address of its InCall, by which resumeThread is matched */
	__u64 handover_ns; /* off CPU before its foreign function started */
	__u64 blocked_ns;  /* the thread's totals when the call started, plus the parts of
			      handover_ns added to them since */
	__u64 runnable_ns;
	__u32 flags; /* enum wire_call_flag */
	__u32 cap_no;
};
WIRE_ASSERT_SIZE(struct wire_open, 56);

/* Value of `threads`, keyed by tid. */
struct wire_thread {
	__u32 tgid;
	__u32 depth;	    /* number of open calls */
	__u64 off_since_ns; /* 0: on CPU, or not seen yet */
	__u64 wake_ns;
	__u64 blocked_ns; /* totals since first seen */
	__u64 runnable_ns;
	__u64 cap_wait_ns;
	__u64 on_since_ns;   /* last switch-in; 0: not seen */
	__u64 resume_incall; /* the InCall with which resumeThread was entered; 0: not resuming */
	__u64 resume_site;
	__u32 resume_flags;
	__u32 off_state; /* prev_state at switch-out */
	__u64 off_ip;
	__u32 off_syscall;
	__u32 has_stack; /* 1: off_stacks has the stack of this off-CPU interval */
	__u32 epoch; /* the target's epoch for which open[] is right; 0: the thread has run since
			while no call probe was on */
	__u16 tick_slept; /* the timer thread's last sleep was a wait for the next tick */
	__u16 user;	  /* slot in `users` of the user that the entry is accounted to */
	struct wire_rts off_rts;
	__u64 last_tso, last_tso_id; /* the last TSO reported by WIRE_TSO; 0: none */
	__u64 stgrun_at; /* where StgRun's return address was on the C stack, in the in-call … */
	__u64 stgrun_incall; /* … of this InCall */
	/* finished safe calls that were too short to become records; the times, wall time as in
	 * struct wire_site, are without calls from sites that call back */
	__u64 short_calls;
	__u64 short_wall_ns;
	__u64 short_blocked_ns;
	__u64 short_runnable_ns;
	__u64 suspend_sp; /* address of the return address of the innermost open call's
			     suspendThread; 0: it has returned */
	struct wire_open open[WIRE_OPEN_MAX];
};
WIRE_ASSERT_SIZE(struct wire_thread, 1120);

/* Value of `threads`: also has what only the kernel side uses. */
struct wire_thread_entry {
	struct wire_thread th;
	__u64 task;		/* its Task, as last verified by rts_read(); 0: none */
	__u64 held_ns;		/* off-CPU time that is in no record yet; see bpf/hold.bpf.h */
	__u64 held_runnable_ns; /* the runnable part of it */
	__u64 held_since_ns;	/* start of the first of these intervals */
	__u64 out_ran_ns;	/* CPU time at the last switch, by the scheduler's account */
	/* bpf/lost.bpf.h: start of the lost intervals (0: none lost), and CPU time by then */
	__u64 lost_since_ns, lost_ran_ns;
	__u64 named_ns; /* start of the second in which `names` are counted */
	__u32 names;	/* how often it got another name in that second */
	__u32 _pad;
};
WIRE_ASSERT_SIZE(struct wire_thread_entry, 1192);

/* Value of `off_stacks`, keyed by tid. */
struct wire_off_stack {
	struct wire_stack stack;
	__u64 frames[WIRE_OFF_FRAMES];
};

/* Key of `programs`: an executable, identified as in struct wire_proc_new. */
struct wire_program_key {
	__u64 ino;
	__u32 dev;
	__u32 _pad;
};
WIRE_ASSERT_SIZE(struct wire_program_key, 16);

/* A call that was open when the session started, found by user space's snapshot; keyed by tid. */
struct wire_open_at_start {
	__u64 start_ns; /* time of the attach */
	__u64 site;
	__u64 incall;
	__u32 epoch; /* the target's epoch: in a later one the call may have ended unseen */
	__u32 user;  /* same slot as the target's */
};
WIRE_ASSERT_SIZE(struct wire_open_at_start, 32);

/* ── counters and costs ──────────────────────────────────────────────────────────────────── */

/* Indices of `counters` (one u64 each, summed over the CPUs). */
enum wire_counter {
	WIRE_CNT_LOST_RING = 0,	       /* records lost: ring buffer full */
	WIRE_CNT_LOST_SCRATCH = 1,     /* stacks lost: no scratch slot free */
	WIRE_CNT_LOST_THREADS = 2,     /* threads not followed: `threads` full */
	WIRE_CNT_LOST_SITES = 3,       /* calls not counted: `call_sites` full */
	WIRE_CNT_CALL_OVERFLOW = 4,    /* calls nested deeper than WIRE_OPEN_MAX */
	WIRE_CNT_CALL_UNMATCHED = 5,   /* resumeThread without a start */
	WIRE_CNT_CALL_ABANDONED = 6,   /* calls that never returned */
	WIRE_CNT_CALL_FAULT = 7,       /* probe hits whose Task or InCall could not be read */
	WIRE_CNT_SAMPLES = 8,	       /* samples in target threads */
	WIRE_CNT_PROBE_HITS = 9,       /* hits of uprobes in targets */
	WIRE_CNT_OFF_STACK_LIMIT = 10, /* off-CPU intervals without a stack: rate limit */
	WIRE_CNT_RECORDS = 11,	       /* records sent */
	WIRE_CNT_NO_SWITCH_OUT = 12,   /* switched in, but the switch-out was not seen */
	WIRE_CNT_NO_SWITCH_IN = 13,    /* switched out, but the switch-in was not seen */
	WIRE_CNT_UNWIND_DIFFERS = 14,  /* unwind rows and StgRun's return address disagreed */
	WIRE_CNT_MAX = 16,
};

/* Value of `costs`, keyed by tgid: input of the budget. */
struct wire_cost {
	__u64 probe_hits;
	__u64 off_tokens;    /* stacks at switch-out still allowed in this period */
	__u64 off_period_ns; /* start of the period */
	/* those of probe_hits on GC probes; a target with a struct wire_heap_state has them counted
	 * there, and not in probe_hits */
	__u64 gc_hits;
	__u64 bpf_ns;  /* partly estimated run time of the programs for this process; see
			  bpf/cost.bpf.h */
	__u64 call_ns; /* the part of bpf_ns that the probes on calls took, … */
	__u64 gc_ns;   /* … and the probes on collections, which is exact */
};
WIRE_ASSERT_SIZE(struct wire_cost, 56);

#endif
