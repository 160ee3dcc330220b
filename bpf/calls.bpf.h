/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The stack of open safe calls of one thread. No maps and no clock in here, so that it runs in the
 * unit tests as it runs in the kernel.
 *
 * A call is told by its InCall: the thread's Task has one InCall for each level of call-back, and
 * an InCall can have one suspended thread. A begin with the InCall of an open call means that
 * that call, and all above it, never came back (longjmp out of C, or the Haskell thread was
 * replaced); an end takes everything above its own InCall with it.
 */
#ifndef SAFESCOPED_CALLS_BPF_H
#define SAFESCOPED_CALLS_BPF_H

#include "wire.h"
#include "mem.bpf.h"

/* Index of the open call with this InCall, the topmost; -1: none. */
SS_INLINE int calls_find(const struct wire_thread *th, u64 incall)
{
	int found = -1;
	u32 i;

#pragma GCC unroll 16
	for (i = 0; i < WIRE_OPEN_MAX; i++)
		if (i < th->depth && th->open[i].incall == incall)
			found = i;
	return found;
}

enum calls_result {
	CALLS_OK = 0,
	CALLS_OVERFLOW = 1,  /* too deep: not followed */
	CALLS_UNMATCHED = 2, /* no such call is open */
};

/* A call begins. *ret_abandoned: calls that are now known never to have come back. */
SS_INLINE int calls_begin(struct wire_thread *th, u64 now, u64 site, u64 incall, u32 cap_no,
			  u32 flags, u32 *ret_abandoned)
{
	int same = calls_find(th, incall);
	struct wire_open *o;
	u32 i;

	*ret_abandoned = 0;
	if (same >= 0) {
		*ret_abandoned = th->depth - same;
		th->depth = same;
	}
	i = th->depth;
	if (i >= WIRE_OPEN_MAX)
		return CALLS_OVERFLOW;
	ss_barrier(i);
	o = &th->open[i & (WIRE_OPEN_MAX - 1)];
	o->start_ns = now;
	o->site = site;
	o->incall = incall;
	o->blocked_ns = th->blocked_ns;
	o->runnable_ns = th->runnable_ns;
	o->cap_no = cap_no;
	o->flags = flags;
	th->depth = i + 1;
	return CALLS_OK;
}

/* A call ends; it is copied to *ret_call, with its off-CPU times instead of the totals. */
SS_INLINE int calls_end(struct wire_thread *th, u64 incall, struct wire_open *ret_call,
			u32 *ret_abandoned)
{
	int i = calls_find(th, incall);
	struct wire_open *o;
	u32 slot;

	*ret_abandoned = 0;
	if (i < 0)
		return CALLS_UNMATCHED;
	*ret_abandoned = th->depth - 1 - i;
	th->depth = i;
	slot = i;
	ss_barrier(slot);
	o = &th->open[slot & (WIRE_OPEN_MAX - 1)];
	*ret_call = *o;
	ret_call->blocked_ns = th->blocked_ns - o->blocked_ns;
	ret_call->runnable_ns = th->runnable_ns - o->runnable_ns;
	o->incall = 0;
	return CALLS_OK;
}

/* The innermost open call; NULL if there is none. */
SS_INLINE const struct wire_open *calls_top(const struct wire_thread *th)
{
	u32 i = th->depth;

	if (i == 0 || i > WIRE_OPEN_MAX)
		return 0;
	i--;
	ss_barrier(i);
	return &th->open[i & (WIRE_OPEN_MAX - 1)];
}

#endif
