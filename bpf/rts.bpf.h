/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state of an OS thread by the runtime's structures: its Task, the capability that it holds,
 * the Haskell thread that it runs or has suspended. It is read from memory and never from registers
 * alone: in a safe call r13 often still looks like a capability that another thread holds by then.
 *
 * Sources: GHC rts/Task.h, rts/Capability.h, rts/Schedule.c (suspendThread, resumeThread), 8.10 to
 * 9.14.
 */
#ifndef SAFESCOPED_RTS_BPF_H
#define SAFESCOPED_RTS_BPF_H

#include "wire.h"
#include "stg.bpf.h"

struct rts_thread {
	u64 fsbase;
	u64 stack_start; /* mm->start_stack for the process's first thread; 0: another thread, or
			    not known */
	u32 tid, tgid;
	u64 task;	   /* out: 0 if the thread has none */
	u64 incall;	   /* out: its current InCall; 0 between in-calls */
	u64 stgrun_at;	   /* in and out: address of StgRun's return address in the in-call … */
	u64 stgrun_incall; /* … of this InCall */
};

/* Reads the TSO's id, why_blocked and bound. What cannot be read stays 0. */
SS_INLINE void rts_read_tso(struct mem *mem, const struct wire_target *t, u64 tso,
			    struct wire_rts *out)
{
	const struct wire_layout *l = &t->layout;
	u64 v = 0;

	out->tso = tso;
	if (!mem_uint(mem, &v, tso + l->tso_id, l->tso_id_size))
		out->tso_id = v;
	if (!mem_uint(mem, &v, tso + l->tso_why_blocked, l->tso_why_size))
		out->why_blocked = v;
	if (!mem_u64(mem, &v, tso + l->tso_bound))
		out->bound = v;
}

/*
 * The variable my_task of the thread with this fs base. If it is in a library, its block is found
 * by the DTV: glibc has the address of the DTV at fs:8, an entry is two words, and the one before
 * the first has the number of entries (sysdeps/x86_64/nptl/tls.h). Returns 0, or -1 (memory
 * unreadable); *ret_task is 0 in a thread that has never used the variable.
 */
SS_INLINE long rts_my_task(struct mem *mem, const struct wire_target *t, u64 fsbase, u64 *ret_task)
{
	u64 block = fsbase, dtv = 0, len = 0;

	if (t->my_task_module) {
		if (mem_u64(mem, &dtv, fsbase + 8) || mem_u64(mem, &len, dtv - 16))
			return -1;
		*ret_task = 0;
		if (t->my_task_module > len)
			return 0;
		if (mem_u64(mem, &block, dtv + 16ULL * t->my_task_module))
			return -1;
		if (!block || block == ~0ULL)
			return 0;
	}
	return mem_u64(mem, ret_task, block + (s64)t->my_task_tls);
}

/* Reads the thread's Task into th->task, 0 if it has none. Returns 0, or -1 (memory unreadable). */
SS_INLINE long rts_read_task(struct mem *mem, const struct wire_target *t, struct rts_thread *th)
{
	u64 id = 0;

	th->task = 0;
	if (!(t->flags & WIRE_TARGET_THREADED)) {
		/* there is one Task, for the thread that runs Haskell code: the process's first */
		if (th->tid != th->tgid || !t->main_cap)
			return 0;
		return mem_u64(mem, &th->task, t->main_cap + t->layout.cap_running_task);
	}
	if (!th->fsbase || rts_my_task(mem, t, th->fsbase, &th->task))
		return -1;
	if (!th->task)
		return 0;
	/* Task.id is the thread's pthread_t, which is its fs base on x86-64: this proves the
	 * pointer */
	if (mem_u64(mem, &id, th->task + t->layout.task_id) || id != th->fsbase) {
		th->task = 0;
		return -1;
	}
	return 0;
}

SS_INLINE void rts_read_cap(struct mem *mem, const struct wire_target *t, u64 cap,
			    struct wire_rts *out)
{
	u32 no = WIRE_NO_CAP;

	out->cap = cap;
	if (!mem_read(mem, &no, sizeof(no), cap + t->layout.cap_no))
		out->cap_no = no;
}

/* The thread is in a safe call: reads what its InCall keeps. */
SS_INLINE void rts_read_suspended(struct mem *mem, const struct wire_target *t, u64 incall, u64 tso,
				  struct wire_rts *out)
{
	u64 cap = 0;

	out->where = WIRE_WHERE_SAFE_CALL;
	if (!mem_u64(mem, &cap, incall + t->layout.incall_suspended_cap) && cap)
		rts_read_cap(mem, t, cap, out);
	tso = stg_unforward(mem, tso);
	rts_read_tso(mem, t, tso, out);
	if (t->flags & WIRE_TARGET_PROFILED)
		mem_u64(mem, &out->cccs, tso + t->layout.tso_cccs);
}

/*
 * Reads Task.incall and Task.cap. Before the layout is confirmed they may be at one of two offsets,
 * and the InCall's back pointer must name this Task.
 */
SS_INLINE long rts_read_incall(struct mem *mem, const struct wire_target *t, struct rts_thread *th,
			       u64 *ret_cap)
{
	const struct wire_layout *l = &t->layout;
	u64 at = l->task_incall, cap_at = l->task_cap, incall = 0, back = 0;

	if (!(t->flags & WIRE_TARGET_UNCONFIRMED))
		return mem_u64(mem, &th->incall, th->task + at) ||
				       mem_u64(mem, ret_cap, th->task + cap_at)
			       ? -1
			       : 0;
#pragma GCC unroll 2
	for (u32 i = 0; i < 2; i++) {
		if (!mem_u64(mem, &incall, th->task + at) && incall &&
		    !mem_u64(mem, &back, incall + l->incall_task) && back == th->task) {
			th->incall = incall;
			return mem_u64(mem, ret_cap, th->task + cap_at);
		}
		if (!l->alt_task_incall)
			return -1;
		cap_at += l->alt_task_incall - at;
		at = l->alt_task_incall;
	}
	return -1;
}

/* Like rts_read(), for a thread of which only the Task has to be proved. */
SS_INLINE void rts_read_thread(struct mem *mem, const struct wire_target *t, struct rts_thread *th,
			       struct wire_rts *out)
{
	const struct wire_layout *l = &t->layout;
	u64 cap = 0, holder = 0, tso = 0;
	u8 in_haskell = 0;

	if (rts_read_task(mem, t, th)) {
		out->where = WIRE_WHERE_UNKNOWN;
		return;
	}
	if (!th->task) {
		out->where = WIRE_WHERE_FOREIGN;
		return;
	}
	if (rts_read_incall(mem, t, th, &cap))
		return;
	if (th->incall && mem_u64(mem, &tso, th->incall + l->incall_suspended_tso))
		return;
	if (tso) {
		rts_read_suspended(mem, t, th->incall, tso, out);
		return;
	}
	/* even if it holds one: hs_exit() leaves the capabilities to its caller for good */
	if (!th->incall) {
		out->where = WIRE_WHERE_FOREIGN;
		out->cap = cap;
		return;
	}
	out->where = WIRE_WHERE_NO_CAP;
	if (!cap)
		return;
	rts_read_cap(mem, t, cap, out);
	if (mem_u64(mem, &holder, cap + l->cap_running_task) || holder != th->task)
		return;
	mem_read(mem, &in_haskell, 1, cap + l->cap_in_haskell);
	mem_u64(mem, &tso, cap + l->cap_current_tso);
	if (tso)
		rts_read_tso(mem, t, tso, out);
	out->where = in_haskell && tso ? WIRE_WHERE_HASKELL : WIRE_WHERE_RTS;
	if (t->flags & WIRE_TARGET_PROFILED)
		mem_u64(mem, &out->cccs, cap + l->cap_cccs);
}

/*
 * True if a thread that ran Haskell code when *was was read, with a `task` that rts_read() had
 * proved, still does so on the same capability and in the same Haskell thread: reading everything
 * again would give the same result. False if that is not known, or if the current cost centres may
 * differ.
 */
SS_INLINE int rts_same(struct mem *mem, const struct wire_target *t, const struct rts_thread *th,
		       u64 task, const struct wire_rts *was)
{
	const struct wire_layout *l = &t->layout;
	u64 id = 0, holder = 0, tso = 0, tso_id = 0;
	u8 in_haskell = 0;

	if (!task || was->where != WIRE_WHERE_HASKELL || !(t->flags & WIRE_TARGET_THREADED) ||
	    (t->flags & (WIRE_TARGET_PROFILED | WIRE_TARGET_UNCONFIRMED)))
		return 0;
	return !mem_u64(mem, &id, task + l->task_id) && id == th->fsbase &&
	       !mem_u64(mem, &holder, was->cap + l->cap_running_task) && holder == task &&
	       !mem_read(mem, &in_haskell, 1, was->cap + l->cap_in_haskell) && in_haskell &&
	       !mem_u64(mem, &tso, was->cap + l->cap_current_tso) && tso == was->tso &&
	       !mem_uint(mem, &tso_id, tso + l->tso_id, l->tso_id_size) && tso_id == was->tso_id;
}

SS_INLINE void rts_read_here(struct mem *mem, const struct wire_target *t, struct rts_thread *th,
			     struct wire_rts *out)
{
	u32 early = t->flags & WIRE_TARGET_UNCONFIRMED;

	__builtin_memset(out, 0, sizeof(*out));
	out->cap_no = WIRE_NO_CAP;
	th->incall = 0;
	th->task = 0;
	if (!early || t->my_task_tls || t->main_cap)
		rts_read_thread(mem, t, th, out);
	if (!early)
		return;
	if (th->incall &&
	    (!out->tso || stg_object_type(mem, stg_unforward(mem, out->tso)) == STG_TSO))
		return;
	__builtin_memset(out, 0, sizeof(*out));
	out->cap_no = WIRE_NO_CAP;
	out->where = WIRE_WHERE_NOT_READY;
	th->incall = 0;
}

#ifdef __bpf__

SS_GLOBAL int rts_read_alone(const struct wire_target *t, struct rts_thread *th,
			     struct wire_rts *out)
{
	if (t && th && out)
		rts_read_here(0, t, th, out);
	return 0;
}

#endif

/*
 * Reads the whole state into *out (which is cleared first), Task and InCall into *th. While the
 * layout is not confirmed because the runtime is being initialised, the result is filled only for a
 * thread whose own structures prove it: Task.id, InCall.task, and a suspended or running TSO that
 * is a TSO.
 */
SS_INLINE void rts_read(struct mem *mem, const struct wire_target *t, struct rts_thread *th,
			struct wire_rts *out)
{
#ifdef __bpf__
	(void)mem;
	rts_read_alone(t, th, out);
#else
	rts_read_here(mem, t, th, out);
#endif
}

/*
 * Walks the suspended thread of a safe call. Its capability may be used by others meanwhile, so a
 * collection may move the stack during the walk: suspended_tso is read again afterwards.
 */
SS_INLINE void rts_walk_suspended(const struct stg *g, const struct wire_target *t, u64 incall,
				  u64 tso)
{
	u64 stack = 0, again = 0;
	u32 cause;

	if (mem_u64(g->mem, &stack, tso + t->layout.tso_stackobj)) {
		stg_fail(g, WIRE_CAUSE_FAULT);
		return;
	}
	cause = stg_enter(g, stack);
	if (cause) {
		stg_fail(g, cause);
		return;
	}
	stg_run(g, 1);
	if (mem_u64(g->mem, &again, incall + t->layout.incall_suspended_tso) || !again ||
	    (again != tso && g->w->end_state == WIRE_END_BROKEN))
		stg_fail(g, WIRE_CAUSE_GC_RACE);
}

#endif
