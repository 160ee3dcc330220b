/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of an off-CPU interval: its record, and the thread's totals. */
#ifndef SAFESCOPED_OFF_BPF_H
#define SAFESCOPED_OFF_BPF_H

#include "maps.bpf.h"
#include "calls.bpf.h"
#include "hold.bpf.h"
#include "lost.bpf.h"

/* Adds an off-CPU interval to the thread's totals, and to its call site's if it waited for a
 * capability. */
SS_INLINE void off_account(struct wire_thread *seen, u64 now)
{
	u64 out = seen->off_since_ns, runnable = off_runnable(seen, now);

	calls_off(seen, now - out - runnable, runnable, seen->off_rts.flags & WIRE_RTS_SUSPENDING);
	if (seen->off_rts.where == WIRE_WHERE_RESUMING) {
		struct wire_site_key key = {
			.site = seen->resume_site, .tgid = seen->tgid, .flags = seen->resume_flags};
		struct wire_site *site = bpf_map_lookup_elem(&call_sites, &key);

		seen->cap_wait_ns += now - out;
		if (site)
			__sync_fetch_and_add(&site->cap_wait_ns, now - out);
	}
}

/*
 * A thread that has slept since before the session: if it was in a call when the session started,
 * it has been asleep for the whole call so far.
 */
SS_INLINE void off_before(const struct wire_target *t, struct wire_thread *seen, u32 tid, u64 now)
{
	struct wire_open_at_start *o;

	if (seen->on_since_ns)
		return;
	o = bpf_map_lookup_elem(&open_at_start, &tid);
	if (!o)
		return;
	o->epoch = t->epoch;
	if (o->start_ns < now)
		seen->blocked_ns += now - o->start_ns;
}

/* Keeps what is known of the thread's calls if the probes were off only while it slept. */
SS_INLINE void off_carry(const struct wire_target *t, struct wire_thread *seen, u32 tid)
{
	struct wire_open_at_start *o;

	if (!calls_carry(t, seen))
		return;
	o = bpf_map_lookup_elem(&open_at_start, &tid);
	if (o)
		o->epoch = t->epoch;
}

/* include/linux/sched/signal.h: the whole process is ending */
#define SIGNAL_GROUP_EXIT 4

/* True if the thread is still where it last left the CPU, and its calls were known then. */
SS_INLINE int off_as_left(const struct wire_thread *seen, struct task_struct *task)
{
	struct pt_regs *u = (struct pt_regs *)bpf_task_pt_regs(task);

	return seen->off_ip && seen->off_ip == ARCH_IP(u) &&
	       !(seen->off_rts.flags & WIRE_RTS_CALLS_UNKNOWN);
}

/* True for a thread that was killed in its sleep while the probes were off, on its way to its
 * exit. */
SS_INLINE int off_dies(const struct wire_target *t, const struct wire_thread *seen,
		       struct task_struct *task)
{
	return !calls_known(t, seen) && off_as_left(seen, task) &&
	       BPF_CORE_READ(task, signal, flags) & SIGNAL_GROUP_EXIT;
}

SS_INLINE void off_on_cpu(struct wire_thread *seen, u64 now)
{
	seen->off_since_ns = 0;
	seen->wake_ns = 0;
	seen->on_since_ns = now;
}

/* `id`: the thread, in the format of bpf_get_current_pid_tgid(). */
SS_GLOBAL int off_end_alone(struct wire_target *t, struct wire_thread_entry *e, struct scratch *s,
			    u64 id, u64 now)
{
	struct wire_off_stack *stack = 0;
	const struct wire_open *open;
	struct wire_thread *seen;
	struct wire_off *rec;
	u32 tid = id, n = 0;

	if (!t || !e || !s)
		return 0;
	seen = &e->th;
	rec = (struct wire_off *)s->rec;
	if (hold_may(t, e, now)) {
		off_account(seen, now);
		hold_add(e, now);
		off_carry(t, seen, tid);
		off_on_cpu(seen, now);
		return 0;
	}
	if (e->lost_since_ns && seen->off_since_ns)
		lost_send(e, s, id, seen->off_since_ns, e->out_ran_ns);
	open = seen->epoch ? calls_top(seen) : 0;
	off_fill(rec, seen, id, now);
	rec->out_ns = seen->off_since_ns;
	rec->wake_ns = seen->wake_ns;
	rec->site = open					 ? open->site
		    : seen->off_rts.where == WIRE_WHERE_RESUMING ? seen->resume_site
								 : 0;
	rec->call_start_ns = open ? open->start_ns : 0;
	if (seen->off_since_ns) {
		off_account(seen, now);
		hold_join(e, rec, now);
		if (seen->has_stack && now - seen->off_since_ns >= t->off_record_ns)
			stack = bpf_map_lookup_elem(&off_stacks, &tid);
	} else {
		off_before(t, seen, tid, now);
	}
	off_carry(t, seen, tid);
	if (stack) {
		n = stack->stack.nframes;
		if (n <= WIRE_OFF_FRAMES) {
			rec->stack = stack->stack;
			bpf_probe_read_kernel(s->rec + sizeof(*rec), n * sizeof(u64),
					      stack->frames);
		} else {
			n = 0;
		}
	}
	off_on_cpu(seen, now);
	if (ring_send(rec, sizeof(*rec), n) && rec->out_ns)
		lost_note(e, rec->out_ns);
	return 0;
}

/* The thread has been on the CPU again since `now`. */
SS_INLINE void off_end(struct wire_target *t, struct wire_thread *seen, struct scratch *s, u32 tgid,
		       u32 tid, u64 now)
{
	off_end_alone(t, thread_entry(seen), s, (u64)tgid << 32 | tid, now);
}

/*
 * For a thread that runs although no switch-in was seen: some kernels omit the sched_switch of
 * certain preempted threads (seen on a 6.18 guest kernel). Returns since when it has been on the
 * CPU: as long as it has run by the scheduler's account, which is exact at a switch and lags by at
 * most a tick in between. This matters at a low frequency, where the next sample may be far away.
 */
SS_INLINE u64 off_unseen_end(struct wire_thread *seen, struct task_struct *task, u64 now)
{
	u64 ran = task->se.sum_exec_runtime - thread_entry(seen)->out_ran_ns;
	u64 out = seen->off_since_ns, wake = seen->wake_ns, in = now - ran;

	count(WIRE_CNT_NO_SWITCH_IN);
	if (ran > now || in < out)
		in = out;
	if (wake > in && wake < now)
		in = wake;
	return in;
}

SS_INLINE void off_end_unseen(struct wire_target *t, struct wire_thread *seen, struct scratch *s,
			      struct task_struct *task, u64 now)
{
	u64 in = off_unseen_end(seen, task, now);

	off_end(t, seen, s, task->tgid, task->pid, in);
}

#endif
