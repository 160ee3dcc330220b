/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The stack of open safe calls of one thread. No maps and no clock in here, so that it runs in the
 * unit tests as it runs in the kernel.
 *
 * A call is identified by its InCall: the thread's Task has one InCall for each level of call-back,
 * and an InCall can have one suspended thread. A begin with the InCall of an open call means that
 * that call, and all above it, never came back (longjmp out of C, or the Haskell thread was
 * replaced); an end takes everything above its own InCall with it.
 *
 * A call begins with suspendThread, which gives the capability away before the foreign function
 * runs. Off-CPU time in it is the call's hand-over time: kept apart, and part neither of the call's
 * wall time nor of its blocked and runnable times. The calls around it have it in all three.
 */
#ifndef SAFESCOPED_CALLS_BPF_H
#define SAFESCOPED_CALLS_BPF_H

#include "wire.h"
#include "mem.bpf.h"

/* Index of the open call with this InCall, the topmost; -1: none. */
SS_INLINE int calls_find(const struct wire_thread *th, u64 incall)
{
	s64 found = ss_opaque(-1, incall);
	u32 i;

#pragma GCC unroll 16
	for (i = 0; i < WIRE_OPEN_MAX; i++) {
		if (i >= th->depth)
			break;
		if (th->open[i].incall == incall)
			found = ss_opaque(i, incall);
	}
	return (int)found;
}

enum calls_result {
	CALLS_OK = 0,
	CALLS_OVERFLOW = 1,  /* too deep: not followed */
	CALLS_UNMATCHED = 2, /* no such call is open */
};

/*
 * A call begins; `sp`: where suspendThread's return address, which is `site`, lies.
 * *ret_abandoned: calls that are now known never to have come back.
 */
SS_INLINE int calls_begin(struct wire_thread *th, u64 now, u64 site, u64 sp, u64 incall, u32 cap_no,
			  u32 flags, u32 *ret_abandoned)
{
	int same = calls_find(th, incall);
	struct wire_open *o;
	u32 i;

	*ret_abandoned = 0;
	if (same >= 0) {
		*ret_abandoned = th->depth - same;
		th->depth = same;
	}
	th->suspend_sp = 0;
	i = th->depth;
	if (i >= WIRE_OPEN_MAX)
		return CALLS_OVERFLOW;
	ss_barrier(i);
	o = &th->open[i & (WIRE_OPEN_MAX - 1)];
	o->start_ns = now;
	o->site = site;
	o->incall = incall;
	o->handover_ns = 0;
	o->blocked_ns = th->blocked_ns;
	o->runnable_ns = th->runnable_ns;
	o->cap_no = cap_no;
	o->flags = flags;
	th->depth = i + 1;
	/* last: a switch-out before this has another call on top */
	th->suspend_sp = sp;
	return CALLS_OK;
}

/* A call ends; it is copied to *ret_call, with its off-CPU times instead of the totals. */
SS_INLINE int calls_end(struct wire_thread *th, u64 incall, struct wire_open *ret_call,
			u32 *ret_abandoned)
{
	int i = calls_find(th, incall);
	struct wire_open *o;
	u32 slot;

	*ret_abandoned = 0;
	if (i < 0)
		return CALLS_UNMATCHED;
	*ret_abandoned = th->depth - 1 - i;
	th->depth = i;
	th->suspend_sp = 0;
	slot = i;
	ss_barrier(slot);
	o = &th->open[slot & (WIRE_OPEN_MAX - 1)];
	*ret_call = *o;
	ret_call->blocked_ns = th->blocked_ns - o->blocked_ns;
	ret_call->runnable_ns = th->runnable_ns - o->runnable_ns;
	o->incall = 0;
	return CALLS_OK;
}

/* The innermost open call; NULL if there is none. */
SS_INLINE struct wire_open *calls_top(struct wire_thread *th)
{
	u32 i = th->depth;

	if (i == 0 || i > WIRE_OPEN_MAX)
		return 0;
	i--;
	ss_barrier(i);
	return &th->open[i & (WIRE_OPEN_MAX - 1)];
}

/* Its InCall; 0: none is open. */
SS_INLINE u64 calls_innermost(struct wire_thread *th)
{
	const struct wire_open *top = calls_top(th);

	return top ? top->incall : 0;
}

/* ── hand-over ───────────────────────────────────────────────────────────────────────────── */

/*
 * Whether the thread, whose user stack pointer is `sp`, is still in the suspendThread of its
 * innermost open call; once it is not, the memory is not read again. GHC calls the foreign function
 * from the frame that it called suspendThread from (compiler/GHC/Cmm/LayoutStack.hs,
 * lowerSafeForeignCall): below where suspendThread's return address was, that word is then the
 * other call's return address or one of its arguments. In between it is above.
 */
SS_INLINE int calls_suspending(struct mem *mem, struct wire_thread *th, u64 sp)
{
	const struct wire_open *top = calls_top(th);
	u64 word = 0;

	if (!th->suspend_sp)
		return 0;
	if (top && sp <= th->suspend_sp && !mem_u64(mem, &word, th->suspend_sp) &&
	    word == top->site)
		return 1;
	th->suspend_sp = 0;
	return 0;
}

/* An off-CPU interval has ended. `suspending`: as calls_suspending() found at its begin. */
SS_INLINE void calls_off(struct wire_thread *th, u64 blocked, u64 runnable, u32 suspending)
{
	struct wire_open *top = suspending ? calls_top(th) : 0;

	th->blocked_ns += blocked;
	th->runnable_ns += runnable;
	if (!top)
		return;
	top->handover_ns += blocked + runnable;
	top->blocked_ns += blocked;
	top->runnable_ns += runnable;
}

/* A finished call's wall time: from where its foreign function began. */
SS_INLINE u64 calls_wall(const struct wire_open *call, u64 now)
{
	u64 all = now - call->start_ns;

	return all > call->handover_ns ? all - call->handover_ns : 0;
}

/* CPU time of the finished calls that were too short to become records. */
SS_INLINE u64 calls_short_cpu(const struct wire_thread *th)
{
	u64 off = th->short_blocked_ns + th->short_runnable_ns;

	return th->short_wall_ns > off ? th->short_wall_ns - off : 0;
}

/* ── while the probes are off ────────────────────────────────────────────────────────────── */

/*
 * Whether the calls of a thread that is on the CPU are known: the probes are on, and they have not
 * been off while it ran. In the first epoch they have never been.
 */
SS_INLINE int calls_known(const struct wire_target *t, const struct wire_thread *th)
{
	return !(t->flags & WIRE_TARGET_PROBES_OFF) && (t->epoch == 1 || th->epoch == t->epoch);
}

/* To be called before open[] is looked at or changed in a thread that is on the CPU. */
SS_INLINE void calls_sync(const struct wire_target *t, struct wire_thread *th)
{
	if (calls_known(t, th)) {
		th->epoch = t->epoch;
		return;
	}
	th->epoch = 0;
	th->depth = 0;
	th->suspend_sp = 0;
	th->resume_incall = 0;
}

/*
 * The thread is on the CPU again. What was known of its calls at the switch-out is true still, and
 * if the probes are on it stays so. 1: they have been off and on again meanwhile.
 */
SS_INLINE int calls_carry(const struct wire_target *t, struct wire_thread *th)
{
	u32 before = th->epoch;

	if (t->flags & WIRE_TARGET_PROBES_OFF)
		th->epoch = 0;
	else if (before)
		th->epoch = t->epoch;
	return before && th->epoch && th->epoch != before;
}

#endif
