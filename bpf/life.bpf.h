/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads and processes of targets that begin, end, or become another program. */
#ifndef SAFESCOPED_LIFE_BPF_H
#define SAFESCOPED_LIFE_BPF_H

#include "maps.bpf.h"
#include "site.bpf.h"

/* include/linux/sched/signal.h: the whole process ends */
#define SIGNAL_GROUP_EXIT 4

/* `th` may be NULL. */
SS_INLINE void life_send(struct task_struct *task, u32 type, u64 now, const struct wire_thread *th)
{
	struct wire_thread_event rec = {};

	fill_header(&rec.h, type, now, task->tgid, task->pid);
	rec.h.size = sizeof(rec);
	rec.start_ns = now;
	rec.on_cpu_ns = task->se.sum_exec_runtime;
	if (th) {
		rec.open_calls = th->depth;
		rec.short_calls = th->short_calls;
		rec.short_wall_ns = th->short_wall_ns;
		rec.short_blocked_ns = th->short_blocked_ns;
		rec.short_runnable_ns = th->short_runnable_ns;
	}
	bpf_probe_read_kernel_str(rec.comm, sizeof(rec.comm), task->comm);
	if (bpf_ringbuf_output(&ring, &rec, sizeof(rec), ring_wakeup()))
		count(WIRE_CNT_LOST_RING);
	else
		count(WIRE_CNT_RECORDS);
}

SS_INLINE void life_new(struct task_struct *parent, struct task_struct *child, u64 now)
{
	struct wire_target *t = target_of(parent);
	struct wire_thread *th;

	/* a child process is no target: it was never looked at */
	if (child->tgid != parent->tgid || !t)
		return;
	th = thread_get(child->tgid, child->pid, t->epoch);
	if (th) {
		th->off_since_ns = now;
		th->wake_ns = now;
	}
	life_send(child, WIRE_THREAD_NEW, now, 0);
}

SS_INLINE void life_forget(u32 tid)
{
	bpf_map_delete_elem(&threads, &tid);
	bpf_map_delete_elem(&off_stacks, &tid);
	bpf_map_delete_elem(&open_at_start, &tid);
}

SS_INLINE void life_exit(struct task_struct *task, u64 now)
{
	struct wire_open_at_start *before;
	u32 tgid = task->tgid, tid = task->pid;
	struct wire_thread *th;
	int gone;

	if (!target_of(task))
		return;
	th = thread_find(task->pid);
	gone = task->signal->flags & SIGNAL_GROUP_EXIT;
	if (th && th->depth) {
		if (!gone)
			count_n(WIRE_CNT_CALL_ABANDONED, th->depth);
		site_thread_gone(th, gone);
	}
	/* no event of its own since before the session: it never left the call */
	before = bpf_map_lookup_elem(&open_at_start, &tid);
	if (before)
		site_abandoned(tgid, before->site, 0, gone);
	life_send(task, WIRE_THREAD_EXIT, now, th);
	life_forget(task->pid);
	if (task->signal->live.counter == 0) {
		life_send(task, WIRE_PROC_EXIT, now, 0);
		bpf_map_delete_elem(&targets, &tgid);
	}
}

/* The other threads of the process have exited by now; the thread that called it has the pid. */
SS_INLINE void life_exec(struct task_struct *task, u32 old_tid, u64 now)
{
	u32 tgid = task->tgid;

	if (!target_of(task))
		return;
	life_send(task, WIRE_EXEC, now, 0);
	bpf_map_delete_elem(&targets, &tgid);
	life_forget(old_tid);
	life_forget(tgid);
}

#endif
