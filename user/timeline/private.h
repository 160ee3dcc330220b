/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the timeline room share. */
#ifndef SAFESCOPED_TIMELINE_PRIVATE_H
#define SAFESCOPED_TIMELINE_PRIVATE_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "base/base.h"
#include "findings.h"
#include "ledger/ledger.h"
#include "tap.h"
#include "timeline.h"

/* array__reserve for a typed pointer (through void *, as the aliasing rules want it). */
#define TL_RESERVE(array, cap, need, max)                                                          \
	({                                                                                         \
		void *reserve_ptr_ = (array);                                                      \
		int reserve_err_ =                                                                 \
			array__reserve(&reserve_ptr_, &(cap), (need), (max), sizeof(*(array)));    \
		(array) = reserve_ptr_;                                                            \
		reserve_err_;                                                                      \
	})

#define TL_NO_CAP	 0xffff
#define TL_SOME_CAP	 0xfffe /* one is held, and nothing tells which: until the lane is done */
#define TL_MAX_CAPS	 1024	/* GHC has room for 256 */
#define TL_MAX_TARGETS	 65536
#define TL_MAX_THREADS	 (1U << 20) /* of one target; PID_MAX_LIMIT is 2^22 */
#define TL_MAX_SITES	 (1U << 16) /* of one target */
#define TL_MAX_FRAMES	 (1U << 22)
#define TL_MAX_ADDRS	 (1U << 20) /* distinct addresses of one target that are named */
#define TL_MAX_GCS	 (1U << 20)
#define TL_MAX_NOTES	 (1U << 16)
#define TL_MAX_TSOS	 (1U << 20)
#define TL_MAX_FLOWS	 (1U << 18)
#define TL_MAX_POINTS	 (1U << 18)
#define TL_MAX_CCS	 (1U << 18) /* cost-centre stacks of one target */
#define TL_MAX_CCS_DEPTH 1024
#define TL_MAX_TICKS	 (1U << 22)
#define TL_MAX_NESTED	 64 /* safe calls within each other that a lane follows */

/* ── frames and stacks (intern.c) ────────────────────────────────────────────────────────── */

struct frame_key {
	uint32_t name, module, package, file; /* in the string table */
	uint32_t kind, approximate;
};

struct frame_entry {
	UT_hash_handle hh;
	struct frame_key key;
	uint32_t id;
};

struct frame_table {
	struct strtab *strings;
	struct frame_entry *hash;
	struct frame_entry **entries;
	struct tl_frame *v;
	size_t n, cap, entries_cap;
};

int frames__new(struct frame_table *tab);
void frames__free(struct frame_table *tab);
/* The strings of *frame are copied. */
int frames__add(struct frame_table *tab, const struct tl_frame *frame, uint32_t *ret_id);
/* A frame without code: kind TF_STATE or TF_MARK. */
int frames__add_text(struct frame_table *tab, enum tl_frame_kind kind, const char *name,
		     uint32_t *ret_id);

struct stack_entry {
	UT_hash_handle hh;
	uint32_t id, n;
	uint32_t frames[]; /* root first */
};

/* Number 0 is the empty stack. Beyond `max` everything becomes stack number `full`. */
struct stack_table {
	struct stack_entry *hash;
	struct stack_entry **v;
	size_t n, cap, max;
	uint64_t left_out;
	uint32_t full;
};

int stacks__new(struct stack_table *tab, size_t max, uint32_t full_frame);
void stacks__free(struct stack_table *tab);
int stacks__add(struct stack_table *tab, const uint32_t *frames, uint32_t n, uint32_t *ret_id);
struct tl_stack stacks__get(const struct stack_table *tab, uint32_t id);

/* ── what a record said, kept until finish ───────────────────────────────────────────────── */

enum ev_flag {
	EV_OUTER_RTS = 1, /* the outermost C function is the RTS's own */
	EV_GC_CODE = 2,	  /* a C frame is the collector's */
	EV_GC_SYNC = 4,	  /* a C frame is where the RTS waits for the others before a collection */
	EV_RUNNABLE = 8,  /* switched out while it could run on */
	EV_NEVER_SEEN = 16,	/* the stay began before the thread was seen */
	EV_SLEEPS = 32,		/* snapshot: not running */
	EV_GAP = 64,		/* C frames are missing in mid-stack */
	EV_NO_WALK = 128,	/* of the stack only the program counter is known */
	EV_CALLS_UNKNOWN = 256, /* no call probe had been on: call_start_ns says nothing */
	EV_HANDOVER = 512,	/* off the CPU in suspendThread: in a call that has not begun yet */
};

/* A sample (t0 == t1), a stay off the CPU, a safe call, or a thread in a snapshot. */
struct ev {
	uint64_t t0, t1, wake_ns, call_start_ns;
	uint64_t short_cpu_ns; /* sample, off-CPU interval: see struct wire_sample */
	uint32_t hs;	       /* the stack's Haskell part, and what is below; in `parts` */
	uint32_t c;	       /* its C part above; in `parts` */
	uint32_t site;	       /* 1 + index of the target's site; 0: none */
	uint32_t ccs;	       /* number of the cost-centre stack; 0: none */
	uint32_t syscall;
	uint64_t tso;	 /* id of the Haskell thread; 0: none */
	uint16_t cap;	 /* that is held; TL_NO_CAP: none */
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

struct thread {
	UT_hash_handle hh;   /* the newest of its tid */
	struct thread *next; /* all of the target */
	pid_t tid;
	uint32_t owner; /* of its account in the target's ledger */
	char name[16];
	uint64_t start_ns; /* 0: before the attach */
	uint64_t end_ns;   /* 0: still there */
	bool born;	   /* its creation was seen */
	bool collects;	   /* the non-moving collector's: without a Task, in the collector's code */
	bool has_start, has_end, has_final;
	struct ev at_start, at_end; /* snapshots */
	bool in_first_call;	    /* up to lane.end_ns it never left the call of at_start */
	/* of calls from the place of at_start's: one that was open at the attach has ended; the
	 * begin of one was seen */
	bool ended_before_call, began_same_call;
	struct evs samples, offs, calls;
	/* what is made of the lane already: up to lane.end_ns, all older records are gone */
	bool done, complete;
	struct tl_lane lane;
	struct tl_stretch *stretches;
	size_t stretches_cap;
	uint16_t held;		  /* the capability that it is known to have held last */
	uint64_t short_booked_ns; /* CPU time of short calls that is in the ledger */
	uint64_t short_guess_ns;  /* what the slices show of them */
	uint64_t run_ns;	  /* booked to LEDGER_RUN */
	uint64_t idle_ns;
	struct ev done_prev; /* the last stay of that part */
	struct ev final_off; /* the stay that it is still in; hs and c if there was a stack */
	struct wire_thread *final;
	struct tl_off_cpu *off_cpu;
	struct short_calls shorts; /* as the thread's end, or the kernel's map, told */
};

struct addr_name {
	UT_hash_handle hh;
	uint64_t key; /* a frame as in wire.h */
	uint32_t frame;
	uint8_t code;	/* enum code_class */
	uint8_t source; /* enum name_source */
	bool fold;	/* a return frame of the RTS that tells nothing, and is not shown */
	bool gc_sync;
	uint8_t kernel; /* enum kernel_frame */
};

struct site {
	UT_hash_handle hh;
	uint64_t addr;
	uint32_t index;
	uint32_t function, caller; /* frames; caller: UINT32_MAX if not known */
	const char *function_name, *library, *caller_name, *place;
	bool caller_approximate;
	bool manager; /* the code of an event manager of GHC's made the call */
	uint64_t open_at_start[2], open_at_end[2], open_wall_ns[2]; /* by interruptible */
	bool called_back; /* a sample found Haskell code running inside of the call */
};

/* A cost centre: the same label in two places of the source is two of them. */
struct cc_key {
	const char *label, *module, *src_loc; /* in the string table: equal text, equal pointer */
};
struct cc {
	UT_hash_handle hh;
	struct cc_key key;
	uint32_t frame, index;
	uint64_t self, total;
	size_t stamp;
	bool shown;
};

/* A cost-centre stack of the target; what it means may not be known yet, or never. */
struct ccs {
	UT_hash_handle hh;
	uint64_t addr;
	uint32_t id; /* from 1 */
	uint32_t parent;
	uint32_t tries;
	uint32_t node;	   /* 1 + its node in the picture */
	struct cc *centre; /* NULL: not known */
	uint64_t ticks, samples;
};

struct ccs_tree {
	struct ccs *hash, **v;
	size_t n, cap;
	struct cc *centres;
	size_t n_pending;
	uint64_t resolved_ns;
	bool ticked;
};

struct site_counters {
	UT_hash_handle hh;
	struct wire_site_key key;
	struct wire_site value;
};

/* A collection, from its first sign on. */
struct gc_span {
	uint64_t start, end; /* end 0: still open */
	uint64_t work;	     /* all capabilities have stopped; 0: not yet */
	uint64_t number;     /* UINT64_MAX: not known */
	int32_t generation;  /* -1: not known */
	pid_t tid;
	bool synced; /* `start` is when the capabilities were asked to stop */
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
};

/* It was seen to run no more at `ns`, for that reason (why_blocked). */
struct tso_note {
	uint64_t tso, ns;
	uint16_t why; /* WIRE_TSO_UNKNOWN */
	bool ended;
};

/* What unsafe calls add up to, by function and caller. */
struct unsafe_key {
	uint32_t function, caller;
};
struct unsafe_entry {
	UT_hash_handle hh;
	struct unsafe_key key;
	uint64_t samples, cpu_ns, blocked_ns, held_up_gc_ns;
};
struct sums {
	bool gc_sync_known; /* held_up_gc_ns was looked for */
	struct unsafe_entry *unsafes;
};

#define TL_WHERES (WIRE_WHERE_NOT_READY + 1)

/*
 * What samples say of the time on the CPU, by what the thread was doing off it before and after.
 * Where a piece has no sample, it is given the state that is furthest behind its share.
 */
struct prior {
	uint32_t samples[TL_WHERES][TL_WHERES][ST_MAX];
	uint64_t given[TL_WHERES][TL_WHERES][ST_MAX];
};

/* What the profiler's timer found on one capability. */
struct tick_note {
	uint64_t ns;
	uint32_t ccs; /* number of the cost-centre stack; 0: none */
	uint16_t cap;
};

struct log_build;

struct target_state {
	struct tl_target pub;
	struct log_build *log; /* NULL: none */
	bool log_alone;	       /* nothing but the log tells of it */
	uint32_t no;	       /* counts from 0 */
	struct prior *prior;   /* while lanes are made */
	struct sums sums;
	struct ledger *ledger;	   /* of its threads; owner 0: all that have no lanes any more */
	struct ledger *cap_ledger; /* of its capabilities, by number */
	struct ledger *tso_ledger; /* of its Haskell threads, by their lanes' indices */
	uint32_t n_owners;
	uint32_t *free_owners; /* numbers that no thread has any more */
	size_t n_free_owners, free_owners_cap;
	struct ledger_account *accounts, *cap_accounts, *tso_accounts; /* when it is finished */
	uint32_t n_accounts, n_cap_accounts, n_tso_accounts;
	struct caps *caps; /* capability lanes in the making */
	struct tl_namer namer;
	bool ended;
	bool has_snapshot;
	uint64_t end_ns;
	uint64_t call_record_ns;
	uint32_t caps_at_attach;
	bool has_gc_probes;
	bool gcs_full;	      /* as if they had come off: there is no room for more */
	uint64_t gc_ended_ns; /* the last one, as the probe said */
	uint64_t gc_off_ns;   /* when they came off; 0: they did not */
	uint64_t gc_start_addr, gc_end_addr; /* of the probes; 0: there is none */
	uint64_t left_out;		     /* records */
	uint64_t blind_ns; /* the first of them; 0: none. Nothing is known from there on */
	struct thread *threads, *thread_list;
	size_t n_threads;
	uint64_t dropped_threads, dropped_ns; /* had ended; have no lanes */
	struct addr_name *addrs;
	struct site *sites, **site_v;
	size_t n_sites, sites_cap;
	struct site_counters *counters;
	struct ccs_tree ccs;
	struct tick_note *tick_notes; /* of profiled programs */
	size_t n_tick_notes, tick_notes_cap;
	struct gc_span *gcs;
	size_t n_gcs, gcs_cap;
	struct cap_note *cap_notes; /* in time order, no two neighbours the same */
	size_t n_cap_notes, cap_notes_cap;

	struct tl_lane *lanes;
	struct tl_call *calls;
	struct tl_unsafe *unsafes;
	struct tl_function *functions;
	struct tl_cost_centre *cost_centres;
	struct tl_cc_node *cc_nodes;
	const char **missing;
	size_t missing_cap;
	struct findings findings;
	struct tl_cap_lane *cap_lanes;
	struct tl_gc_event *gc_events;
	struct tso_info *tso_infos;
	struct tso_note *tso_notes; /* while records come, in their order */
	size_t n_tso_notes, tso_notes_cap;
	struct tl_tso_lane *tso_lanes;
	size_t n_tso_lanes;
	struct tl_flow *flows;
	size_t n_flows, flows_cap;
	struct tl_point *queued; /* Haskell threads in run queues, at ticks */
	size_t n_queued, queued_cap;
	struct tl_point *starved; /* as in pub */
	size_t starved_cap;
	struct tl_point *in_flight;
	struct tl_counter *counters_v;
};

/* Frames that need no namer. */
enum mark {
	MARK_GC,
	MARK_RTS,
	MARK_FOREIGN,
	MARK_NO_STACK,
	MARK_NO_SAMPLE,
	MARK_TRUNCATED,
	MARK_TOO_MANY,
	MARK_STG,
	MARK_MAX,
};

struct timeline {
	struct timeline_opts opts;
	struct tl_session session;
	bool finished;
	struct frame_table frames;
	struct stack_table stacks; /* what stretches refer to */
	struct stack_table parts;  /* what events refer to */
	uint32_t marks[MARK_MAX];
	uint32_t state_frames[ST_MAX];
	struct target_state **targets;
	size_t n_targets, targets_cap;
	uint32_t n_added; /* targets that were ever added */
	size_t n_records;
	size_t fold_at; /* make room when so many are kept */
	tl_tap tap;
	void *tap_ctx;
};

/* ── names and stacks (name.c, stack.c) ──────────────────────────────────────────────────── */

const char *tl__string(struct timeline *tl, const char *s); /* copied; "" without memory */
int name__addr(struct timeline *tl, struct target_state *tg, uint64_t frame,
	       const struct addr_name **ret_name);
/* A frame with a name from there is in a stack. */
void name__count(struct tl_names *names, enum name_source source);
int name__site(struct timeline *tl, struct target_state *tg, uint64_t addr, struct site **ret_site);

/* The stack of a record, as it came, goes into ev (hs, c, site, code, flags). */
struct raw_stack {
	const struct wire_stack *head;
	const uint64_t *frames; /* leaf first */
	uint64_t ip;		/* 0: none */
	uint64_t site;		/* 0: none */
	const struct wire_rts *rts;
};
int stack__take(struct timeline *tl, struct target_state *tg, const struct raw_stack *raw,
		struct ev *ev);
/* What stands for time in a state of which there is no sample: its name, then "[no sample]". */
int stack__unsampled(struct timeline *tl, const char *title, uint32_t *ret_stack);
/* The same of a safe call whose place is known. */
int stack__unsampled_call(struct timeline *tl, const struct target_state *tg, const struct ev *ev,
			  uint32_t *ret_stack);
/* The whole stack that a stretch of that state shows. */
int stack__compose(struct timeline *tl, const struct target_state *tg, enum tl_state state,
		   const struct ev *ev, uint32_t *ret_stack);

/* ── kernel frames (kframe.c) ────────────────────────────────────────────────────────────── */

enum kernel_frame {
	KERNEL_PLAIN,
	KERNEL_OURS,  /* it, and all that it called, is there for the probes */
	KERNEL_PROBE, /* the same if it called such a one */
};
enum kernel_frame kframe__of(const char *name);

/* ── cost-centre stacks (ccs.c) ──────────────────────────────────────────────────────────── */

/* *ret_id is 0 for none. */
int ccs__get(struct target_state *tg, uint64_t addr, uint32_t *ret_id);
/* Reads what those mean that are new. */
int ccs__resolve(struct timeline *tl, struct target_state *tg);
/* The same, but not too often. */
int ccs__resolve_at(struct timeline *tl, struct target_state *tg, uint64_t now_ns);
/* The path as frames, innermost centre first; how many. 0: not known. */
uint32_t ccs__path(const struct target_state *tg, uint32_t id, uint32_t *ret_frames, uint32_t max);
void ccs__count_tick(struct target_state *tg, uint32_t id);
/* Keeps what a tick found, up to a limit. */
int ccs__note_tick(struct target_state *tg, uint64_t ns, uint16_t cap, uint32_t id);
/* The innermost centre of a stack; NULL: not known. */
const struct cc_key *ccs__centre(const struct target_state *tg, uint32_t id);
void ccs__count_sample(struct target_state *tg, uint32_t id);
/* The picture's cost centres and their tree. */
int ccs__sum(struct target_state *tg);
void ccs__free(struct ccs_tree *tree);

/* ── states (state.c) ────────────────────────────────────────────────────────────────────── */

enum tl_state ev__state_on(const struct ev *ev, bool in_gc);
enum tl_state ev__state_off(const struct ev *ev, bool in_gc);

/* ── lanes (cover.c, lane.c) ─────────────────────────────────────────────────────────────── */

enum seg_kind {
	SEG_BEGIN, /* the lane's start */
	SEG_CALL_START,
	SEG_CALL_END,
	SEG_GC_START,
	SEG_GC_END,
};

/* A time in which the thread is known to be in a safe call, or collects. */
struct cover {
	uint64_t start, end;
	const struct ev *ev; /* whose stack it is; NULL for a collection */
	bool gc;
	bool recorded;	/* its time is not in the short calls' sums */
	bool end_exact; /* an event marked it */
	bool callback;	/* Haskell code was seen to run within it */
};

/* From start to the next segment's start: the innermost cover. */
struct seg {
	uint64_t start;
	int32_t cover; /* -1: none */
	uint8_t kind;  /* what its start is */
	bool exact;
};

struct cover_list {
	struct cover *v;
	size_t n, cap;
	struct seg *segs;
	size_t n_segs, segs_cap;
	struct ev *open; /* events made up for the open calls */
};

void cover__free(struct cover_list *list);
int cover__build(struct target_state *tg, struct thread *th, uint64_t start, uint64_t end,
		 bool last_part, struct cover_list *list);

/* ── what ran without a sample (mutator.c) ───────────────────────────────────────────────── */

enum { MUTATOR_HASKELL, MUTATOR_UNSAFE, MUTATOR_MAX };

struct mutator {
	uint64_t samples[MUTATOR_MAX]; /* of the thread, outside calls and collections */
	uint64_t ns[MUTATOR_MAX];      /* put down so far */
};

void mutator__learn(struct mutator *m, const struct target_state *tg, const struct thread *th,
		    const struct cover_list *covers);
void mutator__spent(struct mutator *m, enum tl_state state, uint64_t ns);
/*
 * ST_HASKELL or ST_UNSAFE_CALL_CPU for a stretch of ns at `at`, before sample number next_sample.
 * *ret_ev: a sample of that state nearby; NULL (then it is ST_HASKELL) if there is none.
 */
enum tl_state mutator__choose(const struct mutator *m, const struct target_state *tg,
			      const struct thread *th, size_t next_sample, uint64_t at, uint64_t ns,
			      const struct ev **ret_ev);

void thread__sort(struct thread *th);
void prior__learn(struct target_state *tg, const struct thread *th);
/* False: too little is known. Before and after: enum wire_where. */
bool prior__state(struct target_state *tg, unsigned before, unsigned after, uint64_t ns,
		  enum tl_state *ret_state);
int lane__build(struct timeline *tl, struct target_state *tg, struct thread *th,
		uint64_t session_end, size_t max_stretches);
/* Makes the lane as far as possible and forgets the records that it needs no more. */
int lane__fold(struct timeline *tl, struct target_state *tg, struct thread *th,
	       size_t max_stretches);
void lane__bounds(const struct target_state *tg, const struct thread *th, uint64_t session_end,
		  uint64_t *ret_start, uint64_t *ret_end);
void lane__fill_unknown(struct thread *th);
/* The stay off the CPU that the thread is in when the session ends; false: none is known. */
bool lane__last_stay(const struct timeline *tl, const struct thread *th, uint64_t start,
		     uint64_t end, struct ev *ret_ev);

/* ── collections (gcs.c) ─────────────────────────────────────────────────────────────────── */

void gcs__stay(struct target_state *tg, const struct wire_off *rec);
int gcs__record(struct target_state *tg, const struct wire_gc *rec);
bool gc__overlaps(const struct target_state *tg, uint64_t start, uint64_t end);
/* The first one that ends after t; NULL if there is none. */
const struct gc_span *gc__at(const struct target_state *tg, uint64_t t);
/* Before the lanes: those that are still open last for ever. */
void gcs__close(struct target_state *tg);
/* Where nothing marked them: how long they took at most. */
int gc_infer__build(struct target_state *tg);
/* After the capabilities' lanes, before the unsafe calls' rows. */
int gcs__build(struct timeline *tl, struct target_state *tg);

/* ── capabilities (held.c, caps.c) ───────────────────────────────────────────────────────── */

/* Which capability the thread holds in such a state; TL_SOME_CAP: one, it is not known which. */
uint16_t held__cap(enum tl_state state, const struct ev *ev);
/*
 * Gives the slices that hold one of unknown number that of their neighbours. `before`: what the
 * slice right before them holds; *known: what the thread is known to have held last, before them
 * and then after them. TL_NO_CAP: none.
 */
void held__resolve(const struct target_state *tg, struct tl_stretch *v, size_t *n, uint16_t before,
		   uint16_t *known);

int caps__note(struct target_state *tg, uint64_t ns, uint32_t n, uint64_t disabled);
int caps__new(struct caps **ret_caps);
/* Slices of a thread's lane, in order, as they are made; those that hold a capability count. */
int caps__claim(struct target_state *tg, pid_t tid, const struct tl_stretch *v, size_t n);
/* Makes the lanes up to `until`: all claims before it are there. */
int caps__advance(struct timeline *tl, struct target_state *tg, uint64_t until,
		  size_t max_stretches);
/*
 * In these slices of a thread ns were spent in safe calls that do not show (negative: less than
 * shows): the capability was free meanwhile.
 */
int caps__moved(struct target_state *tg, pid_t tid, const struct tl_stretch *v, size_t n,
		int64_t ns);
int caps__build(struct timeline *tl, struct target_state *tg, uint64_t end, size_t max_stretches);
void caps__free(struct target_state *tg);

/* ── Haskell threads (tsos.c), calls as ways (flow.c) ────────────────────────────────────── */

int tsos__record(struct timeline *tl, struct target_state *tg, const struct wire_tso *rec);
/* Accounts of the lanes: what tso_ledger has by their indices. */
int tsos__fill(struct target_state *tg, struct tl_tso_lane *lanes, size_t n);
int tsos__build(struct timeline *tl, struct target_state *tg, uint64_t end, size_t max_stretches);
void tsos__free(struct target_state *tg);

int flow__add(struct target_state *tg, pid_t tid, const struct ev *ev);
int flow__queued(struct target_state *tg, uint64_t ns, uint64_t queued);
int flow__starved(struct target_state *tg, uint64_t ns, uint64_t queued);
/* After the threads' lanes. */
int flow__build(struct target_state *tg);
void flow__free(struct target_state *tg);

/* ── why a thread was off the CPU (off.c) ────────────────────────────────────────────────── */

/* NULL: no such system call. */
const char *syscall__name(uint32_t nr);
/* Books what a stay off the CPU was for; ev may be NULL. */
int off__add(struct timeline *tl, const struct target_state *tg, const struct thread *th,
	     enum tl_state state, const struct ev *ev, uint64_t ns);
/* The account's reasons as the lane shows them. */
int off__finish(struct timeline *tl, const struct ledger_account *account, struct tl_lane *lane);

/* ── sums (sum.c, calls.c) ───────────────────────────────────────────────────────────────── */

/* The threads' accounts are there: unsafe calls by function and caller. */
int sums__unsafes(struct timeline *tl, struct target_state *tg);
/* The frame of the function that an unsafe call is to; UINT32_MAX: not known. */
uint32_t sums__function(const struct timeline *tl, const struct ev *ev);
/* A collection waited so long for the unsafe call with this stack. */
void sums__held_up(const struct timeline *tl, struct sums *sums, uint32_t stack, uint64_t ns);
int sums__functions(struct timeline *tl, struct target_state *tg);
int sums__unsafe_calls(struct timeline *tl, struct target_state *tg, struct sums *sums);
void sums__free(struct sums *sums);
int calls__build(struct timeline *tl, struct target_state *tg, uint64_t session_end);

/* ── memory (bounded.c) ──────────────────────────────────────────────────────────────────── */

void thread__free(struct thread *th);
/* No more room than it needs: it has ended, or its records are gone. */
void thread__fit(struct thread *th);
/* Of ended threads beyond a number the lanes of those that did least; after folding. */
int threads__drop(struct timeline *tl);
int threads__tell_dropped(struct timeline *tl, struct target_state *tg);
/* Its picture is made: what it was made of goes. */
void target__made(struct target_state *tg);

/* ── inputs (inputs.c tells what these took) ─────────────────────────────────────────────── */

int input__add_target(struct timeline *tl, const struct target_info *info,
		      const struct tl_namer *namer, uint64_t attach_ns, uint64_t attach_took_ns);
int input__update_target(struct timeline *tl, const struct target_info *info);
int input__record(struct timeline *tl, const void *rec, size_t size);
int input__snapshot(struct timeline *tl, pid_t pid, const struct snapshot *snapshot, uint64_t at_ns,
		    bool at_end);
int input__site_counters(struct timeline *tl, const struct wire_site_key *key,
			 const struct wire_site *site);
int input__thread_state(struct timeline *tl, pid_t tid, const struct wire_thread *state);
int input__thread_off_stack(struct timeline *tl, pid_t pid, pid_t tid,
			    const struct wire_off_stack *stack);
int input__set_cost(struct timeline *tl, pid_t pid, const struct tl_cost *cost);
int input__set_lost(struct timeline *tl, pid_t pid, const char *cause, uint64_t n);
int input__set_lost_share(struct timeline *tl, pid_t pid, double share);
int input__add_missing(struct timeline *tl, pid_t pid, const char *text);
void input__set_exit_code(struct timeline *tl, int exit_code);
int input__end_target(struct timeline *tl, pid_t pid, const char *end, uint64_t at_ns);
int input__forget_target(struct timeline *tl, pid_t pid);
int input__finish(struct timeline *tl, uint64_t end_ns);

/* Questions to a target's namer. */
void namer__name(struct timeline *tl, struct target_state *tg, uint64_t frame,
		 struct code_name *ret_name);
int namer__site(struct timeline *tl, struct target_state *tg, uint64_t addr,
		struct target_site *ret_site);
int namer__ccs(struct timeline *tl, struct target_state *tg, uint64_t addr,
	       struct target_ccs *ret_ccs);

/* ── the join with an eventlog (join.c) ──────────────────────────────────────────────────── */

/* After all that the records alone make; nothing if there is no log. */
int join__make(struct timeline *tl, struct target_state *tg, uint64_t end_ns);

/* ── targets (timeline.c) ────────────────────────────────────────────────────────────────── */

/* Room for more records, by making lanes of those there are. */
int tl__fold(struct timeline *tl);
void target__free_state(struct target_state *tg);
/* Empty ledgers of a target that is new. */
int target__make_books(struct timeline *tl, struct target_state *tg);
struct target_state *tl__find(const struct timeline *tl, pid_t pid);
int thread__get(struct target_state *tg, pid_t tid, struct thread **ret_thread);

#endif
