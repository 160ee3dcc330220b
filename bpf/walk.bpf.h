/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The whole stack of a thread in whatever state it is: C frames by unwind rows, Haskell frames by
 * the STG walk, C frames below those where Haskell was called back from C, and so on.
 *
 * A part of C frames ends at the thread's start, or at a return address in Haskell code: there
 * StgRun's return address lies where it always is (cstack.bpf.h), and rbp, restored by the rows,
 * is Sp. Where rows are missing (hand-written assembly), Sp is looked for in what C code saved on
 * its stack, and WIRE_FRAME_GAP says that C frames are not known.
 *
 * Below the Haskell frames of a thread that was called from C (a foreign export), the C frames are
 * those above which StgRun reserved its stack; the Haskell thread that made the call is the one
 * that InCall.prev_stack has suspended (GHC rts/Task.h, newInCall).
 */
#ifndef SAFESCOPED_WALK_BPF_H
#define SAFESCOPED_WALK_BPF_H

#include "wire.h"
#include "arch.bpf.h"
#include "stg.bpf.h"
#include "rts.bpf.h"
#include "cstack.bpf.h"
#include "unwind.bpf.h"

/* Parts of Haskell frames walked at most, each with the C frames above it. */
#define WALK_MAX_PARTS 32
/* Words above rsp + CSTACK_STGRUN_FRAME that are looked at: a call's alignment and arguments. */
#define WALK_CALL_WORDS 4
/* Above a thread's outermost frame: what the kernel and the C library put there. */
#define WALK_MAIN_BOTTOM   256
#define WALK_THREAD_BOTTOM 4096
/* A function in assembler without rows is no longer. */
#define WALK_LEAF_CODE 8192

/* The user registers that matter. */
struct walk_regs {
	u64 ip, sp;
	u64 fp;	   /* C's frame pointer, in Haskell code Sp */
	u64 base;  /* in Haskell code BaseReg */
	u64 saved; /* for walk_unprobe alone */
	u64 rdi;   /* for WIRE_CFI_LEAF_RDI alone */
};

/* State of one walk: in a map, as struct stg_walk is. */
struct walk_state {
	u64 incall;   /* of the Haskell part that comes next, or of the C part without one */
	u64 tso;      /* that part's thread; 0: none is known */
	u64 site;     /* of the safe call that the thread is in; 0: not known */
	u64 landmark; /* where StgRun's return address is, under that part; 0: not known */
	u64 rsp;      /* where the C part began */
	struct cstack found;
	u64 words[WALK_CALL_WORDS];
	u8 in_c;    /* the part has C frames above the Haskell ones */
	u8 running; /* the thread runs: its Sp is not in its STACK */
	u8 part;
	u8 differs; /* unwind rows led to another StgRun frame than the one known */
};

struct walk_ctx {
	const struct stg *g;
	const struct wire_target *t;
	struct rts_thread *th;
	struct walk_state *s;
};

/*
 * In a breakpoint's trap the program counter is after the breakpoint that stands for the
 * instruction's first byte, and nothing of it has been done: back to it. Unless it is a push in one
 * byte, which the kernel has emulated by now: then what it pushed lies at the stack pointer.
 */
SS_INLINE void walk_unprobe(struct mem *mem, struct walk_regs *r)
{
	u64 top = 0;
	u8 before = 0;

	if (mem_read(mem, &before, 1, r->ip - ARCH_BREAKPOINT_SIZE) || before != ARCH_BREAKPOINT)
		return;
	if (!mem_u64(mem, &top, r->sp) && (top == r->fp || top == r->saved))
		return;
	r->ip -= ARCH_BREAKPOINT_SIZE;
}

SS_INLINE int walk_sp_ok(const struct stg *g, u64 sp)
{
	return sp >= g->w->start && sp < g->w->end && !(sp & 7);
}

/*
 * Where StgRun's return address is if rsp is that of Haskell code about to call, or just called;
 * 0 if it is not. A call's arguments on the stack lie between.
 */
SS_INLINE u64 walk_landmark(const struct walk_ctx *c, u64 rsp, u32 words)
{
	u64 *w = c->s->words, stgrun_ret = c->t->stgrun_ret, found = 0;
	u32 i;

	if (!stgrun_ret || mem_read(c->g->mem, w, sizeof(c->s->words), rsp + CSTACK_STGRUN_FRAME))
		return 0;
#pragma GCC unroll 4
	for (i = 0; i < WALK_CALL_WORDS; i++)
		if (i < words && w[i] == stgrun_ret && !found)
			found = rsp + CSTACK_STGRUN_FRAME + 8 * i;
	return found;
}

/*
 * The same after a call with many arguments on the stack, which GHC takes off at once
 * (GHC/CmmToAsm/X86/CodeGen.hs, genCCall64).
 */
SS_INLINE u64 walk_landmark_above(const struct walk_ctx *c, u64 rsp, u64 ra)
{
	u64 at = rsp + CSTACK_STGRUN_FRAME, word = 0;
	u32 bytes = cstack_taken_off(c->g->mem, ra);

	if (!bytes || mem_u64(c->g->mem, &word, at + bytes) || word != c->t->stgrun_ret)
		return 0;
	return at + bytes;
}

SS_INLINE void walk_gap(const struct stg *g)
{
	stg_put(g, WIRE_FRAME_GAP, g->unw->pc);
	g->w->gap = 1;
}

/* The innermost part's landmark: remembered for the thread, compared with what was known. */
SS_INLINE void walk_learn(const struct walk_ctx *c)
{
	struct walk_state *s = c->s;
	u64 known = c->th->stgrun_at, landmark = s->landmark, word = 0;

	if (s->part || !landmark || s->incall != c->th->incall)
		return;
	/* the runtime uses an InCall again for a later call, which may be elsewhere on the stack */
	if (c->th->stgrun_incall == c->th->incall && known > s->rsp && known != landmark &&
	    !mem_u64(c->g->mem, &word, known) && word == c->t->stgrun_ret)
		s->differs = 1;
	c->th->stgrun_at = landmark;
	c->th->stgrun_incall = c->th->incall;
}

/*
 * Without rows, by what C code has saved on its stack: Sp of the running thread; 0: not found. With
 * a frame of its own, which is gone when the walk goes on.
 */
SS_NOINLINE u64 walk_saved_sp(const struct walk_ctx *c)
{
	const struct stg *g = c->g;
	const struct cstack_ctx scan = {.mem = g->mem, .scan = g->scan};
	struct rts_thread *th = c->th;
	struct cstack *cs = &c->s->found;
	u64 known;

	walk_gap(g);
	if (c->t->stgrun_ret) {
		known = th->stgrun_incall == th->incall ? th->stgrun_at : 0;
		th->stgrun_at = cstack_landmark(&scan, c->s->rsp, c->t->stgrun_ret, known);
		th->stgrun_incall = th->incall;
	} else {
		th->stgrun_at = 0;
	}
	c->s->landmark = th->stgrun_at;
	__builtin_memset(cs, 0, sizeof(*cs));
	cstack_find(&scan, c->s->rsp, th->stgrun_at, g->w->start, g->w->end, cs);
	if (cs->call_ra)
		stg_put(g, WIRE_FRAME_HS_CALL, cs->call_ra);
	return cs->sp;
}

/* The Haskell part of a thread that is suspended in a safe call. */
SS_INLINE void walk_suspended(const struct walk_ctx *c, int arrived)
{
	if (c->s->site)
		stg_put(c->g, WIRE_FRAME_SITE, c->s->site);
	else if (arrived)
		stg_put(c->g, WIRE_FRAME_HS_CALL, c->g->unw->ra);
	if (arrived)
		walk_learn(c);
	rts_walk_suspended(c->g, c->t, c->s->incall, c->s->tso);
}

/* The Haskell thread that called what now runs in s->incall. False: there is none. */
SS_INLINE int walk_caller(const struct walk_ctx *c)
{
	struct walk_state *s = c->s;
	u64 prev = 0, tso = 0;

	s->tso = 0;
	if (!s->incall || mem_u64(c->g->mem, &prev, s->incall + c->t->layout.incall_prev_stack) ||
	    !prev || mem_u64(c->g->mem, &tso, prev + c->t->layout.incall_suspended_tso) || !tso)
		return 0;
	s->incall = prev;
	s->tso = stg_unforward(c->g->mem, tso);
	s->running = 0;
	s->site = 0;
	return 1;
}

/*
 * In C code, but the Haskell code that the unwinder came to is not the running thread's: that is
 * about to be entered, or was just left, and what was found has made the call that led here. Its
 * rbp proves it. 1: it is walked.
 */
SS_INLINE int walk_outside(const struct walk_ctx *c)
{
	const struct stg *g = c->g;
	u64 obj = 0;

	if (!walk_caller(c) || mem_u64(g->mem, &obj, c->s->tso + c->t->layout.tso_stackobj) ||
	    stg_enter(g, obj) || !walk_sp_ok(g, g->unw->bp))
		return 0;
	walk_suspended(c, 1);
	return 1;
}

/*
 * Sp as the STACK has it. True where rbp is not Sp though the code is Haskell's, or was called by
 * it: on the way in and out (stg_returnToStackTop, stg_returnToSched: GHC rts/StgStartup.cmm) and
 * while the thread gets another chunk (threadStackOverflow, threadStackUnderflow: rts/Threads.c).
 */
SS_INLINE u64 walk_kept_sp(const struct walk_ctx *c, u64 obj)
{
	u64 sp = 0;

	mem_u64(c->g->mem, &sp, obj + c->t->layout.stack_sp);
	return sp;
}

/* Sp of a thread that runs; 0: the walk is over. `arrived`: the unwinder has led to it. */
SS_INLINE u64 walk_running_sp(const struct walk_ctx *c, int arrived, u64 obj)
{
	const struct stg *g = c->g;
	u64 incall = c->s->incall, saved;

	if (!c->s->in_c)
		return walk_sp_ok(g, g->unw->bp) ? g->unw->bp : walk_kept_sp(c, obj);
	if (arrived && g->unw->bp_known) {
		if (walk_sp_ok(g, g->unw->bp)) {
			stg_put(g, WIRE_FRAME_HS_CALL, g->unw->ra);
			return g->unw->bp;
		}
		if (walk_outside(c))
			return 0;
		c->s->incall = incall;
		stg_enter(g, obj);
		saved = walk_kept_sp(c, obj);
		if (walk_sp_ok(g, saved)) {
			stg_put(g, WIRE_FRAME_HS_CALL, g->unw->ra);
			return saved;
		}
	}
	saved = walk_saved_sp(c);
	/* where no C function has touched rbp, a word that one saved earlier is an older Sp */
	return saved && !(g->unw->bp_known && walk_sp_ok(g, g->unw->bp)) ? saved : g->unw->bp;
}

/* The Haskell part of a thread that runs. */
SS_INLINE void walk_running(const struct walk_ctx *c, int arrived)
{
	const struct stg *g = c->g;
	u64 obj = 0, sp;

	/* the STACK's own sp is stale while the thread runs, but its bounds are not */
	if (!c->s->tso || mem_u64(g->mem, &obj, c->s->tso + c->t->layout.tso_stackobj) ||
	    stg_enter(g, obj)) {
		stg_fail(g, WIRE_CAUSE_NO_TSO);
		return;
	}
	sp = walk_running_sp(c, arrived, obj);
	if (!sp)
		return;
	if (!walk_sp_ok(g, sp)) {
		stg_fail(g, WIRE_CAUSE_NO_SP);
		return;
	}
	walk_learn(c);
	g->w->sp = sp;
	stg_run(g, 0);
}

/*
 * A leaf without a row that has pushed nothing: the direct call to it proves that. It is the first
 * frame, or one that a signal interrupted.
 */
SS_INLINE int walk_pop_leaf(const struct walk_ctx *c)
{
	struct unw *u = c->g->unw;
	u64 ra = 0, callee;

	if (u->pc != u->ra || mem_u64(c->g->mem, &ra, u->sp))
		return 0;
	callee = cstack_called(c->g->mem, ra);
	if (!callee || u->pc - callee >= WALK_LEAF_CODE)
		return 0;
	if (u->put)
		stg_put(c->g, WIRE_FRAME_C_RET, u->pc);
	u->sp += 8;
	u->ra = ra;
	u->pc = ra - 1;
	u->put = 1;
	return 1;
}

/*
 * Whether the code without rows that the unwinder came to is what started the thread: musl's _start
 * and __clone have none. Haskell code, and what it calls, runs below the 16 kB that StgRun
 * reserves.
 */
SS_INLINE int walk_at_bottom(const struct walk_ctx *c)
{
	const struct rts_thread *th = c->th;
	int first = th->tid == th->tgid;
	u64 top = first ? th->stack_start : th->fsbase, sp = c->g->unw->sp;

	return sp <= top && top - sp < (first ? WALK_MAIN_BOTTOM : WALK_THREAD_BOTTOM);
}

/*
 * C frames, down to Haskell code or to the thread's start. 1: the unwinder has led to Haskell
 * code; 0: it has not, and there must be some; -1: the walk is over.
 */
SS_INLINE int walk_c(const struct walk_ctx *c)
{
	const struct stg *g = c->g;
	struct unw *u = g->unw;
	u64 landmark;

	unw_run(g);
#pragma GCC unroll 2
	for (u32 i = 0; i < 2; i++)
		if (u->result == UNW_NO_ROW && walk_pop_leaf(c))
			unw_run(g);
	if (u->result == UNW_END) {
		/* about to enter Haskell code, or just back from it */
		g->w->end_state = WIRE_END_COMPLETE;
		return -1;
	}
	if (u->result == UNW_NO_ROW && u->put) {
		landmark = walk_landmark(c, u->sp, WALK_CALL_WORDS);
		if (!landmark && c->t->stgrun_ret)
			landmark = walk_landmark_above(c, u->sp, u->ra);
		c->s->landmark = landmark;
		/* a runtime whose StgRun was not found: that Sp is in the STACK proves it later */
		if (landmark || (!c->t->stgrun_ret && c->s->running)) {
			if (c->s->tso || walk_caller(c))
				return 1;
			stg_put(g, WIRE_FRAME_HS_CALL, u->ra);
			stg_fail(g, WIRE_CAUSE_NO_TSO);
			return -1;
		}
	}
	if (u->result == UNW_NO_ROW && walk_at_bottom(c)) {
		if (u->put)
			stg_put(g, WIRE_FRAME_C_RET, u->ra);
		g->w->end_state = WIRE_END_COMPLETE;
		return -1;
	}
	if (c->s->tso)
		return 0;
	stg_fail(g, u->cause);
	return -1;
}

/* On to the C frames below StgRun, if a Haskell thread made the call that led here. */
SS_INLINE int walk_below(const struct walk_ctx *c)
{
	const struct stg *g = c->g;
	struct walk_state *s = c->s;
	struct unw *u = g->unw;
	u64 at = s->landmark;

	if (!at || !walk_caller(c))
		return 0;
	if (mem_u64(g->mem, &u->bp, at - WIRE_CFI_STGRUN_IP + WIRE_CFI_STGRUN_BP))
		return 0;
	u->bp_known = 1;
	u->sp = at + 8;
	u->ra = c->t->stgrun_ret;
	u->pc = u->ra - 1;
	u->put = 1;
	s->rsp = u->sp;
	s->in_c = 1;
	s->landmark = 0;
	s->part++;
	g->w->end_state = WIRE_END_NONE;
	return 1;
}

/* C frames, then the Haskell frames below them; a callback of bpf_loop. */
static long walk_part(u32 i, void *ctx)
{
	const struct walk_ctx *c = ctx;
	int arrived = 0;

	(void)i;
	if (c->s->in_c) {
		arrived = walk_c(c);
		if (arrived < 0)
			return 1;
	}
	if (c->s->running) {
		walk_running(c, arrived);
	} else {
		if (!arrived && c->s->in_c)
			walk_gap(c->g);
		walk_suspended(c, arrived);
	}
	if (c->g->w->end_state != WIRE_END_COMPLETE)
		return 1;
	return !walk_below(c);
}

/*
 * In the last instructions of StgReturn, which has given the 16 kB back, or the first of StgRun,
 * which has not taken them yet: the runtime enters Haskell code, or has just left it, and what is
 * to be walked are the frames of its own. 1: the unwinder begins there.
 */
SS_INLINE int walk_at_stgrun(const struct walk_ctx *c, const struct walk_regs *regs)
{
	u64 at = regs->sp + CSTACK_STGRUN_SAVED, word = 0, bp = regs->fp;
	struct mem *mem = c->g->mem;
	struct unw *u = c->g->unw;

	if (!c->t->stgrun_ret)
		return 0;
	if (!mem_u64(mem, &word, at) && word == c->t->stgrun_ret) {
		if (mem_u64(mem, &bp, at - WIRE_CFI_STGRUN_IP + WIRE_CFI_STGRUN_BP))
			return 0;
	} else {
		/* at the return itself: all registers are the caller's */
		at = regs->sp;
		if (mem_u64(mem, &word, at) || word != c->t->stgrun_ret)
			return 0;
	}
	u->sp = at + 8;
	u->bp = bp;
	u->ra = c->t->stgrun_ret;
	u->pc = u->ra - 1;
	u->put = 1;
	return 1;
}

/* Where the walk of a thread begins; with a frame of its own, which is gone when it goes on. */
SS_NOINLINE void walk_begin(const struct walk_ctx *c, const struct wire_rts *rts,
			    const struct walk_regs *regs)
{
	const struct wire_target *t = c->t;
	struct rts_thread *th = c->th;
	struct walk_state *s = c->s;
	const struct stg *g = c->g;
	struct unw *u = g->unw;
	u64 landmark;

	s->incall = th->incall;
	s->tso = 0;
	s->landmark = 0;
	s->rsp = regs->sp;
	s->in_c = 1;
	s->running = rts->where == WIRE_WHERE_HASKELL;
	s->part = 0;
	s->differs = 0;
	landmark = th->incall ? walk_landmark(c, regs->sp, 2) : 0;
	u->pc = u->ra = regs->ip;
	u->sp = regs->sp;
	u->bp = regs->fp;
	u->rdi = regs->rdi;
	u->bp_known = 1;
	u->put = 0;
	if (s->running) {
		s->tso = rts->tso;
		if (landmark || (!t->stgrun_ret && regs->base == rts->cap + t->layout.cap_r)) {
			s->in_c = 0;
			s->landmark = landmark;
		} else {
			walk_at_stgrun(c, regs);
		}
	} else if (rts->where == WIRE_WHERE_SAFE_CALL || rts->where == WIRE_WHERE_RESUMING) {
		s->tso = rts->tso;
		/* between the foreign function and the runtime's, before it or after it */
		if (landmark) {
			s->in_c = 0;
			s->landmark = landmark;
		}
	}
	/* Haskell code, even while the runtime does not say so yet, or any more */
	stg_put(g, s->in_c && !landmark ? WIRE_FRAME_C_IP : WIRE_FRAME_HS_IP, regs->ip);
}

/*
 * Any thread of a target. `site`: the innermost open safe call's, 0 if there is none. *s needs no
 * preparation; s->differs is for the caller.
 */
SS_INLINE void walk_thread(const struct stg *g, const struct wire_target *t, struct rts_thread *th,
			   struct walk_state *s, const struct wire_rts *rts, u64 site,
			   const struct walk_regs *regs)
{
	const struct walk_ctx c = {.g = g, .t = t, .th = th, .s = s};

	s->site = site;
	walk_begin(&c, rts, regs);
	ss_loop(WALK_MAX_PARTS, walk_part, (void *)&c);
	if (g->w->end_state == WIRE_END_NONE)
		g->w->end_state = WIRE_END_TRUNCATED;
}

#endif
