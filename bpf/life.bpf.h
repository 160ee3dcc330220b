/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads and processes of targets that start, end, run another program, or get another name; and
 * processes that may become targets, if they are followed.
 */
#ifndef SAFESCOPED_LIFE_BPF_H
#define SAFESCOPED_LIFE_BPF_H

#include "maps.bpf.h"
#include "site.bpf.h"
#include "hold.bpf.h"
#include "off.bpf.h"

/* `th` may be NULL; `open` is the number of its open calls; `flags` are added to
 * WIRE_THREAD_HAS_ENTRY. */
SS_INLINE void life_send(struct task_struct *task, u32 tid, u32 type, u64 now,
			 const struct wire_thread *th, u32 open, u32 flags)
{
	struct wire_thread_event rec = {};

	fill_header(&rec.h, type, now, task->tgid, tid);
	rec.h.size = sizeof(rec);
	rec.start_ns = now;
	rec.on_cpu_ns = task->se.sum_exec_runtime;
	if (th) {
		rec.flags = WIRE_THREAD_HAS_ENTRY | flags;
		rec.open_calls = open;
		rec.short_calls = th->short_calls;
		rec.short_wall_ns = th->short_wall_ns;
		rec.short_blocked_ns = th->short_blocked_ns;
		rec.short_runnable_ns = th->short_runnable_ns;
	}
	bpf_probe_read_kernel_str(rec.comm, sizeof(rec.comm), task->comm);
	ring_put(&rec, sizeof(rec), ring_wakeup());
}

SS_INLINE int life_followed(u32 tgid)
{
	return follow == FOLLOW_ALL ||
	       (follow == FOLLOW_FAMILY && bpf_map_lookup_elem(&family, &tgid));
}

SS_INLINE void life_program(struct task_struct *task, struct wire_program_key *key)
{
	struct file *exe = BPF_CORE_READ(task, mm, exe_file);

	if (!exe)
		return;
	key->ino = BPF_CORE_READ(exe, f_inode, i_ino);
	key->dev = BPF_CORE_READ(exe, f_inode, i_sb, s_dev);
}

/* Wakes user space at once, which has to inspect the process while it starts. Returns 0, or -1 if
 * the record is lost. */
SS_INLINE int life_announce(struct task_struct *task, const struct wire_program_key *program,
			    u32 flags, u64 now)
{
	struct wire_proc_new rec = {};

	fill_header(&rec.h, WIRE_PROC_NEW, now, task->tgid, task->pid);
	rec.h.size = sizeof(rec);
	rec.start_boottime_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	rec.ino = program->ino;
	rec.dev = program->dev;
	rec.flags = flags;
	bpf_probe_read_kernel_str(rec.comm, sizeof(rec.comm), task->comm);
	return ring_put(&rec, sizeof(rec), BPF_RB_FORCE_WAKEUP);
}

/* True if the process runs a known program and has become a target. */
SS_INLINE int life_adopt(struct task_struct *task, const struct wire_program_key *program)
{
	struct wire_target *known = bpf_map_lookup_elem(&programs, program);
	struct wire_target_entry entry = {};
	struct wire_cost cost = {};
	u32 tgid = task->tgid;

	if (!known)
		return 0;
	entry.t = *known;
	entry.t.start_boottime_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	entry.t.user = 0;
	/* user space has not yet read the counts of the process's previous program */
	if (bpf_map_update_elem(&costs, &tgid, &cost, BPF_NOEXIST))
		return 0;
	if (!target_add(tgid, &entry))
		return 1;
	bpf_map_delete_elem(&costs, &tgid);
	return 0;
}

SS_INLINE void life_family(struct task_struct *parent, struct task_struct *child)
{
	u32 tgid = child->tgid, one = 1;

	if (follow == FOLLOW_FAMILY && tgid != parent->tgid && life_followed(parent->tgid) &&
	    bpf_map_update_elem(&family, &tgid, &one, BPF_ANY))
		count(WIRE_CNT_LOST_THREADS);
}

SS_INLINE void life_family_exit(struct task_struct *task)
{
	u32 tgid = task->tgid;

	if (follow == FOLLOW_FAMILY && BPF_CORE_READ(task, signal, live.counter) == 0)
		bpf_map_delete_elem(&family, &tgid);
}

/* A thread or a process started by a process of a target. */
SS_INLINE void life_new(const struct wire_target *t, struct task_struct *child, u32 parent, u64 now)
{
	struct wire_program_key none = {};
	struct wire_thread *th;

	/* a child process is not a target: user space has not inspected it yet */
	if (child->tgid != parent) {
		if (life_followed(child->tgid))
			life_announce(child, &none, WIRE_PROC_FORK, now);
		return;
	}
	th = thread_get(child->tgid, child->pid, t->epoch);
	if (th) {
		/* runnable from here on: sched_wakeup_new follows at once */
		th->off_since_ns = now;
		th->wake_ns = now;
	}
	life_send(child, child->pid, WIRE_THREAD_NEW, now, th, 0, 0);
}

SS_INLINE void life_forget(u32 tid)
{
	thread_drop(tid);
	bpf_map_delete_elem(&off_stacks, &tid);
	bpf_map_delete_elem(&open_at_start, &tid);
}

/*
 * True if open[] has the calls that an exiting thread was in; `th` may be NULL. After the thread
 * has run while the probes were off, that still holds if it only woke from the sleep in which it
 * was killed.
 */
SS_INLINE int life_calls_known(const struct wire_target *t, const struct wire_thread *th,
			       struct task_struct *task)
{
	if (!th)
		return !(t->flags & WIRE_TARGET_PROBES_OFF);
	return calls_known(t, th) || off_as_left(th, task);
}

/* Reports what is still pending for a thread, whose entry has the key `tid`. */
SS_INLINE void life_thread_ends(struct wire_target *t, struct wire_thread *th,
				struct task_struct *task, u32 tid, u64 now)
{
	struct wire_thread_entry *e = thread_entry(th);
	u64 id = (u64)task->tgid << 32 | tid;
	struct scratch *s;

	if (!th->off_since_ns && !e->lost_since_ns && !e->held_ns)
		return;
	s = scratch_claim();
	if (!s)
		return;
	if (th->off_since_ns)
		off_end(t, th, s, task->tgid, tid, off_unseen_end(th, task, now));
	if (e->lost_since_ns)
		lost_send(e, s, id, now, task->se.sum_exec_runtime);
	if (e->held_ns)
		hold_send(e, s, id, now);
	scratch_release(s);
}

/* Limit on the threads inspected when a process ends. */
#define LIFE_THREADS 512

struct life_search {
	u64 head; /* of the list of the process's threads */
	u64 node;
	u32 tgid;
	int found;
};

static long life_next_thread(u32 i, void *ctx)
{
	struct life_search *c = ctx;
	u64 task = c->node - bpf_core_field_offset(struct task_struct, thread_node);
	struct wire_thread *th;
	u32 tid = 0;

	(void)i;
	if (!c->node || c->node == c->head)
		return 1;
	bpf_probe_read_kernel(&tid, sizeof(tid),
			      (void *)(task + bpf_core_field_offset(struct task_struct, pid)));
	th = thread_find(tid);
	c->found = th && th->tgid == c->tgid;
	return c->found || bpf_probe_read_kernel(&c->node, sizeof(c->node), (void *)c->node);
}

/*
 * True if another thread of the process has yet to report its exit, which shows by its entry. To be
 * called once all threads have been counted out.
 */
SS_INLINE int life_others_exit(struct task_struct *task)
{
	struct life_search c = {.head = (u64)&BPF_CORE_READ(task, signal)->thread_head,
				.tgid = task->tgid};

	bpf_probe_read_kernel(&c.node, sizeof(c.node), (void *)c.head);
	ss_loop(LIFE_THREADS, life_next_thread, &c);
	return c.found;
}

/*
 * True if a thread ends because its process exits, or because another thread of it has called exec
 * and waits for it (fs/exec.c, de_thread).
 */
SS_INLINE int life_process_ends(struct task_struct *task)
{
	return BPF_CORE_READ(task, signal, flags) & SIGNAL_GROUP_EXIT ||
	       BPF_CORE_READ(task, signal, group_exec_task);
}

/*
 * Counts the calls that are open when a thread ends, if they are `known`, as never returning.
 * `gone`: its process ends as well, or runs another program. Returns the number of calls whose
 * start was seen; `th` may be NULL.
 */
SS_INLINE u32 life_calls_end(const struct wire_target *t, struct wire_thread *th, u32 tgid, u32 tid,
			     int known, int gone, u64 now)
{
	struct wire_open_at_start *before;
	u32 open = th && known ? th->depth : 0;

	if (open) {
		if (!gone)
			count_n(WIRE_CNT_CALL_ABANDONED, open);
		site_open_abandoned(thread_entry(th), 0, open, gone ? now : 0);
	}
	/* no event of the thread since before the session: it never left the call */
	before = bpf_map_lookup_elem(&open_at_start, &tid);
	if (before && known && before->epoch == t->epoch)
		site_abandoned(tgid, before->site, 0, gone, 0);
	return open;
}

SS_INLINE void life_exit(struct wire_target *t, struct task_struct *task, u64 now)
{
	u32 tgid = task->tgid, tid = task->pid, open;
	struct wire_thread *th;
	int gone, known;

	th = thread_find(task->pid);
	if (th)
		life_thread_ends(t, th, task, tid, now);
	gone = life_process_ends(task);
	known = life_calls_known(t, th, task);
	open = life_calls_end(t, th, tgid, tid, known, gone, now);
	life_send(task, tid, WIRE_THREAD_EXIT, now, th, open, gone ? 0 : WIRE_THREAD_ALONE);
	life_forget(task->pid);
	/* do_exit() counts each thread out before it reports its exit: if several exit at once, a
	 * thread that is not the last one to be reported may find that none are left */
	if (BPF_CORE_READ(task, signal, live.counter) == 0 && !life_others_exit(task)) {
		life_send(task, tid, WIRE_PROC_EXIT, now, 0, 0, 0);
		target_remove(tgid);
	}
}

/* A thread that is not a target's, or one of a target that user space has just let go. */
SS_INLINE void life_exit_late(struct task_struct *task)
{
	struct wire_thread *th = all_threads ? thread_find(task->pid) : 0;

	if (th && th->tgid == (u32)task->tgid)
		life_forget(task->pid);
}

/* Limit on the names of one thread that are reported in a second. */
#define LIFE_NAMES 8

/* True while the process is given the name of the program that it is about to run. */
SS_INLINE int life_in_exec(const struct task_struct *task)
{
	return bpf_core_field_exists(task->in_execve) &&
	       BPF_CORE_READ_BITFIELD_PROBED(task, in_execve);
}

/* A thread gets another name: most threads of C libraries have their parent's until they run. */
SS_INLINE void life_name(struct task_struct *task, const char *name, u64 now)
{
	struct wire_thread *th = thread_find(task->pid);
	struct wire_thread_event rec = {};
	struct wire_thread_entry *e;

	if (!th || life_in_exec(task))
		return;
	e = thread_entry(th);
	if (now - e->named_ns >= 1000000000) {
		e->named_ns = now;
		e->names = 0;
	}
	if (e->names == LIFE_NAMES)
		return;
	e->names++;
	fill_header(&rec.h, WIRE_THREAD_NAME, now, task->tgid, task->pid);
	rec.h.size = sizeof(rec);
	bpf_probe_read_kernel_str(rec.comm, sizeof(rec.comm), name);
	ring_put(&rec, sizeof(rec), ring_wakeup());
}

/* The other threads of the process have exited by now; the thread that called exec has the pid. */
SS_INLINE void life_exec(struct wire_target *t, struct task_struct *task, u32 old_tid, u64 now)
{
	struct wire_program_key program = {};
	u32 tgid = task->tgid, flags = 0, adopted = 0, open;
	struct wire_thread *th;
	int known;

	if (t && (t->flags & WIRE_TARGET_ARMED)) {
		t->flags &= ~WIRE_TARGET_ARMED;
		flags = WIRE_PROC_TARGET;
	} else if (t) {
		th = thread_find(old_tid);
		if (th)
			life_thread_ends(t, th, task, old_tid, now);
		known = th ? calls_known(t, th) : !(t->flags & WIRE_TARGET_PROBES_OFF);
		open = life_calls_end(t, th, tgid, old_tid, known, 1, now);
		life_send(task, old_tid, WIRE_EXEC, now, th, open, 0);
		target_remove(tgid);
		life_forget(old_tid);
		life_forget(tgid);
	}
	if (!life_followed(tgid))
		return;
	life_program(task, &program);
	/* what becomes of a target is up to user space, which first reads the counts of its
	 * previous program */
	if (!t && follow == FOLLOW_ALL && life_adopt(task, &program))
		flags = adopted = WIRE_PROC_TARGET;
	/* user space does not know of the process, and would never remove its entries; it has run
	 * no instruction yet */
	if (life_announce(task, &program, flags, now) && adopted) {
		target_remove(tgid);
		bpf_map_delete_elem(&costs, &tgid);
	}
}

#endif
