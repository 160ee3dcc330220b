/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the kernel side and user space exchange: records here, keys and values of maps in
 * wire_maps.h, unwind rows in wire_unwind.h. The only headers that both sides include. Values on
 * the wire are explicit and never reused; a change of any layout raises WIRE_VERSION, which the
 * loader compares with the object's.
 *
 * Times are CLOCK_MONOTONIC nanoseconds, addresses are the target's, pids are those of the
 * initial PID namespace.
 */
#ifndef SAFESCOPED_WIRE_H
#define SAFESCOPED_WIRE_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define WIRE_VERSION 7

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
	WIRE_FRAME_C_RET = 3,  /* a return address into C code */
	WIRE_FRAME_SITE = 4, /* a safe call's site: the return address of its suspendThread call */
	WIRE_FRAME_UPDATEE =
		5, /* info pointer of the thunk that the preceding update frame updates */
	WIRE_FRAME_ELIDED = 6, /* address part: how many stack chunks are left out here */
	WIRE_FRAME_KERNEL = 7, /* a kernel address (low 48 bits) */
	WIRE_FRAME_HS_CALL =
		8, /* return address into Haskell code, of a C function called from there */
	WIRE_FRAME_CALLEE = 9, /* user space only: the C function called just before this address */
	WIRE_FRAME_GAP = 10,   /* C frames are unknown from here on; the address that has no row */
};

/* How a stack ended. */
enum wire_stack_end {
	WIRE_END_NONE = 0,	/* no walk was attempted */
	WIRE_END_COMPLETE = 1,	/* STOP_FRAME, exactly at the end of its STACK object; for a thread
				   without Haskell frames: the end of the C stack */
	WIRE_END_TRUNCATED = 2, /* more frames than are kept or walked */
	WIRE_END_BROKEN = 3,	/* see the cause */
};

/* Why a stack is broken; also the index into the array of counters. */
enum wire_cause {
	WIRE_CAUSE_NONE = 0,
	WIRE_CAUSE_NO_SP = 1,	 /* no register and no word on the C stack points into the STACK */
	WIRE_CAUSE_NO_FRAME = 2, /* no return frame among the words inspected from Sp up */
	WIRE_CAUSE_BAD_TYPE = 3, /* in mid-stack: an info table whose type is not a frame */
	WIRE_CAUSE_FAULT = 4,	 /* memory could not be read */
	WIRE_CAUSE_SP_RANGE = 5, /* Sp left its STACK object */
	WIRE_CAUSE_STOP_NOT_END = 6, /* STOP_FRAME, but not at the end of the STACK */
	WIRE_CAUSE_BAD_SIZE = 7,     /* a frame larger than its STACK */
	WIRE_CAUSE_GC_RACE = 8,	     /* the thread was resumed or its stack moved during the walk */
	WIRE_CAUSE_NO_TSO = 9,	     /* the Haskell thread could not be determined */
	/* C stacks of threads without Haskell frames */
	WIRE_CAUSE_C_NO_MAP = 10,   /* a program counter outside the known mappings */
	WIRE_CAUSE_C_NO_ROW = 11,   /* code without unwind rows that is not Haskell code */
	WIRE_CAUSE_C_RULE = 12,	    /* an unwind rule that cannot be followed or leads nowhere */
	WIRE_CAUSE_C_FAULT = 13,    /* stack memory could not be read */
	WIRE_CAUSE_C_TOO_DEEP = 14, /* more C frames than a walk follows */
	WIRE_CAUSE_MAX = 16,
};

#define WIRE_FRAMES_LEAF 384 /* leafmost frames kept */
#define WIRE_FRAMES_ROOT 64  /* rootmost frames kept in addition, once frames are left out */
#define WIRE_FRAMES_MAX	 (WIRE_FRAMES_LEAF + WIRE_FRAMES_ROOT + 8)
#define WIRE_OFF_FRAMES	 192 /* frames kept in the thread's slot at switch-out, */
#define WIRE_OFF_ROOT	 48  /* of which this many rootmost ones of a deep stack */

struct wire_stack {
	__u16 nframes; /* entries in frames[], leaf first */
	__u8 end;      /* enum wire_stack_end */
	__u8 cause;    /* enum wire_cause */
	__u8 resync;   /* words skipped above Sp before the first frame */
	__u8 elided;   /* bit 0: there is a WIRE_FRAME_ELIDED frame; bit 1: frames are left out;
			  bit 2: there is a WIRE_FRAME_GAP frame */
	__u16 turn; /* the frames after WIRE_FRAME_ELIDED are a ring that starts at this index; the
		       drain rotates it (stack__straighten() in user/kernel/load.c) and sets 0 */
};
WIRE_ASSERT_SIZE(struct wire_stack, 8);

/* ── a thread by the runtime's structures ────────────────────────────────────────────────── */

/* Read from Task, InCall and Capability, not from registers (facts: rts/Task.h, rts/Schedule.c). */
enum wire_where {
	WIRE_WHERE_UNKNOWN = 0, /* not read, or memory unreadable */
	WIRE_WHERE_FOREIGN =
		1, /* the thread has no Task (ticker, foreign threads), or its Task no InCall: a
		      program's own C code before, between and after its calls of Haskell */
	WIRE_WHERE_HASKELL =
		2, /* holds a capability; in Haskell code, or in C called unsafely from it */
	WIRE_WHERE_SAFE_CALL = 3, /* its InCall has a suspended TSO */
	WIRE_WHERE_RESUMING = 4,  /* same, but has entered resumeThread: waits for a capability */
	WIRE_WHERE_RTS = 5,	  /* holds a capability but is not in Haskell: scheduler or GC */
	WIRE_WHERE_NO_CAP =
		6, /* has a Task but no capability: idle worker, or waiting to enter Haskell */
	WIRE_WHERE_NOT_READY = 7, /* the runtime is not initialised yet */
};

#define WIRE_NO_CAP 0xffffffffu

enum wire_rts_flag {
	WIRE_RTS_IN_KERNEL = 1,	    /* the sample or switch occurred in kernel mode */
	WIRE_RTS_CALLS_UNKNOWN = 2, /* the thread has run while no call probe was on: it may be in a
				       call whose start was not seen */
	WIRE_RTS_SUSPENDING = 4,    /* struct wire_off: the thread was still in suspendThread; the
				       foreign function of its open call had not started */
	WIRE_RTS_NO_ENTRY = 8,	    /* struct wire_sample: the thread is not in `threads`, so its
				       switches are not seen; never set in older captures */
	WIRE_RTS_CALLED_BACK = 16,  /* the innermost safe call that was open has called back; never
				       set in older captures */
};

struct wire_rts {
	__u64 cap; /* address of the Capability held, or held last (WIRE_WHERE_SAFE_CALL, _RESUMING,
		      _NO_CAP, or _FOREIGN with a Task and then without cap_no); 0: none */
	__u64 tso; /* address of the running or suspended TSO; 0: none */
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
	WIRE_EXEC = 7, /* struct wire_thread_event, for the thread that called exec: the process
			  runs another program */
	WIRE_PROC_EXIT = 8, /* struct wire_thread_event: the process's last thread has exited */
	WIRE_GC = 9,	    /* struct wire_gc: a GC probe was hit */
	WIRE_PROC_NEW = 10, /* struct wire_proc_new: a followed process called exec, or was forked
			       by a target */
	WIRE_READY = 11,    /* struct wire_thread_event: first safe call of an unconfirmed target */
	WIRE_TSO = 14,	    /* struct wire_tso: an OS thread runs a different Haskell thread */
	WIRE_ALLOC = 15,    /* struct wire_alloc: the Haskell thread that used up a nursery */
	WIRE_HEAP = 16,	    /* struct wire_heap: the heap at the end of a collection */
	WIRE_ALLOCATED = 17,   /* struct wire_allocated: right after a WIRE_SAMPLE */
	WIRE_THREAD_NAME = 18, /* struct wire_thread_event: a thread got another name, `comm` */
	WIRE_TSO_WAITS = 19,   /* struct wire_tso_waits: a TSO that does not run was looked at */
};

/* Every record starts with this header. `size` includes it. */
struct wire_hdr {
	__u64 ns;
	__u32 tgid;
	__u32 tid;
	__u16 type; /* enum wire_type */
	__u16 cpu;
	__u32 size;
};
WIRE_ASSERT_SIZE(struct wire_hdr, 24);

/* One tick of the CPU clock while a target's thread was on the CPU. */
struct wire_sample {
	struct wire_hdr h;
	struct wire_rts rts;
	__u64 ip;	     /* user program counter, also if the sample hit the kernel */
	__u64 site;	     /* site of the innermost open safe call; 0: none */
	__u64 call_start_ns; /* start of that call; 0: none */
	__u64 short_cpu_ns; /* CPU time so far of the thread's finished calls that were too short to
			       become records */
	struct wire_stack stack;
	__u64 frames[]; /* stack.nframes of them, leaf first */
};
WIRE_ASSERT_SIZE(struct wire_sample, 112);

/* One off-CPU interval, sent when the thread is switched in again (h.ns). */
struct wire_off {
	struct wire_hdr h;
	struct wire_rts rts; /* at switch-out */
	__u64 out_ns;	     /* switch-out; 0: before the session first saw the thread */
	__u64 wake_ns;	     /* became runnable; equals out_ns if preempted; 0: not seen */
	__u64 ip;	     /* user program counter at switch-out */
	__u64 site;	     /* site of the innermost open safe call; 0: none */
	__u64 call_start_ns;
	__u64 short_cpu_ns; /* as in struct wire_sample */
	__u32 syscall;	    /* number of the system call it slept in, or WIRE_NO_SYSCALL */
	__u32 prev_state;   /* task state at switch-out; 0: it was still runnable */
	struct wire_stack stack;
	__u64 frames[];
};
WIRE_ASSERT_SIZE(struct wire_off, 136);

#define WIRE_NO_SYSCALL 0xffffffffu

enum wire_call_flag {
	WIRE_CALL_INTERRUPTIBLE = 1,
	WIRE_CALL_OPEN_AT_START = 2, /* started before the session: times count from the attach */
	WIRE_CALL_ABANDONED = 4, /* never returned: the thread ended, or left the call by a jump */
	WIRE_CALL_UNMATCHED = 8, /* resumeThread without a start that was seen */
	WIRE_CALL_OPEN_AT_END = 16, /* created by user space when the session ends */
	WIRE_CALL_CALLED_BACK = 32, /* another safe call began within it, in a callback; never set
				       in older captures */
};

/*
 * A safe call that lasted longer than the threshold, measured from the entry of suspendThread
 * (start_ns) to the entry of resumeThread (h.ns).
 */
struct wire_call {
	struct wire_hdr h;
	struct wire_rts rts;
	__u64 start_ns;
	__u64 site; /* return address of the suspendThread call, or see WIRE_CALL_UNMATCHED */
	__u64 handover_ns; /* off CPU before the foreign function started; not in the two below */
	__u64 blocked_ns;  /* off CPU and not runnable, inside the call */
	__u64 runnable_ns; /* off CPU and runnable, inside the call */
	__u32 flags;	   /* enum wire_call_flag */
	__u16 depth;	   /* open calls of the thread outside this one */
	__u16 _pad;
	struct wire_stack stack; /* Haskell part: the stack of the suspended thread */
	__u64 frames[];
};
WIRE_ASSERT_SIZE(struct wire_call, 128);

#define WIRE_TICK_CAPS 64

struct wire_tick_cap {
	__u64 tso_id; /* 0: none */
	__u64 cccs;
	__u32 no;
	__u8 in_haskell;
	__u8 has_task; /* a Task holds it */
	__u8 disabled;
	__u8 queued; /* Haskell threads in its run queue; 255: 255 or more */
};
WIRE_ASSERT_SIZE(struct wire_tick_cap, 24);

/* One tick of the RTS timer, with the state of every capability at that time. */
struct wire_tick {
	struct wire_hdr h;
	__u32 ncaps;   /* entries in caps[] */
	__u32 enabled; /* capabilities that exist; if more than ncaps, the rest was left out */
	struct wire_tick_cap caps[];
};
WIRE_ASSERT_SIZE(struct wire_tick, 32);

enum wire_thread_flag {
	WIRE_THREAD_HAS_ENTRY = 1, /* in `threads`, from its first record to its exit */
	WIRE_THREAD_ALONE = 2,	   /* THREAD_EXIT: the process lives on, and open_calls count as
				      abandoned; never set in captures older than this flag */
};

struct wire_thread_event {
	struct wire_hdr h;
	__u64 start_ns;	  /* same as h.ns */
	__u64 on_cpu_ns;  /* sum_exec_runtime if known, else 0 */
	__u32 open_calls; /* safe calls open when the thread ended or called exec; EXEC: 0 in older
			     captures, which did not count them */
	__u32 flags;	  /* enum wire_thread_flag; 0 in captures older than these flags */
	char comm[16];
	/* THREAD_EXIT: as in struct wire_thread */
	__u64 short_calls;
	__u64 short_wall_ns;
	__u64 short_blocked_ns;
	__u64 short_runnable_ns;
};
WIRE_ASSERT_SIZE(struct wire_thread_event, 96);

enum wire_proc_flag {
	WIRE_PROC_FORK = 1,   /* created by fork in a target; otherwise by exec */
	WIRE_PROC_TARGET = 2, /* its entry in `targets` exists already */
};

struct wire_proc_new {
	struct wire_hdr h;
	__u64 start_boottime_ns;
	__u64 ino;   /* inode of the executable as the kernel sees it (stat() may report another) */
	__u32 dev;   /* the kernel's dev_t */
	__u32 flags; /* enum wire_proc_flag */
	char comm[16];
};
WIRE_ASSERT_SIZE(struct wire_proc_new, 64);

#define WIRE_TSO_UNKNOWN 0xffffu

struct wire_tso {
	struct wire_hdr h;
	__u64 id;	      /* TSO that runs now or is in a safe call; 0: none */
	__u64 left_id;	      /* TSO that ran before; 0: none was seen */
	__u16 left_why;	      /* why_blocked of left_id, or WIRE_TSO_UNKNOWN */
	__u16 left_what_next; /* what_next of left_id; 0: not known */
	__u32 bound;	      /* 1: `id` is a bound thread */
	char label[64];	      /* label of `id`; "" if none or not known */
};
WIRE_ASSERT_SIZE(struct wire_tso, 112);

/* A TSO that does not run is looked at in its memory from time to time: it waits for something else
 * than before, is ready, or has ended. */
struct wire_tso_waits {
	struct wire_hdr h; /* of the thread in which it was looked at */
	__u64 id;
	__u64 since_ns; /* when it was looked at before, or stopped */
	__u32 why;	/* why_blocked */
	__u32 what_next;
};
WIRE_ASSERT_SIZE(struct wire_tso_waits, 48);

/* ThreadKilled, ThreadComplete: rts/include/rts/Constants.h, 9.0 to 9.14 */
static inline __attribute__((always_inline)) int wire_tso_has_ended(__u64 what_next)
{
	return what_next == 3 || what_next == 4;
}

enum wire_gc_point {
	WIRE_GC_START = 1, /* stat_startGC: all capabilities are held */
	WIRE_GC_END = 2,   /* stat_endGC */
	WIRE_GC_SYNC = 3,  /* stat_startGCSync: the other capabilities have been asked to stop */
	WIRE_GC_OFF = 4,   /* created by user space: the probes cost too much and were removed */
};

struct wire_gc {
	struct wire_hdr h;
	__u32 point;	  /* enum wire_gc_point */
	__u32 generation; /* WIRE_GC_END: oldest generation collected, an argument of stat_endGC */
	__u64 number;	  /* collections finished before this one, or WIRE_GC_NO_NUMBER */
	__u32 n_caps;	  /* WIRE_GC_END: capabilities that exist; 0: not known */
	__u32 _pad;
	/* WIRE_GC_END: by the runtime's own clock, which differs from that of h.ns only by the time
	 * namespace's offset, subtracted by user space; 0: not known */
	__u64 sync_ns;	/* stat_startGCSync; may belong to an earlier collection */
	__u64 start_ns; /* stat_startGC */
};
WIRE_ASSERT_SIZE(struct wire_gc, 64);

#define WIRE_GC_NO_NUMBER (~0ULL)

/* Why a collection happened. Only the first three relate to what the thread allocated. */
enum wire_alloc_reason {
	WIRE_ALLOC_UNKNOWN = 0, /* only the end of the collection was seen */
	WIRE_ALLOC_NURSERY = 1, /* the capability's nursery is used up */
	WIRE_ALLOC_LARGE = 2,	/* large objects have reached their limit (+RTS -AL) */
	WIRE_ALLOC_STOPPED = 3, /* not requested: stopped for another capability's collection */
	WIRE_ALLOC_FORCED = 4,	/* requested by the program: performGC */
	WIRE_ALLOC_IDLE = 5,	/* idle GC: nothing left to run */
	WIRE_ALLOC_OTHER = 6,	/* requested by a timer: heap profiles */
};

enum wire_alloc_flag {
	WIRE_ALLOC_PRIMITIVE = 1, /* in a primitive operation; these create large objects */
};

/*
 * A sample of allocation: the Haskell thread that a capability ran last, and whose allocation made
 * it request a collection. Precedes the WIRE_HEAP of that collection, which has the bytes allocated
 * by the capability.
 */
struct wire_alloc {
	struct wire_hdr h;
	struct wire_rts rts; /* the capability and the Haskell thread */
	__u32 reason;	     /* enum wire_alloc_reason, up to _STOPPED */
	__u32 flags;	     /* enum wire_alloc_flag */
	struct wire_stack stack;
	__u64 frames[];
};
WIRE_ASSERT_SIZE(struct wire_alloc, 88);

enum wire_heap_flag {
	WIRE_HEAP_LARGE_SEEN = 1, /* its request or start was seen: large_words includes it */
};

/*
 * Bytes allocated so far by the capability that the sampled thread holds. Sent only with large
 * nurseries, where collections may be rare, so that these serve as samples of allocation as well.
 */
struct wire_allocated {
	struct wire_hdr h; /* time and thread of the sample */
	__u64 allocated;   /* bytes, without the block in use */
	__u32 cap_no;
	__u32 _pad;
};
WIRE_ASSERT_SIZE(struct wire_allocated, 40);

#define WIRE_HEAP_CAPS 64
#define WIRE_HEAP_GENS 4
/* Haskell threads are counted up to this number. */
#define WIRE_HEAP_THREADS 4096

/* One generation (rts/include/rts/storage/GC.h), in words and in blocks of 4 kB. */
struct wire_heap_gen {
	__u64 n_blocks, n_words; /* of small objects */
	__u64 n_large_blocks, n_large_words;
	__u64 n_compact_blocks;
};
WIRE_ASSERT_SIZE(struct wire_heap_gen, 40);

struct wire_heap_cap {
	__u64 allocated; /* bytes since the runtime started; ~0: not readable */
	__u32 no;
	__u32 nursery; /* size of its nursery in blocks of 4 kB; 0: not known */
};
WIRE_ASSERT_SIZE(struct wire_heap_cap, 16);

/*
 * The heap at the end of a collection, while all capabilities are held. If collections are very
 * frequent, some get no record; major ones always do. live_words, copied_words and slop_words are
 * arguments of stat_endGC; live and slop cover all generations.
 */
struct wire_heap {
	struct wire_hdr h;
	__u64 number;	   /* as in struct wire_gc */
	__u64 large_words; /* words of large objects since the target's entry was created */
	__u64 live_words, copied_words, slop_words;
	__u64 skipped_copied_words; /* copied_words of the skipped collections */
	__u32 generation;	    /* oldest generation collected */
	__u32 reason;		    /* enum wire_alloc_reason */
	__u16 n_gens;		    /* entries in gens[]; 0: not known */
	__u16 n_threads; /* Haskell threads, counted after a major collection; 0: not known */
	__u32 n_caps;	 /* entries in caps[] */
	__u32 all_caps;	 /* capabilities that exist; if more than n_caps, the rest was left out */
	__u32 flags;	 /* enum wire_heap_flag */
	__u32 skipped;	 /* preceding collections that were sampled out and have no record */
	__u32 held;	 /* megablocks (1 MB) held after the previous collection; 0: not known */
	struct wire_heap_gen gens[WIRE_HEAP_GENS];
	struct wire_heap_cap caps[];
};
WIRE_ASSERT_SIZE(struct wire_heap, 264);

#include "wire_maps.h"
#include "wire_unwind.h"

#endif
