/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The stack of a thread in whatever state it is: chooses Sp, then the STG walk. */
#ifndef SAFESCOPED_WALK_BPF_H
#define SAFESCOPED_WALK_BPF_H

#include "wire.h"
#include "stg.bpf.h"
#include "rts.bpf.h"
#include "cstack.bpf.h"

/* The user registers that matter. */
struct walk_regs {
	u64 ip, sp, bp, r13;
};

SS_INLINE int walk_sp_ok(const struct stg *g, u64 sp)
{
	return sp >= g->w->start && sp < g->w->end && !(sp & 7);
}

/*
 * A thread that holds a capability and is in Haskell code, or in C code that Haskell code called
 * unsafely. The leaf is the program counter; in C the return address into Haskell code follows.
 */
SS_INLINE void walk_running(const struct stg *g, const struct wire_target *t, struct rts_thread *th,
			    const struct wire_rts *rts, const struct walk_regs *regs)
{
	const struct cstack_ctx c = {.mem = g->mem, .scan = g->scan};
	struct cstack cs = {};
	u64 obj = 0, sp = 0;
	int in_haskell;

	in_haskell = t->stgrun_ret ? cstack_in_haskell(g->mem, regs->sp, t->stgrun_ret)
				   : regs->r13 == rts->cap + t->layout.cap_r;
	stg_put(g, in_haskell ? WIRE_FRAME_HS_IP : WIRE_FRAME_C_IP, regs->ip);
	if (!rts->tso || mem_u64(g->mem, &obj, rts->tso + t->layout.tso_stackobj)) {
		stg_fail(g, WIRE_CAUSE_NO_TSO);
		return;
	}
	/* the STACK's own sp is stale while the thread runs, but its bounds are not */
	if (stg_enter(g, obj)) {
		stg_fail(g, WIRE_CAUSE_NO_TSO);
		return;
	}
	if (in_haskell) {
		sp = regs->bp;
		if (t->stgrun_ret) {
			th->stgrun_at = regs->sp + CSTACK_STGRUN_FRAME;
			th->stgrun_incall = th->incall;
		}
	} else {
		if (t->stgrun_ret) {
			u64 known = th->stgrun_incall == th->incall ? th->stgrun_at : 0;

			th->stgrun_at = cstack_landmark(&c, regs->sp, t->stgrun_ret, known);
			th->stgrun_incall = th->incall;
		} else {
			th->stgrun_at = 0;
		}
		cstack_find(&c, regs->sp, th->stgrun_at, g->w->start, g->w->end, &cs);
		if (cs.call_ra)
			stg_put(g, WIRE_FRAME_HS_CALL, cs.call_ra);
		sp = cs.sp ? cs.sp : regs->bp;
	}
	if (!walk_sp_ok(g, sp)) {
		/* code that used rbp for something else without a frame that we found */
		stg_fail(g, WIRE_CAUSE_NO_SP);
		return;
	}
	g->w->sp = sp;
	stg_run(g, 0);
}

/* Any thread of a target. `site`: the innermost open safe call's, 0 if there is none. */
SS_INLINE void walk_thread(const struct stg *g, const struct wire_target *t, struct rts_thread *th,
			   const struct wire_rts *rts, u64 site, const struct walk_regs *regs)
{
	if (rts->where == WIRE_WHERE_HASKELL) {
		walk_running(g, t, th, rts, regs);
		return;
	}
	stg_put(g, WIRE_FRAME_C_IP, regs->ip);
	if (rts->where != WIRE_WHERE_SAFE_CALL && rts->where != WIRE_WHERE_RESUMING)
		return;
	if (site)
		stg_put(g, WIRE_FRAME_SITE, site);
	rts_walk_suspended(g, t, th->incall, rts->tso);
}

#endif
