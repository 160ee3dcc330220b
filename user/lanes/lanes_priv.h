/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of the lanes room only. */
#ifndef SAFESCOPED_LANES_PRIV_H
#define SAFESCOPED_LANES_PRIV_H

#include "hold.h"
#include "intake/seen.h"
#include "lanes.h"
#include "ledger/ledger.h"
#include "ledger/sums.h"
#include "picture/slices.h"
#include "picture/spans.h"

#define MAX_NESTED 64 /* nested safe calls that a lane follows */

#define WHERES (WIRE_WHERE_NOT_READY + 1)

/*
 * What samples show of the time on the CPU, by what the thread was doing off the CPU before and
 * after. A piece without a sample gets the state that is furthest below its share.
 */
struct prior_between {
	uint32_t samples[ST_MAX], n_samples;
	uint64_t given_ns[ST_MAX], all_given_ns;
};

struct prior {
	struct prior_between between[WHERES][WHERES];
};

/* What an off-CPU interval is gets decided at its start, and is kept across cuts. */
struct off_start {
	uint64_t t0;   /* of the interval */
	uint16_t held; /* the capability held before it */
	uint8_t state; /* enum thread_state until the thread is woken */
	bool known;
};

/* An OS thread's lane while it is being made. */
struct thread_lane {
	struct seen_thread *seen; /* NULL: the number is free */
	bool begun, complete;
	bool folded;		  /* a part of it is made, and that part's records are released */
	bool sampled_edge;	  /* end_ns was not marked by an event */
	bool in_first_call;	  /* up to end_ns it never left the call of seen->at_start */
	bool began_in_first_call; /* in_first_call as of the last cut */
	bool has_prev;
	struct ev prev;		   /* the last off-CPU interval of the part that is made */
	struct off_start off;	   /* the last interval that began in the part that is made */
	uint64_t start_ns, end_ns; /* bounds of the part that is made */
	uint64_t sign_ns; /* time of the last record in it, or its start; not moved by cuts */
	uint64_t cpu_ns;
	uint32_t sampled_states;
	struct slices slices;
	uint16_t held;		  /* the capability that it is last known to have held */
	uint16_t walk_held;	  /* thread_builder.held at end_ns */
	uint16_t walk_had;	  /* thread_builder.had at end_ns */
	uint16_t last_cap;	  /* held in the last piece */
	uint64_t last_tso;	  /* the Haskell thread of the last piece */
	uint64_t short_booked_ns; /* CPU time of short calls booked in the ledger */
	uint64_t short_guess_ns;  /* CPU time of short calls shown by the slices */
	uint64_t run_ns;	  /* booked as LEDGER_RUN */
	uint64_t run_samples;	  /* the samples that divide it */
	uint64_t call_samples;	  /* those of them in safe calls */
	uint64_t call_guess_ns;	  /* the part of it that the slices show as safe calls */
	uint64_t idle_ns;
	uint64_t managed_ns; /* time spent waiting for events or ticks to manage */
	/* for the lanes of Haskell threads: the last one on it, and what followed */
	uint64_t tso;
	uint8_t tso_state; /* enum thread_state */
	uint8_t tso_gap;   /* enum haskell_state */
};

/* What begins and ends at a moment; used for sums over simultaneous lanes (overlaps.c). */
struct overlap_edge {
	uint64_t ns;
	uint16_t ends, begins;
	uint16_t runtime, program; /* samples of threads in the runtime, and in Haskell code */
};

/* Sums over the time in which nothing marks collections (gc_infer.c). */
struct unmarked {
	/* Samples, each divided by the number of threads that ran at that time: the sum of those in
	 * the runtime, of all, and of the squares of all. */
	double runtime, all, squares;
	uint64_t in_runtime, in_program; /* number of samples */
	uint64_t active_ns;		 /* a capability had something to do */
	uint64_t running_ns;		 /* a thread ran, and not in a safe call */
	uint64_t stopped_ns; /* none did, for lack of a CPU or because it waited in the runtime */
};

struct overlaps {
	struct overlap_edge *v; /* from at_ns on */
	size_t n, cap;
	uint64_t at_ns;	  /* everything before it is in the sums */
	int32_t count[9]; /* how many of each kind there are at at_ns */
	uint32_t present; /* the kinds of which there are any, as bits */
	size_t gc, tick;  /* index of the next one */
	struct pic_overlaps sums;
	struct unmarked unmarked;
};

/* Points of a curve: all of them, or every stride-th. */
struct heap_points {
	struct pic_heap_point *v;
	size_t n, cap;
	uint64_t stride, seen; /* stride 0: all */
};

struct heap_curve {
	struct pic_heap heap, before; /* without points and growth; before: the last collection */
	struct pic_heap_point last;
	struct heap_points points, majors;
	bool collected_before; /* in an earlier window */
	uint64_t ticked;       /* bytes in readings of ticks since the last collection's reading */
};

/* What was allocated, as far as the picture has it. */
struct allocated {
	struct ledger *ledger; /* of bytes */
	struct centres_bytes by_centre;
	struct pic_alloc sums; /* without its lists */
	struct alloc_spans spans;
	struct heap_curve heap;
};

struct lanes {
	struct lanes_opts opts;
	struct intake *in;
	struct picture *pic;
	struct seen *seen;
	struct ledger *ledger[LANE_KINDS];
	struct ledger *gc_sync; /* one account: see pic_gc.sync_rows */
	struct allocated allocated;
	struct holds holds;
	struct overlaps overlaps;
	uint64_t *cap_waits; /* by site: how long threads waited for a capability after its calls */
	size_t n_cap_waits, cap_waits_cap;
	struct thread_lane *threads; /* by number */
	size_t n_threads, threads_cap;
	struct prior *prior;
	struct caps *caps;
	struct haskell *haskell;
	size_t max_slices; /* per lane */
	uint64_t end_ns;   /* end of what is being made */
	bool goes_on;	   /* the process goes on after end_ns: this is a cut */
	bool reading;	   /* a copy that serves only to read the ledgers: it draws nothing */
	uint64_t dropped, dropped_ns;		     /* ended threads whose lanes were dropped */
	uint32_t unsampled[LANE_KINDS][LANE_STATES]; /* stacks; 0: not made yet */
};

/* Times in which a capability had nothing to do, in time order; or in which it stood still for
 * collections (caps__sampled_gc). */
struct idle_span {
	uint64_t start, end;
	uint64_t before; /* idle time before `start` */
};

struct idle {
	struct idle_span *v;
	size_t n, cap;
	uint32_t *longs; /* indices of the spans so long that nothing can have been ready */
	size_t n_longs, longs_cap;
	uint64_t from;	 /* earlier ones are forgotten */
	uint64_t before; /* idle time in forgotten spans */
};

/* A stretch of a thread's time in one state; capabilities and Haskell threads follow from it. */
struct piece {
	struct pic_slice s; /* state: enum thread_state */
	uint8_t class;	    /* enum ledger_class of its time, if on the CPU */
	bool in_program;    /* in Haskell code, or C called from it, and not in the runtime */
	bool tso_guessed;   /* from the nearest sample: another one may have run since */
	uint16_t awaited;   /* the capability that can run once the thread has a CPU; NO_CAP */
};

/* ── states (state_of.c) ─────────────────────────────────────────────────────────────────── */

static inline bool thread__on_cpu(enum thread_state state)
{
	return state <= ST_FOREIGN_CPU;
}
/* `gcs` is the process whose collections within start…end are considered; NULL: none. They are
 * looked up only for events whose state depends on them. */
enum thread_state ev__state_on(const struct ev *ev, const struct seen *gcs, uint64_t start,
			       uint64_t end);
enum thread_state ev__state_off(const struct ev *ev, const struct seen *gcs, uint64_t start,
				uint64_t end);

/* ── when a thread was in which call (cover.c) ───────────────────────────────────────────── */

enum seg_kind {
	SEG_BEGIN, /* the start of the lane */
	SEG_CALL_START,
	SEG_CALL_END,
	SEG_GC_START,
	SEG_GC_END,
};

/* A time in which the thread is known to be in a safe call, or to collect. */
struct cover {
	uint64_t start, end;
	const struct ev *ev; /* has the stack; NULL for a collection */
	bool gc;
	bool recorded;	/* its time is not in the short calls' sums */
	bool end_exact; /* marked by an event */
	bool callback;	/* Haskell code was seen to run within it */
	bool divided;	/* or within others from its site: only samples show what is its own */
	bool apart;	/* its time would not be in the short calls' sums if it were short */
};

/* The innermost cover from `start` to the start of the next segment. */
struct seg {
	uint64_t start;
	int32_t cover; /* -1: none */
	uint8_t kind;  /* enum seg_kind of its start */
	bool exact;
};

struct cover_list {
	struct cover *v;
	size_t n, cap;
	struct seg *segs;
	size_t n_segs, segs_cap;
	struct ev *open; /* synthetic events for the open calls */
};

void cover__free(struct cover_list *list);
/* Fills b->covers with those from b->cursor to `end`. */
struct thread_builder;
int cover__build(struct thread_builder *b, uint64_t end, bool last_part);

/* ── what ran without a sample (mutator.c, prior.c) ──────────────────────────────────────── */

enum { MUTATOR_HASKELL, MUTATOR_UNSAFE, MUTATOR_MAX };

struct mutator {
	uint64_t samples[MUTATOR_MAX]; /* of the thread, outside calls and collections */
	uint64_t ns[MUTATOR_MAX];      /* assigned so far */
};

void mutator__learn(struct mutator *m, const struct seen_thread *th,
		    const struct cover_list *covers);
void mutator__spent(struct mutator *m, enum thread_state state, uint64_t ns);
/*
 * Chooses ST_HASKELL or ST_UNSAFE_CALL_CPU for a piece of ns at `at`, before sample number
 * next_sample. *ret_ev is a nearby sample of that state, or NULL if there is none (then the state
 * is ST_HASKELL).
 */
enum thread_state mutator__choose(const struct mutator *m, const struct seen_thread *th,
				  size_t next_sample, uint64_t at, uint64_t ns,
				  const struct ev **ret_ev);

void prior__learn(struct lanes *l, const struct seen_thread *th);
/* Returns false if too little is known. Before and after: enum wire_where. */
bool prior__state(struct prior *prior, unsigned before, unsigned after, uint64_t ns,
		  enum thread_state *ret_state);

/* ── OS threads (thread.c, piece.c, bounds.c) ────────────────────────────────────────────── */

/* The Haskell stack of another event of the thread, with the cost centres that go with it. */
void ev__take_haskell(struct ev *ev, const struct ev *from);

/*
 * A cache of stacks made for earlier pieces: most pieces have the same parts as one of these, and
 * composing a stack costs more than everything else done for a piece. Nothing is renamed while a
 * part is built, so entries stay valid until it is done.
 */
struct composed {
	struct composed_key {
		uint32_t hs, c, site, ccs; /* of the ev */
		uint16_t hs_run, flags;
		uint8_t where, code;
		uint8_t state;
		uint8_t has; /* 1 + whether there is an ev; 0: the entry is empty */
	} key;
	uint32_t stack;
};

_Static_assert(sizeof(struct composed_key) == 24, "it is compared byte by byte: no padding");

#define COMPOSED_KEPT 64 /* a power of two */

struct thread_builder {
	struct lanes *l;
	struct thread_lane *lane;
	const struct seen_thread *th;
	struct ev *offs; /* the thread's, from bounds__offs */
	struct cover_list covers;
	struct piece *v; /* of this part, unmerged */
	size_t n, cap;
	uint64_t cursor;       /* everything before it is done */
	size_t seg, sample;    /* index of the next one */
	const struct ev *prev; /* the off-CPU interval before the cursor */
	bool edge_exact;       /* the cursor was marked by an event */
	bool start_exact;      /* the start of the last piece was marked by an event */
	uint16_t held;	       /* the capability held before the cursor */
	uint16_t had;	       /* the last one that it is known to have held or been woken for */
	uint64_t tso;	       /* the Haskell thread at the cursor */
	struct mutator mutator;
	struct composed composed[COMPOSED_KEPT];
};

/* What the thread did up to `end`, as far as it is found out. */
struct finding_out {
	uint64_t end;
	enum thread_state state;
	const struct ev *ev; /* has the stack; NULL: no stack */
	uint32_t samples;
	bool sampled; /* the state comes from sampling or context, not from an event */
	bool end_exact;
	bool on_cpu;		   /* also for ST_UNKNOWN, which does not imply it */
	enum ledger_class class;   /* the class that its time is booked to, if on the CPU */
	const struct cover *cover; /* the call or collection; NULL: none */
	bool cap_known;		   /* `cap` is the capability, or there is none; else use ev */
	uint16_t cap;
	bool tso_guessed; /* the Haskell thread of `ev` is that of the nearest sample */
};

/* The call or collection in segment number `seg` of the part; NULL: none. */
const struct cover *seg__cover(const struct thread_builder *b, size_t seg);
/* Sets the class of the time. Calls without a record are counted by the kernel side: their time is
 * taken out of LEDGER_RUN. */
void finding__set_class(struct finding_out *p, const struct cover *cover);
/* Emits a piece without any sample; `off` is the interval that follows it, `next` the segment. */
int thread__emit_unsampled(struct thread_builder *b, uint64_t end, bool end_exact,
			   const struct ev *off, const struct seg *next);
/* Emits the time from the cursor to found->end as a piece, and books it. */
int thread__emit(struct thread_builder *b, const struct finding_out *found);
/*
 * Books short_cpu_ns of the thread's time so far, as counted by the kernel side, as safe calls too
 * short for a record.
 */
int thread__book_shorts(struct lanes *l, struct thread_lane *lane, uint64_t short_cpu_ns);

/* Makes the part of the lane that is decided, and releases its records. */
int thread__fold(struct lanes *l, struct thread_lane *lane);
/* Makes the whole lane. */
int thread__complete(struct lanes *l, struct thread_lane *lane, uint64_t session_end);
/*
 * Whether nobody has looked at what the thread does where the last part of its lane ends: at a cut,
 * and if the last snapshot is missing (as in an unfinished capture) or could not find out.
 */
static inline bool thread__goes_on(const struct lanes *l, const struct seen_thread *th)
{
	return l->goes_on ||
	       (!th->end_ns && (!th->has_end || th->at_end.where == WIRE_WHERE_UNKNOWN));
}

void bounds__of(const struct seen *seen, const struct seen_thread *th, uint64_t session_end,
		uint64_t *ret_start, uint64_t *ret_end);
/*
 * Makes a copy of the thread's off-CPU intervals. Where the kernel side saw nothing of an interval,
 * it is filled in from a snapshot or a neighbour. The caller frees.
 */
int bounds__offs(const struct thread_lane *lane, struct ev **ret_offs);
/* The time of the thread's last record up to `end`, or the start of its lane if there is none. */
uint64_t bounds__last_sign(const struct thread_builder *b, uint64_t end);
/*
 * The sleep in which the first snapshot found the thread, if it lasted and its end was not seen: on
 * the CPU it would have been sampled. False: none.
 */
bool bounds__first_off(const struct thread_builder *b, struct ev *ret_ev);
/* The off-CPU interval that the thread is in when the session ends; false: none is known. */
bool bounds__last_off(const struct thread_builder *b, uint64_t end, struct ev *ret_ev);

/* ── which capability a thread holds (held.c) ────────────────────────────────────────────── */

/* The capability held in this state; SOME_CAP: one is held, but which one is unknown. */
uint16_t held__cap(enum thread_state state, const struct ev *ev);
/*
 * Gives each piece that holds an unknown capability that of its neighbours. `before`: what the
 * piece right before them holds; *known: what the thread is known to have held last, before them
 * and then after them. NO_CAP: none.
 */
void held__resolve(const struct seen *seen, struct piece *v, size_t n, uint16_t before,
		   uint16_t *known);

/* ── what threads' pieces show about others (claim.c) ────────────────────────────────────── */

/* A claim that a thread has a capability, or runs a Haskell thread. */
struct claim {
	struct pic_slice s;
	uint8_t class;	/* enum ledger_class; LEDGER_CLASSES: off the CPU */
	uint8_t state;	/* state of the claimed lane */
	uint8_t before; /* Haskell threads: its state before, as far as its OS thread shows */
	bool weak; /* capabilities: held by nobody; can run once the thread has a CPU, or ends its
		      call */
	bool is_rest;	  /* of one whose beginning is put */
	bool tso_guessed; /* see struct piece */
};

struct claims {
	struct claim *v;
	size_t n, cap;
};

int claims__add(struct claims *claims, const struct claim *claim);
void claims__free(struct claims *claims);
int claims__copy(const struct claims *from, struct claims *ret_to);

struct claim_walk {
	uint64_t cursor; /* everything before it is put; it moves with what put and gap see */
	/* Called for a claim in force from the cursor to `end`. */
	int (*put)(void *ctx, const struct claim *c, uint64_t end);
	/* Called for a gap up to `end`, where `next` begins; NULL: after the last claim. */
	int (*gap)(void *ctx, uint64_t end, const struct claim *next);
	bool to_the_end; /* also call gap after the last claim */
	void *ctx;
};
/*
 * Walks the claims on one owner, which are sorted by start, longer ones first; what is before the
 * cursor is skipped. Two threads cannot hold the owner at once, but claims with sampled ends may
 * overlap: the one that begins later wins, since an event or a sample showed the owner with that
 * thread. A weak claim gets what is left.
 */
int claims__walk(struct claim_walk *w, const struct claim *v, size_t n, uint64_t until);
/* Moves the parts of claims v[from…to) that lie beyond `until` to v[*kept…]. */
void claims__keep_rest(struct claims *claims, size_t *kept, size_t from, size_t to, uint64_t until);
/* Keeps the first n; with none left, frees the array, whose memory is needed elsewhere. */
void claims__keep_only(struct claims *claims, size_t n);
/* The part of a claim as the claimed lane shows it. The claim's samples go with its start. */
struct pic_slice claim__slice(const struct claim *c, uint64_t start, uint64_t end);
/* Orders by start, longer ones first, then by OS thread. */
int claims__by_start(const struct claim *a, const struct claim *b);

/* Books a claim's time to the account `owner` of a ledger. */
int claim__book(struct lanes *l, enum lane_kind kind, uint32_t owner, const struct claim *c,
		const struct pic_slice *as);

/* ── capabilities and Haskell threads (caps.c, haskell.c) ────────────────────────────────── */

int caps__new(struct caps **ret_caps);
void caps__free(struct caps *caps);
/* Copies without the slices. */
int caps__copy(const struct caps *caps, struct caps **ret_copy);
int caps__claim(struct lanes *l, const struct piece *v, size_t n);
/* Makes the lanes up to `until`; all claims before that must have been added. */
int caps__advance(struct lanes *l, uint64_t until);
/*
 * In these pieces of a thread, ns more were spent in safe calls than the pieces show (negative:
 * less); the capability was free during that time.
 */
int caps__moved(struct lanes *l, const struct piece *v, size_t n, int64_t ns);
int caps__fill(struct lanes *l, uint64_t end);
/* The capabilities go on in a new picture. */
int caps__cut(struct lanes *l, uint64_t end_ns);
/* NULL if there is no such capability. */
const struct idle *caps__idle(const struct lanes *l, uint32_t cap);
/* How far before the end of a gap in a Haskell thread's lane sampled collections are known. */
#define SAMPLED_GCS_NS UINT64_C(10000000000)
/*
 * If no probe sees collections (any more): the first one that ends after `at`, as the samples on
 * that capability show it. NULL: there is none.
 */
const struct idle_span *caps__sampled_gc(const struct lanes *l, uint32_t cap, uint64_t at);
/* Forgets what capabilities did up to `until`, and collections SAMPLED_GCS_NS before that. */
void caps__forget_idle(struct lanes *l, uint64_t until);

/* ── when a capability was idle (idle.c) ─────────────────────────────────────────────────── */

void idle__free(struct idle *idle);
int idle__copy(const struct idle *from, struct idle *ret_to);
/* A span must not begin before the last one ends. */
int idle__add(struct idle *idle, uint64_t start, uint64_t end);
/* Keeps the spans that end at `until` or later. */
void idle__forget(struct idle *idle, uint64_t until);
/* The first span that ends after t; NULL: there is none. */
const struct idle_span *idle__next(const struct idle *idle, uint64_t t);
/* How long it was idle before t, which must not be before idle->from. */
uint64_t idle__ns(const struct idle *idle, uint64_t t);
/* The first time between the two from which it was idle for longer than anything stays ready;
 * UINT64_MAX: there is none. */
uint64_t idle__first_long(const struct idle *idle, uint64_t from, uint64_t end);
/* Until when, at or before t, it was last idle for so long; 0: not since idle->from. */
uint64_t idle__last_long(const struct idle *idle, uint64_t t);

/* ── what was so at the same time (overlaps.c) ───────────────────────────────────────────── */

void overlaps__free(struct overlaps *o);
/* Takes the slices of one capability in time order; *was is 0 before the first. */
int overlaps__cap(struct overlaps *o, uint8_t *was, const struct pic_slice *s);
/* Takes the pieces of one thread in time order. */
int overlaps__thread(struct overlaps *o, const struct seen *seen, const struct piece *v, size_t n);
/* Starts other sums, for the time after end_ns; the last cut removed from `seen` what was
 * before. */
void overlaps__cut(struct overlaps *o, const struct seen *seen, uint64_t end_ns);
/* Everything up to `until` has been added. */
int overlaps__advance(struct overlaps *o, const struct seen *seen, uint64_t until, bool last);

/* The state for a why_blocked; HS_UNKNOWN for WIRE_TSO_UNKNOWN. */
enum haskell_state haskell_state__blocked(uint16_t why);
/* `before`: the OS thread's state in the previous piece of this Haskell thread; ST_MAX: none. */
enum haskell_state haskell_state__of(const struct pic_slice *s, enum thread_state before);
/* `max`: the most lanes; 0: the default. */
int haskell__new(size_t max, struct haskell **ret_haskell);
void haskell__free(struct haskell *h);
int haskell__copy(const struct haskell *h, struct haskell **ret_copy);
/* `covers`: when the OS thread was in which call, by start. */
int haskell__claim(struct lanes *l, struct thread_lane *lane, const struct piece *v, size_t n,
		   const struct cover_list *covers);
/* `last`: nothing comes after `until`, where the lanes end. */
int haskell__advance(struct lanes *l, uint64_t until, bool last);
int haskell__fill(struct lanes *l);
/* As caps__cut; drops lanes that ended before at_ns, or of which nothing is known. */
void haskell__cut(struct lanes *l, uint64_t at_ns);

/* ── the rest of the picture ─────────────────────────────────────────────────────────────── */

/* Fills in collections and what they waited for, after the lanes of threads and capabilities. */
int gcs__fill(struct lanes *l);
/* True if nothing marks collections, or nothing has since the probes came off. */
bool gc_infer__is_needed(const struct seen_gcs *gcs);
/* The time after which collections are not marked, as far as is known so far; UINT64_MAX: all are
 * marked. */
uint64_t gc_infer__unmarked_from(const struct seen *seen);
/* Fills in an upper bound of the pauses that nothing marked. */
void gc_infer__fill(struct lanes *l);
/* Recorded safe calls from one capability to the next, and curves. */
int flow__fill(struct lanes *l);
int calls__fill(struct lanes *l, uint64_t session_end);

/* Books what a thread waited for in an off-CPU interval; ev may be NULL. */
int off__book(struct lanes *l, const struct thread_lane *lane, enum thread_state state,
	      const struct ev *ev, uint64_t ns);
/* The account's reasons as the lane shows them. */
int off__fill(struct lanes *l, const struct ledger_account *account, struct pic_lane *lane);

/* The placeholder stack for time in a state that no sample fell into. */
int lane__unsampled(struct lanes *l, enum lane_kind kind, unsigned state, uint32_t *ret_stack);
/* Adds a sentence about what this picture lacks. If there are too many sentences it is dropped,
 * which is no reason to fail. */
int lanes__lack(struct lanes *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Moves the account's rows, and its sums by state, to the lane; the picture owns the rows. */
int lane__take_account(struct lanes *l, struct ledger_account *account, struct pic_lane *lane);

/* ── allocation (alloc.c) ────────────────────────────────────────────────────────────────── */

/* Books everything allocated up to that time, and releases its records. */
int allocated__take(struct lanes *l, uint64_t until);
int allocated__fill(struct lanes *l, uint64_t until);
/* enum wire_alloc_reason */
enum pic_gc_reason gc__reason(uint32_t wire);

/* ── the heap (heap.c) ───────────────────────────────────────────────────────────────────── */

void heap_curve__free(struct heap_curve *c);
/* `allocated`: everything that was allocated by then. */
int heap_curve__add(struct heap_curve *c, const struct alloc_reading *r, uint64_t allocated);
/* `exited`: the process has ended by itself. */
int heap_curve__fill(const struct heap_curve *c, bool exited, struct picture *pic,
		     struct pic_heap *ret_heap);

#endif
