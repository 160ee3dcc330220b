/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * seen: what intake has of a process, for the rooms that make lanes and bring logs together with
 * it. They change nothing in it but by the functions here: the same may be read again and again.
 */
#ifndef SAFESCOPED_INTAKE_SEEN_H
#define SAFESCOPED_INTAKE_SEEN_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/hash.h"
#include "intake.h"
#include "picture/make.h"

#define SOME_CAP 0xfffe /* one is held, and nothing shows which: until the lane is done */
#define MAX_CAPS 1024	/* GHC has room for 256 */

#define SEEN_MAX_THREADS (1U << 20) /* of one target; PID_MAX_LIMIT is 2^22 */
#define SEEN_MAX_GCS	 (1U << 20)

/* ── what a record has ───────────────────────────────────────────────────────────────────── */

enum ev_flag {
	EV_OUTER_RTS = 1,	/* the outermost C function is the RTS's own */
	EV_GC_CODE = 2,		/* a C frame is the collector's */
	EV_GC_SYNC = 4,		/* a C frame is where the RTS waits for the others before a
				   collection */
	EV_RUNNABLE = 8,	/* switched out while it could run on */
	EV_NEVER_SEEN = 16,	/* the off-CPU interval began before the thread was seen */
	EV_SLEEPS = 32,		/* snapshot: not running */
	EV_GAP = 64,		/* C frames are missing in mid-stack */
	EV_NO_WALK = 128,	/* of the stack only the program counter is known */
	EV_CALLS_UNKNOWN = 256, /* no call probe had been on: call_start_ns means nothing */
	EV_HANDOVER = 512,	/* off the CPU in suspendThread: in a call that has not begun yet */
	EV_AHEAD = 1024,	/* see intake__ahead: its record is still to come */
	EV_TRACED = 2048,	/* stopped for a tracer, as a command is until it can be watched */
};

/* A sample (t0 == t1), an off-CPU interval, a safe call, or a thread in a snapshot. */
struct ev {
	uint64_t t0, t1, call_start_ns;
	uint64_t wake_ns;      /* of a safe call: when its foreign function began */
	uint64_t short_cpu_ns; /* sample, off-CPU interval: see struct wire_sample */
	uint32_t hs;	       /* the stack's Haskell part, and what is below; one of the parts */
	uint32_t c;	       /* its C part above */
	uint32_t site;	       /* 1 + index of the target's site; 0: none */
	uint32_t ccs;	       /* number of the cost-centre stack; 0: none */
	uint32_t syscall;
	uint64_t tso;	 /* id of the Haskell thread; 0: none */
	uint16_t cap;	 /* that is held; NO_CAP: none */
	uint16_t left;	 /* that was held last: a safe call's, or a thread's without any */
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

/* Finished safe calls that were too short for a record, summed up (wire.h, short_…). */
struct short_calls {
	bool known;
	uint64_t calls, wall_ns, blocked_ns, runnable_ns;
};

struct seen_thread {
	UT_hash_handle hh;	  /* the newest of its tid */
	struct seen_thread *next; /* all of the target */
	pid_t tid;
	uint32_t no; /* from 1, below the target's n_numbers: one that is gone leaves its own */
	char name[16];
	uint64_t start_ns; /* 0: before the attach */
	uint64_t end_ns;   /* 0: still there */
	uint64_t ahead_ns; /* its end, if it is known ahead; 0: none is */
	uint64_t shown_ns; /* its start by the snapshot's /proc, to a clock tick; 0: not known */
	bool born;	   /* its creation was seen */
	bool collects;	   /* the non-moving collector's: without a Task, in the collector's code */
	bool had_records;
	bool has_entry;	  /* on the kernel side, until its end */
	uint64_t last_ns; /* the latest time that a record of it had */
	bool has_start, has_end, has_final;
	struct ev at_start, at_end; /* snapshots */
	/* of calls from the place of at_start's: one that was open at the attach has ended; the
	 * begin of one was seen */
	bool ended_before_call, began_same_call;
	/* Of that of at_start itself: it went on at the last cut, and the window had its part. */
	bool first_call_goes_on;
	struct evs samples, offs, calls; /* in time order after seen__sort */
	struct ev final_off; /* the interval that it is still in; hs and c if there was a stack */
	struct wire_thread *final; /* its state in the kernel's map; NULL: none */
	struct short_calls shorts; /* as the thread's end, or the kernel's map, has them */
	/* both as they were at the last cut; NULL: there was none, or nothing was known */
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
	bool fold;	/* a return frame of the RTS that means nothing, and is not shown */
	bool gc_sync;
	bool signal_return; /* NAMES_SIGNAL_RETURN */
	uint8_t kernel;	    /* enum kernel_frame */
	bool used;	    /* in this window */
	bool partial;	    /* the name may be better when it is asked for again */
	uint32_t met;	    /* how often it was met since, while it is partial */
	/* It had another name, under which it may be in stacks: its frame then, unless that was
	 * folded. */
	bool changed, was_folded;
	uint32_t was;
	/* In a copy: where it is kept; NULL: nowhere. */
	struct seen_addr *kept;
	uint32_t counted[2]; /* in the picture's names, and in its leaf_names */
};

/* Where safe calls are made. */
struct seen_site {
	UT_hash_handle hh;
	uint64_t addr;
	uint32_t index;
	uint32_t function, caller; /* frames; caller: UINT32_MAX if not known */
	const char *function_name, *library, *caller_name, *place;
	bool caller_approximate;
	bool partial;	  /* its names may be better when they are asked for again */
	bool manager;	  /* the code of an event manager of GHC's made the call */
	bool called_back; /* a sample found Haskell code running inside of the call */
	/* Of the calls that ended since the last cut what came before it, by whether they are
	 * interruptible: it is in the earlier windows. */
	struct call_part {
		uint64_t wall_ns, blocked_ns, runnable_ns;
		uint64_t exit_wall_ns; /* of those that were still open at the exit */
	} before[2];
};

struct seen_counters {
	UT_hash_handle hh;
	struct wire_site_key key;
	struct wire_site value;
	struct wire_site base; /* as it was at the last cut */
	/* Since then: how often each count of the histogram, which has 32 bits, began again at 0.
	 */
	uint16_t turns[WIRE_HIST_SLOTS];
	/* Calls with a record that ended by then are in them. */
	uint64_t value_ns, base_ns;
};

/* Calls since the last cut of one slot of the histogram. */
static inline uint64_t seen_counters__hist(const struct seen_counters *c, unsigned slot)
{
	return (uint64_t)c->turns[slot] << 32 |
	       (uint32_t)(c->value.hist[slot] - c->base.hist[slot]);
}

/* ── cost centres ────────────────────────────────────────────────────────────────────────── */

/* A cost centre: the same label in two places of the source is two of them. */
struct cc_key {
	const char *label, *module, *src_loc; /* of the picture: equal text, equal pointer */
};
struct seen_cc {
	UT_hash_handle hh;
	struct cc_key key;
	uint32_t frame;
	uint32_t index; /* from 0 */
};

/* A cost-centre stack; what it means may not be known yet, or never. */
struct seen_ccs {
	UT_hash_handle hh;
	uint64_t addr;
	uint32_t id; /* from 1 */
	uint32_t parent;
	uint32_t tries;
	const struct seen_cc *centre; /* NULL: not known */
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

/* What the profiler's timer found on one capability. */
struct tick_note {
	uint64_t ns;
	uint32_t ccs; /* number of the cost-centre stack; 0: none */
	uint16_t cap;
};

/* ── collections, capabilities, Haskell threads ──────────────────────────────────────────── */

/* A collection, from its first sign on. */
struct gc_span {
	uint64_t start, end; /* end 0: still open */
	uint64_t work;	     /* all capabilities have stopped; 0: not yet */
	uint64_t booked_ns;  /* of its pause, in the windows before */
	uint64_t number;     /* UINT64_MAX: not known */
	int32_t generation;  /* -1: not known */
	pid_t tid;
	bool synced; /* `start` is when the capabilities were asked to stop */
	bool late;   /* when it began was not known before its end: no cut has a part of it */
	bool ends;   /* by what a replay in windows knows of later */
};

struct seen_gcs {
	struct gc_span *v; /* in time order, disjoint; only the last can be open */
	size_t n, cap;
	bool known; /* a probe has reported */
	bool has_probes;
	bool full;	   /* as if they had come off: there is no room for more */
	bool came_off;	   /* and they have */
	uint64_t ended_ns; /* of the last one, by its probe */
	/* By the runtime's count: all by then, 0: not known; those of this window that are not in
	 * v; and those that were not seen before the first one that has a number. */
	uint64_t counted, counted_ns, missed, before;
	uint64_t uncounted;	       /* ends since `counted` that had no number */
	bool before_known;	       /* or they are an earlier window's */
	uint64_t off_ns;	       /* when they came off; 0: they did not */
	uint64_t start_addr, end_addr; /* of the probes; 0: there is none */
};

/* Whether the probes have been on all the time, but for what is `missed`. */
static inline bool seen_gcs__all(const struct seen_gcs *gcs)
{
	return gcs->known && !gcs->off_ns;
}

/* ── allocation ──────────────────────────────────────────────────────────────────────────── */

/* A sample of allocation, once the collection's end has shown how many bytes it stands for. */
struct alloc_note {
	struct ev
		ev; /* its stack, Haskell thread and capability; t0 and t1: the collection's end */
	uint64_t bytes;
	uint64_t older;		     /* of these: in readings before that of its end */
	uint64_t since_ns, until_ns; /* all of them were allocated between these */
	int32_t tid;		     /* the OS thread; 0: not known */
	bool whole;		     /* the stack is */
	bool stopped;		     /* for another capability's collection */
	bool ticked; /* it is one of the sampler's: what it stands for was allocated since the last
		      * one
		      */
};

/* What was allocated from one collection's end, or one of the sampler's ticks, to the next one's.
 */
struct alloc_reading {
	uint64_t ns, since_ns; /* this end, and the one before */
	uint64_t bytes;
	uint64_t large;		 /* of these, in large objects … */
	uint64_t large_of;	 /* … of so many bytes: of the rest that is not known */
	uint32_t reason;	 /* enum wire_alloc_reason: of the collection */
	uint64_t skipped;	 /* those since the one before of which there is nothing else … */
	uint64_t skipped_copied; /* … but what they copied */
	bool caps_left_out;
	bool ticked; /* a tick's, which knows nothing of what follows */
	/* the heap by then */
	uint64_t live, copied, slop, nursery;
	uint64_t held;	  /* at the end of the collection before; 0: not known */
	uint32_t threads; /* Haskell ones; 0: not known */
	uint32_t n_gens;
	int32_t generation; /* the oldest one collected; -1: not known */
	struct pic_heap_gen gens[PIC_HEAP_GENS];
};

/* Capabilities of which allocation is counted: no more are read. */
#define SEEN_ALLOC_CAPS WIRE_HEAP_CAPS

/* What was allocated, and waits for a sample. */
struct alloc_wait {
	uint64_t bytes;
	uint64_t older;	   /* of these: in readings before the last one */
	uint64_t since_ns; /* all of them were allocated since then */
};

/*
 * Bytes go to samples by the capability that allocated them; those of large objects, of which
 * nothing shows whose they are, by what each capability has allocated at all. All that readings
 * have is in a note, or waits for the next sample; at a window's end it waits no longer.
 */
struct seen_allocs {
	bool known;	      /* there has been a collection's end */
	uint32_t n_caps;      /* by then; 0: all that any of them has allocated counts */
	struct alloc_note *v; /* in time order */
	size_t n, cap;
	struct alloc_reading *readings; /* in time order */
	size_t n_readings, readings_cap;
	uint64_t read_ns; /* the last one's */
	uint64_t live;	  /* bytes after the last collection */
	uint64_t held;	  /* from the system, by then; 0: not known */
	uint32_t threads; /* Haskell ones after the last major collection; 0: not known */
	uint64_t heap_ns; /* when that ended; 0: there has been none */
	bool rare;	  /* it was long in coming */
	uint64_t ticked;  /* bytes in the readings of ticks since then */
	uint64_t number;  /* its number */
	uint64_t large;	  /* bytes by then, since some time */
	struct alloc_wait large_waits;
	struct alloc_wait unseen; /* while the probes were off */
	uint32_t unasked;	  /* collections since large objects asked for one */
	struct alloc_cap {
		bool known;
		uint64_t bytes; /* by the last reading */
		uint64_t read_ns;
		struct alloc_wait waits;
		uint32_t passed_over; /* samples of large objects since it had one that was not */
		uint64_t unread; /* bytes by its first tick, if nothing was known of it before */
		/* the last sample of a thread that held it, for what follows it */
		struct ev sample;
		int32_t sample_tid; /* 0: there is none */
		bool sample_whole;
	} caps[SEEN_ALLOC_CAPS];
	/* samples of which the collection goes on */
	struct alloc_open {
		struct ev ev;
		uint32_t reason; /* enum wire_alloc_reason */
		int32_t tid;	 /* as in struct alloc_note */
		bool whole, primitive;
	} open[2];
	unsigned n_open;
};

/* How many capabilities there were, and which of the first 64 were disabled, from `ns` on. */
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
	/* of the last look that found it: the time that it counts for (0: none has), and why it was
	 * blocked */
	uint64_t living_ns;
	uint16_t living_why;
	uint64_t seen_ns; /* a record shows it to live then, maybe one yet to come; 0: none */
};

/* It was seen to run no more at `ns`, for that reason (why_blocked). */
struct tso_note {
	uint64_t tso, ns;
	uint16_t why; /* WIRE_TSO_UNKNOWN */
	bool ended;
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
	struct pic_target *pub; /* what the picture has of it */
	struct namer namer;
	bool settled; /* nothing more comes of it, and only sums may be kept */
	bool ended;
	bool has_snapshot;
	bool was_cut;	  /* its part of the picture began with a cut */
	bool from_start;  /* its runtime was not initialised yet when it joined */
	size_t n_missing; /* pub's first sentences: they hold for the process, not for one window */
	uint64_t snap_ns; /* of the snapshot as it joined; 0: none yet */
	uint64_t joined_ns;
	uint64_t end_ns;
	uint64_t call_record_ns;
	uint64_t last_call_ns; /* the latest end of one that there was a record of */
	uint32_t caps_at_attach;
	uint64_t left_out; /* records */
	uint64_t blind_ns; /* the first of them; 0: none. Nothing is known from there on */
	uint64_t ahead_ns; /* intake__ends_ahead; 0: not known */

	struct seen_thread *threads, *thread_list;
	size_t n_threads;
	uint32_t n_numbers; /* of threads: one more than the highest */
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
	struct cap_note *cap_notes; /* in time order, no two neighbours the same */
	size_t n_cap_notes, cap_notes_cap;
	struct tso_info *tso_infos;
	/* the last look for those that live: its begin, and the time that it counts for */
	uint64_t looked_ns, looked_for_ns;
	struct tso_note *tso_notes; /* in the order in which they came */
	size_t n_tso_notes, tso_notes_cap;
	struct pic_flow *flows; /* recorded safe calls; their ends are not known yet */
	size_t n_flows, flows_cap;
	struct seen_points queued; /* Haskell threads in run queues, at ticks */
	/* Ticks at which a capability was idle while Haskell threads were queued at others, and how
	 * many were. */
	struct seen_points starved;
	struct intake_cost cost, cost_before; /* totals: now, and at the last cut */
	size_t cut_gcs, cut_starved;	      /* how many of them went with the last cut */
	uint64_t probed[6];		      /* where its probes are; 0: there is none */
};

/* The process that was added last with that pid; NULL: none. */
struct seen *intake__find(const struct intake *in, pid_t pid);
/* In the order in which they were added. */
size_t intake__n_targets(const struct intake *in);
struct seen *intake__target(const struct intake *in, size_t i);
struct picture *intake__picture(const struct intake *in);
size_t intake__n_records(const struct intake *in);
/* More different parts of stacks came than max_stacks. */
bool intake__stacks_full(const struct intake *in);

/* When what is known of the process ends, in a session that ends at end_ns. */
uint64_t seen__end(const struct seen *s, uint64_t end_ns);
/* Brings a thread's records into the order of time; the ring buffer keeps nearly all of them so. */
void seen__sort(struct seen_thread *th);
/* Lets go of the thread's records that end by t. */
void seen__forget(struct intake *in, struct seen_thread *th, uint64_t t);
/* Lets go of the samples of allocation up to t, and of the readings. */
void seen__forget_allocs(struct intake *in, struct seen *s, uint64_t t);
/*
 * What readings up to t have, `most` bytes, and no sample up to t stands for: from now on none
 * does. How many bytes these are; *ret_since_ns: none of them was allocated earlier.
 */
uint64_t seen__take_unsampled(struct intake *in, struct seen *s, uint64_t t, uint64_t most,
			      uint64_t *ret_since_ns);
/* Of the notes of Haskell threads those stay that `keep` wants. */
void seen__forget_tso_notes(struct seen *s, bool (*keep)(void *ctx, const struct tso_note *note),
			    void *ctx);
/*
 * Lets go of the threads of which drops() returns 1 (0: it stays; a negative errno ends it, and is
 * returned). A thread's number goes to the next new one.
 */
int seen__drop_threads(struct intake *in, struct seen *s,
		       int (*drops)(void *ctx, struct seen_thread *th), void *ctx);
/* Of the Haskell threads those stay of which `keep` says so, or that are known to live after at_ns.
 */
void seen__forget_tsos(struct seen *s, uint64_t at_ns, bool (*keep)(void *ctx, uint64_t tso),
		       void *ctx);
/* Gives back the room that growing took; for an ended thread. */
void seen__fit(struct seen_thread *th);
/* Lets go of all records, and of what only they need: the picture is made. */
void seen__made(struct intake *in, struct seen *s);

/* The first collection that ends after t; NULL if there is none. */
const struct gc_span *seen__gc_at(const struct seen *s, uint64_t t);
bool seen__in_gc(const struct seen *s, uint64_t start, uint64_t end);
/* When it ended; UINT64_MAX: it goes on. */
static inline uint64_t gc__end(const struct gc_span *gc)
{
	return gc->end ? gc->end : UINT64_MAX;
}
/*
 * Its pause in the window from from_ns to to_ns. At its end it may turn out that the work began
 * later than it seemed: what an earlier window has too much this one has less.
 */
static inline uint64_t gc__pause(const struct gc_span *gc, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t until = MIN(gc__end(gc), to_ns), work = MAX(gc->work, from_ns);
	uint64_t pause = gc->work && work < until ? until - work : 0;
	uint64_t before = gc->work && gc->work < from_ns ? from_ns - gc->work : 0;

	return pause - MIN(gc->booked_ns - MIN(gc->booked_ns, before), pause);
}

/* NULL for number 0 and for one that is not known. */
const struct seen_site *seen__site(const struct seen *s, uint32_t no);
const struct seen_site *seen__site_at(const struct seen *s, uint64_t addr);
/* Whether the state, if there is one, has the call that began then. */
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
 * Whether counters that are there may be of that time. Those that are read as a process joins come
 * before the records of the time, which were held back: by them a call would end in a window in
 * which it still goes on. They are read within a second of the snapshot.
 */
static inline bool seen__counters_are_of(const struct seen *s, uint64_t ns)
{
	return s->snap_ns + 1000000000ULL <= ns || (s->ended && s->end_ns <= ns);
}
/*
 * Whether the site's counters have a recorded call whole; `base`: those of the last cut. One that
 * went on at a cut's time may end before the kernel's side is read for it: it is then of the window
 * that ends there, and of no other. Not one that a replay knows ahead.
 */
bool seen__is_counted(const struct seen *s, const struct ev *call, bool base);
const struct tso_info *seen__tso(const struct seen *s, uint64_t id);
/*
 * Until when a Haskell thread of which nothing was seen from since_ns to end_ns lived for sure, or,
 * as far as is known, up to end_ns: that is where the last look found it, or none counts for a time
 * after since_ns. One that began before since_ns shows nothing of it, and the next one may find it.
 */
uint64_t seen__lives_until(const struct seen *s, uint64_t tso, uint64_t since_ns, uint64_t end_ns);
/* Why it was blocked at at_ns, by a look that counts for then and came after since_ns;
 * WIRE_TSO_UNKNOWN. */
uint16_t seen__living_why(const struct seen *s, uint64_t tso, uint64_t since_ns, uint64_t at_ns);

/* ── cuts (cut.c) ────────────────────────────────────────────────────────────────────────── */

/*
 * The session so far ends at at_ns, and its picture is made: what comes next goes into *pic, which
 * is new and has to live longer. Targets that have ended go, and so does everything that was of the
 * past only; what goes on and all names stay. Lanes that go on renumber what they keep, by
 * seen__renumber, and then intake__cut_end is called. Any failure is for good: the intake is of no
 * use any more, and may refer to both pictures.
 */
int intake__cut(struct intake *in, uint64_t at_ns, struct picture *pic);
/* The numbers of an event's stacks, in the new picture. */
int seen__renumber(struct intake *in, struct ev *ev);
/* The picture before is not asked for any more. `failed`: nothing may come in from now on. */
void intake__cut_end(struct intake *in, bool failed);

/* ── stacks (compose.c) ──────────────────────────────────────────────────────────────────── */

/* A part as ev.hs and ev.c number them. */
struct pic_stack intake__part(const struct intake *in, uint32_t part);
/*
 * The frame that is shown for one of a part, which may have got a better name since; UINT32_MAX: by
 * that it is none that is shown.
 */
uint32_t intake__shown(const struct intake *in, uint32_t frame);
/* The whole stack that a slice of that state shows; ev may be NULL: nothing is known. */
int stack__compose(struct intake *in, const struct seen *s, enum thread_state state,
		   const struct ev *ev, uint32_t *ret_stack);
/* For time in a safe call of which there is no sample: its caller and function, "[no sample]". */
int stack__unsampled_call(struct intake *in, const struct seen *s, const struct ev *ev,
			  uint32_t *ret_stack);

/* ── cost-centre stacks (ccs.c) ──────────────────────────────────────────────────────────── */

/* Reads what those mean that are new. */
int ccs__resolve(struct intake *in, struct seen *s);
/* NULL for number 0. */
const struct seen_ccs *ccs__at(const struct seen *s, uint32_t id);
/* The path as frames, innermost centre first; how many. 0: not known. */
uint32_t ccs__path(const struct seen *s, uint32_t id, uint32_t *ret_frames, uint32_t max);

#endif
