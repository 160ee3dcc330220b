/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The programs. Each takes the time first and leaves the rest to its concern's header. */
#include "vmlinux_min.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "wire.h"
#include "sample.bpf.h"
#include "switch.bpf.h"
#include "probe.bpf.h"
#include "life.bpf.h"

char LICENSE[] SEC("license") = "GPL";

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	return sample_take(ctx, bpf_ktime_get_ns());
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	u64 now = bpf_ktime_get_ns();

	switch_out(ctx, prev, now, preempt ? 0 : prev_state);
	switch_in(next, now);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *task)
{
	woken(task, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_wakeup_new, struct task_struct *task)
{
	woken(task, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	life_new(parent, child, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	life_exit(task, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_tid)
{
	life_exec(task, old_tid, bpf_ktime_get_ns());
	return 0;
}

SEC("uprobe")
int on_suspend(struct user_regs *ctx)
{
	return probe_suspend(ctx, bpf_ktime_get_ns());
}

SEC("uprobe")
int on_resume(struct user_regs *ctx)
{
	return probe_resume(ctx, bpf_ktime_get_ns());
}

SEC("uprobe")
int on_tick(struct user_regs *ctx)
{
	(void)ctx;
	return probe_tick(bpf_ktime_get_ns());
}

SEC("uprobe")
int on_gc_sync(struct user_regs *ctx)
{
	return probe_gc(ctx, WIRE_GC_SYNC, bpf_ktime_get_ns());
}

SEC("uprobe")
int on_gc_start(struct user_regs *ctx)
{
	return probe_gc(ctx, WIRE_GC_START, bpf_ktime_get_ns());
}

SEC("uprobe")
int on_gc_end(struct user_regs *ctx)
{
	return probe_gc(ctx, WIRE_GC_END, bpf_ktime_get_ns());
}

/* Attached to a function of the daemon itself, to measure what a trap costs on this machine. */
SEC("uprobe")
int on_calibrate(struct user_regs *ctx)
{
	(void)ctx;
	return 0;
}
