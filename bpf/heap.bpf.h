/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The heap, read from the runtime's own structures: what a capability has allocated, why it
 * requests a collection and for which thread, how large the generations are.
 *
 * A capability allocates in its nursery, block by block. total_allocated has the blocks that are
 * finished, and large objects; the blocks in use (rCurrentNursery, rCurrentAlloc) are added when a
 * collection starts (GHC rts/sm/Storage.h, finishedNurseryBlock; rts/Stats.c, stat_startGC). At the
 * end of a collection it is therefore the amount that `+RTS -t` adds up.
 *
 * The offsets below are the same in 8.10 to 9.14; scripts/ghc-layout.c compares them with the
 * headers of each release that is added to the table.
 */
#ifndef SAFESCOPED_HEAP_BPF_H
#define SAFESCOPED_HEAP_BPF_H

#include "wire.h"
#include "rts.bpf.h"

/* Capability.r (rts/include/stg/Regs.h): offsets after rNursery, and before rCCCS */
#define HEAP_CURRENT_NURSERY 8
#define HEAP_CURRENT_ALLOC   16
#define HEAP_HP_LIM	     8
/* rts/include/rts/storage/ClosureTypes.h: THUNK to THUNK_STATIC */
#define HEAP_THUNK	15
#define HEAP_THUNK_LAST 21
/* The runtime's assembly code is a single piece smaller than this. */
#define HEAP_NEAR (1ULL << 20)
/* rts/Task.h: InCall.tso, for a thread called from outside */
#define HEAP_INCALL_TSO 0
/* rts/Capability.h: offset of mut_lists, an array of lists of blocks, from run_queue_hd */
#define HEAP_CAP_MUT_LISTS 40
/* rts/include/rts/storage/GC.h, nursery: 4 kB blocks */
#define HEAP_NURSERY_BLOCKS 8
#define HEAP_BLOCK_SIZE	    4096
/* rts/include/rts/storage/Block.h, bdescr */
#define HEAP_BD_START 0
#define HEAP_BD_FREE  8
#define HEAP_BD_LINK  16
#define HEAP_BD_GEN   32
/* rts/include/rts/storage/GC.h, generation */
#define HEAP_GEN_BLOCKS		16 /* n_blocks, n_words */
#define HEAP_GEN_LARGE		40 /* n_large_blocks, n_large_words */
#define HEAP_GEN_NEW_LARGE	56 /* youngest generation: words since the last collection */
#define HEAP_GEN_COMPACT_BLOCKS 72
#define HEAP_GEN_THREADS	104 /* its Haskell threads, linked by global_link */
#define HEAP_GEN_TO		120 /* where survivors go: the next one; oldest: itself */
/* rts/include/RtsAPI.h, RTSStats: max_mem_in_use_bytes, gc.mem_in_use_bytes */
#define HEAP_STATS_MOST	    48
#define HEAP_STATS_HELD	    208
#define HEAP_MEGABLOCK_LOG2 20

SS_INLINE int heap_known(const struct wire_layout *l)
{
	return l->cap_nursery && l->cap_run_queue && l->cap_total_allocated;
}

/* Bytes that a capability has allocated, without the blocks in use. Returns 0 or -1. */
SS_INLINE long heap_allocated(struct mem *mem, const struct wire_layout *l, u64 cap, u64 *ret_bytes)
{
	u64 words = 0;

	if (mem_u64(mem, &words, cap + l->cap_total_allocated) || words >> 56)
		return -1;
	*ret_bytes = words * 8;
	return 0;
}

/* Bytes used in the block whose descriptor is pointed to by the word at `at`; 0: none, or not
 * readable. */
SS_INLINE u64 heap_block_used(struct mem *mem, u64 at)
{
	u64 bd = 0, place[2] = {};

	if (mem_u64(mem, &bd, at) || !bd ||
	    mem_read(mem, place, sizeof(place), bd + HEAP_BD_START) || place[1] < place[0] ||
	    place[1] - place[0] > HEAP_BLOCK_SIZE)
		return 0;
	return place[1] - place[0];
}

/* Bytes used in the capability's current blocks; only before a collection has started. */
SS_INLINE u64 heap_in_use(struct mem *mem, const struct wire_layout *l, u64 cap)
{
	u64 r = cap + l->cap_nursery;

	return heap_block_used(mem, r + HEAP_CURRENT_NURSERY) +
	       heap_block_used(mem, r + HEAP_CURRENT_ALLOC);
}

/* The size of a capability's nursery in bytes; 0: not readable. */
SS_INLINE u64 heap_nursery(struct mem *mem, const struct wire_layout *l, u64 cap)
{
	u64 nursery = 0, blocks = 0;

	if (mem_u64(mem, &nursery, cap + l->cap_nursery) ||
	    mem_u64(mem, &blocks, nursery + HEAP_NURSERY_BLOCKS) || blocks >> 36)
		return 0;
	return blocks * HEAP_BLOCK_SIZE;
}

/* The youngest generation, which owns all nursery blocks; 0: not readable. */
SS_INLINE u64 heap_youngest(struct mem *mem, const struct wire_layout *l, u64 cap)
{
	u64 bd = 0, gen = 0;

	if (mem_u64(mem, &bd, cap + l->cap_nursery + HEAP_CURRENT_NURSERY) || !bd ||
	    mem_u64(mem, &gen, bd + HEAP_BD_GEN))
		return 0;
	return gen;
}

/* Words of large objects allocated by all capabilities since the last collection. */
SS_INLINE u64 heap_new_large(struct mem *mem, const struct wire_layout *l, u64 cap)
{
	u64 gen = heap_youngest(mem, l, cap), words = 0;

	if (!gen || mem_u64(mem, &words, gen + HEAP_GEN_NEW_LARGE) || words >> 48)
		return 0;
	return words;
}

/*
 * The Haskell thread that the capability ran last, and has put back into its queue: at the tail if
 * it was asked to let others run, which HpLim shows until all capabilities are stopped
 * (rts/Schedule.c, scheduleHandleHeapOverflow), else at the head. 0: there is none.
 */
SS_INLINE u64 heap_ran_last(struct mem *mem, const struct wire_layout *l, u64 cap, int by_hp_lim)
{
	u64 at = cap + l->cap_run_queue, lim = 1, tso = 0;
	u32 n = 0;

	if (mem_read(mem, &n, sizeof(n), cap + l->cap_n_run_queue) || !n)
		return 0;
	if (by_hp_lim && !mem_u64(mem, &lim, cap + l->cap_cccs - HEAP_HP_LIM) && !lim)
		at += 8;
	if (mem_u64(mem, &tso, at) || stg_object_type(mem, tso) != STG_TSO)
		return 0;
	return tso;
}

/* True if the thread has run since the last collection, which leaves no stack dirty. */
SS_INLINE int heap_has_run(struct mem *mem, const struct wire_layout *l, u64 tso)
{
	u64 stack = 0;
	u8 dirty = 0;

	return !mem_u64(mem, &stack, tso + l->tso_stackobj) &&
	       !mem_read(mem, &dirty, 1, stack + l->stack_size + 4) && dirty;
}

/*
 * The code in which a heap check failed, if only the thread's topmost frame shows it: a function
 * that is to be called again (stg_gc_fun, a RET_FUN), or a thunk that is to be entered again
 * (stg_enter: one pointer, to a thunk). GHC rts/HeapStackCheck.cmm. 0: the frame below is the one
 * that allocates.
 */
SS_INLINE u64 heap_checked_code(struct mem *mem, u64 sp)
{
	u64 frame[3] = {}, closure, info = 0;
	u32 type = 0;

	if (mem_read(mem, frame, sizeof(frame), sp) ||
	    mem_read(mem, &type, sizeof(type), frame[0] - 8))
		return 0;
	if (type == STG_RET_FUN)
		closure = frame[2] & ~7ULL;
	else if (type == STG_RET_SMALL && !(frame[1] & 7))
		closure = frame[1];
	else
		return 0;
	if (!closure || mem_u64(mem, &info, closure))
		return 0;
	if (type == STG_RET_FUN)
		return info;
	/* for another kind of frame the word does not point to a thunk, and this read has no
	 * effect */
	if (mem_read(mem, &type, sizeof(type), info - 8) || type < HEAP_THUNK ||
	    type > HEAP_THUNK_LAST)
		return 0;
	return info;
}

/*
 * True if the topmost frame belongs to a primitive operation, which is retried after the
 * collection: one word of the frame is the address of the operation (GHC rts/HeapStackCheck.cmm,
 * stg_gc_prim and similar), in the runtime's code, like the frame's own return address.
 */
SS_INLINE int heap_in_primitive(struct mem *mem, u64 sp)
{
	u64 frame[4] = {}, layout = 0;
	u32 type = 0, n;
	int found = 0;

	if (mem_read(mem, frame, sizeof(frame), sp) ||
	    mem_read(mem, &type, sizeof(type), frame[0] - 8) || type != STG_RET_SMALL ||
	    mem_u64(mem, &layout, frame[0] - 16))
		return 0;
	n = layout & 63;
#pragma GCC unroll 3
	for (u32 i = 1; i < 4; i++)
		if (i <= n && n < 4 && frame[i] - frame[0] + HEAP_NEAR < 2 * HEAP_NEAR)
			found = 1;
	return found;
}

/* Why the holder of the capability, in that in-call, requests a collection. */
SS_INLINE u32 heap_reason(struct mem *mem, const struct wire_layout *l, u64 cap, u64 incall)
{
	u64 tso = 0, prev = 0, bd = 0, link = 0;
	u32 n = 0;

	/* performGC has an in-call of its own, without a thread (rts/Schedule.c, performGC_) */
	if (incall && !mem_u64(mem, &tso, incall + HEAP_INCALL_TSO) && !tso &&
	    !mem_u64(mem, &prev, incall + l->incall_prev_stack) && prev)
		return WIRE_ALLOC_FORCED;
	if (mem_read(mem, &n, sizeof(n), cap + l->cap_n_run_queue))
		return WIRE_ALLOC_UNKNOWN;
	if (!n)
		return WIRE_ALLOC_IDLE;
	if (mem_u64(mem, &bd, cap + l->cap_nursery + HEAP_CURRENT_NURSERY) || !bd ||
	    mem_u64(mem, &link, bd + HEAP_BD_LINK))
		return WIRE_ALLOC_UNKNOWN;
	if (!link)
		return WIRE_ALLOC_NURSERY;
	return heap_new_large(mem, l, cap) ? WIRE_ALLOC_LARGE : WIRE_ALLOC_OTHER;
}

struct heap_threads {
	struct mem *mem;
	u64 gen, at, info; /* info: info pointer of TSOs; 0: none has been seen */
	u32 link, n, whole;
};

static long heap_thread(u32 i, void *ctx)
{
	struct heap_threads *c = ctx;
	u64 info = 0, to = 0;

	(void)i;
	if (mem_u64(c->mem, &info, c->at))
		return 1;
	if (!c->info && stg_object_type(c->mem, c->at) == STG_TSO)
		c->info = info;
	if (info == c->info) {
		c->n++;
		return mem_u64(c->mem, &c->at, c->at + c->link) != 0;
	}
	/* a closure of another type ends the list */
	if (mem_u64(c->mem, &to, c->gen + HEAP_GEN_TO))
		return 1;
	c->whole = to == c->gen;
	c->gen = to;
	return c->whole || mem_u64(c->mem, &c->at, to + HEAP_GEN_THREADS);
}

/*
 * Number of Haskell threads in all generations, while nothing runs. WIRE_HEAP_THREADS: that many or
 * more; 0: not readable.
 */
SS_INLINE u32 heap_count_threads(struct mem *mem, const struct wire_layout *l, u64 cap)
{
	struct heap_threads c = {.mem = mem};

	c.gen = heap_youngest(mem, l, cap);
	c.link = l->tso_stackobj - 8;
	if (!c.gen || mem_u64(mem, &c.at, c.gen + HEAP_GEN_THREADS))
		return 0;
	ss_loop(WIRE_HEAP_THREADS + WIRE_HEAP_GENS, heap_thread, &c);
	if (c.n > WIRE_HEAP_THREADS)
		c.n = WIRE_HEAP_THREADS;
	return c.whole || c.n == WIRE_HEAP_THREADS ? c.n : 0;
}

/*
 * Megablocks of 1 MB that the runtime held from the system at the end of the previous collection,
 * from its RTSStats; 0: not known. Values that are not whole megablocks, or exceed the maximum so
 * far, are rejected: the fields must be something else.
 */
SS_INLINE u32 heap_held(struct mem *mem, u64 stats)
{
	u64 held = 0, most = 0;

	if (!stats || mem_u64(mem, &held, stats + HEAP_STATS_HELD) ||
	    mem_u64(mem, &most, stats + HEAP_STATS_MOST) || held > most || most >> 52 ||
	    ((held | most) & ((1ULL << HEAP_MEGABLOCK_LOG2) - 1)))
		return 0;
	return held >> HEAP_MEGABLOCK_LOG2;
}

/* Reads the generations, youngest first; returns their number. */
SS_INLINE u32 heap_generations(struct mem *mem, const struct wire_layout *l, u64 cap,
			       struct wire_heap_gen *gens)
{
	u64 gen = heap_youngest(mem, l, cap), to = 0;
	u32 n = 0;

#pragma GCC unroll 4
	for (u32 i = 0; i < WIRE_HEAP_GENS; i++) {
		struct wire_heap_gen *out = &gens[i];

		if (!gen || mem_read(mem, &out->n_blocks, 16, gen + HEAP_GEN_BLOCKS) ||
		    mem_read(mem, &out->n_large_blocks, 16, gen + HEAP_GEN_LARGE) ||
		    mem_u64(mem, &out->n_compact_blocks, gen + HEAP_GEN_COMPACT_BLOCKS) ||
		    mem_u64(mem, &to, gen + HEAP_GEN_TO))
			return n;
		n++;
		if (to == gen)
			return n;
		gen = to;
	}
	return n;
}

#endif
