/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What samples of allocation rely on: each capability is in a block of its nursery, which is of
 * generation 0; its run queue holds TSOs; and all capabilities together have allocated no less than
 * the runtime counted at the last collection (rts/Stats.c, RTSStats.allocated_bytes).
 */
#include "check_alloc_priv.h"

#include "process/mem.h"

/* rts/include/rts/storage/Block.h, GC.h: as in bpf/heap.bpf.h */
#define CURRENT_NURSERY 8
#define BD_START	0
#define BD_GEN		32
#define GEN_NO		0
#define BLOCK_SIZE	4096
/* rts/include/RtsAPI.h, RTSStats: two numbers of collections, then bytes */
#define STATS_ALLOCATED 8
/* More words than any capability allocates, but less than an address. */
#define MAX_WORDS (1ULL << 46)

/* The process runs: its current block may change before it is read. */
static bool nursery_holds(pid_t pid, uint64_t cap, const struct layout *l)
{
	uint64_t bd, place[2], gen;
	uint32_t no;

	if (mem__read_u64(pid, cap + l->wire.cap_nursery + CURRENT_NURSERY, &bd) < 0 || !bd ||
	    (bd & 7) || mem__read(pid, bd + BD_START, place, sizeof(place)) < 0 ||
	    mem__read_u64(pid, bd + BD_GEN, &gen) < 0 || mem__read_u32(pid, gen + GEN_NO, &no) < 0)
		return false;
	return place[0] && place[0] % BLOCK_SIZE == 0 && no == 0;
}

static bool queue_holds(pid_t pid, uint64_t cap, const struct layout *l)
{
	uint64_t head, after;
	uint32_t n;

	if (mem__read_u32(pid, cap + l->wire.cap_n_run_queue, &n) < 0 ||
	    mem__read_u64(pid, cap + l->wire.cap_run_queue, &head) < 0 || !head)
		return false;
	if (!n || check__tso(pid, l, head))
		return true;
	return mem__read_u64(pid, cap + l->wire.cap_run_queue, &after) == 0 && after != head;
}

bool check__alloc(pid_t pid, const struct rts *rts, const struct check_result *r)
{
	const struct layout *l = &r->layout;
	uint64_t counted = 0, words, all = 0;

	if (!l->wire.cap_nursery || !l->wire.cap_run_queue || !l->wire.cap_total_allocated ||
	    !l->wire.cap_n_run_queue)
		return false;
	/* read first, because it only grows */
	if (rts->stats.addr && mem__read_u64(pid, rts->stats.addr + STATS_ALLOCATED, &counted) < 0)
		return false;
	for (uint32_t i = 0; i < r->n_caps; i++) {
		uint64_t cap = r->caps[i];

		if (mem__read_u64(pid, cap + l->wire.cap_total_allocated, &words) < 0 ||
		    words >= MAX_WORDS || !nursery_holds(pid, cap, l) || !queue_holds(pid, cap, l))
			return false;
		all += words;
	}
	return 8 * all >= counted;
}
