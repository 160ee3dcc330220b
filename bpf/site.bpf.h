/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The counters of each safe call site. */
#ifndef SAFESCOPED_SITE_BPF_H
#define SAFESCOPED_SITE_BPF_H

#include "maps.bpf.h"
#include "calls.bpf.h"
#include "hist.bpf.h"

SS_INLINE struct wire_site *site_get(const struct wire_site_key *key)
{
	struct wire_site *site = bpf_map_lookup_elem(&call_sites, key), *zero;
	struct wire_user *user;
	u32 slot;

	if (site)
		return site;
	slot = user_of(key->tgid);
	zero = bpf_map_lookup_elem(&zero_site, &slot);
	if (!zero)
		return 0;
	user = user_at(slot);
	if (!user_takes(&all_sites, &user->sites, WIRE_MAX_SITES)) {
		__sync_fetch_and_add(&user->refused_calls, 1);
		return 0;
	}
	zero->user = slot;
	if (bpf_map_update_elem(&call_sites, key, zero, BPF_NOEXIST)) {
		user_leaves(&all_sites, &user_at(slot)->sites);
		/* another thread may have created it just now */
		site = bpf_map_lookup_elem(&call_sites, key);
		if (!site)
			count(WIRE_CNT_LOST_SITES);
		return site;
	}
	return bpf_map_lookup_elem(&call_sites, key);
}

/* Sets *slot to v if v is less (`less`: a minimum) or more (a maximum) than the current value. */
SS_INLINE void site_bound(u64 *slot, u64 v, int less)
{
	u64 old = *slot, seen;

#pragma GCC unroll 4
	for (int i = 0; i < 4; i++) {
		/* a minimum of 0 means that there is none yet */
		if (less ? (old && old <= v) : old >= v)
			return;
		seen = __sync_val_compare_and_swap(slot, old, v);
		if (seen == old)
			return;
		old = seen;
	}
}

SS_INLINE void site_add(struct wire_site *site, const struct wire_open *call, u64 wall)
{
	u32 slot = hist_slot(wall);

	__sync_fetch_and_add(&site->calls, 1);
	__sync_fetch_and_add(&site->wall_ns, wall);
	if (call->handover_ns)
		__sync_fetch_and_add(&site->handover_ns, call->handover_ns);
	__sync_fetch_and_add(&site->blocked_ns, call->blocked_ns);
	__sync_fetch_and_add(&site->runnable_ns, call->runnable_ns);
	site_bound(&site->min_ns, wall, 1);
	site_bound(&site->max_ns, wall, 0);
	ss_barrier(slot);
	if (slot < WIRE_HIST_SLOTS)
		__sync_fetch_and_add(&site->hist[slot], 1);
}

/* A call that will never return. `exit`: because the process ends, `wall` ns into the call. */
SS_GLOBAL int site_abandoned(u32 tgid, u64 site_addr, u32 flags, int exit, u64 wall)
{
	struct wire_site_key key = {
		.site = site_addr, .tgid = tgid, .flags = flags & WIRE_CALL_INTERRUPTIBLE};
	struct wire_site *site = site_get(&key);

	if (!site)
		return 0;
	__sync_fetch_and_add(exit ? &site->open_at_exit : &site->abandoned, 1);
	if (exit)
		__sync_fetch_and_add(&site->exit_wall_ns, wall);
	return 0;
}

/* A call from there has called back. Creates no entry. */
SS_GLOBAL int site_calls_back(u32 tgid, u64 site_addr, u32 flags)
{
	struct wire_site_key key = {
		.site = site_addr, .tgid = tgid, .flags = flags & WIRE_CALL_INTERRUPTIBLE};
	struct wire_site *site = bpf_map_lookup_elem(&call_sites, &key);

	if (site)
		site->calls_back = 1;
	return 0;
}

/* A call that has returned, with its off-CPU times in place of the thread's totals. Returns 1 if
 * calls from there call back, else 0. */
SS_GLOBAL int site_finished(u32 tgid, const struct wire_open *call, u64 now)
{
	struct wire_site *site;

	if (!call)
		return 0;
	struct wire_site_key key = {
		.site = call->site, .tgid = tgid, .flags = call->flags & WIRE_CALL_INTERRUPTIBLE};
	site = site_get(&key);
	if (!site)
		return !!(call->flags & WIRE_CALL_CALLED_BACK);
	if (call->flags & WIRE_CALL_CALLED_BACK)
		site->calls_back = 1;
	site_add(site, call, calls_wall(call, now));
	return !!site->calls_back;
}

struct site_open_ctx {
	const struct wire_thread_entry *e;
	u64 exit_ns;
	u32 from, to;
};

static long site_open_next(u32 i, void *ctx)
{
	struct site_open_ctx *c = ctx;
	const struct wire_open *call;

	i += c->from;
	if (i >= c->to || i >= WIRE_OPEN_MAX)
		return 1;
	i &= WIRE_OPEN_MAX - 1;
	ss_barrier(i);
	call = &c->e->th.open[i & (WIRE_OPEN_MAX - 1)];
	site_abandoned(c->e->th.tgid, call->site, call->flags, c->exit_ns != 0,
		       calls_wall(call, c->exit_ns));
	return 0;
}

/* The thread's open calls with an index in [from, to) will never return; see site_abandoned().
 * exit_ns: when the process ended; 0: it goes on. */
SS_GLOBAL int site_open_abandoned(const struct wire_thread_entry *e, u32 from, u32 to, u64 exit_ns)
{
	struct site_open_ctx c = {.e = e, .exit_ns = exit_ns, .from = from, .to = to};

	if (!e)
		return 0;
	ss_loop(WIRE_OPEN_MAX, site_open_next, &c);
	return 0;
}

#endif
