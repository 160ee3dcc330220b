/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sched_switch and wake-ups: each off-CPU interval becomes one record, sent when the thread
 * returns. What it was doing is read when it leaves, because at a switch the memory of the next
 * thread cannot be read.
 */
#ifndef SAFESCOPED_SWITCH_BPF_H
#define SAFESCOPED_SWITCH_BPF_H

#include "maps.bpf.h"
#include "walk.bpf.h"
#include "off.bpf.h"
#include "hold.bpf.h"
#include "sample.bpf.h"
#include "tick.bpf.h"

#define PF_EXITING 4 /* include/linux/sched.h; set before sched_process_exit is reported */

/* Limit on samples without a matching stack that count as a backlog. */
#define OFF_STACKS_BEHIND 4

/* True if a preempted thread's stack is due: at most one per sample of the target. */
SS_INLINE int off_stack_due(struct wire_target_entry *t)
{
	u64 due = t->samples - t->preempted;

	if (!due)
		return 0;
	if (due > OFF_STACKS_BEHIND)
		t->preempted = t->samples - OFF_STACKS_BEHIND;
	t->preempted++;
	return 1;
}

SS_INLINE int off_stack_is_due(const struct wire_target_entry *t)
{
	return t->samples != t->preempted;
}

/*
 * False if this target has used up its stacks at switch-out for this second. Half of them are
 * reserved for threads that sleep while they hold a capability: these are in an unsafe call, and no
 * other record shows which one. (A long safe call has a stack of its own.) If preempted threads
 * wait for a CPU, they get some of the stacks.
 */
SS_INLINE int off_stack_allowed(struct wire_target *t, u32 tgid, u64 now, u32 where, u32 state)
{
	u64 left = off_stacks_per_sec / 2;
	struct wire_cost *c;

	if (stacks_by_samples && !state)
		return off_stack_due(target_entry(t));
	c = bpf_map_lookup_elem(&costs, &tgid);
	if (!c)
		return 0;
	if (now - c->off_period_ns >= 1000000000ULL) {
		c->off_period_ns = now;
		c->off_tokens = off_stacks_per_sec;
	}
	if (!state)
		left = off_stacks_per_sec - preempted_stacks_per_sec;
	else if (where == WIRE_WHERE_HASKELL)
		left = 0;
	/* two CPUs may pass the test with one token left: the limit need not be exact */
	if ((s64)c->off_tokens <= (s64)left) {
		count(WIRE_CNT_OFF_STACK_LIMIT);
		return 0;
	}
	__sync_fetch_and_add(&c->off_tokens, (u64)-1);
	return 1;
}

SS_INLINE u32 off_syscall(const struct pt_regs *u)
{
	return ARCH_IN_SYSCALL(u) ? ARCH_SYSCALL(u) : WIRE_NO_SYSCALL;
}

SS_INLINE void off_take_stack(void *ctx, struct wire_target *t, struct wire_thread *seen,
			      struct scratch *s, struct task_struct *task)
{
	struct wire_off_stack *o = (struct wire_off_stack *)s->rec;
	const struct wire_open *open = calls_top(seen);
	struct stg g = {.w = &s->walk, .frames = o->frames};
	u32 tgid = seen->tgid, tid = task->pid;

	g.maps = bpf_map_lookup_elem(&unwind_maps, &tgid);
	stg_init(&g, &t->layout, WIRE_OFF_FRAMES - WIRE_OFF_ROOT - 8, WIRE_OFF_ROOT);
	s->walk.updatees = !!(t->flags & WIRE_TARGET_UPDATEES);
	walk_unprobe(0, &s->regs);
	if (kernel_stacks)
		kstack_put(ctx, s, g.frames);
	s->state.site = open ? open->site : 0;
	rts_thread_stack(task, &s->th);
	walk_alone(s, t, g.maps, &seen->off_rts, (struct stg_frames *)g.frames);
	rts_thread_keep(seen, &s->th);
	stg_result(&s->walk, &o->stack);
	seen->has_stack = !bpf_map_update_elem(&off_stacks, &tid, o, BPF_ANY);
}

/* True if an off-CPU interval is worth a stack; that of an idle worker is not. */
SS_INLINE int off_wants_stack(u32 where)
{
	if (where == WIRE_WHERE_HASKELL || where == WIRE_WHERE_SAFE_CALL)
		return 1;
	return kernel_stacks && (where == WIRE_WHERE_RTS || where == WIRE_WHERE_FOREIGN);
}

/* enum wire_rts_flag for a thread that leaves the CPU. */
SS_INLINE u8 off_flags(struct wire_thread *seen, u64 sp)
{
	u8 flags = WIRE_RTS_IN_KERNEL;

	if (!seen->epoch)
		flags |= WIRE_RTS_CALLS_UNKNOWN;
	else if (calls_suspending(0, seen, sp))
		flags |= WIRE_RTS_SUSPENDING;
	return flags;
}

/*
 * No entry is created for an exiting thread: its entries are removed at its exit, yet it is
 * switched out at least once more, and the entry would leak.
 */
SS_INLINE struct wire_thread *switch_thread(const struct task_struct *task, u32 epoch)
{
	struct wire_thread *seen;

	if (!(task->flags & PF_EXITING))
		return thread_get(task->tgid, task->pid, epoch);
	seen = thread_find(task->pid);
	return seen && seen->tgid == (u32)task->tgid ? seen : 0;
}

/* True if the intervals held back are of the same kind as one that starts in this state. */
SS_INLINE int off_same(const struct wire_thread *seen, const struct wire_rts *rts, u32 syscall,
		       u32 state)
{
	const struct wire_rts *was = &seen->off_rts;

	return was->where == rts->where && was->cap == rts->cap && was->tso_id == rts->tso_id &&
	       was->flags == rts->flags && !seen->off_state == !state &&
	       (!state || seen->off_syscall == syscall);
}

/* Reads the thread's state, and takes its stack if that is worthwhile. */
SS_INLINE void off_look(void *ctx, struct wire_target *t, struct wire_thread *seen,
			struct scratch *s, struct task_struct *task, u64 now, u32 state,
			int takes_stack)
{
	u32 syscall = off_syscall((struct pt_regs *)bpf_task_pt_regs(task));

	rts_thread_of(task, seen, &s->th);
	regs_of(task, &s->regs);
	regs_unstep(task, &s->regs);
	rts_read(0, t, &s->th, &s->rts);
	/* if suspended_tso is zero, resumeThread has got its capability since */
	thread_refine(seen, &s->th, &s->rts);
	if (s->rts.where != WIRE_WHERE_RESUMING)
		seen->resume_incall = 0;
	s->rts.flags = off_flags(seen, s->regs.sp);
	if (seen->epoch)
		s->rts.flags |= called_back(t, seen, calls_top(seen), task->pid, s->th.incall);
	if (!off_same(seen, &s->rts, syscall, state))
		hold_end(seen, s, task->tgid, task->pid, now);
	seen->off_rts = s->rts;
	thread_entry(seen)->task = s->th.task;
	seen->off_ip = s->regs.ip;
	seen->off_syscall = syscall;
	seen->off_state = state;
	/* preempted threads too: on a busy machine that is where their time goes */
	if (takes_stack && off_wants_stack(seen->off_rts.where) &&
	    off_stack_allowed(t, task->tgid, now, seen->off_rts.where, state))
		off_take_stack(ctx, t, seen, s, task);
}

/*
 * True if the thread leaves the CPU in the same state as last time, and the interval may be held
 * back. Checking that takes far fewer reads than off_look().
 */
SS_NOINLINE int off_again(struct wire_target *t, struct wire_thread *seen, struct scratch *s,
			  struct task_struct *task, u32 state)
{
	struct pt_regs *u = (struct pt_regs *)bpf_task_pt_regs(task);
	u32 unknown = seen->epoch ? 0 : WIRE_RTS_CALLS_UNKNOWN;

	if (seen->depth || !seen->off_state != !state ||
	    seen->off_rts.flags != (WIRE_RTS_IN_KERNEL | unknown))
		return 0;
	if (state)
		return seen->tick_slept && seen->off_syscall == off_syscall(u);
	rts_thread_of(task, seen, &s->th);
	if (!rts_same(0, t, &s->th, thread_entry(seen)->task, &seen->off_rts))
		return 0;
	seen->resume_incall = 0; /* as off_look() does for Haskell code */
	return 1;
}

/*
 * State of a thread that leaves the CPU; 0: it would continue to run. That includes a thread for
 * which a signal arrived as it went to sleep, although kernels before 6.13 report the state that it
 * was about to enter (kernel/sched/core.c, __schedule).
 */
SS_INLINE u32 switch_state(const struct task_struct *task, int preempt, u32 prev_state)
{
	return preempt || !task->__state ? 0 : prev_state;
}

SS_INLINE void switch_out(void *ctx, struct wire_target *t, struct task_struct *task,
			  struct task_struct *next, u64 now, u32 state)
{
	u32 slot = SLOT_SWITCH;
	struct wire_thread *seen;
	struct scratch *s;
	int short_stay, dies, again = 0;

	seen = switch_thread(task, 0);
	s = bpf_map_lookup_elem(&cpu_scratch, &slot);
	if (!seen || !s)
		return;
	if (seen->off_since_ns)
		off_end_unseen(t, seen, s, task, now);
	/* the calls of a dying thread do not change any more */
	dies = off_dies(t, seen, task);
	if (!dies)
		calls_sync(t, seen);
	seen->has_stack = 0;
	/* the timer thread will sleep again soon */
	short_stay = stacks_by_samples && !state && is_ticker(next);
	if (dies)
		again = 1;
	else if (hold_for_ns && (state || short_stay || !off_stack_is_due(target_entry(t))))
		again = off_again(t, seen, s, task, state);
	if (!again)
		off_look(ctx, t, seen, s, task, now, state, !short_stay);
	/* its position adds nothing to what samples show, and would have to be named */
	if (stacks_by_samples && !state && !seen->has_stack && !seen->depth &&
	    seen->off_rts.where == WIRE_WHERE_HASKELL)
		seen->off_ip = 0;
	tso_note(t, seen, s, &seen->off_rts, task->tgid, task->pid, now);
	tick_thread_out(t, seen, s, task, now);
	thread_entry(seen)->out_ran_ns = task->se.sum_exec_runtime;
	seen->wake_ns = state ? 0 : now;
	seen->off_since_ns = now;
}

/*
 * For a thread that comes back to the CPU although no switch-out was seen. By the scheduler's
 * account it has run for less than the time since it came the last time: the rest is an interval
 * about which nothing else is known. False: there is no such interval.
 */
SS_INLINE int off_begin_unseen(struct wire_thread *seen, const struct task_struct *task, u64 now)
{
	u64 ran = task->se.sum_exec_runtime - thread_entry(seen)->out_ran_ns;
	u64 out = seen->on_since_ns + ran;

	count(WIRE_CNT_NO_SWITCH_OUT);
	if (out < seen->on_since_ns || out >= now)
		return 0;
	__builtin_memset(&seen->off_rts, 0, sizeof(seen->off_rts));
	seen->off_rts.where = WIRE_WHERE_UNKNOWN;
	seen->off_state = 1; /* TASK_INTERRUPTIBLE */
	seen->off_syscall = WIRE_NO_SYSCALL;
	seen->off_ip = 0;
	seen->has_stack = 0;
	seen->tick_slept = 0;
	seen->wake_ns = 0;
	seen->off_since_ns = out;
	return 1;
}

SS_INLINE void switch_in(struct wire_target *t, struct task_struct *task, u64 now)
{
	struct wire_thread *seen;
	u32 slot = SLOT_SWITCH;
	int first, runs_on = 0;
	struct scratch *s;

	seen = switch_thread(task, t->epoch);
	s = bpf_map_lookup_elem(&cpu_scratch, &slot);
	if (!seen || !s)
		return;
	if (!seen->off_since_ns && seen->on_since_ns) {
		hold_end(seen, s, task->tgid, task->pid, seen->on_since_ns);
		runs_on = !off_begin_unseen(seen, task, now);
	}
	thread_entry(seen)->out_ran_ns = task->se.sum_exec_runtime;
	if (runs_on) {
		off_on_cpu(seen, now);
		return;
	}
	first = !seen->off_since_ns;
	off_end(t, seen, s, task->tgid, task->pid, now);
	/* after its record, which must not have a place */
	if (first)
		seen->off_ip = ARCH_IP((struct pt_regs *)bpf_task_pt_regs(task));
}

/* A target's thread has an entry, so the target itself need not be looked up. */
SS_INLINE void woken(struct task_struct *task)
{
	struct wire_thread *seen = thread_find(task->pid);

	if (seen && seen->tgid == (u32)task->tgid && seen->off_since_ns && !seen->wake_ns)
		seen->wake_ns = bpf_ktime_get_ns();
}

#endif
