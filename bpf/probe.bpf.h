/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The uprobes on suspendThread and resumeThread, on the RTS timer, and on collections. They must be
 * short, since the target's thread waits for them. A safe call costs two map updates; only a call
 * longer than the threshold walks the stack, at its end, when the stack is still as the call found
 * it.
 */
#ifndef SAFESCOPED_PROBE_BPF_H
#define SAFESCOPED_PROBE_BPF_H

#include "maps.bpf.h"
#include "walk.bpf.h"
#include "calls.bpf.h"
#include "off.bpf.h"
#include "hold.bpf.h"
#include "site.bpf.h"
#include "tick.bpf.h"
#include "alloc.bpf.h"

/*
 * True if the probe that was hit counts for the target. Several files may be the same one to the
 * kernel (layers of overlays), and one process may have probes of its own on a file while others
 * share theirs: of all probes on an instruction, one counts for the target.
 */
SS_INLINE int probe_is_of(void *ctx, const struct wire_target *t, u32 own)
{
	return (bpf_get_attach_cookie(ctx) == WIRE_PROBE_OWN) == !!(t->flags & own);
}

SS_INLINE void probe_hit_of(u32 tgid, u32 gc)
{
	struct wire_cost *c = bpf_map_lookup_elem(&costs, &tgid);

	count(WIRE_CNT_PROBE_HITS);
	if (!c)
		return;
	__sync_fetch_and_add(&c->probe_hits, 1);
	if (gc)
		__sync_fetch_and_add(&c->gc_hits, 1);
}

SS_INLINE void probe_hit(u32 tgid)
{
	probe_hit_of(tgid, 0);
}

/* `st`, if not NULL, is in use already: that saves a map look-up. */
SS_INLINE void probe_hit_gc(struct wire_heap_state *st, u32 tgid)
{
	if (!st) {
		probe_hit_of(tgid, 1);
		return;
	}
	count(WIRE_CNT_PROBE_HITS);
	__sync_fetch_and_add(&st->hits, 1);
}

/* A thread that hits a probe is on the CPU, even if the switches do not show it. */
SS_INLINE void probe_on_cpu(struct wire_target *t, struct wire_thread *seen,
			    struct task_struct *task, u64 now)
{
	struct scratch *s;

	if (!seen->off_since_ns)
		return;
	s = scratch_claim();
	if (!s)
		return;
	off_end_unseen(t, seen, s, task, now);
	scratch_release(s);
}

/* Reads the InCall at task + at; -1 unless its back pointer proves that it belongs to this Task. */
SS_INLINE long probe_own_incall(const struct wire_target *t, u64 task, u16 at, u64 *ret_incall)
{
	u64 incall = 0, back = 0;

	if (mem_u64(0, &incall, task + at) || !incall ||
	    mem_u64(0, &back, incall + t->layout.incall_task) || back != task)
		return -1;
	*ret_incall = incall;
	return 0;
}

/* Task.incall. In an unconfirmed target it may be at one of two offsets. */
SS_INLINE long probe_incall(const struct wire_target *t, u64 task, u64 *ret_incall)
{
	const struct wire_layout *l = &t->layout;

	if (!(t->flags & WIRE_TARGET_UNCONFIRMED))
		return mem_u64(0, ret_incall, task + l->task_incall) || !*ret_incall ? -1 : 0;
	if (!probe_own_incall(t, task, l->task_incall, ret_incall))
		return 0;
	return l->alt_task_incall ? probe_own_incall(t, task, l->alt_task_incall, ret_incall) : -1;
}

/* First safe call of an unconfirmed target: the runtime is initialised, and user space can confirm
 * the layout. */
SS_INLINE void probe_ready(struct wire_target *t, struct task_struct *task, u64 now)
{
	struct wire_thread_event rec = {};

	if ((t->flags & (WIRE_TARGET_UNCONFIRMED | WIRE_TARGET_CALLED)) != WIRE_TARGET_UNCONFIRMED)
		return;
	__sync_fetch_and_or(&t->flags, WIRE_TARGET_CALLED);
	fill_header(&rec.h, WIRE_READY, now, task->tgid, task->pid);
	rec.h.size = sizeof(rec);
	rec.start_ns = now;
	ring_put(&rec, sizeof(rec), BPF_RB_FORCE_WAKEUP);
}

/* Reports the Haskell thread as one that runs. */
SS_INLINE void probe_tso_runs(struct wire_target *t, struct wire_thread *seen, u64 tso,
			      struct task_struct *task, u64 now)
{
	struct scratch *s = scratch_claim();

	if (!s)
		return;
	__builtin_memset(&s->rts, 0, sizeof(s->rts));
	rts_read_tso(0, t, tso, &s->rts);
	tso_note(t, seen, s, &s->rts, task->tgid, task->pid, now);
	scratch_release(s);
}

/* The Haskell thread that makes a call runs. */
SS_INLINE void probe_tso(struct wire_target *t, struct wire_thread *seen, u64 cap,
			 struct task_struct *task, u64 now)
{
	u64 tso = 0;

	if (!follow_tsos || (t->flags & WIRE_TARGET_UNCONFIRMED) ||
	    mem_u64(0, &tso, cap + t->layout.cap_current_tso) || !tso)
		return;
	probe_tso_runs(t, seen, tso, task, now);
}

/* The Haskell thread whose call has ended runs again, if others have run on this OS thread during
 * the call. A collection on another thread may be moving it. */
SS_INLINE void probe_tso_again(struct wire_target *t, struct wire_thread *seen, u64 incall,
			       struct task_struct *task, u64 now)
{
	u64 tso = 0;

	if (!follow_tsos || (t->flags & WIRE_TARGET_UNCONFIRMED) ||
	    mem_u64(0, &tso, incall + t->layout.incall_suspended_tso) || !tso ||
	    tso == seen->last_tso)
		return;
	probe_tso_runs(t, seen, stg_unforward(0, tso), task, now);
}

/* Entry of the thread that hit a probe. Its open calls are known from here on. */
SS_INLINE struct wire_thread *probe_thread(const struct wire_target *t, u32 tgid, u32 tid)
{
	struct wire_thread *seen = thread_get(tgid, tid, 0);

	if (!seen)
		return 0;
	calls_sync(t, seen);
	seen->epoch = t->epoch;
	return seen;
}

/*
 * The time at which a call starts or ends. The program itself may be preempted after it has taken
 * the time and before it reads the thread's off-CPU time: that interval must be in both or in
 * neither.
 */
SS_INLINE u64 probe_time(const struct wire_thread *seen, u64 now)
{
	return seen->on_since_ns > now ? seen->on_since_ns : now;
}

/* True if the call of this InCall was open when the session started, as far as is known. */
SS_INLINE int calls_open_before(u32 tid, u64 incall)
{
	const struct wire_open_at_start *o = bpf_map_lookup_elem(&open_at_start, &tid);

	return o && o->incall == incall;
}

/* Counts at their sites the calls that never returned, as a call starting with this InCall
 * shows. */
SS_INLINE void calls_replaced(struct wire_thread *seen, u64 incall)
{
	int same = calls_find(seen, incall);

	if (same >= 0)
		site_open_abandoned(thread_entry(seen), same, seen->depth, 0);
}

/* suspendThread(StgRegTable *reg, bool interruptible), rts/Schedule.c */
SS_INLINE int probe_suspend(struct user_regs *regs, struct wire_target *t, struct task_struct *task,
			    u64 now)
{
	u32 tgid = task->tgid, tid = task->pid, abandoned = 0, cap_no = WIRE_NO_CAP, flags;
	u64 site = 0, cap, holder = 0, incall = 0;
	struct wire_thread *seen;

	probe_hit(tgid);
	/* the two probes do not come on and off together: a call seen by one of them only does not
	 * count */
	if (t->flags & WIRE_TARGET_PROBES_OFF)
		return 0;
	cap = ARCH_ARG1(regs) - t->layout.cap_r;
	if (mem_u64(0, &site, ARCH_SP(regs)) ||
	    mem_u64(0, &holder, cap + t->layout.cap_running_task) ||
	    probe_incall(t, holder, &incall)) {
		count(WIRE_CNT_CALL_FAULT);
		return 0;
	}
	probe_ready(t, task, now);
	mem_read(0, &cap_no, sizeof(cap_no), cap + t->layout.cap_no);
	seen = probe_thread(t, tgid, tid);
	if (!seen)
		return 0;
	probe_on_cpu(t, seen, task, now);
	hold_end_here(seen, task, now);
	probe_tso(t, seen, cap, task, now);
	seen->resume_incall = 0;
	/* a call that was open when the session started must have ended unseen, unless this is a
	 * call from a call-back inside it, which has an InCall of its own */
	if (!seen->depth && calls_open_before(tid, incall))
		bpf_map_delete_elem(&open_at_start, &tid);
	flags = (ARCH_ARG2(regs) & 0xff) ? WIRE_CALL_INTERRUPTIBLE : 0;
	now = probe_time(seen, now);
	/* before the call that starts overwrites them */
	if (seen->depth)
		calls_replaced(seen, incall);
	if (calls_begin(seen, now, site, ARCH_SP(regs), incall, cap_no, flags, &abandoned) ==
	    CALLS_OVERFLOW)
		count(WIRE_CNT_CALL_OVERFLOW);
	if (abandoned)
		count_n(WIRE_CNT_CALL_ABANDONED, abandoned);
	return 0;
}

SS_INLINE void call_send(struct wire_target *t, const struct wire_open *call, u32 depth, u64 now,
			 struct task_struct *task)
{
	struct scratch *s = scratch_claim();
	struct wire_call *rec;
	struct stg g = {};

	if (!s)
		return;
	rec = (struct wire_call *)s->rec;
	rts_thread_of(task, 0, &s->th);
	fill_header(&rec->h, WIRE_CALL, now, task->tgid, task->pid);
	rts_read(0, t, &s->th, &rec->rts);
	rec->start_ns = call->start_ns;
	rec->site = call->site;
	rec->handover_ns = call->handover_ns;
	rec->blocked_ns = call->blocked_ns;
	rec->runnable_ns = call->runnable_ns;
	rec->flags = call->flags;
	rec->depth = depth;
	rec->_pad = 0;
	g.w = &s->walk;
	g.scan = &s->scan;
	g.frames = (u64 *)(s->rec + sizeof(*rec));
	stg_init(&g, &t->layout, WIRE_FRAMES_LEAF, WIRE_FRAMES_ROOT);
	s->walk.updatees = !!(t->flags & WIRE_TARGET_UPDATEES);
	stg_put(&g, WIRE_FRAME_SITE, call->site);
	if (rec->rts.where == WIRE_WHERE_SAFE_CALL)
		rts_walk_suspended(&g, t, s->th.incall, rec->rts.tso);
	else
		stg_fail(&g, WIRE_CAUSE_NO_TSO);
	stg_result(&s->walk, &rec->stack);
	ring_send(rec, sizeof(*rec), s->walk.n);
	scratch_release(s);
}

/* The end of a call whose start was not seen, possibly one that was open when the session started.
 * Returns 1 and fills *ret_call, or 0 if the call was nested too deep to be followed. */
SS_INLINE int call_from_before(const struct wire_target *t, struct wire_thread *seen, u32 tid,
			       u64 incall, u64 resume_ra, u64 now, struct wire_open *ret_call)
{
	struct wire_open_at_start *o = bpf_map_lookup_elem(&open_at_start, &tid);

	if (seen->depth >= WIRE_OPEN_MAX)
		return 0; /* counted as an overflow when it started */
	__builtin_memset(ret_call, 0, sizeof(*ret_call));
	ret_call->blocked_ns = seen->blocked_ns;
	ret_call->runnable_ns = seen->runnable_ns;
	if (o && o->incall == incall && o->epoch == t->epoch) {
		ret_call->start_ns = o->start_ns;
		/* the snapshot may not have found it: this call returns to the same place */
		ret_call->site = o->site ? o->site : resume_ra;
		ret_call->flags = WIRE_CALL_OPEN_AT_START;
		/* counted with the part that was seen */
		site_finished(seen->tgid, ret_call, now);
		bpf_map_delete_elem(&open_at_start, &tid);
	} else {
		count(WIRE_CNT_CALL_UNMATCHED);
		ret_call->site = resume_ra;
		ret_call->flags = WIRE_CALL_UNMATCHED | WIRE_CALL_OPEN_AT_START;
	}
	return 1;
}

/*
 * If the thread has to wait for a capability from here on, it does so on account of this call. The
 * site of a call whose start was not seen is not known.
 */
SS_INLINE void probe_resuming(struct wire_thread *seen, const struct wire_open *call, u64 incall)
{
	seen->resume_site = call->flags & WIRE_CALL_UNMATCHED ? 0 : call->site;
	seen->resume_flags = call->flags & WIRE_CALL_INTERRUPTIBLE;
	seen->resume_incall = incall;
}

/* resumeThread(void *task), rts/Schedule.c */
SS_INLINE int probe_resume(struct user_regs *regs, struct wire_target *t, struct task_struct *task,
			   u64 now)
{
	u32 tgid = task->tgid, tid = task->pid, abandoned = 0;
	struct wire_open call = {};
	struct wire_thread *seen;
	u64 incall = 0;
	int calls_back;

	probe_hit(tgid);
	/* the two probes do not come on and off together: a call seen by one of them only does not
	 * count */
	if (t->flags & WIRE_TARGET_PROBES_OFF)
		return 0;
	seen = probe_thread(t, tgid, tid);
	if (!seen)
		return 0;
	probe_on_cpu(t, seen, task, now);
	if (probe_incall(t, ARCH_ARG1(regs), &incall)) {
		/* its page may have been swapped out, or be migrating to another node, after a long
		 * call */
		incall = calls_innermost(seen);
		if (!incall) {
			count(WIRE_CNT_CALL_FAULT);
			return 0;
		}
	}
	now = probe_time(seen, now);
	if (calls_end(seen, incall, &call, &abandoned) == CALLS_UNMATCHED) {
		u64 ra = 0;

		mem_u64(0, &ra, ARCH_SP(regs));
		if (call_from_before(t, seen, tid, incall, ra, now, &call)) {
			call_send(t, &call, seen->depth, now, task);
			probe_resuming(seen, &call, incall);
		}
		return 0;
	}
	if (abandoned) {
		count_n(WIRE_CNT_CALL_ABANDONED, abandoned);
		/* they were above the call that ended, and are still in open[] */
		site_open_abandoned(thread_entry(seen), seen->depth + 1,
				    seen->depth + 1 + abandoned, 0);
	}
	probe_resuming(seen, &call, incall);
	probe_tso_again(t, seen, incall, task, now);
	/* Only samples show which part of the time of a call that calls back is its own. A call
	 * within a callback counts as any other: no sum has its time yet. */
	calls_back = site_finished(tgid, &call, now);
	if (now - call.start_ns >= t->call_record_ns) {
		call_send(t, &call, seen->depth, now, task);
		return 0;
	}
	seen->short_calls++;
	if (!calls_back) {
		seen->short_wall_ns += calls_wall(&call, now);
		seen->short_blocked_ns += call.blocked_ns;
		seen->short_runnable_ns += call.runnable_ns;
	}
	return 0;
}

SS_INLINE int probe_tick(struct wire_target *t, struct task_struct *task, u64 now)
{
	struct scratch *s;

	if (t->flags & WIRE_TARGET_UNCONFIRMED)
		return 0;
	probe_hit(task->tgid);
	s = scratch_claim();
	if (!s)
		return 0;
	tick_send(t, s, (u64)task->tgid << 32 | task->pid, now);
	scratch_release(s);
	return 0;
}

/* Not inlined, for a stack frame of its own: alloc_probe() runs after it and needs the room. */
SS_NOINLINE void gc_send(struct user_regs *regs, struct wire_target *t, struct task_struct *task,
			 u32 point, u64 now)
{
	struct wire_gc rec = {};
	u32 gcs = 0;

	rec.number = WIRE_GC_NO_NUMBER;
	if (point == WIRE_GC_END) {
		/* stat_endGC(cap, gct, live, copied, slop, gen, …), rts/Stats.c, 8.10 to 9.14 */
		rec.generation = ARCH_ARG6(regs);
		if (t->n_capabilities)
			mem_read(0, &rec.n_caps, sizeof(rec.n_caps), t->n_capabilities);
		if (t->stats && !mem_read(0, &gcs, sizeof(gcs), t->stats))
			rec.number = gcs;
		if (t->gct_clock &&
		    mem_read(0, &rec.sync_ns, 2 * sizeof(u64), ARCH_ARG2(regs) + t->gct_clock))
			rec.sync_ns = rec.start_ns = 0;
	}
	fill_header(&rec.h, WIRE_GC, now, task->tgid, task->pid);
	rec.point = point;
	rec.h.size = sizeof(rec);
	ring_put(&rec, sizeof(rec), ring_wakeup());
}

SS_INLINE int probe_gc(struct user_regs *regs, struct wire_target *t, struct task_struct *task,
		       u32 point, u64 now)
{
	struct wire_heap_state *st = alloc_state(t, task->tgid);

	probe_hit_gc(st, task->tgid);
	/*
	 * If the stack of the allocating thread is deep, inspecting it takes as long as the
	 * collection itself. To keep it out of the pause it is done before the start and after the
	 * end.
	 */
	if (point == WIRE_GC_END) {
		gc_send(regs, t, task, point, now);
		return alloc_probe(regs, t, st, point, now);
	}
	if (alloc_probe(regs, t, st, point, now))
		now = bpf_ktime_get_ns();
	gc_send(regs, t, task, point, now);
	return 0;
}

#endif
