/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Samples of allocation, taken by the probes on a collection. The Haskell thread that has used up a
 * nursery requests a collection: its stack is a sample for all bytes that its capability has
 * allocated since the capability's previous sample. It is taken at the request, where the runtime
 * still shows which thread that was, or at the end of the collection if the probe on the request is
 * off. A capability that never requests a collection because others always do so first is sampled
 * as it was stopped, once it has allocated a nursery's worth.
 */
#ifndef SAFESCOPED_ALLOC_BPF_H
#define SAFESCOPED_ALLOC_BPF_H

#include "maps.bpf.h"
#include "heap.bpf.h"

#define ALLOC_PERIOD_NS 100000000ULL
/* With stacks_by_samples, where there may be few samples: the period, the least number of
 * inspections in it, and their number while there are no samples to follow. */
#define ALLOC_LONG_NS	 1000000000ULL
#define ALLOC_LEAST	 2
#define ALLOC_FIRST	 8
#define ALLOC_MOST_EVERY 65536

/* NULL if the layout of the target's heap is not known. */
SS_INLINE struct wire_heap_state *alloc_state(const struct wire_target *t, u32 tgid)
{
	struct wire_heap_state *st, *zero;
	u32 key = 0;

	if ((t->flags & WIRE_TARGET_UNCONFIRMED) || !heap_known(&t->layout))
		return 0;
	st = bpf_map_lookup_elem(&heaps, &tgid);
	if (st)
		return st;
	zero = bpf_map_lookup_elem(&zero_heap, &key);
	if (!zero || bpf_map_update_elem(&heaps, &tgid, zero, BPF_NOEXIST))
		return 0;
	return bpf_map_lookup_elem(&heaps, &tgid);
}

/* Sets the limit of inspections to the number of samples that the target had in the last period. */
SS_INLINE void alloc_set_most(struct wire_heap_state *st, struct wire_target *t)
{
	u64 samples = target_entry(t)->samples, n = samples - st->samples;

	/* nothing is known of the first period, nor of one in which the counter was reset */
	if (!st->period_ns || samples < st->samples)
		n = ALLOC_FIRST;
	st->samples = samples;
	st->most = n > ALLOC_LEAST ? n : ALLOC_LEAST;
}

/*
 * True if this collection is to be inspected, which prolongs the pause by some microseconds. The
 * rate is limited like that of stacks at switch-out. If collections are more frequent, one in
 * `every` is chosen at random: a choice by time would favour collections that follow a long
 * interval.
 */
SS_INLINE int alloc_may(struct wire_heap_state *st, struct wire_target *t, u64 now)
{
	u64 period = stacks_by_samples ? ALLOC_LONG_NS : ALLOC_PERIOD_NS;
	u32 most = stacks_by_samples ? st->most
				     : alloc_stacks_per_sec / (1000000000ULL / ALLOC_PERIOD_NS);

	if (!st->every)
		st->every = 1;
	if (now - st->period_ns >= period) {
		if (2 * st->taken < most && st->every > 1)
			st->every /= 2;
		if (stacks_by_samples)
			alloc_set_most(st, t);
		st->period_ns = now;
		st->taken = 0;
	} else if (st->taken >= most && st->every < ALLOC_MOST_EVERY) {
		st->every *= 2;
		st->taken = 0;
	}
	if (st->every > 1 && bpf_get_prandom_u32() % st->every)
		return 0;
	st->taken++;
	return 1;
}

/* Sends a sample of the Haskell thread `tso`. s->rts: its capability; s->th: the OS thread that hit
 * the probe. Returns 0 if there is no Haskell thread. */
SS_GLOBAL int alloc_send(const struct wire_target *t, struct scratch *s, u64 tso, u32 reason,
			 u64 now)
{
	struct wire_alloc *rec;
	struct stg g = {};
	u64 stack = 0, code;
	u32 cause;

	if (!t || !s || !tso)
		return 0;
	rec = (struct wire_alloc *)s->rec;
	fill_header(&rec->h, WIRE_ALLOC, now, s->th.tgid, s->th.tid);
	rec->rts = s->rts;
	rts_read_tso(0, t, tso, &rec->rts);
	rec->rts.where = WIRE_WHERE_HASKELL;
	rec->rts.cccs = 0;
	if (t->flags & WIRE_TARGET_PROFILED)
		mem_u64(0, &rec->rts.cccs, tso + t->layout.tso_cccs);
	rec->reason = reason;
	rec->flags = 0;
	g.w = &s->walk;
	g.scan = &s->scan;
	g.frames = (u64 *)(s->rec + sizeof(*rec));
	stg_init(&g, &t->layout, WIRE_FRAMES_LEAF, WIRE_FRAMES_ROOT);
	s->walk.updatees = !!(t->flags & WIRE_TARGET_UPDATEES);
	cause = WIRE_CAUSE_FAULT;
	if (!mem_u64(0, &stack, tso + t->layout.tso_stackobj))
		cause = stg_enter(&g, stack);
	if (cause) {
		stg_fail(&g, cause);
	} else {
		code = heap_checked_code(0, s->walk.sp);
		if (heap_in_primitive(0, s->walk.sp))
			rec->flags = WIRE_ALLOC_PRIMITIVE;
		if (code)
			stg_put(&g, WIRE_FRAME_HS_IP, code);
		stg_run(&g, 1);
	}
	stg_result(&s->walk, &rec->stack);
	ring_send(rec, sizeof(*rec), s->walk.n);
	return 1;
}

/* Fills s->rts and s->th for the thread that leads the collection. False if it holds no
 * capability. */
SS_INLINE int alloc_leader(struct wire_target *t, struct scratch *s, struct task_struct *task)
{
	rts_thread_of(task, 0, &s->th);
	rts_read(0, t, &s->th, &s->rts);
	return s->rts.where == WIRE_WHERE_RTS && s->rts.cap;
}

/*
 * Samples the Haskell thread that requested the collection. At the request, the leader's capability
 * is still as that thread left it. At the end of the collection the thread is still known, but not
 * what it had used up.
 */
SS_INLINE void alloc_asked(struct wire_target *t, struct wire_heap_state *st, struct scratch *s,
			   u32 point, u64 now)
{
	const struct wire_layout *l = &t->layout;
	int by_hp_lim = point == WIRE_GC_SYNC ||
			(point == WIRE_GC_START && !(t->flags & WIRE_TARGET_THREADED));
	u64 tso;

	st->reason = heap_reason(0, l, s->rts.cap, s->th.incall);
	if (point == WIRE_GC_END && st->reason == WIRE_ALLOC_OTHER)
		st->reason = WIRE_ALLOC_UNKNOWN;
	if (st->reason > WIRE_ALLOC_LARGE)
		return;
	tso = heap_ran_last(0, l, s->rts.cap, by_hp_lim);
	if (alloc_send(t, s, tso, st->reason, now))
		st->sampled = s->rts.cap_no + 1;
}

/* ── other capabilities ──────────────────────────────────────────────────────────────────── */

struct alloc_ctx {
	const struct wire_target *t;
	const struct wire_heap_state *st;
	u64 array;
	u64 most, cap; /* the capability that has allocated most since its last sample */
	u32 n, no, every;
};

static long alloc_look(u32 i, void *ctx)
{
	struct alloc_ctx *c = ctx;
	const struct wire_layout *l = &c->t->layout;
	u64 cap = 0, bytes = 0, nursery, before;

	if (i >= c->n || mem_u64(0, &cap, c->array + 8ULL * i) || !cap)
		return 1;
	i &= WIRE_HEAP_CAPS - 1;
	ss_barrier(i);
	before = c->st->before[i & (WIRE_HEAP_CAPS - 1)];
	if (i + 1 == c->st->sampled || !before || heap_allocated(0, l, cap, &bytes))
		return 0;
	bytes += heap_in_use(0, l, cap);
	nursery = heap_nursery(0, l, cap);
	if (bytes < before || !nursery || bytes - before < nursery * c->every ||
	    bytes - before <= c->most)
		return 0;
	c->most = bytes - before;
	c->cap = cap;
	c->no = i;
	return 0;
}

/* The array of capabilities; *ret_n is 0 if only a single one is known. */
SS_INLINE void alloc_caps(const struct wire_target *t, u64 *ret_array, u32 *ret_n)
{
	u32 n = 0;

	*ret_n = 0;
	*ret_array = t->capabilities;
	if (!t->n_capabilities || !t->capabilities ||
	    mem_read(0, &n, sizeof(n), t->n_capabilities) ||
	    (!(t->flags & WIRE_TARGET_CAPS_ARRAY) && mem_u64(0, ret_array, t->capabilities)))
		return;
	*ret_n = n;
}

/* While all capabilities are stopped: samples the one that has allocated most without requesting a
 * collection itself. */
SS_INLINE void alloc_stopped(struct wire_target *t, struct wire_heap_state *st, struct scratch *s,
			     u64 now)
{
	struct alloc_ctx c = {};
	u64 tso;

	alloc_caps(t, &c.array, &c.n);
	if (c.n < 2)
		return;
	c.t = t;
	c.st = st;
	c.every = st->every ? st->every : 1;
	ss_loop(WIRE_HEAP_CAPS, alloc_look, &c);
	if (!c.cap)
		return;
	tso = heap_ran_last(0, &t->layout, c.cap, 0);
	/* the flag that shows this is cleared by the collection, so it is checked only at the
	 * start */
	if (!tso || (st->started && !heap_has_run(0, &t->layout, tso)))
		return;
	s->rts.cap = c.cap;
	s->rts.cap_no = c.no;
	if (alloc_send(t, s, tso, WIRE_ALLOC_STOPPED, now))
		st->stopped = c.no + 1;
}

/* ── the heap at the end ─────────────────────────────────────────────────────────────────── */

struct heap_ctx {
	const struct wire_target *t;
	struct wire_heap_state *st;
	struct wire_heap_cap *caps;
	u64 only, array;
	u32 n, done;
};

static long heap_cap(u32 i, void *ctx)
{
	struct heap_ctx *c = ctx;
	struct wire_heap_cap *out;
	u64 cap = c->only, bytes = ~0ULL;

	if (i >= c->n || (!cap && mem_u64(0, &cap, c->array + 8ULL * i)) || !cap)
		return 1;
	i &= WIRE_HEAP_CAPS - 1;
	ss_barrier(i);
	out = &c->caps[i & (WIRE_HEAP_CAPS - 1)];
	if (heap_allocated(0, &c->t->layout, cap, &bytes))
		bytes = ~0ULL;
	out->allocated = bytes;
	out->no = i;
	out->nursery = heap_nursery(0, &c->t->layout, cap) / HEAP_BLOCK_SIZE;
	c->done = i + 1;
	if (bytes != ~0ULL && (i + 1 == c->st->sampled || i + 1 == c->st->stopped ||
			       !c->st->before[i & (WIRE_HEAP_CAPS - 1)]))
		c->st->before[i & (WIRE_HEAP_CAPS - 1)] = bytes + !bytes;
	return 0;
}

SS_INLINE void heap_send(struct user_regs *regs, struct wire_target *t, struct wire_heap_state *st,
			 struct scratch *s, struct task_struct *task, u64 now)
{
	struct wire_heap *rec = (struct wire_heap *)s->rec;
	struct heap_ctx c = {};
	u32 n = 0, gcs = 0;

	__builtin_memset(rec, 0, sizeof(*rec));
	fill_header(&rec->h, WIRE_HEAP, now, task->tgid, task->pid);
	/* stat_endGC(cap, gct, live, copied, slop, gen, …), rts/Stats.c, 8.10 to 9.14 */
	rec->live_words = ARCH_ARG3(regs);
	rec->copied_words = ARCH_ARG4(regs);
	rec->slop_words = ARCH_ARG5(regs);
	rec->generation = ARCH_ARG6(regs);
	rec->number = WIRE_GC_NO_NUMBER;
	if (t->stats && !mem_read(0, &gcs, sizeof(gcs), t->stats))
		rec->number = gcs;
	rec->held = heap_held(0, t->stats);
	rec->large_words = st->large_words;
	rec->reason = st->reason;
	rec->skipped_copied_words = st->skipped_copied_words;
	rec->skipped = st->looked ? st->skipped : 0;
	rec->flags = st->large_seen ? WIRE_HEAP_LARGE_SEEN : 0;
	rec->n_gens = heap_generations(0, &t->layout, s->rts.cap, rec->gens);
	/* a major collection has visited each thread, which takes far longer than counting them */
	if (rec->n_gens && rec->generation + 1 == rec->n_gens)
		rec->n_threads = heap_count_threads(0, &t->layout, s->rts.cap);
	c.t = t;
	c.st = st;
	c.caps = (struct wire_heap_cap *)(s->rec + sizeof(*rec));
	alloc_caps(t, &c.array, &n);
	if (!n) {
		/* the only capability that is known */
		c.only = t->main_cap ? t->main_cap : s->rts.cap;
		n = 1;
	}
	rec->all_caps = n;
	c.n = n < WIRE_HEAP_CAPS ? n : WIRE_HEAP_CAPS;
	ss_loop(WIRE_HEAP_CAPS, heap_cap, &c);
	n = c.done;
	if (n > WIRE_HEAP_CAPS)
		n = WIRE_HEAP_CAPS;
	rec->n_caps = n;
	n = sizeof(*rec) + n * (u32)sizeof(struct wire_heap_cap);
	rec->h.size = n;
	ring_put(rec, n, ring_wakeup());
}

/* A collection that is not inspected: reads only what adds up over collections and would be lost
 * after this one. */
SS_INLINE void alloc_skip(struct user_regs *regs, struct wire_target *t, struct wire_heap_state *st,
			  u32 point)
{
	if (point == WIRE_GC_END) {
		st->large_words += st->new_large;
		st->skipped_copied_words += ARCH_ARG4(regs);
		st->skipped++;
	} else if (st->cap) {
		st->new_large = heap_new_large(0, &t->layout, st->cap);
		st->large_seen = 1;
	}
}

SS_INLINE void alloc_look_at(struct user_regs *regs, struct wire_target *t,
			     struct wire_heap_state *st, struct scratch *s,
			     struct task_struct *task, u32 point, u32 first, u64 now)
{
	st->cap = s->rts.cap;
	if (first)
		alloc_asked(t, st, s, point, now);
	if (point != WIRE_GC_END) {
		st->new_large = heap_new_large(0, &t->layout, s->rts.cap);
		st->large_seen = 1;
	}
	/* the probe on the start of a collection may be off */
	if (st->looked && (point == WIRE_GC_START || (point == WIRE_GC_END && !st->started))) {
		st->started = point == WIRE_GC_START;
		alloc_stopped(t, st, s, now);
	}
	if (point != WIRE_GC_END)
		return;
	st->large_words += st->new_large;
	heap_send(regs, t, st, s, task, now);
	st->skipped_copied_words = 0;
	if (st->looked)
		st->skipped = 0;
}

/* Called at each GC probe. Returns 1 if the collection was inspected, which takes noticeable
 * time. */
SS_NOINLINE int alloc_probe(struct user_regs *regs, struct wire_target *t,
			    struct wire_heap_state *st, u32 point, u64 now)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct scratch *s;
	u32 first;

	if (!st)
		return 0;
	first = point == WIRE_GC_SYNC || !st->begun;
	if (first) {
		st->begun = 1;
		st->looked = alloc_may(st, t, now);
		st->started = st->sampled = st->stopped = st->large_seen = 0;
		st->new_large = 0;
		st->reason = WIRE_ALLOC_UNKNOWN;
	}
	if (point == WIRE_GC_END)
		st->begun = 0;
	/* all major collections are recorded, for the curves of the heap */
	if (!st->looked && (point != WIRE_GC_END || !(u32)ARCH_ARG6(regs))) {
		alloc_skip(regs, t, st, point);
		return 0;
	}
	s = scratch_claim();
	if (!s)
		return 0;
	if (alloc_leader(t, s, task))
		alloc_look_at(regs, t, st, s, task, point, first && st->looked, now);
	scratch_release(s);
	return 1;
}

#endif
