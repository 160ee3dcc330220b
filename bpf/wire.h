/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the kernel side and user space exchange: record layouts, map keys and values.
 * The only header that both sides include. Values on the wire are explicit and never reused;
 * a change of any layout raises WIRE_VERSION, which the loader compares with the object's.
 *
 * Times are CLOCK_MONOTONIC nanoseconds, addresses are the target's, pids are those of the
 * initial PID namespace.
 */
#ifndef SAFESCOPED_WIRE_H
#define SAFESCOPED_WIRE_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define WIRE_VERSION 5

/* PID_MAX_LIMIT of 64-bit machines, include/linux/threads.h (Linux 6.18) */
#define WIRE_MAX_PIDS (4u << 20)

#define WIRE_ASSERT_SIZE(type, size)                                                               \
	_Static_assert(sizeof(type) == (size), #type " has changed its size on the wire")

/* ── frames ──────────────────────────────────────────────────────────────────────────────── */

/*
 * A frame is one u64: the kind in the top byte, the rest is the address. User addresses on
 * x86-64 with four-level tables stay below 2^47, so the top 16 bits are free.
 */
#define WIRE_FRAME_ADDR_MASK  0x0000ffffffffffffULL
#define WIRE_FRAME_KIND_SHIFT 56

enum wire_frame_kind {
	WIRE_FRAME_HS_IP = 0,  /* the program counter, in code that a Haskell thread runs */
	WIRE_FRAME_HS_RET = 1, /* the info pointer of a stack frame (a return point's entry code) */
	WIRE_FRAME_C_IP = 2,   /* the program counter, in C code */
	WIRE_FRAME_C_RET = 3,  /* a return address in C code */
	WIRE_FRAME_SITE = 4, /* a safe call's site: the return address of its suspendThread call */
	WIRE_FRAME_UPDATEE =
		5, /* info pointer of the thunk that the update frame before it updates */
	WIRE_FRAME_ELIDED = 6, /* address part: how many stack chunks are left out here */
	WIRE_FRAME_KERNEL = 7, /* a kernel address (low 48 bits) */
	WIRE_FRAME_HS_CALL =
		8, /* return address, into Haskell code, of a C function called from it */
	WIRE_FRAME_CALLEE = 9, /* user space only: the C function called before this address */
	WIRE_FRAME_GAP = 10,   /* C frames are not known from here on; the address without a row */
};

/* How a stack ended. */
enum wire_stack_end {
	WIRE_END_NONE = 0,	/* no walk was tried */
	WIRE_END_COMPLETE = 1,	/* STOP_FRAME, exactly at the end of its STACK object; without
				   Haskell below: the C stack's end */
	WIRE_END_TRUNCATED = 2, /* more frames than are kept or walked */
	WIRE_END_BROKEN = 3,	/* see the cause */
};

/* Why a stack is broken; also the index into the array of counters. */
enum wire_cause {
	WIRE_CAUSE_NONE = 0,
	WIRE_CAUSE_NO_SP = 1,	 /* no register and no word on the C stack points into the STACK */
	WIRE_CAUSE_NO_FRAME = 2, /* no return frame among the words looked at from Sp up */
	WIRE_CAUSE_BAD_TYPE = 3, /* in mid-stack, an info table of a type that is no frame */
	WIRE_CAUSE_FAULT = 4,	 /* memory that could not be read */
	WIRE_CAUSE_SP_RANGE = 5, /* Sp left its STACK object */
	WIRE_CAUSE_STOP_NOT_END = 6, /* STOP_FRAME, but not at the end of the STACK */
	WIRE_CAUSE_BAD_SIZE = 7,     /* a frame larger than its STACK */
	WIRE_CAUSE_GC_RACE = 8, /* the thread was resumed, or its stack moved, during the walk */
	WIRE_CAUSE_NO_TSO = 9,	/* which Haskell thread it is cannot be found out */
	/* C stacks of threads without Haskell below */
	WIRE_CAUSE_C_NO_MAP = 10,   /* a program counter outside of the mappings that are known */
	WIRE_CAUSE_C_NO_ROW = 11,   /* code without unwind rows that is no Haskell code */
	WIRE_CAUSE_C_RULE = 12,	    /* an unwind rule that cannot be followed, or leads nowhere */
	WIRE_CAUSE_C_FAULT = 13,    /* stack memory that could not be read */
	WIRE_CAUSE_C_TOO_DEEP = 14, /* more C frames than are walked */
	WIRE_CAUSE_MAX = 16,
};

#define WIRE_FRAMES_LEAF 384 /* leafmost frames that are kept */
#define WIRE_FRAMES_ROOT 64  /* rootmost frames that are kept besides, once frames were left out */
#define WIRE_FRAMES_MAX	 (WIRE_FRAMES_LEAF + WIRE_FRAMES_ROOT + 8)
#define WIRE_OFF_FRAMES	 192 /* frames kept in the thread's slot at switch-out, */
#define WIRE_OFF_ROOT	 48  /* of them the rootmost of a deep stack */

struct wire_stack {
	__u16 nframes; /* of frames[], leaf first */
	__u8 end;      /* enum wire_stack_end */
	__u8 cause;    /* enum wire_cause */
	__u8 resync;   /* words skipped above Sp before the first frame */
	__u8 elided;   /* bit 0: there is a WIRE_FRAME_ELIDED frame; bit 1: frames are left out;
			  bit 2: there is a WIRE_FRAME_GAP frame */
	__u16 turn;    /* the frames after WIRE_FRAME_ELIDED are a ring that begins here; the
			  drain turns it (wire_stack__straighten) and sets 0 */
};
WIRE_ASSERT_SIZE(struct wire_stack, 8);

/* ── what the runtime said of a thread ───────────────────────────────────────────────────── */

/* Read from Task, InCall and Capability, not from registers (facts: rts/Task.h, rts/Schedule.c). */
enum wire_where {
	WIRE_WHERE_UNKNOWN = 0, /* not looked at, or memory unreadable */
	WIRE_WHERE_FOREIGN = 1, /* the thread has no Task: ticker, foreign threads */
	WIRE_WHERE_HASKELL =
		2, /* holds a capability and is in Haskell, or in C called unsafely from it */
	WIRE_WHERE_SAFE_CALL = 3, /* its InCall has a suspended TSO */
	WIRE_WHERE_RESUMING =
		4,	    /* same, but resumeThread has been entered: waits for a capability */
	WIRE_WHERE_RTS = 5, /* holds a capability, not in Haskell: scheduler or GC */
	WIRE_WHERE_NO_CAP =
		6, /* has a Task and holds nothing: idle worker, or waits to enter Haskell */
	WIRE_WHERE_NOT_READY = 7, /* the runtime is not initialised yet */
};

#define WIRE_NO_CAP 0xffffffffu

enum wire_rts_flag {
	WIRE_RTS_IN_KERNEL = 1,	    /* the sample or switch came in kernel mode */
	WIRE_RTS_CALLS_UNKNOWN = 2, /* the thread has run while no call probe was on: it may be in
				       a call whose begin nobody saw */
	WIRE_RTS_SUSPENDING = 4,    /* struct wire_off: the open call's thread was still in
				       suspendThread, its foreign function had not begun */
};

struct wire_rts {
	__u64 cap;    /* address of the Capability held, or last held (WIRE_WHERE_SAFE_CALL,
			 _RESUMING, _NO_CAP); 0: none */
	__u64 tso;    /* address of the TSO that runs or is suspended; 0: none */
	__u64 tso_id; /* its id; 0: none */
	__u64 cccs;   /* profiled: the current CostCentreStack; 0: none */
	__u64 bound;  /* the TSO's `bound` InCall; 0: not bound */
	__u32 cap_no; /* Capability.no or WIRE_NO_CAP */
	__u8 where;   /* enum wire_where */
	__u8 flags;   /* enum wire_rts_flag */
	__u16 why_blocked;
};
WIRE_ASSERT_SIZE(struct wire_rts, 48);

/* ── records ─────────────────────────────────────────────────────────────────────────────── */

enum wire_type {
	WIRE_SAMPLE = 1,      /* struct wire_sample */
	WIRE_OFF = 2,	      /* struct wire_off */
	WIRE_CALL = 3,	      /* struct wire_call */
	WIRE_TICK = 4,	      /* struct wire_tick */
	WIRE_THREAD_NEW = 5,  /* struct wire_thread_event: a thread of a target was created */
	WIRE_THREAD_EXIT = 6, /* struct wire_thread_event */
	WIRE_EXEC = 7, /* struct wire_thread_event, of the thread that made the call: the process
			  runs another program now */
	WIRE_PROC_EXIT = 8,  /* struct wire_thread_event: its last thread is gone */
	WIRE_GC = 9,	     /* struct wire_gc: a probe on one end of a collection */
	WIRE_PROC_NEW = 10,  /* struct wire_proc_new: any process runs a new program */
	WIRE_READY = 11,     /* struct wire_thread_event: an unconfirmed target's first call */
	WIRE_TSO = 14,	     /* struct wire_tso: an OS thread runs another Haskell thread */
	WIRE_ALLOC = 15,     /* struct wire_alloc: who has used up a capability's nursery */
	WIRE_HEAP = 16,	     /* struct wire_heap: the heap at a collection's end */
	WIRE_ALLOCATED = 17, /* struct wire_allocated: right after a WIRE_SAMPLE */
};

/* Every record starts with it. `size` is the whole record's, header included. */
struct wire_hdr {
	__u64 ns;
	__u32 tgid;
	__u32 tid;
	__u16 type; /* enum wire_type */
	__u16 cpu;
	__u32 size;
};
WIRE_ASSERT_SIZE(struct wire_hdr, 24);

/* One tick of the cpu clock while a thread of a target was on the CPU. */
struct wire_sample {
	struct wire_hdr h;
	struct wire_rts rts;
	__u64 ip;	     /* the user program counter, also if the kernel was entered from it */
	__u64 site;	     /* innermost open safe call's site; 0: none */
	__u64 call_start_ns; /* when it began; 0: none */
	__u64 short_cpu_ns;  /* CPU time of the thread's finished calls so far that were too short
				to become records */
	struct wire_stack stack;
	__u64 frames[]; /* stack.nframes of them, leaf first */
};
WIRE_ASSERT_SIZE(struct wire_sample, 112);

/* One off-CPU interval, sent when the thread is switched in again (h.ns). */
struct wire_off {
	struct wire_hdr h;
	struct wire_rts rts; /* at switch-out */
	__u64 out_ns;	     /* switch-out; 0: before the session saw the thread */
	__u64 wake_ns;	     /* became runnable; equals out_ns if it was preempted; 0: not seen */
	__u64 ip;	     /* user program counter at switch-out */
	__u64 site;	     /* innermost open safe call's site; 0: none */
	__u64 call_start_ns;
	__u64 short_cpu_ns; /* as in struct wire_sample */
	__u32 syscall;	    /* number of the system call it slept in; WIRE_NO_SYSCALL: none */
	__u32 prev_state;   /* task state at switch-out; 0: it was still runnable */
	struct wire_stack stack;
	__u64 frames[];
};
WIRE_ASSERT_SIZE(struct wire_off, 136);

#define WIRE_NO_SYSCALL 0xffffffffu

enum wire_call_flag {
	WIRE_CALL_INTERRUPTIBLE = 1,
	WIRE_CALL_OPEN_AT_START = 2, /* begun before the session: times count from the attach */
	WIRE_CALL_ABANDONED = 4,     /* it never came back: the thread ended or left it by a jump */
	WIRE_CALL_UNMATCHED = 8,     /* resumeThread without a begin that was seen */
	WIRE_CALL_OPEN_AT_END = 16,  /* made by user space when the session ends */
};

/*
 * One safe call that lasted longer than the threshold from suspendThread's entry (start_ns) to
 * resumeThread's (h.ns).
 */
struct wire_call {
	struct wire_hdr h;
	struct wire_rts rts;
	__u64 start_ns;
	__u64 site; /* return address of the suspendThread call, or see WIRE_CALL_UNMATCHED */
	__u64 handover_ns; /* off CPU before the foreign function began; in none of the two below */
	__u64 blocked_ns;  /* off CPU and not runnable, inside the call */
	__u64 runnable_ns; /* off CPU and runnable, inside the call */
	__u32 flags;	   /* enum wire_call_flag */
	__u16 depth;	   /* open calls of the thread below this one */
	__u16 _pad;
	struct wire_stack stack; /* Haskell part: of the suspended thread */
	__u64 frames[];
};
WIRE_ASSERT_SIZE(struct wire_call, 128);

#define WIRE_TICK_CAPS 64

struct wire_tick_cap {
	__u64 tso_id; /* 0: none */
	__u64 cccs;
	__u32 no;
	__u8 in_haskell;
	__u8 has_task; /* some Task holds it */
	__u8 disabled;
	__u8 queued; /* Haskell threads in its run queue; 255: or more */
};
WIRE_ASSERT_SIZE(struct wire_tick_cap, 24);

/* One tick of the RTS's own timer, with every capability as it was then. */
struct wire_tick {
	struct wire_hdr h;
	__u32 ncaps;   /* entries in caps[] */
	__u32 enabled; /* capabilities that exist; more than ncaps: the rest was left out */
	struct wire_tick_cap caps[];
};
WIRE_ASSERT_SIZE(struct wire_tick, 32);

enum wire_thread_flag {
	WIRE_THREAD_HAS_ENTRY = 1, /* in `threads`: from its first record to its end */
	WIRE_THREAD_ALONE = 2,	   /* THREAD_EXIT: its process goes on, and open_calls count as
				      abandoned; captures before there was this have it of none */
};

struct wire_thread_event {
	struct wire_hdr h;
	__u64 start_ns;	  /* same as h.ns */
	__u64 on_cpu_ns;  /* sum_exec_runtime where it is known; else 0 */
	__u32 open_calls; /* safe calls open when the thread ended; EXEC: in captures before these
			     counted: 0 */
	__u32 flags;	  /* enum wire_thread_flag; in captures before there were any: 0 */
	char comm[16];
	/* THREAD_EXIT: as in struct wire_thread */
	__u64 short_calls;
	__u64 short_wall_ns;
	__u64 short_blocked_ns;
	__u64 short_runnable_ns;
};
WIRE_ASSERT_SIZE(struct wire_thread_event, 96);

enum wire_proc_flag {
	WIRE_PROC_FORK = 1,   /* a target made it by fork; else by exec */
	WIRE_PROC_TARGET = 2, /* its entry in `targets` is there already */
};

struct wire_proc_new {
	struct wire_hdr h;
	__u64 start_boottime_ns;
	__u64 ino;   /* of the executable, as the kernel has it (stat() may show another) */
	__u32 dev;   /* the kernel's dev_t */
	__u32 flags; /* enum wire_proc_flag */
	char comm[16];
};
WIRE_ASSERT_SIZE(struct wire_proc_new, 64);

#define WIRE_TSO_UNKNOWN 0xffffu

struct wire_tso {
	struct wire_hdr h;
	__u64 id;	      /* that runs now, or is in a safe call; 0: none */
	__u64 left_id;	      /* that did before; 0: none was seen */
	__u16 left_why;	      /* its why_blocked; WIRE_TSO_UNKNOWN */
	__u16 left_what_next; /* its what_next; 0: not known */
	__u32 bound;	      /* 1: `id` is bound */
	char label[64];	      /* of `id`; "" if none or not known */
};
WIRE_ASSERT_SIZE(struct wire_tso, 112);

/* ThreadKilled, ThreadComplete: rts/include/rts/Constants.h, 9.0 to 9.14 */
static inline __attribute__((always_inline)) int wire_tso_has_ended(__u64 what_next)
{
	return what_next == 3 || what_next == 4;
}

enum wire_gc_point {
	WIRE_GC_START = 1, /* stat_startGC: all capabilities are held */
	WIRE_GC_END = 2,   /* stat_endGC */
	WIRE_GC_SYNC = 3,  /* stat_startGCSync: the other capabilities are asked to stop */
	WIRE_GC_OFF = 4, /* made in user space: these probes cost too much, no more of them come */
};

struct wire_gc {
	struct wire_hdr h;
	__u32 point;	  /* enum wire_gc_point */
	__u32 generation; /* WIRE_GC_END: the oldest one collected, stat_endGC's argument */
	__u64 number;	  /* how many were finished before; WIRE_GC_NO_NUMBER: not known */
	__u32 n_caps;	  /* WIRE_GC_END: capabilities that exist; 0: not known */
	__u32 _pad;
	/* WIRE_GC_END: by the runtime's own clock, which is h.ns's but for its time namespace: user
	 * space takes that off; 0: not known */
	__u64 sync_ns;	/* stat_startGCSync; may be an older collection's */
	__u64 start_ns; /* stat_startGC */
};
WIRE_ASSERT_SIZE(struct wire_gc, 64);

#define WIRE_GC_NO_NUMBER (~0ULL)

/* Why a collection came. Only the first three are about what the thread allocated. */
enum wire_alloc_reason {
	WIRE_ALLOC_UNKNOWN = 0, /* only its end was seen */
	WIRE_ALLOC_NURSERY = 1, /* the capability's nursery is used up */
	WIRE_ALLOC_LARGE = 2,	/* large objects have reached their limit (+RTS -AL) */
	WIRE_ALLOC_STOPPED = 3, /* no reason: stopped for another capability's collection */
	WIRE_ALLOC_FORCED = 4,	/* the program called for it: performGC */
	WIRE_ALLOC_IDLE = 5,	/* nothing was left to run */
	WIRE_ALLOC_OTHER = 6,	/* a timer's: heap profiles */
};

enum wire_alloc_flag {
	WIRE_ALLOC_PRIMITIVE = 1, /* it was in a primitive operation, as those are that make large
				     objects */
};

/*
 * A sample of allocation: the Haskell thread that a capability ran last, whose allocation made it
 * ask for a collection. Before that collection's WIRE_HEAP, which has how much the capability has
 * allocated.
 */
struct wire_alloc {
	struct wire_hdr h;
	struct wire_rts rts; /* of the capability and the Haskell thread */
	__u32 reason;	     /* enum wire_alloc_reason, up to _STOPPED */
	__u32 flags;	     /* enum wire_alloc_flag */
	struct wire_stack stack;
	__u64 frames[];
};
WIRE_ASSERT_SIZE(struct wire_alloc, 88);

enum wire_heap_flag {
	WIRE_HEAP_LARGE_SEEN = 1, /* large_words has this collection's: its request or its start was
				     seen */
};

/*
 * What the capability that a sample's thread holds has allocated by then. Only where nurseries are
 * so large that collections may be rare: then these are samples of allocation, too.
 */
struct wire_allocated {
	struct wire_hdr h; /* the time and the thread of the sample */
	__u64 allocated;   /* bytes, but for the block that it is in */
	__u32 cap_no;
	__u32 _pad;
};
WIRE_ASSERT_SIZE(struct wire_allocated, 40);

#define WIRE_HEAP_CAPS 64
#define WIRE_HEAP_GENS 4
/* As far as Haskell threads are counted. */
#define WIRE_HEAP_THREADS 4096

/* One generation (rts/include/rts/storage/GC.h), in words and in blocks of 4 kB. */
struct wire_heap_gen {
	__u64 n_blocks, n_words; /* of small objects */
	__u64 n_large_blocks, n_large_words;
	__u64 n_compact_blocks;
};
WIRE_ASSERT_SIZE(struct wire_heap_gen, 40);

struct wire_heap_cap {
	__u64 allocated; /* bytes, since the runtime began; ~0: not read */
	__u32 no;
	__u32 nursery; /* its blocks of 4 kB; 0: not known */
};
WIRE_ASSERT_SIZE(struct wire_heap_cap, 16);

/*
 * The heap at a collection's end, all capabilities being held. Of very many collections some have
 * none of their own; major ones have. Live, copied and wasted words are
 * stat_endGC's arguments, which has all generations in the first and the last.
 */
struct wire_heap {
	struct wire_hdr h;
	__u64 number;	   /* as in struct wire_gc */
	__u64 large_words; /* of large objects allocated since the target's entry was made */
	__u64 live_words, copied_words, slop_words;
	__u64 skipped_copied_words; /* by the skipped ones */
	__u32 generation;	    /* the oldest one collected */
	__u32 reason;		    /* enum wire_alloc_reason */
	__u16 n_gens;		    /* of gens[]; 0: not known */
	__u16 n_threads;	    /* Haskell threads, after a major one; 0: not known */
	__u32 n_caps;		    /* of caps[] */
	__u32 all_caps;		    /* that exist; more than n_caps: the rest was left out */
	__u32 flags;		    /* enum wire_heap_flag */
	__u32 skipped; /* collections before it without a record, as it is one in so many */
	__u32 held;    /* megablocks (1 MB) after the collection before; 0: not known */
	struct wire_heap_gen gens[WIRE_HEAP_GENS];
	struct wire_heap_cap caps[];
};
WIRE_ASSERT_SIZE(struct wire_heap, 264);

/* ── maps ────────────────────────────────────────────────────────────────────────────────── */

/* Offsets into the structs of one GHC's runtime, in bytes (source: the layout table). */
struct wire_layout {
	__u16 cap_r; /* Capability.r, what BaseReg (r13) points at */
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
	__u16 alt_task_incall; /* unconfirmed targets: where task_incall may lie as well; 0: none */
	__u16 tso_label;       /* 0: this release has none */
	/* what allocation is read by; 0: it is not confirmed, and not used */
	__u16 cap_nursery;	   /* Capability.r.rNursery; then rCurrentNursery, rCurrentAlloc */
	__u16 cap_run_queue;	   /* Capability.run_queue_hd, then run_queue_tl */
	__u16 cap_total_allocated; /* in words */
};
WIRE_ASSERT_SIZE(struct wire_layout, 64);

/*
 * User space counts as held up when its loop has not turned for so long. A little less than what
 * the keeper waits for (user/kernel/keeper_child.c), so that no call that begins while the probes
 * come off is taken for one that was seen.
 */
#define WIRE_HELD_UP_NS 1900000000ULL

enum wire_target_flag {
	WIRE_TARGET_THREADED = 1,      /* my_task is thread-local */
	WIRE_TARGET_PROFILED = 2,      /* 24-byte closure headers, CCS */
	WIRE_TARGET_CAPS_ARRAY = 4,    /* `capabilities` is the array, not a pointer to it */
	WIRE_TARGET_UPDATEES = 8,      /* put WIRE_FRAME_UPDATEE frames after update frames */
	WIRE_TARGET_PROBES_OFF = 16,   /* no call probes now: a thread that runs may begin and end
					  calls that nobody sees */
	WIRE_TARGET_UNCONFIRMED = 32,  /* its runtime may not be initialised yet: calls are counted,
					  threads whose structures prove the layout are read, all
					  else waits until it is confirmed */
	WIRE_TARGET_ARMED = 64,	       /* a child before its exec: the entry survives that */
	WIRE_TARGET_TICK_THREAD = 256, /* ticks by the timer's thread: it has no probe */
	WIRE_TARGET_CALLED = 128,      /* WIRE_READY was sent; set by the probe program */
	/* Which of its probes are its own: those that are on for all processes of the file, for the
	 * sake of others, are not for it. */
	WIRE_TARGET_OWN_SUSPEND = 512,
	WIRE_TARGET_OWN_RESUME = 1024,
	WIRE_TARGET_OWN_TICK = 2048,
	WIRE_TARGET_OWN_GC_SYNC = 4096,
	WIRE_TARGET_OWN_GC_START = 8192,
	WIRE_TARGET_OWN_GC_END = 16384,
};

/* The cookie of a probe that is one process's own; 0: it is on for all that map the file. */
#define WIRE_PROBE_OWN 1

/* What `targets` has from user space. What is 0 is not known and not used. */
struct wire_target {
	struct wire_layout layout;
	__u32 flags;	    /* enum wire_target_flag */
	__s32 my_task_tls;  /* threaded: my_task's place relative to the thread's fs base, or … */
	__u64 main_cap;	    /* non-threaded: the one Capability */
	__u64 capabilities; /* the symbol's address */
	__u64 n_capabilities;	 /* the symbol's address */
	__u64 stgrun_ret;	 /* the return address of StgRun's call in schedule() */
	__u64 call_record_ns;	 /* safe calls shorter than this stay counters */
	__u64 off_record_ns;	 /* stays off CPU shorter than this carry no stack */
	__u64 start_boottime_ns; /* the process's start time: distinguishes a reused PID */
	__u64 stats;		 /* the symbol's address: RTSStats, its u32 `gcs` first */
	__u32 epoch; /* 1 from the time when the call probes are on, one more whenever they come
			on again; 0: they have not been on yet */
	__u32 my_task_module; /* … not 0: inside of this block of the thread's DTV */
	__u32 gct_clock;      /* gc_sync_start_elapsed, then gc_start_elapsed, in a gc_thread */
	__u32 user;	      /* the slot in `users` of the user on whose account it runs */
};
WIRE_ASSERT_SIZE(struct wire_target, 152);

/* Value of `targets`, keyed by tgid: with what the kernel side alone has a use for, 0 whenever user
 * space puts the entry anew. */
struct wire_target_entry {
	struct wire_target t;
	__u64 samples;	 /* of the sampler's; counted where stacks go by them */
	__u64 preempted; /* how many of these a stack of a preempted thread was taken for */
};
WIRE_ASSERT_SIZE(struct wire_target_entry, 168);

/* Entries of the maps that all targets share; see struct wire_user. */
#define WIRE_MAX_TARGETS 4096
#define WIRE_MAX_THREADS 16384
#define WIRE_MAX_SITES	 8192
#define WIRE_MAX_OPEN	 65536

/*
 * The one rule by which users share what is limited (base/shares.h in user/): whether somebody who
 * has `has` of the `all` that are used, of `max`, may have `more`: he then has no more than half of
 * what the others leave. Of two counts that change meanwhile the part may be larger than the whole.
 */
static inline __attribute__((always_inline)) int wire_share_fits(__u64 max, __u64 all, __u64 has,
								 __u64 more)
{
	__u64 others = all > has ? all - has : 0, half = max > others ? (max - others) / 2 : 0;

	return has <= half && more <= half - has;
}

/*
 * What one user's processes have of `threads` and `call_sites`. An entry is made for him by that
 * rule; what he is refused is counted. Slot 0 is for processes that user space has not looked at,
 * and for users for whom there is no slot.
 */
struct wire_user {
	__u32 threads, sites;
	__u64 refused_threads; /* how often a thread without an entry was met */
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

/* Histogram: 8 steps for each power of two, from 2^WIRE_HIST_MIN_LOG2 ns; slot 0 holds all below.
 */
#define WIRE_HIST_MIN_LOG2 4
#define WIRE_HIST_MAX_LOG2 43 /* 2.4 hours; the last slot holds all above */
#define WIRE_HIST_SLOTS	   ((WIRE_HIST_MAX_LOG2 - WIRE_HIST_MIN_LOG2) * 8 + 2)

/* Value of `heaps`, keyed by tgid: what is between the probes of a collection, and between two. */
struct wire_heap_state {
	__u64 hits; /* of the probes on a collection's ends */
	__u64 large_words;
	__u64 period_ns;
	__u32 taken;	 /* collections that were looked at in this period */
	__u32 every;	 /* of so many collections one is looked at */
	__u64 cap;	 /* any of the capabilities */
	__u64 new_large; /* words of this collection's */
	__u64 skipped_copied_words;
	__u32 skipped; /* collections that were not looked at, and are in no record yet */
	__u32 begun;   /* one of its probes has been hit, */
	__u32 looked;  /* it is one of those, */
	__u32 started; /* and its start has been seen */
	__u32 reason;
	__u32 sampled; /* the capability that a sample was taken of, plus one … */
	__u32 stopped; /* … and another one, plus one; 0: none */
	__u32 large_seen;
	__u32 most; /* where looks go by the samples of the target: in this period */
	__u32 _pad;
	__u64 samples;		      /* struct wire_target_entry's, as this period began */
	__u64 before[WIRE_HEAP_CAPS]; /* what each had allocated by its last sample; 0: not known */
};
WIRE_ASSERT_SIZE(struct wire_heap_state, 616);

/* Value of `call_sites`; only ever added to. */
struct wire_site {
	__u64 calls;	   /* finished calls */
	__u64 wall_ns;	   /* from the foreign function's begin; min, max and hist go by it */
	__u64 handover_ns; /* off CPU before that, in suspendThread; not in wall_ns */
	__u64 blocked_ns;
	__u64 runnable_ns;
	__u64 cap_wait_ns; /* after the call, until the capability was held again; not in wall_ns */
	__u64 min_ns;	   /* 0 while there was none */
	__u64 max_ns;
	__u64 abandoned;    /* the thread ended or jumped away, the process went on */
	__u64 open_at_exit; /* the process ended, or became another program */
	__u32 hist[WIRE_HIST_SLOTS];
	__u32 user; /* on whose account it is: a slot in `users` */
	__u32 _pad;
	/* what open_at_exit had lasted, if its begin was seen; not in wall_ns */
	__u64 exit_wall_ns;
};
WIRE_ASSERT_SIZE(struct wire_site, 1352);

#define WIRE_OPEN_MAX 16

/* One safe call that a thread is in. */
struct wire_open {
	__u64 start_ns; /* suspendThread's entry */
	__u64 site;
	__u64 incall;	   /* its InCall's address: what resumeThread is matched by */
	__u64 handover_ns; /* off CPU before its foreign function began */
	__u64 blocked_ns;  /* the thread's totals at the call's start, and what of handover_ns has
			      been added to them since */
	__u64 runnable_ns;
	__u32 flags; /* enum wire_call_flag */
	__u32 cap_no;
};
WIRE_ASSERT_SIZE(struct wire_open, 56);

/* Value of `threads`, keyed by tid. */
struct wire_thread {
	__u32 tgid;
	__u32 depth;	    /* open calls */
	__u64 off_since_ns; /* 0: on CPU, or not seen yet */
	__u64 wake_ns;
	__u64 blocked_ns; /* totals since first seen */
	__u64 runnable_ns;
	__u64 cap_wait_ns;
	__u64 on_since_ns;   /* last switch-in; 0: not seen */
	__u64 resume_incall; /* the InCall that resumeThread was entered with; 0: not resuming */
	__u64 resume_site;
	__u32 resume_flags;
	__u32 off_state; /* prev_state at switch-out */
	__u64 off_ip;
	__u32 off_syscall;
	__u32 has_stack;  /* 1: off_stacks has one of this off-CPU interval */
	__u32 epoch;	  /* of the target, while open[] is right; 0: the thread has run since while
			     no call probe was on */
	__u16 tick_slept; /* the timer's thread last slept to wait for the next tick */
	__u16 user;	  /* on whose account the entry is: a slot in `users` */
	struct wire_rts off_rts;
	__u64 last_tso, last_tso_id; /* of WIRE_TSO: the last one seen to run; 0: none */
	__u64 stgrun_at;     /* where StgRun's return address lay on the C stack, in the in-call */
	__u64 stgrun_incall; /* of this InCall */
	/* finished safe calls that were too short to become records; wall as in struct wire_site */
	__u64 short_calls;
	__u64 short_wall_ns;
	__u64 short_blocked_ns;
	__u64 short_runnable_ns;
	__u64 suspend_sp; /* where the innermost open call's suspendThread has its return address on
			     the C stack; 0: it has returned */
	struct wire_open open[WIRE_OPEN_MAX];
};
WIRE_ASSERT_SIZE(struct wire_thread, 1120);

/* Value of `threads`: with what the kernel side alone has a use for. */
struct wire_thread_entry {
	struct wire_thread th;
	__u64 task;    /* its Task, as rts_read() last proved it; 0: none */
	__u64 held_ns; /* stays off the CPU that are in no record yet; see bpf/hold.bpf.h */
	__u64 held_runnable_ns; /* of it runnable */
	__u64 held_since_ns;	/* when the first of them began */
	__u64 out_ran_ns; /* what it had run by the last switch-out, by the scheduler's account */
	/* bpf/lost.bpf.h: since when stays were lost, 0: none was, and what it had run by then */
	__u64 lost_since_ns, lost_ran_ns;
};
WIRE_ASSERT_SIZE(struct wire_thread_entry, 1176);

/* Value of `off_stacks`, keyed by tid. */
struct wire_off_stack {
	struct wire_stack stack;
	__u64 frames[WIRE_OFF_FRAMES];
};

/* Key of `programs`: an executable, as struct wire_proc_new has it. */
struct wire_program_key {
	__u64 ino;
	__u32 dev;
	__u32 _pad;
};
WIRE_ASSERT_SIZE(struct wire_program_key, 16);

/* A call that was open when the session began, from user space's snapshot; keyed by tid. */
struct wire_open_at_start {
	__u64 start_ns; /* the attach */
	__u64 site;
	__u64 incall;
	__u32 epoch; /* of the target: in a later one the call may have ended unseen */
	__u32 user;  /* as of the target */
};
WIRE_ASSERT_SIZE(struct wire_open_at_start, 32);

/* ── unwind rows of C code ───────────────────────────────────────────────────────────────── */

/*
 * What .eh_frame says of the code from an address on, up to the next row's: how to find the
 * canonical frame address (CFA, what rsp was before the call), the return address and the caller's
 * rbp. A row is one u64: the address relative to the file's first code page in the high half, the
 * rule in the low half:
 *   bits 0–3    enum wire_cfi
 *   bits 4–19   an offset, in words of 8 bytes
 *   bits 20–31  the caller's rbp: 0: unchanged; n: at CFA − 8 n; or WIRE_CFI_BP_…
 */
#define WIRE_CFI_KIND(rule)   ((rule)&15u)
#define WIRE_CFI_OFFSET(rule) (8u * (((rule) >> 4) & 0xffffu))
#define WIRE_CFI_BP(rule)     ((rule) >> 20)
#define WIRE_CFI_MAX_OFFSET   (8u * 0xffffu)
#define WIRE_CFI_BP_AT_BP     0xffeu /* at the address that rbp has: realigned frames */
#define WIRE_CFI_BP_UNKNOWN   0xfffu
#define WIRE_CFI_MAX_BP	      0xff0u

enum wire_cfi {
	WIRE_CFI_NONE = 0,	 /* no row covers this code */
	WIRE_CFI_RSP = 1,	 /* CFA = rsp + offset */
	WIRE_CFI_RBP = 2,	 /* CFA = rbp + offset */
	WIRE_CFI_PLT = 3,	 /* CFA = rsp + 8, from offset / 8 on in a 16-byte entry + 16 */
	WIRE_CFI_RBP_DEREF = 4,	 /* CFA = *(rbp − offset) */
	WIRE_CFI_RSP_DEREF = 5,	 /* CFA = *(rsp + offset) */
	WIRE_CFI_RSP_DEREF8 = 6, /* CFA = *(rsp + offset) + 8 */
	WIRE_CFI_SIGNAL = 7,	 /* rsp + offset points at the registers of a ucontext */
	WIRE_CFI_STGRUN = 8,	 /* rsp + offset points at StgRun's 16 kB of reserved stack */
	WIRE_CFI_END = 9,	 /* the outermost frame */
	WIRE_CFI_UNKNOWN = 10,	 /* a rule that none of these can express */
	WIRE_CFI_LEAF_RDI = 11,	 /* CFA = rsp + offset, and the return address is in rdi: of the
				    thread's innermost frame alone (glibc's vfork) */
};

/* struct ucontext, x86-64: where a signal frame keeps registers, from its first byte on */
#define WIRE_CFI_SIGNAL_BP 120
#define WIRE_CFI_SIGNAL_SP 160
#define WIRE_CFI_SIGNAL_IP 168
/* GHC rts/StgCRun.c: from rsp in Haskell code */
#define WIRE_CFI_STGRUN_BP 16392
#define WIRE_CFI_STGRUN_IP 16432

/*
 * A file's rows are one array of u64: first the buckets (of 2^WIRE_UNWIND_BUCKET_SHIFT bytes of
 * code; low half: index of the first row inside, high half: how many there are), then the rows.
 */
#define WIRE_UNWIND_BUCKET_SHIFT 12
#define WIRE_UNWIND_FILES	 4096 /* file 0 has no rows */
#define WIRE_UNWIND_MAPS	 256

/* One executable mapping of a process. */
struct wire_unwind_map {
	__u64 start, end;
	__u64 base; /* where the file's first code page would lie */
	__u32 file;
	__u32 buckets; /* 0: no rows */
};
WIRE_ASSERT_SIZE(struct wire_unwind_map, 32);

/* Value of `unwind_maps`, keyed by tgid. */
struct wire_unwind_maps {
	__u32 n;	  /* of v[], ascending, none overlaps another */
	__u32 generation; /* another one whenever the process's mappings were read again */
	struct wire_unwind_map v[WIRE_UNWIND_MAPS];
};

/* Indices of `counters` (one u64 each, summed over the CPUs). */
enum wire_counter {
	WIRE_CNT_LOST_RING = 0,	       /* records lost: ring buffer full */
	WIRE_CNT_LOST_SCRATCH = 1,     /* stacks lost: no scratch slot free */
	WIRE_CNT_LOST_THREADS = 2,     /* threads not followed: `threads` full */
	WIRE_CNT_LOST_SITES = 3,       /* calls not counted: `call_sites` full */
	WIRE_CNT_CALL_OVERFLOW = 4,    /* calls nested deeper than WIRE_OPEN_MAX */
	WIRE_CNT_CALL_UNMATCHED = 5,   /* resumeThread without a begin */
	WIRE_CNT_CALL_ABANDONED = 6,   /* calls that never came back */
	WIRE_CNT_CALL_FAULT = 7,       /* probe hits whose Task or InCall could not be read */
	WIRE_CNT_SAMPLES = 8,	       /* samples in threads of targets */
	WIRE_CNT_PROBE_HITS = 9,       /* hits of uprobes in targets */
	WIRE_CNT_OFF_STACK_LIMIT = 10, /* stays off CPU without a stack: rate limit */
	WIRE_CNT_RECORDS = 11,	       /* records sent */
	WIRE_CNT_NO_SWITCH_OUT = 12,   /* switched in, though the switch-out was not seen */
	WIRE_CNT_NO_SWITCH_IN = 13,    /* switched out, though the switch-in was not seen */
	WIRE_CNT_UNWIND_DIFFERS = 14,  /* unwind rows and StgRun's return address disagreed */
	WIRE_CNT_MAX = 16,
};

/* Value of `costs`, keyed by tgid: what the budget is held against. */
struct wire_cost {
	__u64 probe_hits;
	__u64 off_tokens;    /* stacks at switch-out still allowed in this period */
	__u64 off_period_ns; /* when the period began */
	/* those of probe_hits that were on a collection's ends; where the target has a struct
	 * wire_heap_state they are in that, and not in probe_hits */
	__u64 gc_hits;
};
WIRE_ASSERT_SIZE(struct wire_cost, 32);

#endif
