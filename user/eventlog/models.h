/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * models: what is in a log, put together. Part of the room's public interface; include eventlog.h.
 *
 * Each model is made, attached to a reader before the first byte, and read after eventlog__finish.
 * Times are the log's own (ns since the RTS started). Every model bounds what it keeps; what did
 * not fit is counted. Models may outlive the reader.
 */
#ifndef SAFESCOPED_EVENTLOG_MODELS_H
#define SAFESCOPED_EVENTLOG_MODELS_H

#include "cctree.h"
#include "picture/slices.h"

/* ── the part of the log that is wanted ──────────────────────────────────────────────────── */

/*
 * [from, to) by time, or from the first message or marker that begins with a text to the first such
 * one after it. Attach it before the models that use it. All zero: the whole log.
 */
struct el_window {
	uint64_t from, to; /* 0: unbounded */
	/* `from` has a margin up to here: what ended within it is probably not wanted and gives
	 * way; 0: no margin */
	uint64_t sure;
	const char *from_marker, *to_marker;
	/* while reading: */
	bool opened, closed; /* by their markers */
	bool attached;
};

int el_window__attach(struct el_window *w, struct eventlog *log);
/* Clips a time span to the window as far as it is known. False if nothing is left. */
bool el_window__clip(const struct el_window *w, uint64_t *start, uint64_t *end);
/* `w` NULL: no window, everything is inside. */
bool el_window__has(const struct el_window *w, uint64_t time);

/* ── cost-centre samples ─────────────────────────────────────────────────────────────────── */

struct el_profile;

struct el_profile_lane {
	uint16_t cap;
	uint64_t ticks;
	const struct slices *lane; /* stack: node of the tree; state: enum cap_state; samples */
};

struct el_profile_info {
	uint64_t interval_ns;	   /* PROF_BEGIN; 0: none */
	uint64_t samples, outside; /* taken; outside the window */
	uint64_t unknown_centres;  /* frames whose centre the log does not define */
	uint64_t dropped;
	size_t n_lanes;
};

int el_profile__new(const struct el_window *window, struct el_profile **ret_p);
void el_profile__free(struct el_profile *p);
int el_profile__attach(struct el_profile *p, struct eventlog *log);
/* Call after the end of the log. */
int el_profile__finish(struct el_profile *p);
/* Owned by the model. */
struct cctree *el_profile__tree(struct el_profile *p);
struct el_profile_info el_profile__info(const struct el_profile *p);
/* In the order of their first ticks. */
const struct el_profile_lane *el_profile__lane(const struct el_profile *p, size_t i);

/* ── scheduler ───────────────────────────────────────────────────────────────────────────── */

/*
 * CS_RTS: a thread gave up its turn although it could continue, and the scheduler has work; or a
 * collection has ended, and the capability's OS thread has not noticed yet.
 */

struct el_thread {
	uint32_t tid;
	uint16_t cap; /* last seen on */
	bool finished;
	uint8_t state;	     /* enum haskell_state, the last one logged; HS_UNKNOWN if finished */
	uint64_t start, end; /* first and last time it is mentioned; `end` is its finish */
	uint64_t since;	     /* when `state` began */
	uint64_t state_ns[HS_MAX];
	uint64_t safe_calls;
	char *label;		   /* NULL: none */
	const struct slices *lane; /* NULL: not kept */
};

struct el_cap {
	uint16_t cap;
	uint64_t state_ns[CS_MAX];
	uint64_t runs, gcs;
	/* tso: of a run; stack: the status of the STOP_THREAD that ended it */
	const struct slices *lane;
};

/* A collection, as logged by the capability that led it. */
struct el_gc {
	uint64_t start, end;
	uint64_t request;  /* when it was requested; 0: unknown */
	uint16_t cap, gen; /* gen EL_GC_NO_GEN: unknown */
};

#define EL_GC_NO_GEN 0xffff

struct el_sched_info {
	size_t n_caps, n_threads;
	size_t n_lanes;	   /* threads that have a lane */
	size_t n_given_up; /* threads that ended and ran little, beyond what is kept */
	uint64_t gcs, gc_pause_ns, gc_max_pause_ns; /* of the capability that led each GC */
	size_t n_gcs;				    /* the number in el_sched__gc: the first ones */
	uint64_t odd;				    /* events that contradict what was known */
	uint64_t dropped; /* threads, labels or slices beyond the limits */
	uint64_t last;	  /* time of the last scheduler event */
};

struct el_sched_opts {
	const struct el_window *window; /* NULL: the whole log */
	/*
	 * Keep the lanes of this many threads, the first ones that did something in the window, and
	 * of as many that did nothing but wait; 0: totals only.
	 */
	size_t thread_lanes;
	/* Called for each finished safe call; may be NULL. A nonzero return value ends reading. */
	int (*on_call)(void *ctx, uint32_t thread, uint64_t start, uint64_t end, uint16_t cap,
		       uint16_t cap_after);
	void *ctx;
};

struct el_sched;
int el_sched__new(const struct el_sched_opts *opts, struct el_sched **ret_s);
void el_sched__free(struct el_sched *s);
int el_sched__attach(struct el_sched *s, struct eventlog *log);
/* Call before el_sched__finish if the log was cut off: what happened on the capability after `time`
 * was not written, and is unknown. */
void el_sched__cut(struct el_sched *s, uint16_t cap, uint64_t time);
/* Call after the end of the log: closes what is open at `end` (0: at the last event seen). */
int el_sched__finish(struct el_sched *s, uint64_t end);
struct el_sched_info el_sched__info(const struct el_sched *s);
const struct el_cap *el_sched__cap(const struct el_sched *s, size_t i);
const struct el_thread *el_sched__thread(const struct el_sched *s, size_t i);
const struct el_thread *el_sched__find_thread(const struct el_sched *s, uint32_t tid);
const struct el_gc *el_sched__gc(const struct el_sched *s, size_t i);
/* The thread currently running on a capability, while the log is being read; 0: none. */
uint32_t el_sched__running(const struct el_sched *s, uint16_t cap);

/* ── annotations of hs-safescope and ghc-events-analyze ──────────────────────────────────── */

/*
 * START [n] label · STOP|END [n] label · ANN_CCS|ANN_SCC [n] label [list of stack strings] ·
 * ANN_TH [n] label tid · ANN_CALL_TO fn site tid · ANN_CALL_RET fn site tid.
 * An interval with a kernel thread id or a stack is a foreign call, any interval is a window.
 */
struct el_span {
	uint64_t start, end;
	uint32_t label; /* el_annot__string */
	uint64_t n;
	uint64_t tid;	 /* kernel thread; 0: unknown */
	uint32_t thread; /* Haskell thread that opened it; 0: unknown */
	uint32_t node;	 /* in the given tree; CC_NO_NODE: no stack was logged */
	bool open_end;	 /* no STOP: ends where the log does */
};

/* Totals of one label, over all its numbers. */
struct el_span_sum {
	uint32_t label;
	uint64_t count, total_ns, min_ns, max_ns, unfinished;
};

struct el_ccall {
	uint64_t start, end, fn, site, tid;
	uint32_t depth; /* nesting depth on that thread */
	bool open_end;
};

struct el_annot_info {
	size_t n_spans, n_sums, n_ccalls;
	uint64_t messages;  /* recognised */
	uint64_t unmatched; /* STOP, END or ANN_ without START, RET without TO */
	uint64_t overlaps;  /* spans of one kernel thread that overlap or nest */
	uint64_t malformed, dropped;
};

struct el_annot;
/* `tree`: where logged stacks become nodes; `sched`: shows which threads run. Each may be NULL. */
int el_annot__new(const struct el_window *window, struct cctree *tree, const struct el_sched *sched,
		  struct el_annot **ret_a);
void el_annot__free(struct el_annot *a);
int el_annot__attach(struct el_annot *a, struct eventlog *log);
int el_annot__finish(struct el_annot *a, uint64_t end);
struct el_annot_info el_annot__info(const struct el_annot *a);
const struct el_span *el_annot__span(const struct el_annot *a, size_t i); /* by start */
const struct el_span_sum *el_annot__sum(const struct el_annot *a, size_t i);
const struct el_ccall *el_annot__ccall(const struct el_annot *a, size_t i);
const char *el_annot__string(const struct el_annot *a, uint32_t id);

/* ── counters: heap, heap profile, ticky ─────────────────────────────────────────────────── */

struct el_point {
	uint64_t time, value;
};

/* One curve. */
struct el_series {
	uint32_t name; /* el_heap__string: "heap size", "Main.fib", … */
	uint16_t kind; /* enum el_series_kind */
	uint64_t id;   /* of a ticky counter; otherwise distinguishes curves of the kind */
	struct el_point *p;
	size_t n, cap;
	uint64_t max_value, last, every; /* every: one point in this many was kept */
};

enum el_series_kind {
	ESK_HEAP,    /* its size, live bytes, blocks; allocation by capability, cumulative */
	ESK_PROFILE, /* one band of the heap profile */
	ESK_TICKY_ENTRIES,
	ESK_TICKY_ALLOCS, /* bytes */
};

struct el_heap_info {
	size_t n_series;
	uint64_t dropped;
};

struct el_heap;
/* `tree` names cost-centre bands; may be NULL. */
int el_heap__new(const struct el_window *window, struct cctree *tree, struct el_heap **ret_h);
void el_heap__free(struct el_heap *h);
int el_heap__attach(struct el_heap *h, struct eventlog *log);
struct el_heap_info el_heap__info(const struct el_heap *h);
const struct el_series *el_heap__series(const struct el_heap *h, size_t i);
const char *el_heap__string(const struct el_heap *h, uint32_t id);

/* ── the process, its clock, its markers ─────────────────────────────────────────────────── */

struct el_note {
	uint64_t time;
	uint32_t text; /* el_info__string */
	uint16_t id;   /* USER_MARKER or USER_MSG */
	uint16_t cap;
	uint32_t thread; /* running there; 0: unknown */
};

struct el_process {
	uint32_t pid;
	const char *rts;     /* "GHC-9.0.2 rts_thr_p"; "" if not logged, like the others */
	const char *program; /* first argument */
	const char *args;    /* joined by blanks */
	bool wall_known;
	uint64_t wall_time_ns; /* unix ns … */
	uint64_t wall_at;      /* … at this time of the log */
	size_t n_notes;
	uint64_t dropped;
};

struct el_info;
/* `window`: for markers and messages; `sched`: shows which threads run. Each may be NULL. */
int el_info__new(const struct el_window *window, const struct el_sched *sched,
		 struct el_info **ret_i);
void el_info__free(struct el_info *i);
int el_info__attach(struct el_info *i, struct eventlog *log);
struct el_process el_info__process(const struct el_info *i);
const struct el_note *el_info__note(const struct el_info *i, size_t n);
const char *el_info__string(const struct el_info *i, uint32_t id);

#endif
