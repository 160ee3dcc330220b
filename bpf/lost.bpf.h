/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Off-CPU intervals for which the ring had no room, for example because the daemon is frozen.
 * Without their records the thread would seem to have run all the time. Between the first lost
 * interval and the next record that is sent, only the thread's CPU time is known, from the
 * scheduler's account. The rest of that time becomes a single interval of which nothing else is
 * known.
 */
#ifndef SAFESCOPED_LOST_BPF_H
#define SAFESCOPED_LOST_BPF_H

#include "maps.bpf.h"

/* The record of an off-CPU interval that started at `since` was lost. */
SS_INLINE void lost_note(struct wire_thread_entry *e, u64 since)
{
	if (e->lost_since_ns)
		return;
	e->lost_ran_ns = e->out_ran_ns;
	e->lost_since_ns = since;
}

/*
 * Sends a record for the lost intervals. The time to be covered ends at `end`; by then the thread
 * had run for `ran`. As it is not known when it ran, the CPU time is put last. `id`: the thread, in
 * the format of bpf_get_current_pid_tgid().
 */
SS_GLOBAL int lost_send(struct wire_thread_entry *e, struct scratch *s, u64 id, u64 end, u64 ran)
{
	struct wire_off *rec;
	u64 since, on;

	if (!e || !s)
		return 0;
	/* a flush on another CPU may have come first */
	since = __sync_lock_test_and_set(&e->lost_since_ns, 0);
	on = ran - e->lost_ran_ns;
	if (!since || since >= end || ran < e->lost_ran_ns || on >= end - since)
		return 0;
	/* intervals held back meanwhile are included */
	e->held_ns = 0;
	e->held_runnable_ns = 0;
	rec = (struct wire_off *)s->rec;
	__builtin_memset(rec, 0, sizeof(*rec));
	fill_header(&rec->h, WIRE_OFF, end - on, id >> 32, id);
	rec->out_ns = since;
	rec->prev_state = 1; /* TASK_INTERRUPTIBLE */
	rec->syscall = WIRE_NO_SYSCALL;
	rec->rts.where = WIRE_WHERE_UNKNOWN;
	if (ring_send(rec, sizeof(*rec), 0))
		e->lost_since_ns = since;
	return 0;
}

#endif
