/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sched_switch and the wake-ups: each off-CPU interval becomes one record, sent when the thread
 * comes back. What it was doing is read when it leaves, because the memory of the next thread
 * cannot be read at a switch.
 */
#ifndef SAFESCOPED_SWITCH_BPF_H
#define SAFESCOPED_SWITCH_BPF_H

#include "maps.bpf.h"
#include "walk.bpf.h"
#include "off.bpf.h"
#include "sample.bpf.h"
#include "tick.bpf.h"

#define PF_EXITING 4 /* include/linux/sched.h; set before sched_process_exit is reported */

/*
 * 0 if this target has used up this second's stacks at switch-out. Half of them are kept for
 * threads that sleep with a capability in hand: these are in an unsafe call, and no other record
 * shows in which. (A long safe call has a stack of its own.) Where preempted threads wait for a
 * CPU, some of their stacks show.
 */
SS_INLINE int off_stack_allowed(u32 tgid, u64 now, u32 where, u32 state)
{
	struct wire_cost *c = bpf_map_lookup_elem(&costs, &tgid);
	u64 left = off_stacks_per_sec / 2;

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
	/* two CPUs may pass the test with one token left: a limit, not an account */
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
			      struct scratch *s, u32 tid)
{
	struct wire_off_stack *o = (struct wire_off_stack *)s->rec;
	const struct wire_open *open = calls_top(seen);
	struct stg g = {.w = &s->walk, .frames = o->frames};
	u32 tgid = seen->tgid;

	g.maps = bpf_map_lookup_elem(&unwind_maps, &tgid);
	stg_init(&g, &t->layout, WIRE_OFF_FRAMES - WIRE_OFF_ROOT - 8, WIRE_OFF_ROOT);
	s->walk.updatees = !!(t->flags & WIRE_TARGET_UPDATEES);
	walk_unprobe(0, &s->regs);
	if (kernel_stacks)
		kstack_put(ctx, s, g.frames);
	s->state.site = open ? open->site : 0;
	walk_alone(s, t, g.maps, &seen->off_rts, (struct stg_frames *)g.frames);
	rts_thread_keep(seen, &s->th);
	stg_result(&s->walk, &o->stack);
	seen->has_stack = !bpf_map_update_elem(&off_stacks, &tid, o, BPF_ANY);
}

/* Whether an off-CPU interval is worth a stack: an idle worker's is not. */
SS_INLINE int off_wants_stack(u32 where)
{
	if (where == WIRE_WHERE_HASKELL || where == WIRE_WHERE_SAFE_CALL)
		return 1;
	return kernel_stacks && (where == WIRE_WHERE_RTS || where == WIRE_WHERE_FOREIGN);
}

/* enum wire_rts_flag of a thread that leaves the CPU. */
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
 * Of a thread that ends no entry is made: it would stay, since what the thread has is removed at
 * its exit, after which it is switched out once more at least.
 */
SS_INLINE struct wire_thread *switch_thread(const struct task_struct *task, u32 epoch)
{
	struct wire_thread *seen;

	if (!(task->flags & PF_EXITING))
		return thread_get(task->tgid, task->pid, epoch);
	seen = thread_find(task->pid);
	return seen && seen->tgid == (u32)task->tgid ? seen : 0;
}

SS_INLINE void switch_out(void *ctx, struct wire_target *t, struct task_struct *task, u64 now,
			  u32 state)
{
	u32 slot = SLOT_SWITCH;
	struct wire_thread *seen;
	struct scratch *s;
	struct pt_regs *u;

	seen = switch_thread(task, 0);
	s = bpf_map_lookup_elem(&cpu_scratch, &slot);
	if (!seen || !s)
		return;
	if (seen->off_since_ns)
		off_end_unseen(t, seen, s, task->tgid, task->pid, now);
	calls_sync(t, seen);
	rts_thread_of(task, seen, &s->th);
	u = (struct pt_regs *)bpf_task_pt_regs(task);
	regs_of(task, &s->regs);
	regs_unstep(task, &s->regs);
	rts_read(0, t, &s->th, &seen->off_rts);
	/* zero suspended_tso: resumeThread has got its capability since */
	thread_refine(seen, &s->th, &seen->off_rts);
	if (seen->off_rts.where != WIRE_WHERE_RESUMING)
		seen->resume_incall = 0;
	seen->off_rts.flags = off_flags(seen, s->regs.sp);
	seen->off_ip = s->regs.ip;
	seen->off_syscall = off_syscall(u);
	seen->off_state = state;
	seen->has_stack = 0;
	/* of a thread that was preempted, too: on a busy machine that is where its time goes */
	if (off_wants_stack(seen->off_rts.where) &&
	    off_stack_allowed(task->tgid, now, seen->off_rts.where, state))
		off_take_stack(ctx, t, seen, s, task->pid);
	tso_note(t, seen, s, &seen->off_rts, task->tgid, task->pid, now);
	tick_thread_out(t, seen, s, task, now);
	seen->wake_ns = state ? 0 : now;
	seen->off_since_ns = now;
}

SS_INLINE void switch_in(struct wire_target *t, struct task_struct *task, u64 now)
{
	struct wire_thread *seen;
	u32 slot = SLOT_SWITCH;
	struct scratch *s;
	int first;

	seen = switch_thread(task, t->epoch);
	s = bpf_map_lookup_elem(&cpu_scratch, &slot);
	if (!seen || !s)
		return;
	if (!seen->off_since_ns && seen->on_since_ns)
		count(WIRE_CNT_NO_SWITCH_OUT);
	first = !seen->off_since_ns && !seen->on_since_ns;
	off_end(t, seen, s, task->tgid, task->pid, now);
	/* not for its record, in which nothing is known of the place */
	if (first)
		seen->off_ip = ARCH_IP((struct pt_regs *)bpf_task_pt_regs(task));
}

SS_INLINE void woken(struct task_struct *task, u64 now)
{
	struct wire_thread *seen = thread_find(task->pid);

	if (seen && seen->off_since_ns && !seen->wake_ns)
		seen->wake_ns = now;
}

#endif
