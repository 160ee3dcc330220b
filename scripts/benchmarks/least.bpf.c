/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The minimum that an account of each thread's time off the CPU needs at a switch and a wake-up:
 * whose thread it is, the time, and the state kept about the thread. It does not find out what the
 * thread does, and reports nothing.
 */
#include <stdbool.h>

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

struct task_struct {
	int pid;
	int tgid;
} __attribute__((preserve_access_index));

struct thread {
	__u64 out_ns, wake_ns, off_ns, runnable_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct thread);
} threads SEC(".maps");

/* A bit for each tgid, set by the loader: the only variable. */
__u64 tgids[(1 << 22) / 64];

static __always_inline int counts(const struct task_struct *task)
{
	__u32 i = ((__u32)task->tgid & ((1 << 22) - 1)) >> 6;

	asm volatile("" : "+r"(i));
	return tgids[i & ((1 << 22) / 64 - 1)] >> (task->tgid & 63) & 1;
}

static __always_inline struct thread *find(__u32 tid)
{
	struct thread *thread = bpf_map_lookup_elem(&threads, &tid), none = {};

	if (thread)
		return thread;
	bpf_map_update_elem(&threads, &tid, &none, BPF_NOEXIST);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(least_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	int out = counts(prev), in = counts(next);
	struct thread *thread;
	__u64 now;

	if (!out && !in)
		return 0;
	now = bpf_ktime_get_ns();
	if (out && (thread = find(prev->pid))) {
		thread->out_ns = now;
		thread->wake_ns = preempt ? now : 0;
	}
	if (in && (thread = find(next->pid)) && thread->out_ns) {
		thread->off_ns += now - thread->out_ns;
		if (thread->wake_ns)
			thread->runnable_ns += now - thread->wake_ns;
	}
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(least_wakeup, struct task_struct *task)
{
	struct thread *thread;

	if (counts(task) && (thread = find(task->pid)) && !thread->wake_ns)
		thread->wake_ns = bpf_ktime_get_ns();
	return 0;
}
