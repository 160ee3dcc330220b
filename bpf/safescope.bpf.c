/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The BPF programs. Each first checks whether a target is concerned, because every thread of the
 * host pays for that check; then it takes the time and calls its concern's header.
 */
#include "vmlinux_min.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "wire.h"
#include "sample.bpf.h"
#include "switch.bpf.h"
#include "probe.bpf.h"
#include "life.bpf.h"
#include "cost.bpf.h"

char LICENSE[] SEC("license") = "GPL";

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct wire_target *t = target_of(task);
	u64 now;

	if (!t || (sample_every > 1 && bpf_get_prandom_u32() % sample_every))
		return 0;
	now = target_now(t);
	sample_take(ctx, t, task, now);
	cost_end(task->tgid, now);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	struct wire_target *out = target_of(prev), *in = target_of(next);
	u64 now, began;

	if (!out && !in)
		return 0;
	began = now = bpf_ktime_get_ns();
	if (out) {
		target_held_up(out, now);
		switch_out(ctx, out, prev, next, now, switch_state(prev, preempt, prev_state));
		if (cost_is_due(now)) {
			began = bpf_ktime_get_ns();
			cost_add(prev->tgid, began - now);
		}
	}
	if (in) {
		target_held_up(in, now);
		switch_in(in, next, now);
		if (cost_is_due(now))
			cost_add(next->tgid, bpf_ktime_get_ns() - began);
	}
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *task)
{
	if (target_may_be(task->tgid))
		woken(task);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	struct wire_target *t = target_of(parent);

	life_family(parent, child);
	if (t)
		life_new(t, child, parent->tgid, target_now(t));
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct wire_target *t = target_of(task);

	if (t)
		life_exit(t, task, target_now(t));
	else
		life_exit_late(task);
	life_family_exit(task);
	return 0;
}

SEC("tp_btf/task_rename")
int BPF_PROG(on_name, struct task_struct *task, const char *name)
{
	struct wire_target *t = target_of(task);

	if (t)
		life_name(task, name, target_now(t));
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_tid)
{
	struct wire_target *t = target_of(task);

	if (t || life_followed(task->tgid))
		life_exec(t, task, old_tid, t ? target_now(t) : bpf_ktime_get_ns());
	return 0;
}

SEC("uprobe")
int on_suspend(struct user_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct wire_target *t = target_of(task);
	u64 now;

	if (!t || !probe_is_of(ctx, t, WIRE_TARGET_OWN_SUSPEND))
		return 0;
	now = target_now(t);
	probe_suspend(ctx, t, task, now);
	cost_end_call(task->tgid, now);
	return 0;
}

SEC("uprobe")
int on_resume(struct user_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct wire_target *t = target_of(task);
	u64 now;

	if (!t || !probe_is_of(ctx, t, WIRE_TARGET_OWN_RESUME))
		return 0;
	now = target_now(t);
	probe_resume(ctx, t, task, now);
	cost_end_call(task->tgid, now);
	return 0;
}

SEC("uprobe")
int on_tick(struct user_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct wire_target *t = target_of(task);
	u64 now;

	if (!t || !probe_is_of(ctx, t, WIRE_TARGET_OWN_TICK))
		return 0;
	now = target_now(t);
	probe_tick(t, task, now);
	cost_end(task->tgid, now);
	return 0;
}

SS_INLINE int on_gc(struct user_regs *ctx, u32 point, u32 own)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct wire_target *t = target_of(task);
	u64 now;

	if (!t || !probe_is_of(ctx, t, own))
		return 0;
	now = target_now(t);
	probe_gc(ctx, t, task, point, now);
	cost_end_gc(task->tgid, now);
	return 0;
}

SEC("uprobe")
int on_gc_sync(struct user_regs *ctx)
{
	return on_gc(ctx, WIRE_GC_SYNC, WIRE_TARGET_OWN_GC_SYNC);
}

SEC("uprobe")
int on_gc_start(struct user_regs *ctx)
{
	return on_gc(ctx, WIRE_GC_START, WIRE_TARGET_OWN_GC_START);
}

SEC("uprobe")
int on_gc_end(struct user_regs *ctx)
{
	return on_gc(ctx, WIRE_GC_END, WIRE_TARGET_OWN_GC_END);
}

/* Run by user space before it reads what threads are doing: sends all intervals held back. */
SEC("raw_tp")
int on_flush(void *ctx)
{
	(void)ctx;
	hold_end_all(bpf_ktime_get_ns());
	return 0;
}

/* Attached to a function of the daemon itself, to measure the cost of a trap on this machine. */
SEC("uprobe")
int on_calibrate(struct user_regs *ctx)
{
	(void)ctx;
	return 0;
}
