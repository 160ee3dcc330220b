/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the programs cost a target. The kernel keeps an account of each program's run time, but for
 * all processes together; so one run in 16 is timed, and stands for that many; at collections each
 * is. Which one depends on the time at which it begins, hashed, since runs alternate (a thread that
 * leaves the CPU comes back) and a clock may advance in steps.
 */
#ifndef SAFESCOPED_COST_BPF_H
#define SAFESCOPED_COST_BPF_H

#include "maps.bpf.h"

#define COST_SHIFT 4 /* 16 = 1 << 4 */

/* True if the run that began at `now` is to be timed. */
SS_INLINE int cost_is_due(u64 now)
{
	return !((now * 0x9e3779b97f4a7c15ULL) >> (64 - COST_SHIFT));
}

SS_INLINE void cost_add(u32 tgid, u64 ns)
{
	struct wire_cost *c = bpf_map_lookup_elem(&costs, &tgid);

	if (c)
		__sync_fetch_and_add(&c->bpf_ns, ns << COST_SHIFT);
}

/* The run for this process, which began at `now`, ends here. */
SS_INLINE void cost_end(u32 tgid, u64 now)
{
	if (cost_is_due(now))
		cost_add(tgid, bpf_ktime_get_ns() - now);
}

/* Like cost_end(), for a probe on a call. */
SS_INLINE void cost_end_call(u32 tgid, u64 now)
{
	struct wire_cost *c;
	u64 ns;

	if (!cost_is_due(now))
		return;
	c = bpf_map_lookup_elem(&costs, &tgid);
	if (!c)
		return;
	ns = (bpf_ktime_get_ns() - now) << COST_SHIFT;
	__sync_fetch_and_add(&c->bpf_ns, ns);
	__sync_fetch_and_add(&c->call_ns, ns);
}

/*
 * Like cost_end(), for a probe on collections. Each run is timed: how long it takes depends on how
 * deep the target's stacks are, and the budget needs to know within a few hits.
 */
SS_INLINE void cost_end_gc(u32 tgid, u64 now)
{
	struct wire_cost *c = bpf_map_lookup_elem(&costs, &tgid);
	u64 ns;

	if (!c)
		return;
	ns = bpf_ktime_get_ns() - now;
	__sync_fetch_and_add(&c->bpf_ns, ns);
	__sync_fetch_and_add(&c->gc_ns, ns);
}

#endif
