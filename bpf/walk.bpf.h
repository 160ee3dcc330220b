/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The whole stack of a thread in any state: C frames by unwind rows, Haskell frames by the STG
 * walk, C frames below those if Haskell was called back from C, and so on.
 *
 * A part of C frames ends at the thread's start, or at a return address into Haskell code: there
 * StgRun's return address is at its fixed offset (cstack.bpf.h), and rbp, as restored by the rows,
 * is Sp. If rows are missing (hand-written assembly), Sp is searched for among the values that C
 * code saved on its stack, and WIRE_FRAME_GAP marks that C frames are missing.
 *
 * If a thread was called from C (a foreign export), its Haskell frames are followed by the C frames
 * above which StgRun reserved its stack; the Haskell thread that made the call is the one suspended
 * in InCall.prev_stack (GHC rts/Task.h, newInCall).
 */
#ifndef SAFESCOPED_WALK_BPF_H
#define SAFESCOPED_WALK_BPF_H

#include "wire.h"
#include "arch.bpf.h"
#include "stg.bpf.h"
#include "rts.bpf.h"
#include "cstack.bpf.h"
#include "unwind.bpf.h"

/* Limit on parts of Haskell frames, each with the C frames above it. */
#define WALK_MAX_PARTS 32
/* Words inspected above rsp + CSTACK_STGRUN_FRAME: alignment and arguments of a call. */
#define WALK_CALL_WORDS 4
/* Bytes above a thread's outermost frame, used by the kernel and the C library. */
#define WALK_MAIN_BOTTOM   256
#define WALK_THREAD_BOTTOM 4096
/* Limit on the length of an assembly function without rows. */
#define WALK_LEAF_CODE 8192

/* The user registers that a walk uses. */
struct walk_regs {
	u64 ip, sp;
	u64 fp;	   /* C's frame pointer; Sp in Haskell code */
	u64 base;  /* BaseReg in Haskell code */
	u64 saved; /* for walk_unprobe only */
	u64 rdi;   /* for WIRE_CFI_LEAF_RDI only */
};

/* State of one walk: in a map, like struct stg_walk. */
struct walk_state {
	u64 incall;   /* InCall of the next Haskell part, or of the C part if there is none */
	u64 tso;      /* Haskell thread of that part; 0: not known */
	u64 site;     /* site of the safe call that the thread is in; 0: not known */
	u64 landmark; /* address of StgRun's return address below that part; 0: not known */
	u64 rsp;      /* rsp at the start of the C part */
	struct cstack found;
	u64 words[WALK_CALL_WORDS];
	u8 in_c;    /* the part has C frames above the Haskell ones */
	u8 running; /* the thread runs: its Sp is not in its STACK */
	u8 part;
	u8 differs; /* unwind rows led to another StgRun frame than the known one */
};

struct walk_ctx {
	const struct stg *g;
	const struct wire_target *t;
	struct rts_thread *th;
	struct walk_state *s;
};

/*
 * In the trap of a breakpoint, which replaces the first byte of the probed instruction, the program
 * counter is after the breakpoint although the instruction has not been executed: moves it back.
 * Except for a one-byte push, which the kernel has emulated by then: the value pushed is at the
 * stack pointer. The kernel also moves it back itself, before the probe's programs run: it is then
 * at the breakpoint, and what is before that may be lld's padding, which is breakpoints, too.
 */
SS_INLINE void walk_unprobe(struct mem *mem, struct walk_regs *r)
{
	u8 code[ARCH_BREAKPOINT_SIZE + 1] = {0};
	u64 top = 0;

	if (mem_read(mem, code, sizeof(code), r->ip - ARCH_BREAKPOINT_SIZE) ||
	    code[0] != ARCH_BREAKPOINT || code[ARCH_BREAKPOINT_SIZE] == ARCH_BREAKPOINT)
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
 * Address of StgRun's return address, if rsp is that of Haskell code at a call or just after one;
 * otherwise 0. Arguments of the call may be in between.
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
 * The same after a call with many arguments on the stack, which GHC removes all at once
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

/* Remembers the innermost part's landmark for the thread, and compares it with the known one. */
SS_INLINE void walk_learn(const struct walk_ctx *c)
{
	struct walk_state *s = c->s;
	u64 known = c->th->stgrun_at, landmark = s->landmark, word = 0;

	if (s->part || !landmark || s->incall != c->th->incall)
		return;
	/* the runtime reuses an InCall for later calls, which may be elsewhere on the stack */
	if (c->th->stgrun_incall == c->th->incall && known > s->rsp && known != landmark &&
	    !mem_u64(c->g->mem, &word, known) && word == c->t->stgrun_ret)
		s->differs = 1;
	c->th->stgrun_at = landmark;
	c->th->stgrun_incall = c->th->incall;
}

/*
 * For code without rows: Sp of the running thread, from the values that C code has saved on its
 * stack; 0: not found. Not inlined, so that its stack frame is gone when the walk goes on.
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

/* Walks the Haskell part of a thread that is suspended in a safe call. */
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

/* Finds the Haskell thread that called what runs in s->incall. False if there is none. */
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
 * C code is running, but the Haskell code reached by the unwinder is not the running thread's: the
 * latter is about to be entered or was just left, and the former has made the call that led here,
 * which its rbp proves. Returns 1 if it was walked.
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
 * Sp as saved in the STACK. It is right in the cases in which rbp is not Sp although the code is
 * Haskell's or was called by it: on the way in and out (stg_returnToStackTop, stg_returnToSched:
 * GHC rts/StgStartup.cmm) and while the thread changes its chunk (threadStackOverflow,
 * threadStackUnderflow: rts/Threads.c).
 */
SS_INLINE u64 walk_kept_sp(const struct walk_ctx *c, u64 obj)
{
	u64 sp = 0;

	mem_u64(c->g->mem, &sp, obj + c->t->layout.stack_sp);
	return sp;
}

/* Sp of a running thread; 0: the walk is over. `arrived`: the unwinder has reached it. */
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
	/* if no C function has changed rbp, a word saved earlier is an outdated Sp */
	return saved && !(g->unw->bp_known && walk_sp_ok(g, g->unw->bp)) ? saved : g->unw->bp;
}

/* Walks the Haskell part of a running thread. */
SS_INLINE void walk_running(const struct walk_ctx *c, int arrived)
{
	const struct stg *g = c->g;
	u64 obj = 0, sp;

	/* the sp field of the STACK is stale while the thread runs, but its bounds are valid */
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
 * Steps out of a leaf function without a row that has pushed nothing, which is proved by the direct
 * call to it. It is the innermost frame, or one interrupted by a signal.
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
 * True if the unwinder has reached code without rows that started the thread: musl's _start and
 * __clone have none. Haskell code, and what it calls, runs below the 16 kB that StgRun reserves.
 */
SS_INLINE int walk_at_bottom(const struct walk_ctx *c)
{
	const struct rts_thread *th = c->th;
	int first = th->tid == th->tgid;
	u64 top = first ? th->stack_start : th->fsbase, sp = c->g->unw->sp;

	return sp <= top && top - sp < (first ? WALK_MAIN_BOTTOM : WALK_THREAD_BOTTOM);
}

/*
 * Walks C frames, down to Haskell code or to the thread's start. Returns 1 if the unwinder has
 * reached Haskell code; 0 if it has not, though there must be some; -1 if the walk is over.
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
		/* about to enter Haskell code, or just returned from it */
		g->w->end_state = WIRE_END_COMPLETE;
		return -1;
	}
	if (u->result == UNW_NO_ROW && u->put) {
		landmark = walk_landmark(c, u->sp, WALK_CALL_WORDS);
		if (!landmark && c->t->stgrun_ret)
			landmark = walk_landmark_above(c, u->sp, u->ra);
		c->s->landmark = landmark;
		/* for a runtime whose StgRun was not found, an Sp inside the STACK proves it
		 * later */
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

/* Goes on to the C frames below StgRun, if a Haskell thread made the call that led here. */
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

/* Walks C frames, then the Haskell frames below them; a callback of bpf_loop. */
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
 * In the last instructions of StgReturn, after it has given the 16 kB back, or in the first ones of
 * StgRun, before it has taken them: the runtime is about to enter Haskell code or has just left it,
 * and the frames to walk are its own. Returns 1 if the unwinder is to start there.
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
		/* at the return instruction: all registers are the caller's */
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

/* Where the walk of a thread starts. Not inlined, so that its stack frame is gone afterwards. */
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
		/* between the foreign function and suspendThread or resumeThread */
		if (landmark) {
			s->in_c = 0;
			s->landmark = landmark;
		}
	}
	/* Haskell code, even if the runtime's structures do not show it yet, or no longer */
	stg_put(g, s->in_c && !landmark ? WIRE_FRAME_C_IP : WIRE_FRAME_HS_IP, regs->ip);
}

/*
 * Walks any thread of a target. `site`: of the innermost open safe call, 0 if there is none. *s
 * needs no preparation; s->differs is a result for the caller.
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
