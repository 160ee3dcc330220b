/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Short off-CPU intervals, of which a target has hundreds a second: the timer thread sleeps from
 * tick to tick, and each time it wakes it preempts a thread that runs Haskell code. If hold_for_ns
 * is set, they do not get a record each but are held back and added up. The sum becomes one record
 * that ends where something else of the thread is reported: a longer interval, one of another kind,
 * a sample, a call, its exit, or the end of a window. The time off the CPU, and the runnable part
 * of it, is exact; its position is off by up to hold_for_ns.
 */
#ifndef SAFESCOPED_HOLD_BPF_H
#define SAFESCOPED_HOLD_BPF_H

#include "maps.bpf.h"
#include "calls.bpf.h"
#include "lost.bpf.h"

/* The runnable part of the off-CPU interval that ends at `now`. */
SS_INLINE u64 off_runnable(const struct wire_thread *seen, u64 now)
{
	u64 out = seen->off_since_ns, wake = seen->wake_ns;

	if (wake < out || wake > now)
		wake = seen->off_state ? now : out;
	return now - wake;
}

/* True if the off-CPU interval that ends now may be held back. */
SS_INLINE int hold_may(const struct wire_target *t, const struct wire_thread_entry *e, u64 now)
{
	const struct wire_thread *seen = &e->th;
	u64 out = seen->off_since_ns, since = e->held_ns ? e->held_since_ns : out;

	if (!hold_for_ns || hold_paused || !out || seen->depth || now - since >= hold_for_ns)
		return 0;
	if (seen->off_state)
		return seen->tick_slept;
	return seen->off_rts.where == WIRE_WHERE_HASKELL && now - out < t->off_record_ns;
}

/* Adds the interval that ends now. Atomic, since a flush on another CPU may interfere. */
SS_INLINE void hold_add(struct wire_thread_entry *e, u64 now)
{
	u64 out = e->th.off_since_ns;

	if (!e->held_ns)
		e->held_since_ns = out;
	__sync_fetch_and_add(&e->held_runnable_ns, off_runnable(&e->th, now));
	__sync_fetch_and_add(&e->held_ns, now - out);
}

/* Takes the time held back; the caller must report it. */
SS_INLINE u64 hold_take(struct wire_thread_entry *e, u64 *ret_runnable)
{
	u64 all = __sync_lock_test_and_set(&e->held_ns, 0);
	u64 runnable = __sync_lock_test_and_set(&e->held_runnable_ns, 0);

	*ret_runnable = runnable < all ? runnable : all;
	return all;
}

/* Fills what is common to all off-CPU records that may take in intervals held back. */
SS_INLINE void off_fill(struct wire_off *rec, const struct wire_thread *seen, u64 id, u64 now)
{
	fill_header(&rec->h, WIRE_OFF, now, id >> 32, id);
	rec->rts = seen->off_rts;
	rec->ip = seen->off_ip;
	rec->syscall = seen->off_syscall;
	rec->prev_state = seen->off_state;
	rec->short_cpu_ns = calls_short_cpu(seen);
	__builtin_memset(&rec->stack, 0, sizeof(rec->stack));
}

/*
 * Merges the intervals held back into the record of an off-CPU interval, which becomes longer by
 * their sum, as does its final, runnable part.
 */
SS_INLINE void hold_join(struct wire_thread_entry *e, struct wire_off *rec, u64 now)
{
	u64 runnable, all;

	if (!e->held_ns || !rec->out_ns)
		return;
	all = hold_take(e, &runnable);
	runnable += off_runnable(&e->th, now);
	rec->out_ns -= all;
	if (!rec->prev_state)
		rec->wake_ns = rec->out_ns;
	else if (runnable)
		rec->wake_ns = now - runnable;
}

/* Sends the intervals held back as a record that ends at `end`. `id`: as in off_end_alone(). */
SS_GLOBAL int hold_send(struct wire_thread_entry *e, struct scratch *s, u64 id, u64 end)
{
	struct wire_off *rec;
	u64 all, runnable;

	if (!e || !s)
		return 0;
	all = hold_take(e, &runnable);
	/* if a record before these was lost, they are part of what lost_send() reports */
	if (!all || all > end || e->lost_since_ns)
		return 0;
	rec = (struct wire_off *)s->rec;
	off_fill(rec, &e->th, id, end);
	rec->out_ns = end - all;
	rec->wake_ns = !rec->prev_state ? rec->out_ns : runnable ? end - runnable : 0;
	rec->site = 0;
	rec->call_start_ns = 0;
	if (ring_send(rec, sizeof(*rec), 0))
		lost_note(e, end - all);
	return 0;
}

/* Called before something else of a thread that is on the CPU is reported. */
SS_INLINE void hold_end(struct wire_thread *seen, struct scratch *s, u32 tgid, u32 tid, u64 now)
{
	struct wire_thread_entry *e = thread_entry(seen);

	if (hold_for_ns && e->held_ns)
		hold_send(e, s, (u64)tgid << 32 | tid, now);
}

/* Like hold_end(), for a program that does not have a scratch slot. */
SS_INLINE void hold_end_here(struct wire_thread *seen, struct task_struct *task, u64 now)
{
	struct scratch *s;

	if (!hold_for_ns || !thread_entry(seen)->held_ns)
		return;
	s = scratch_claim();
	if (!s)
		return;
	hold_end(seen, s, task->tgid, task->pid, now);
	scratch_release(s);
}

/* ── of all threads ──────────────────────────────────────────────────────────────────────── */

struct hold_ctx {
	struct scratch *s;
	u64 now;
};

/*
 * If the thread is off the CPU, nothing was held back after it left, so the record ends there. If
 * it runs, it is not known since when.
 */
static long hold_each(void *map, u32 *tid, struct wire_thread_entry *e, struct hold_ctx *c)
{
	u64 out = e->th.off_since_ns, id = (u64)e->th.tgid << 32 | *tid;

	(void)map;
	if (e->lost_since_ns && out && c->s)
		lost_send(e, c->s, id, out, e->out_ran_ns);
	if (e->held_ns && c->s)
		hold_send(e, c->s, id, out && out < c->now ? out : c->now);
	return 0;
}

SS_INLINE void hold_end_all(u64 now)
{
	struct hold_ctx c = {.s = scratch_claim(), .now = now};

	if (!c.s)
		return;
	bpf_for_each_map_elem(&threads, hold_each, &c, 0);
	scratch_release(c.s);
}

#endif
