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

#define MAX_NESTED 64 /* safe calls within each other that a lane follows */

#define WHERES (WIRE_WHERE_NOT_READY + 1)

/*
 * What samples say of the time on the CPU, by what the thread was doing off it before and after.
 * Where a piece has no sample, it is given the state that is furthest below its share.
 */
struct prior_between {
	uint32_t samples[ST_MAX], n_samples;
	uint64_t given_ns[ST_MAX], all_given_ns;
};

struct prior {
	struct prior_between between[WHERES][WHERES];
};

/* What an off-CPU interval is, is found out where it begins, and stays so across cuts. */
struct off_start {
	uint64_t t0;   /* of the interval */
	uint16_t held; /* the capability before it */
	uint8_t state; /* enum thread_state until it is woken */
	bool known;
};

/* An OS thread's lane in the making. */
struct thread_lane {
	struct seen_thread *seen; /* NULL: the number is free */
	bool begun, complete;
	bool folded;		  /* a part of it is made, and its records are gone */
	bool sampled_edge;	  /* no event marked end_ns */
	bool in_first_call;	  /* up to end_ns it never left the call of seen->at_start */
	bool began_in_first_call; /* and so it was at the last cut */
	bool has_prev;
	struct ev prev;		   /* the last off-CPU interval of what is made */
	struct off_start off;	   /* the last one that began in what is made */
	uint64_t start_ns, end_ns; /* what is made of it */
	uint64_t sign_ns; /* of the last record in it, or its begin; never moved by a cut */
	uint64_t cpu_ns;
	uint32_t sampled_states;
	struct slices slices;
	uint16_t held;		  /* the capability that it is known to have held last */
	uint16_t walk_held;	  /* thread_builder.held at end_ns */
	uint16_t walk_had;	  /* and thread_builder.had */
	uint16_t last_cap;	  /* that the last piece holds */
	uint64_t last_tso;	  /* and whose Haskell thread it is */
	uint64_t short_booked_ns; /* CPU time of short calls that is in the ledger */
	uint64_t short_guess_ns;  /* what the slices show of them */
	uint64_t run_ns;	  /* booked to LEDGER_RUN */
	uint64_t idle_ns;
	uint64_t managed_ns; /* that it waited for events, or ticks, to manage */
	/* for the Haskell threads' lanes: what was last on it, and what it has done since */
	uint64_t tso;
	uint8_t tso_state; /* enum thread_state */
	uint8_t tso_gap;   /* enum haskell_state */
};

/* What begins and ends at a moment; sums over lanes at the same time (overlaps.c). */
struct overlap_edge {
	uint64_t ns;
	uint8_t ends, begins;
};

struct overlaps {
	struct overlap_edge *v; /* from at_ns on */
	size_t n, cap;
	uint64_t at_ns;	  /* all before it is in the sums */
	int32_t count[8]; /* of each kind, at at_ns */
	size_t gc, tick;  /* next of each */
	struct pic_overlaps sums;
};

/* Points of a curve: all, or every stride-th of those that were seen. */
struct heap_points {
	struct pic_heap_point *v;
	size_t n, cap;
	uint64_t stride, seen; /* stride 0: all */
};

struct heap_curve {
	struct pic_heap heap, before; /* but for points and growth; before: the last collection */
	struct pic_heap_point last;
	struct heap_points points, majors;
	bool collected_before; /* in an earlier window */
	uint64_t ticked; /* bytes in readings of ticks, which no collection's has since then */
};

/* What was allocated, as far as the picture has it by now. */
struct allocated {
	struct ledger *ledger; /* of bytes */
	struct centres_bytes by_centre;
	struct pic_alloc sums; /* but for its lists */
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
	size_t max_slices; /* of one lane */
	uint64_t end_ns;   /* of what is made now */
	bool goes_on;	   /* beyond that: a cut */
	bool reading;	   /* a copy of which only the ledgers are wanted: it draws nothing */
	uint64_t dropped, dropped_ns; /* threads that had ended and have no lanes any more */
	uint32_t unsampled[LANE_KINDS][LANE_STATES]; /* stacks; 0: not made yet */
};

/* Times in which a capability had nothing to do, in time order; or in which it stood still for
 * collections (caps__sampled_gc). */
struct idle_span {
	uint64_t start, end;
	uint64_t before; /* idle time before it */
};

struct idle {
	struct idle_span *v;
	size_t n, cap;
	uint32_t *longs; /* those so long that nothing can have been ready */
	size_t n_longs, longs_cap;
	uint64_t from;	 /* earlier ones are forgotten */
	uint64_t before; /* idle time that is forgotten */
};

/* A thread's time with one face, as it is put down: what capabilities and Haskell threads did. */
struct piece {
	struct pic_slice s; /* state: enum thread_state */
	uint8_t class;	    /* enum ledger_class of its time, if it is on the CPU */
	uint16_t awaited;   /* the capability that can run once the thread has a CPU; NO_CAP */
};

/* ── states (state_of.c) ─────────────────────────────────────────────────────────────────── */

static inline bool thread__on_cpu(enum thread_state state)
{
	return state <= ST_FOREIGN_CPU;
}
/* gcs: whose collections count that touch start…end; NULL: none. They are looked up only for events
 * whose state depends on them. */
enum thread_state ev__state_on(const struct ev *ev, const struct seen *gcs, uint64_t start,
			       uint64_t end);
enum thread_state ev__state_off(const struct ev *ev, const struct seen *gcs, uint64_t start,
				uint64_t end);

/* ── when a thread was in which call (cover.c) ───────────────────────────────────────────── */

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
/* b->covers: those of the part from b->cursor to `end`. */
struct thread_builder;
int cover__build(struct thread_builder *b, uint64_t end, bool last_part);

/* ── what ran without a sample (mutator.c, prior.c) ──────────────────────────────────────── */

enum { MUTATOR_HASKELL, MUTATOR_UNSAFE, MUTATOR_MAX };

struct mutator {
	uint64_t samples[MUTATOR_MAX]; /* of the thread, outside calls and collections */
	uint64_t ns[MUTATOR_MAX];      /* put down so far */
};

void mutator__learn(struct mutator *m, const struct seen_thread *th,
		    const struct cover_list *covers);
void mutator__spent(struct mutator *m, enum thread_state state, uint64_t ns);
/*
 * ST_HASKELL or ST_UNSAFE_CALL_CPU for a piece of ns at `at`, before sample number next_sample.
 * *ret_ev: a sample of that state nearby; NULL (then it is ST_HASKELL) if there is none.
 */
enum thread_state mutator__choose(const struct mutator *m, const struct seen_thread *th,
				  size_t next_sample, uint64_t at, uint64_t ns,
				  const struct ev **ret_ev);

void prior__learn(struct lanes *l, const struct seen_thread *th);
/* False: too little is known. Before and after: enum wire_where. */
bool prior__state(struct prior *prior, unsigned before, unsigned after, uint64_t ns,
		  enum thread_state *ret_state);

/* ── OS threads (thread.c, piece.c, bounds.c) ────────────────────────────────────────────── */

/*
 * Stacks that were made for the pieces before: most have the parts of one of them, and making one
 * costs more than all else that is done for a piece. Nothing is learnt while a part is built, so
 * they stay right until it is.
 */
struct composed {
	struct composed_key {
		uint32_t hs, c, site, ccs; /* of the ev */
		uint16_t hs_run, flags;
		uint8_t where, code;
		uint8_t state;
		uint8_t has; /* 1 + whether there is an ev; 0: nothing is here */
	} key;
	uint32_t stack;
};

_Static_assert(sizeof(struct composed_key) == 24, "it is compared byte by byte: no padding");

#define COMPOSED_KEPT 64 /* a power of two */

struct thread_builder {
	struct lanes *l;
	struct thread_lane *lane;
	const struct seen_thread *th;
	struct ev *offs; /* the thread's, as bounds__offs has them */
	struct cover_list covers;
	struct piece *v; /* of this part, none merged */
	size_t n, cap;
	uint64_t cursor;       /* all before it is done */
	size_t seg, sample;    /* next of each */
	const struct ev *prev; /* the off-CPU interval before the cursor */
	bool edge_exact;       /* an event marked the cursor */
	bool start_exact;      /* and the start of the last piece */
	uint16_t held;	       /* the capability before the cursor */
	uint16_t had;	       /* the last one that it is known to have held, or been woken for */
	uint64_t tso;	       /* and the Haskell thread */
	struct mutator mutator;
	struct composed composed[COMPOSED_KEPT];
};

/* What the thread did up to `end`, as it is found out. */
struct finding_out {
	uint64_t end;
	enum thread_state state;
	const struct ev *ev; /* whose stack; NULL: none */
	uint32_t samples;
	bool sampled; /* the state is known from sampling or context, not from an event */
	bool end_exact;
	bool on_cpu;		   /* true with ST_UNKNOWN, too, of which the state does not tell */
	enum ledger_class class;   /* that its time is booked to, if it was on the CPU */
	const struct cover *cover; /* the call or collection; NULL: none */
	bool cap_known;		   /* `cap` is it, or there is none; else ev says */
	uint16_t cap;
};

/* The call or collection of the part's segment number `seg`; NULL: none. */
const struct cover *seg__cover(const struct thread_builder *b, size_t seg);
/* Calls without a record are counted by the kernel: their time is taken out of LEDGER_RUN's. */
void finding__set_class(struct finding_out *p, const struct cover *cover);
/* A piece without any sample; `off` is the interval that follows it, `next` the segment. */
int thread__emit_unsampled(struct thread_builder *b, uint64_t end, bool end_exact,
			   const struct ev *off, const struct seg *next);
/* The time from the cursor to its end: a piece, and its bookings. */
int thread__emit(struct thread_builder *b, const struct finding_out *found);
/*
 * Books that short_cpu_ns of the thread's time so far were safe calls too short for a record, as
 * the kernel has counted them.
 */
int thread__book_shorts(struct lanes *l, struct thread_lane *lane, uint64_t short_cpu_ns);

/* Makes what is decided, and lets go of its records. */
int thread__fold(struct lanes *l, struct thread_lane *lane);
/* Makes all of it. */
int thread__complete(struct lanes *l, struct thread_lane *lane, uint64_t session_end);
/*
 * Where the last part of the thread's lane ends nobody has looked at what it does: at a cut, and
 * where the last snapshot is missing, as in a capture that was not finished, or could not find out.
 */
static inline bool thread__goes_on(const struct lanes *l, const struct seen_thread *th)
{
	return l->goes_on ||
	       (!th->end_ns && (!th->has_end || th->at_end.where == WIRE_WHERE_UNKNOWN));
}

void bounds__of(const struct seen *seen, const struct seen_thread *th, uint64_t session_end,
		uint64_t *ret_start, uint64_t *ret_end);
/*
 * A copy of the thread's off-CPU intervals, with what a snapshot or a neighbour says where the
 * kernel saw nothing of one. The caller frees.
 */
int bounds__offs(const struct thread_lane *lane, struct ev **ret_offs);
/* When the thread's last record up to `end` is of; its lane's begin without one. */
uint64_t bounds__last_sign(const struct thread_builder *b, uint64_t end);
/* The off-CPU interval that the thread is in when the session ends; false: none is known. */
bool bounds__last_off(const struct thread_builder *b, uint64_t end, struct ev *ret_ev);

/* ── which capability a thread holds (held.c) ────────────────────────────────────────────── */

/* In such a state; SOME_CAP: one, it is not known which. */
uint16_t held__cap(enum thread_state state, const struct ev *ev);
/*
 * Gives the pieces that hold one of unknown number that of their neighbours. `before`: what the
 * piece right before them holds; *known: what the thread is known to have held last, before them
 * and then after them. NO_CAP: none.
 */
void held__resolve(const struct seen *seen, struct piece *v, size_t n, uint16_t before,
		   uint16_t *known);

/* ── what threads' pieces say of others (claim.c) ────────────────────────────────────────── */

/* A thread has a capability, or runs a Haskell thread. */
struct claim {
	struct pic_slice s;
	uint8_t class;	/* enum ledger_class; LEDGER_CLASSES: off the CPU */
	uint8_t state;	/* of the lane that is claimed */
	uint8_t before; /* Haskell threads: what it was before, as far as its OS thread says */
	bool weak;	/* capabilities: nobody has it, and it can run once the thread has a CPU */
};

struct claims {
	struct claim *v;
	size_t n, cap;
};

int claims__add(struct claims *claims, const struct claim *claim);
void claims__free(struct claims *claims);
int claims__copy(const struct claims *from, struct claims *ret_to);

struct claim_walk {
	uint64_t cursor; /* all before it is put down: put and gap see it, and it moves with them */
	/* The claim has it from the cursor to `end`. */
	int (*put)(void *ctx, const struct claim *c, uint64_t end);
	/* Nobody has it up to `end`, where `next` begins; NULL: after the last claim. */
	int (*gap)(void *ctx, uint64_t end, const struct claim *next);
	bool to_the_end; /* the gap after the last claim, too */
	void *ctx;
};
/*
 * Of one owner, by start, the longer first; what is before the cursor is left out. Two threads
 * cannot have it at once, but where a claim's ends are sampled two may overlap: who begins later
 * has it, since there an event or a sample showed it in his hands. A weak one has what is left.
 */
int claims__walk(struct claim_walk *w, const struct claim *v, size_t n, uint64_t until);
/* Of claims v[from…to) what lies beyond `until` moves to v[*kept…]. */
void claims__keep_rest(struct claims *claims, size_t *kept, size_t from, size_t to, uint64_t until);
/* The first n; at the end there is none, and their memory is needed for something else. */
void claims__keep_only(struct claims *claims, size_t n);
/* The part of a claim as the claimed lane shows it. Its samples go where its beginning goes. */
struct pic_slice claim__slice(const struct claim *c, uint64_t start, uint64_t end);
/* By start, the longer first, then by OS thread. */
int claims__by_start(const struct claim *a, const struct claim *b);

/* Books a claim's time to the account `owner` of a ledger. */
int claim__book(struct lanes *l, enum lane_kind kind, uint32_t owner, const struct claim *c,
		const struct pic_slice *as);

/* ── capabilities and Haskell threads (caps.c, haskell.c) ────────────────────────────────── */

int caps__new(struct caps **ret_caps);
void caps__free(struct caps *caps);
/* Without what is drawn. */
int caps__copy(const struct caps *caps, struct caps **ret_copy);
int caps__claim(struct lanes *l, const struct piece *v, size_t n);
/* Makes the lanes up to `until`: all claims before it are there. */
int caps__advance(struct lanes *l, uint64_t until);
/*
 * In these pieces of a thread ns were spent in safe calls that do not show (negative: less than
 * shows): the capability was free meanwhile.
 */
int caps__moved(struct lanes *l, const struct piece *v, size_t n, int64_t ns);
int caps__fill(struct lanes *l, uint64_t end);
/* What they do goes on in a new picture. */
int caps__cut(struct lanes *l, uint64_t end_ns);
/* NULL: there is no such capability. */
const struct idle *caps__idle(const struct lanes *l, uint32_t cap);
/* How long before the end of a gap in a Haskell thread's lane sampled collections are known. */
#define SAMPLED_GCS_NS UINT64_C(10000000000)
/*
 * Where no probe sees collections (any more): the first one that ends after `at`, by what the
 * capability did, as samples show it. NULL: there is none.
 */
const struct idle_span *caps__sampled_gc(const struct lanes *l, uint32_t cap, uint64_t at);
/* What it did up to `until` is not asked for any more, but for SAMPLED_GCS_NS. */
void caps__forget_idle(struct lanes *l, uint64_t until);

/* ── when a capability was idle (idle.c) ─────────────────────────────────────────────────── */

void idle__free(struct idle *idle);
int idle__copy(const struct idle *from, struct idle *ret_to);
/* No earlier than what is there. */
int idle__add(struct idle *idle, uint64_t start, uint64_t end);
/* Those that end at `until` or later stay. */
void idle__forget(struct idle *idle, uint64_t until);
/* The first one that ends after t; NULL: there is none. */
const struct idle_span *idle__next(const struct idle *idle, uint64_t t);
/* How long it was idle before t, which is not before idle->from. */
uint64_t idle__ns(const struct idle *idle, uint64_t t);
/* From when on, between the two, it was idle for longer than anything stays ready; UINT64_MAX: it
 * was not. */
uint64_t idle__first_long(const struct idle *idle, uint64_t from, uint64_t end);

/* ── what was so at the same time (overlaps.c) ───────────────────────────────────────────── */

void overlaps__free(struct overlaps *o);
/* Slices of one capability in time order; *was is 0 before the first. */
int overlaps__cap(struct overlaps *o, uint8_t *was, const struct pic_slice *s);
int overlaps__thread(struct overlaps *o, const struct piece *v, size_t n);
/* From here on other sums, of what comes after end_ns: of `seen` the last cut took what there was.
 */
void overlaps__cut(struct overlaps *o, const struct seen *seen, uint64_t end_ns);
/* All up to `until` is there. */
int overlaps__advance(struct overlaps *o, const struct seen *seen, uint64_t until, bool last);

/* By why_blocked; HS_UNKNOWN: WIRE_TSO_UNKNOWN. */
enum haskell_state haskell_state__blocked(uint16_t why);
/* `before`: its OS thread's state in the last piece that it was in; ST_MAX: there is none. */
enum haskell_state haskell_state__of(const struct pic_slice *s, enum thread_state before);
/* With at most `max` lanes; 0: the default. */
int haskell__new(size_t max, struct haskell **ret_haskell);
void haskell__free(struct haskell *h);
int haskell__copy(const struct haskell *h, struct haskell **ret_copy);
int haskell__claim(struct lanes *l, struct thread_lane *lane, const struct piece *v, size_t n);
/* `last`: nothing comes after `until`, which is where the lanes end. */
int haskell__advance(struct lanes *l, uint64_t until, bool last);
int haskell__fill(struct lanes *l);
/* The same as caps__cut; lanes that ended before at_ns, or about which nothing is known, go. */
void haskell__cut(struct lanes *l, uint64_t at_ns);

/* ── the rest of the picture ─────────────────────────────────────────────────────────────── */

/* Collections, and what they waited for; after the threads' and capabilities' lanes. */
int gcs__fill(struct lanes *l);
/* Where nothing marked them: how long they took at most. */
void gc_infer__fill(struct lanes *l);
/* Recorded safe calls from one capability to the next, and curves. */
int flow__fill(struct lanes *l);
int calls__fill(struct lanes *l, uint64_t session_end);

/* Books what a thread waited for in an off-CPU interval; ev may be NULL. */
int off__book(struct lanes *l, const struct thread_lane *lane, enum thread_state state,
	      const struct ev *ev, uint64_t ns);
/* The account's reasons as the lane shows them. */
int off__fill(struct lanes *l, const struct ledger_account *account, struct pic_lane *lane);

/* What stands for time in a state without a sample. */
int lane__unsampled(struct lanes *l, enum lane_kind kind, unsigned state, uint32_t *ret_stack);
/* A sentence of what this picture lacks. Where there are enough of them it is left out: that is no
 * reason to have no picture. */
int lanes__lack(struct lanes *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Rows, and the sums of states, of an account; the rows become the picture's. */
int lane__take_account(struct lanes *l, struct ledger_account *account, struct pic_lane *lane);

/* ── allocation (alloc.c) ────────────────────────────────────────────────────────────────── */

/* Books what has come in up to that time, and lets go of it. */
int allocated__take(struct lanes *l, uint64_t until);
int allocated__fill(struct lanes *l, uint64_t until);
/* enum wire_alloc_reason */
enum pic_gc_reason gc__reason(uint32_t wire);

/* ── the heap (heap.c) ───────────────────────────────────────────────────────────────────── */

void heap_curve__free(struct heap_curve *c);
/* With all that was allocated by then. */
int heap_curve__add(struct heap_curve *c, const struct alloc_reading *r, uint64_t allocated);
/* exited: the process has, by itself. */
int heap_curve__fill(const struct heap_curve *c, bool exited, struct picture *pic,
		     struct pic_heap *ret_heap);

#endif
