/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * seen: what the intake has on a process, for the rooms that make lanes and join logs. They change
 * it only through the functions here, so it may be read any number of times.
 */
#ifndef SAFESCOPED_INTAKE_SEEN_H
#define SAFESCOPED_INTAKE_SEEN_H

#include <string.h>

#include "base/base.h"
#include "base/hash.h"
#include "intake.h"
#include "picture/make.h"

#define SOME_CAP 0xfffe /* one is held, but which one is unknown; only until the lane is done */
#define MAX_CAPS 1024	/* GHC has room for 256 */

#define SEEN_MAX_THREADS (1U << 20) /* per target; PID_MAX_LIMIT is 2^22 */
#define SEEN_MAX_GCS	 (1U << 20)
#define SEEN_MANAGERS	 (256 + 1) /* GHC has one for each capability, and one for timers */

/* ── what a record has ───────────────────────────────────────────────────────────────────── */

enum ev_flag {
	EV_OUTER_RTS = 1, /* the outermost C function is the RTS's own */
	EV_GC_CODE = 2,	  /* a C frame is the collector's */
	EV_GC_SYNC = 4,	  /* a C frame is where the RTS waits for the others before a collection */
	EV_RUNNABLE = 8,  /* switched out while runnable */
	EV_NEVER_SEEN = 16,	/* the off-CPU interval began before the thread was seen */
	EV_SLEEPS = 32,		/* snapshot: not running */
	EV_GAP = 64,		/* C frames are missing in the middle of the stack */
	EV_NO_WALK = 128,	/* only the program counter of the stack is known */
	EV_CALLS_UNKNOWN = 256, /* no call probe had been active: call_start_ns means nothing */
	EV_HANDOVER = 512,	/* off the CPU in suspendThread: in a call that has not begun yet */
	EV_AHEAD = 1024,	/* see intake__ahead: its record is still to come */
	EV_TRACED = 2048,	/* stopped by a tracer, as a command is until it can be watched */
	EV_NO_ENTRY = 4096,	/* the kernel side did not see when it last left the CPU */
	EV_MANAGER = 8192,	/* a GHC event manager waits for events */
	EV_STOPPED = 16384,	/* stopped by a signal or a tracer */
	EV_CALLED_BACK = 32768, /* in a callback of the innermost safe call */
};

/* A sample (t0 == t1), an off-CPU interval, a safe call, or a thread in a snapshot. */
struct ev {
	uint64_t t0, t1, call_start_ns;
	uint64_t wake_ns;      /* safe call: when its foreign function began */
	uint64_t short_cpu_ns; /* sample, off-CPU interval: see struct wire_sample */
	uint32_t hs;   /* the stack's Haskell part and all below; a number in intake.parts */
	uint32_t c;    /* the C part above it */
	uint32_t site; /* 1 + index of the target's site; 0: none */
	uint32_t ccs;  /* number of the cost-centre stack; 0: none */
	uint32_t syscall;
	uint64_t tso;	 /* id of the Haskell thread; 0: none */
	uint16_t cap;	 /* the capability held; NO_CAP: none */
	uint16_t left;	 /* the capability held last: in a safe call, or by a thread without one */
	uint16_t hs_run; /* frames of hs, from the leaf, of the innermost Haskell thread */
	uint8_t where;	 /* enum wire_where */
	uint8_t code;	 /* enum code_class of the program counter */
	uint8_t call_flags;
	uint16_t flags; /* enum ev_flag */
};

struct evs {
	struct ev *v;
	size_t n, cap;
};

/* Totals of the finished safe calls that were too short for a record (wire_maps.h, short_…). */
struct short_calls {
	bool known;
	uint64_t calls, wall_ns, blocked_ns, runnable_ns;
};

struct seen_thread {
	UT_hash_handle hh;	  /* the newest of its tid */
	struct seen_thread *next; /* all of the target */
	pid_t tid;
	uint32_t no; /* from 1, below the target's n_numbers; dropped threads' are reused */
	char name[16];
	uint64_t start_ns; /* 0: before the attach */
	uint64_t end_ns;   /* 0: still alive */
	uint64_t ahead_ns; /* its end, if known ahead; 0: not known */
	uint64_t shown_ns; /* its start by the snapshot's /proc, to a clock tick; 0: unknown */
	bool born;	   /* its creation was seen */
	bool collects;	   /* the non-moving collector's: without a Task, in the collector's code */
	bool had_records;
	bool has_entry; /* on the kernel side, until its end */
	/* The last record is a sample of a time when it had no entry: that no sample follows does
	 * not mean that it slept or ran on. */
	bool only_sampled;
	uint64_t last_ns; /* the latest time in any of its records */
	bool has_start, has_end, has_final;
	struct ev at_start, at_end; /* snapshots */
	/* Calls from the same site as at_start's: one that was open at the attach has ended; one
	 * was seen to begin. */
	bool ended_before_call, began_same_call;
	/* The call of at_start was still open at the last cut; the window before has its part. */
	bool first_call_goes_on;
	struct evs samples, offs, calls; /* in time order after seen__sort */
	struct ev final_off; /* the interval that it is still in; hs and c if there was a stack */
	struct wire_thread *final; /* its state in the kernel's map; NULL: none */
	struct short_calls shorts; /* from the thread's exit record or from the kernel's map */
	/* both as of the last cut; NULL: there was none, or nothing was known */
	struct wire_thread *before;
	struct short_calls shorts_before;
	uint32_t carried_over; /* bit i: before->open[i] has ended, see carried.c */
};

/* ── places ──────────────────────────────────────────────────────────────────────────────── */

struct seen_addr {
	UT_hash_handle hh;
	uint64_t key; /* a frame as in wire.h */
	uint32_t frame;
	uint8_t code;	/* enum code_class */
	uint8_t source; /* enum name_source */
	bool fold; /* a return frame of the RTS that means nothing to a reader and is not shown */
	bool gc_sync;
	bool signal_return; /* NAMES_SIGNAL_RETURN */
	uint8_t kernel;	    /* enum kernel_frame */
	bool used;	    /* in this window */
	bool partial;	    /* the name may improve when it is asked for again */
	uint32_t met;	    /* how often it was met since then, while it is partial */
	/* It had another name, under which stacks may have it: its frame then, unless that was
	 * folded. */
	bool changed, was_folded;
	uint32_t was;
	/* In a copy: the original; NULL: not kept. */
	struct seen_addr *kept;
	uint32_t counted[2]; /* in the picture's names, and in its leaf_names */
};

/* A place where safe calls are made. */
struct seen_site {
	UT_hash_handle hh;
	uint64_t addr;
	uint32_t index;
	uint32_t function, caller; /* frames; caller: UINT32_MAX if unknown */
	const char *function_name, *library, *caller_name, *place;
	bool caller_approximate;
	bool partial;	   /* its names may improve when they are asked for again */
	bool manager;	   /* the call was made by the code of a GHC event manager */
	bool called_back;  /* Haskell code was found running inside a call */
	bool shorts_apart; /* the kernel side leaves its calls out of the short calls' times */
	/* For calls that ended since the last cut, the parts before the cut, which earlier windows
	 * have; indexed by whether the calls are interruptible. */
	struct call_part {
		uint64_t wall_ns, blocked_ns, runnable_ns;
		uint64_t exit_wall_ns; /* of those still open at the exit */
	} before[2];
};

struct seen_counters {
	UT_hash_handle hh;
	struct wire_site_key key;
	struct wire_site value;
	struct wire_site base; /* as of the last cut */
	/* How often each count of the histogram has wrapped since then; the counts have 32 bits. */
	uint16_t turns[WIRE_HIST_SLOTS];
	/* The values include the recorded calls that ended by then. */
	uint64_t value_ns, base_ns;
};

/* Calls in one slot of the histogram since the last cut. */
static inline uint64_t seen_counters__hist(const struct seen_counters *c, unsigned slot)
{
	return (uint64_t)c->turns[slot] << 32 |
	       (uint32_t)(c->value.hist[slot] - c->base.hist[slot]);
}

/* ── cost centres ────────────────────────────────────────────────────────────────────────── */

/* A cost centre: the same label at two places in the source makes two of them. */
struct cc_key {
	const char *label, *module, *src_loc; /* the picture's strings: equal text, equal pointer */
};
struct seen_cc {
	UT_hash_handle hh;
	struct cc_key key;
	uint32_t frame;
	uint32_t index; /* from 0 */
};

/* A cost-centre stack; its meaning may not be known yet, or may never be. */
struct seen_ccs {
	UT_hash_handle hh;
	uint64_t addr;
	uint32_t id; /* from 1 */
	uint32_t parent;
	uint32_t tries;
	const struct seen_cc *centre; /* NULL: unknown */
	uint64_t ticks, samples;
};

struct seen_centres {
	struct seen_ccs *hash, **v;
	size_t n, cap;
	struct seen_cc *centres;
	size_t n_pending;
	uint64_t resolved_ns;
	bool ticked;
};

/* What a tick of the profiler's timer found on one capability. */
struct tick_note {
	uint64_t ns;
	uint32_t ccs; /* number of the cost-centre stack; 0: none */
	uint16_t cap;
};

/* ── collections, capabilities, Haskell threads ──────────────────────────────────────────── */

/* A collection, from its first sign on. */
struct gc_span {
	uint64_t start, end; /* end 0: still running */
	uint64_t work;	     /* when all capabilities had stopped; 0: not yet */
	uint64_t booked_ns;  /* the part of its pause in earlier windows */
	uint64_t number;     /* UINT64_MAX: unknown */
	int32_t generation;  /* -1: unknown */
	pid_t tid;
	bool synced; /* `start` is when the capabilities were asked to stop */
	bool late;   /* its start was unknown until its end: no cut has a part of it */
	bool ends;   /* a replay in windows knows that it ends later */
};

struct seen_gcs {
	struct gc_span *v; /* in time order, disjoint; only the last can be open */
	size_t n, cap;
	bool known; /* a probe has reported */
	bool has_probes;
	bool full; /* there is no room for more, which is treated as if the probes had come off */
	bool came_off;	   /* and the probes did come off */
	uint64_t ended_ns; /* end of the last one, by its probe */
	/* By the runtime's count: all collections up to counted_ns (0: unknown); those of this
	 * window that are not in v; and those before the first one with a number that were not
	 * seen. */
	uint64_t counted, counted_ns, missed, before;
	uint64_t first_counted_ns;     /* the first end with a number; 0: none */
	uint64_t uncounted;	       /* ends since `counted` that had no number */
	bool before_known;	       /* `before` is known, or belongs to an earlier window */
	uint64_t off_ns;	       /* when the probes came off; 0: they did not */
	uint64_t start_addr, end_addr; /* of the probes; 0: no probe */
};

/* Whether the probes have been on all the time; collections in `missed` are still missing. */
static inline bool seen_gcs__all(const struct seen_gcs *gcs)
{
	return gcs->known && !gcs->off_ns;
}

/* ── allocation ──────────────────────────────────────────────────────────────────────────── */

/* A sample of allocation, after the collection's end has shown how many bytes it stands for. */
struct alloc_note {
	struct ev
		ev; /* its stack, Haskell thread and capability; t0 and t1: the collection's end */
	uint64_t bytes;
	uint64_t older; /* the part of them that belongs to readings before that of its end */
	uint64_t since_ns, until_ns; /* all of them were allocated between these times */
	int32_t tid;		     /* the OS thread; 0: unknown */
	bool whole;		     /* the stack is complete */
	bool stopped;		     /* its capability was stopped for another one's collection */
	bool ticked; /* it is one of the sampler's: it stands for what was allocated since the last
			sample */
};

/* What was allocated between the ends of two collections, or between two of the sampler's ticks. */
struct alloc_reading {
	uint64_t ns, since_ns; /* this end, and the previous one */
	uint64_t bytes;
	uint64_t large;	   /* the part of them in large objects … */
	uint64_t large_of; /* … out of this many bytes; the share of the rest is unknown */
	uint32_t reason;   /* enum wire_alloc_reason: of the collection */
	uint64_t skipped; /* collections since the last reading without a reading of their own … */
	uint64_t skipped_copied; /* … and the bytes that they copied */
	bool caps_left_out;
	bool ticked; /* made by a tick, which does not have the fields that follow */
	/* the heap at that time */
	uint64_t live, copied, slop, nursery;
	uint64_t held;	  /* at the end of the previous collection; 0: unknown */
	uint32_t threads; /* Haskell threads; 0: unknown */
	uint32_t n_gens;
	int32_t generation; /* the oldest one collected; -1: unknown */
	struct pic_heap_gen gens[PIC_HEAP_GENS];
};

/* The most capabilities whose allocation is counted. */
#define SEEN_ALLOC_CAPS WIRE_HEAP_CAPS

/* Allocated bytes waiting for a sample. */
struct alloc_wait {
	uint64_t bytes;
	uint64_t older;	   /* the part of them from readings before the last one */
	uint64_t since_ns; /* none of them was allocated earlier */
};

/*
 * Bytes go to the samples of the capability that allocated them. Nothing shows whose the bytes in
 * large objects are, so they are divided by what each capability has allocated in total. All bytes
 * of the readings are in a note or wait for the next sample, until the end of the window.
 */
struct seen_allocs {
	bool known;	 /* a collection's end has been seen */
	uint32_t n_caps; /* as of then; 0: everything that any of them has ever allocated counts */
	struct alloc_note *v; /* in time order */
	size_t n, cap;
	struct alloc_reading *readings; /* in time order */
	size_t n_readings, readings_cap;
	uint64_t read_ns; /* time of the last one */
	uint64_t live;	  /* bytes after the last collection */
	uint64_t held;	  /* bytes from the system, as of then; 0: unknown */
	uint32_t threads; /* Haskell threads after the last major collection; 0: unknown */
	uint64_t heap_ns; /* end of the last collection; 0: there has been none */
	bool rare;	  /* that collection took long to come */
	uint64_t ticked;  /* bytes in the ticks' readings since then */
	uint64_t number;  /* number of that collection */
	uint64_t large;	  /* bytes by then, counted from an arbitrary time */
	struct alloc_wait large_waits;
	struct alloc_wait unseen; /* allocated while the probes were off */
	uint32_t unasked;	  /* collections since the last one requested for large objects */
	struct alloc_cap {
		bool known;
		uint64_t bytes; /* by the last reading */
		uint64_t read_ns;
		struct alloc_wait waits;
		uint32_t passed_over; /* samples of large objects since its last other one */
		uint64_t unread; /* bytes by its first tick, if nothing about it was known before */
		/* the last sample of a thread holding it, for the WIRE_ALLOCATED that follows */
		struct ev sample;
		int32_t sample_tid; /* 0: none */
		bool sample_whole;
	} caps[SEEN_ALLOC_CAPS];
	/* samples whose collection is still running */
	struct alloc_open {
		struct ev ev;
		uint32_t reason; /* enum wire_alloc_reason */
		int32_t tid;	 /* as in struct alloc_note */
		bool whole, primitive;
	} open[2];
	unsigned n_open;
};

/* The number of capabilities, and which of the first 64 were disabled, from `ns` on. */
struct cap_note {
	uint64_t ns, disabled;
	uint32_t n;
};

/* A Haskell thread that was seen. */
struct tso_info {
	UT_hash_handle hh;
	uint64_t id;
	const char *label;
	bool bound;
	/* from the last look that found it: the time that the look counts for (0: none has found
	 * it), and why it was blocked */
	uint64_t living_ns;
	uint16_t living_why;
	uint64_t seen_ns; /* a record shows it alive then, maybe still to come; 0: none */
	uint64_t run_ns;  /* it was first seen to run; 0: never */
	uint64_t end_ns;  /* it was seen to have ended; 0: never */
};

/* It was seen to stop running at `ns`, for this reason (why_blocked); or looked at when it did not
 * run, and found to wait for something else than at since_ns. */
struct tso_note {
	uint64_t tso, ns;
	uint64_t since_ns;
	uint16_t why; /* or WIRE_TSO_UNKNOWN */
	bool ended, is_look;
};

struct seen_points {
	struct pic_point *v;
	size_t n, cap;
};

/* ── a process ───────────────────────────────────────────────────────────────────────────── */

struct seen {
	UT_hash_handle hh; /* the newest of its pid */
	pid_t pid;
	uint32_t no;		/* counts from 0 */
	struct pic_target *pub; /* its part of the picture */
	struct namer namer;
	bool settled; /* nothing more comes of it, and it may be reduced to sums */
	bool ended;
	bool has_snapshot;
	bool was_cut;	  /* its part of the picture began with a cut */
	bool has_symbols; /* those of its executable name its code, wherever they came from */
	bool from_start;  /* its runtime was not initialised yet when it joined */
	size_t n_missing; /* pub's first sentences, which hold for more than one window */
	uint64_t snap_ns; /* time of the snapshot taken as it joined; 0: none yet */
	uint64_t joined_ns;
	uint64_t end_ns;
	uint64_t call_record_ns;
	uint64_t last_call_ns; /* the latest end of a recorded call */
	uint32_t caps_at_attach;
	uint64_t left_out; /* records dropped */
	uint64_t blind_ns; /* time of the first of them, after which nothing is known; 0: none */
	uint64_t ahead_ns; /* intake__ends_ahead; 0: unknown */
	bool exits_ahead;  /* the process exits at ahead_ns */

	struct seen_thread *threads, *thread_list;
	size_t n_threads;
	uint32_t n_numbers; /* of threads: one above the highest */
	uint32_t *free_numbers;
	size_t n_free_numbers, free_numbers_cap;

	struct seen_addr *addrs;
	struct seen_addr **recent_addrs; /* see addrs.c */
	size_t n_recent_addrs;
	struct seen_site *sites, **site_v;
	size_t n_sites, sites_cap;
	struct seen_counters *counters;
	struct seen_centres ccs;
	struct tick_note *ticks; /* of profiled programs */
	size_t n_ticks, ticks_cap;

	struct seen_gcs gcs;
	struct seen_allocs allocs;
	uint64_t managers[SEEN_MANAGERS]; /* Haskell threads that are event managers; 0: none */
	size_t n_managers;		  /* how many were put there */
	struct cap_note *cap_notes;	  /* in time order, neighbours differ */
	size_t n_cap_notes, cap_notes_cap;
	struct tso_info *tso_infos;
	/* the last look for living threads: its start, and the time that it counts for */
	uint64_t looked_ns, looked_for_ns;
	struct tso_note *tso_notes; /* in order of arrival */
	size_t n_tso_notes, tso_notes_cap;
	size_t tso_notes_room_at; /* make room at this many; 0: at half of what is kept at most */
	struct pic_flow *flows;	  /* recorded safe calls; their ends are not known yet */
	size_t n_flows, flows_cap;
	struct seen_points queued; /* Haskell threads in run queues, at ticks */
	/* Ticks at which a capability was idle while Haskell threads were queued on others, with
	 * their number. */
	struct seen_points starved;
	struct intake_cost cost, cost_before; /* totals: now, and at the last cut */
	size_t cut_gcs, cut_starved;	      /* how many of them were removed at the last cut */
	uint64_t probed[6];		      /* addresses of its probes; 0: no probe */
};

/* The newest process with that pid; NULL: none. */
struct seen *intake__find(const struct intake *in, pid_t pid);
/* In the order in which they were added. */
size_t intake__n_targets(const struct intake *in);
struct seen *intake__target(const struct intake *in, size_t i);
struct picture *intake__picture(const struct intake *in);
size_t intake__n_records(const struct intake *in);
/* True if there were more distinct parts of stacks than max_stacks. */
bool intake__stacks_full(const struct intake *in);

/* When the knowledge of the process ends, in a session that ends at end_ns. */
uint64_t seen__end(const struct seen *s, uint64_t end_ns);
/* Sorts a thread's records by time; they arrive almost sorted from the ring buffer. */
void seen__sort(struct seen_thread *th);
/* Releases the thread's records that end by t. */
void seen__forget(struct intake *in, struct seen_thread *th, uint64_t t);
/* Releases the samples of allocation up to t, and the readings up to t. */
void seen__forget_allocs(struct intake *in, struct seen *s, uint64_t t);
/*
 * Takes up to `most` bytes out of the readings up to t that no sample up to t stands for; no later
 * sample will stand for them. Returns the number of bytes; none of them was allocated before
 * *ret_since_ns.
 */
uint64_t seen__take_unsampled(struct intake *in, struct seen *s, uint64_t t, uint64_t most,
			      uint64_t *ret_since_ns);
/* Keeps only the notes of Haskell threads for which `keep` returns true. */
void seen__forget_tso_notes(struct seen *s, bool (*keep)(void *ctx, const struct tso_note *note),
			    void *ctx);
/*
 * Removes the threads for which drops() returns 1 (0: the thread stays; a negative errno stops and
 * is returned). A removed thread's number is given to the next new thread.
 */
int seen__drop_threads(struct intake *in, struct seen *s,
		       int (*drops)(void *ctx, struct seen_thread *th), void *ctx);
/* Keeps only the Haskell threads for which `keep` returns true or that are known to be alive after
 * at_ns. */
void seen__forget_tsos(struct seen *s, uint64_t at_ns, bool (*keep)(void *ctx, uint64_t tso),
		       void *ctx);
/* Shrinks the arrays of a thread that has ended to their size. */
void seen__fit(struct seen_thread *th);
/* Releases all records, and what only they need, once the picture is made. */
void seen__made(struct intake *in, struct seen *s);

/* The first collection that ends after t; NULL if there is none. */
const struct gc_span *seen__gc_at(const struct seen *s, uint64_t t);
bool seen__in_gc(const struct seen *s, uint64_t start, uint64_t end);
/* When the collection ended; UINT64_MAX if it is running. */
static inline uint64_t gc__end(const struct gc_span *gc)
{
	return gc->end ? gc->end : UINT64_MAX;
}
/*
 * The part of its pause that falls into the window from from_ns to to_ns. Its end may show that the
 * work began later than assumed: what an earlier window has too much is then subtracted from this
 * one.
 */
static inline uint64_t gc__pause(const struct gc_span *gc, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t until = MIN(gc__end(gc), to_ns), work = MAX(gc->work, from_ns);
	uint64_t pause = gc->work && work < until ? until - work : 0;
	uint64_t before = gc->work && gc->work < from_ns ? from_ns - gc->work : 0;

	return pause - MIN(gc->booked_ns - MIN(gc->booked_ns, before), pause);
}

/* NULL for number 0 and for an unknown one. */
const struct seen_site *seen__site(const struct seen *s, uint32_t no);
const struct seen_site *seen__site_at(const struct seen *s, uint64_t addr);
/* Whether `state`, which may be NULL, has an open call that began at start_ns. */
static inline bool seen__has_open(const struct wire_thread *state, uint64_t start_ns)
{
	uint32_t depth = state ? MIN(state->depth, (uint32_t)WIRE_OPEN_MAX) : 0;

	for (uint32_t i = 0; i < depth; i++)
		if (state->open[i].start_ns == start_ns)
			return true;
	return false;
}
const struct seen_counters *seen__counters(const struct seen *s, uint64_t site, bool interruptible);
/*
 * Whether counters, if there are any, may be of the time ns. Those read as a process joins precede
 * the records of that time, which were held back; by them a call would end in a window in which it
 * is still running. They are read within a second of the snapshot.
 */
static inline bool seen__counters_are_of(const struct seen *s, uint64_t ns)
{
	return s->snap_ns + 1000000000ULL <= ns || (s->ended && s->end_ns <= ns);
}
/*
 * Whether the site's counters include the whole of a recorded call; `base`: the counters of the
 * last cut. A call that is running at the time of a cut may end before the kernel side is read for
 * it; it then belongs to the window that ends there and to no other. False for a call that a replay
 * knows ahead.
 */
bool seen__is_counted(const struct seen *s, const struct ev *call, bool base);
const struct tso_info *seen__tso(const struct seen *s, uint64_t id);
/* Whether the Haskell thread may have run at `ns`: false before it was first seen, and after its
 * end. */
bool seen__may_run(const struct seen *s, uint64_t tso, uint64_t ns);
/* Whether the system call waits for one of several events, or for a time. */
bool seen__waits_for_events(uint32_t syscall);
/*
 * Until when a Haskell thread lived of which nothing was seen from since_ns to end_ns. Returns
 * end_ns if the last look found the thread, or if no look counts for a time after since_ns. A look
 * that began before since_ns shows nothing about the thread; the next one may find it.
 */
uint64_t seen__lives_until(const struct seen *s, uint64_t tso, uint64_t since_ns, uint64_t end_ns);
/* Why the thread was blocked at at_ns, by a look that began after since_ns and counts for at_ns;
 * else WIRE_TSO_UNKNOWN. */
uint16_t seen__living_why(const struct seen *s, uint64_t tso, uint64_t since_ns, uint64_t at_ns);

/* ── cuts (cut.c) ────────────────────────────────────────────────────────────────────────── */

/*
 * Ends the picture of the session at at_ns; what follows goes into *pic, which is new and must
 * outlive the intake. Targets that have ended are removed, and so is everything that only concerns
 * the past; what goes on stays, and so do all names. The lanes then renumber what they keep, by
 * seen__renumber, and intake__cut_end is called. Any failure is final: the intake cannot be used
 * any more, and may refer to both pictures.
 */
int intake__cut(struct intake *in, uint64_t at_ns, struct picture *pic);
/* Translates an event's stack numbers to the new picture. */
int seen__renumber(struct intake *in, struct ev *ev);
/* Releases the previous picture's numbers. `failed`: no further input is accepted. */
void intake__cut_end(struct intake *in, bool failed);

/* ── stacks (compose.c) ──────────────────────────────────────────────────────────────────── */

/* A part by its number in ev.hs or ev.c. */
struct pic_stack intake__part(const struct intake *in, uint32_t part);
/*
 * The frame to show for a frame of a part, which may have a better name by now; UINT32_MAX: by its
 * better name the frame is not shown.
 */
uint32_t intake__shown(const struct intake *in, uint32_t frame);
/* The whole stack of a slice in that state; ev is NULL if nothing is known. */
int stack__compose(struct intake *in, const struct seen *s, enum thread_state state,
		   const struct ev *ev, uint32_t *ret_stack);
/* For time in a safe call without a sample: its caller and function, "[no sample]". */
int stack__unsampled_call(struct intake *in, const struct seen *s, const struct ev *ev,
			  uint32_t *ret_stack);

/* ── cost-centre stacks (ccs.c) ──────────────────────────────────────────────────────────── */

/* Reads the meaning of cost-centre stacks that are not resolved yet. */
int ccs__resolve(struct intake *in, struct seen *s);
/* NULL for number 0. */
const struct seen_ccs *ccs__at(const struct seen *s, uint32_t id);
/* Writes the path as frames, innermost centre first, and returns their number; 0: unknown. */
uint32_t ccs__path(const struct seen *s, uint32_t id, uint32_t *ret_frames, uint32_t max);
/* True if a centre of the path was written by the program's author or made by -fprof-auto and the
 * like; false if all are GHC's own, such as MAIN and a module's CAF. */
bool ccs__has_own(const struct seen *s, uint32_t id);

#endif
