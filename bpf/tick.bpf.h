/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ticks of the RTS timer, with the state of every capability. They come from a probe on the handler
 * or, if no symbol names it, from the timer thread going back to sleep.
 */
#ifndef SAFESCOPED_TICK_BPF_H
#define SAFESCOPED_TICK_BPF_H

#include "maps.bpf.h"

struct tick_ctx {
	const struct wire_target *t;
	struct wire_tick_cap *caps;
	u64 only; /* the only capability; 0: they are in the array */
	u64 array;
	u32 n;
	u32 max;
};

static long tick_cap(u32 i, void *ctx)
{
	struct tick_ctx *c = ctx;
	const struct wire_layout *l = &c->t->layout;
	struct wire_tick_cap *out;
	u64 cap = c->only, tso = 0, id = 0, holder = 0;
	u32 queued = 0;
	u8 byte = 0;

	if (i >= c->max || (!cap && mem_u64(0, &cap, c->array + 8ULL * i)) || !cap)
		return 1;
	i &= WIRE_TICK_CAPS - 1;
	ss_barrier(i);
	out = &c->caps[i & (WIRE_TICK_CAPS - 1)];
	__builtin_memset(out, 0, sizeof(*out));
	mem_read(0, &out->no, sizeof(out->no), cap + l->cap_no);
	if (!mem_u64(0, &tso, cap + l->cap_current_tso) && tso &&
	    !mem_uint(0, &id, tso + l->tso_id, l->tso_id_size))
		out->tso_id = id;
	if (c->t->flags & WIRE_TARGET_PROFILED)
		mem_u64(0, &out->cccs, cap + l->cap_cccs);
	if (!mem_read(0, &byte, 1, cap + l->cap_in_haskell))
		out->in_haskell = byte;
	if (!mem_read(0, &byte, 1, cap + l->cap_disabled))
		out->disabled = byte;
	if (!mem_u64(0, &holder, cap + l->cap_running_task))
		out->has_task = !!holder;
	if (!mem_read(0, &queued, sizeof(queued), cap + l->cap_n_run_queue))
		out->queued = queued < 255 ? queued : 255;
	c->n = i + 1;
	return 0;
}

/* Overwrites s->rec. `id`: the thread, in the format of bpf_get_current_pid_tgid(). */
SS_GLOBAL int tick_send(const struct wire_target *t, struct scratch *s, u64 id, u64 now)
{
	struct tick_ctx c = {};
	struct wire_tick *rec;
	u32 n = 0, size;

	if (!t || !s)
		return 0;
	rec = (struct wire_tick *)s->rec;
	fill_header(&rec->h, WIRE_TICK, now, id >> 32, id);
	c.t = t;
	c.caps = (struct wire_tick_cap *)(s->rec + sizeof(*rec));
	/* without -threaded; in a program without symbols only its address is known */
	c.only = t->main_cap;
	if (c.only)
		n = ss_opaque(1, now);
	else if (t->n_capabilities && t->capabilities)
		mem_read(0, &n, sizeof(n), t->n_capabilities);
	rec->enabled = n;
	c.max = n < WIRE_TICK_CAPS ? n : WIRE_TICK_CAPS;
	c.array = t->capabilities;
	if (c.max && !c.only && !(t->flags & WIRE_TARGET_CAPS_ARRAY) &&
	    mem_u64(0, &c.array, t->capabilities))
		c.max = 0;
	ss_loop(WIRE_TICK_CAPS, tick_cap, &c);
	n = c.n;
	if (n > WIRE_TICK_CAPS)
		n = WIRE_TICK_CAPS;
	rec->ncaps = n;
	size = sizeof(*rec) + n * (u32)sizeof(struct wire_tick_cap);
	rec->h.size = size;
	ring_put(rec, size, ring_wakeup());
	return 0;
}

/* ── by the timer's thread ───────────────────────────────────────────────────────────────── */

/* arch/x86/entry/syscalls/syscall_64.tbl: system calls in which the timer thread waits for a
 * tick. */
#define TICK_SYS_READ		 0
#define TICK_SYS_POLL		 7
#define TICK_SYS_NANOSLEEP	 35
#define TICK_SYS_CLOCK_NANOSLEEP 230
#define TICK_SYS_PPOLL		 271

SS_INLINE int tick_waits(u32 syscall)
{
	return syscall == TICK_SYS_READ || syscall == TICK_SYS_POLL ||
	       syscall == TICK_SYS_NANOSLEEP || syscall == TICK_SYS_CLOCK_NANOSLEEP ||
	       syscall == TICK_SYS_PPOLL;
}

/* rts/posix/: the name that the runtime gives its timer thread, "ghc_ticker". Not inlined: a switch
 * has no stack to spare for the name. */
SS_NOINLINE int is_ticker(const struct task_struct *task)
{
	char name[16] __attribute__((aligned(8))) = {};

	bpf_probe_read_kernel(name, sizeof(name), task->comm);
	return *(u64 *)name == 0x6b6369745f636867ULL && *(u32 *)(name + 8) == 0x7265;
}

/*
 * The thread waits for the timer, handles the tick, and waits again (GHC
 * rts/posix/itimer/Pthread.c, later rts/posix/ticker/): two such sleeps in a row enclose one tick.
 * While the timer is stopped it waits for a condition variable instead, and handles no tick before
 * its next sleep.
 */
SS_INLINE void tick_thread_out(struct wire_target *t, struct wire_thread *seen, struct scratch *s,
			       struct task_struct *task, u64 now)
{
	u32 slept = seen->tick_slept;

	if (!(t->flags & WIRE_TARGET_TICK_THREAD) || (t->flags & WIRE_TARGET_UNCONFIRMED) ||
	    !seen->off_state || (!slept && !is_ticker(task)))
		return;
	seen->tick_slept = tick_waits(seen->off_syscall);
	if (slept && seen->tick_slept && (tick_every <= 1 || !(bpf_get_prandom_u32() % tick_every)))
		tick_send(t, s, (u64)task->tgid << 32 | task->pid, now);
}

#endif
