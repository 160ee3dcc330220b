/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The stack of open safe calls of one thread. Uses no maps and no clock, so that the unit tests run
 * the same code as the kernel.
 *
 * A call is identified by its InCall: the thread's Task has one InCall per level of call-back, and
 * an InCall can have one suspended thread. If a call starts with the InCall of an open call, that
 * call and all above it never returned (longjmp out of C, or the Haskell thread was replaced). If a
 * call ends, all calls above its own InCall are dropped with it.
 *
 * A call starts with suspendThread, which gives the capability away before the foreign function
 * runs. Off-CPU time in suspendThread is the call's hand-over time: it is counted separately and is
 * not part of the call's wall, blocked and runnable times. For the enclosing calls it is part of
 * all three.
 */
#ifndef SAFESCOPED_CALLS_BPF_H
#define SAFESCOPED_CALLS_BPF_H

#include "wire.h"
#include "mem.bpf.h"

/* Index of the topmost open call with this InCall; -1: none. */
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
	CALLS_OVERFLOW = 1,  /* nested too deep: the call is not followed */
	CALLS_UNMATCHED = 2, /* no such call is open */
};

/*
 * A call starts. `sp`: address of suspendThread's return address, whose value is `site`.
 * *ret_abandoned: number of open calls that are thereby known never to have returned.
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
	if (i > 0)
		th->open[(i - 1) & (WIRE_OPEN_MAX - 1)].flags |= WIRE_CALL_CALLED_BACK;
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
	/* set last: a switch-out before this still sees another call on top */
	th->suspend_sp = sp;
	return CALLS_OK;
}

/* A call ends; it is copied to *ret_call, with its own off-CPU times in place of the thread's
 * totals. */
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

/* InCall of the innermost open call; 0 if none is open. */
SS_INLINE u64 calls_innermost(struct wire_thread *th)
{
	const struct wire_open *top = calls_top(th);

	return top ? top->incall : 0;
}

/*
 * True if the thread, now in this InCall, is in a callback of its innermost open call: the call's
 * own code, suspendThread and resumeThread run in the call's InCall.
 */
SS_INLINE int calls_in_callback(const struct wire_open *top, u64 incall)
{
	return top && incall && top->incall != incall;
}

/* ── hand-over ───────────────────────────────────────────────────────────────────────────── */

/*
 * True if the thread, whose user stack pointer is `sp`, is still in the suspendThread of its
 * innermost open call; once it has left it, the memory is not read again. GHC calls the foreign
 * function from the same frame as suspendThread (compiler/GHC/Cmm/LayoutStack.hs,
 * lowerSafeForeignCall). During that call sp is below the place of suspendThread's return address,
 * but the word there is the other call's return address or one of its arguments. Between the two
 * calls sp is above it.
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

/* Accounts for an off-CPU interval that has ended. `suspending`: result of calls_suspending() at
 * its start. */
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

/* Wall time of a finished call, from the start of its foreign function. */
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
 * True if the open calls of a thread that is on the CPU are known: the probes are on, and they have
 * not been off while it ran. In the first epoch they have never been off.
 */
SS_INLINE int calls_known(const struct wire_target *t, const struct wire_thread *th)
{
	return !(t->flags & WIRE_TARGET_PROBES_OFF) && (t->epoch == 1 || th->epoch == t->epoch);
}

/* Must be called before open[] of a thread on the CPU is read or changed. */
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
 * The thread is on the CPU again. What was known of its calls at the switch-out still holds, and
 * continues to hold if the probes are on. Returns 1 if they have been off and on again meanwhile.
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
