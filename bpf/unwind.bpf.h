/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The C stack, frame by frame, by the unwind rows that user space derives from .eh_frame
 * (wire_unwind.h).
 *
 * Haskell code has no rows: at a return address without one the walk stops, and the caller checks
 * whether it is in Haskell code. Return addresses are looked up at the byte before them, since the
 * call may be the last instruction of its function. An interrupted frame (below a signal handler)
 * is looked up at its own address.
 *
 * The same C runs in BPF and natively; see mem.bpf.h.
 */
#ifndef SAFESCOPED_UNWIND_BPF_H
#define SAFESCOPED_UNWIND_BPF_H

#include "wire.h"
#include "mem.bpf.h"
#include "stg.bpf.h"

/* Limit on C frames walked in one part of a stack. */
#define UNW_MAX_FRAMES 64
/* Steps of a binary search over WIRE_UNWIND_MAPS, and over the rows of one bucket. */
#define UNW_MAP_STEPS 9
#define UNW_ROW_STEPS 16

enum unw_result {
	UNW_GOING = 0,
	UNW_END = 1,	/* start of the thread */
	UNW_NO_ROW = 2, /* pc is not in code with rows; sp and bp are the caller's */
	UNW_FAIL = 3,	/* see cause */
};

/* The state of one walk: in a map, like struct stg_walk. */
struct unw {
	u64 pc;	    /* address to be looked up next */
	u64 ra;	    /* the return address from which pc was derived */
	u64 sp, bp; /* of the frame that pc is in */
	u64 rdi;    /* the innermost frame's */
	u64 find;   /* key of the current search */
	u32 lo, hi;
	u32 file, rows; /* file that is searched, and index of its first row */
	u32 map;	/* index of the mapping that contained the last pc */
	u32 rule;
	u8 put; /* pc came from a return address, which becomes a frame once its row is found */
	u8 bp_known; /* bp has the right value */
	u8 result;   /* enum unw_result */
	u8 cause;    /* enum wire_cause */
};

#ifdef __bpf__

struct unw_rows {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_INNER_MAP | BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, WIRE_UNWIND_FILES);
	__type(key, u32);
	__array(values, struct unw_rows);
} unwind_files SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, struct wire_unwind_maps);
} unwind_maps SEC(".maps");

SS_INLINE const u64 *unw_row(const struct stg *g, u32 file, u32 key)
{
	void *rows = bpf_map_lookup_elem(&unwind_files, &file);

	(void)g;
	return rows ? bpf_map_lookup_elem(rows, &key) : 0;
}

#else

struct unw_file {
	const u64 *rows;
	u32 n;
};

SS_INLINE const u64 *unw_row(const struct stg *g, u32 file, u32 key)
{
	const struct unw_file *f = &g->files[file % WIRE_UNWIND_FILES];

	return key < f->n ? &f->rows[key] : 0;
}

#endif

/* Halves [lo, hi): finally lo is the number of mappings that start at or below `find`. */
static long unw_map_step(u32 i, void *ctx)
{
	const struct stg *g = ctx;
	struct unw *u = g->unw;
	u32 mid;

	(void)i;
	if (u->lo >= u->hi)
		return 1;
	mid = ((u->lo + u->hi) >> 1) & (WIRE_UNWIND_MAPS - 1);
	ss_barrier(mid);
	if (g->maps->v[mid & (WIRE_UNWIND_MAPS - 1)].start <= u->find)
		u->lo = mid + 1;
	else
		u->hi = mid;
	return 0;
}

/* The same for rows: the number of rows before hi that start at or below `find`. */
static long unw_row_step(u32 i, void *ctx)
{
	const struct stg *g = ctx;
	struct unw *u = g->unw;
	const u64 *row;
	u32 mid;

	(void)i;
	if (u->lo >= u->hi)
		return 1;
	mid = u->lo + ((u->hi - u->lo) >> 1);
	row = unw_row(g, u->file, u->rows + mid);
	if (!row)
		return 1;
	if (*row >> 32 <= u->find)
		u->lo = mid + 1;
	else
		u->hi = mid;
	return 0;
}

/* The mapping that contains pc, or NULL. */
SS_INLINE const struct wire_unwind_map *unw_map(const struct stg *g)
{
	const struct wire_unwind_map *map;
	struct unw *u = g->unw;
	u32 k = u->map & (WIRE_UNWIND_MAPS - 1);

	if (!g->maps)
		return 0;
	ss_barrier(k);
	map = &g->maps->v[k & (WIRE_UNWIND_MAPS - 1)];
	if (u->pc >= map->start && u->pc < map->end)
		return map;
	u->find = u->pc;
	u->lo = 0;
	u->hi = g->maps->n;
	ss_loop(UNW_MAP_STEPS, unw_map_step, (void *)g);
	if (!u->lo)
		return 0;
	k = (u->lo - 1) & (WIRE_UNWIND_MAPS - 1);
	ss_barrier(k);
	map = &g->maps->v[k & (WIRE_UNWIND_MAPS - 1)];
	if (u->pc < map->start || u->pc >= map->end)
		return 0;
	u->map = k;
	return map;
}

SS_INLINE void unw_search(const struct stg *g)
{
	const struct wire_unwind_map *map = unw_map(g);
	struct unw *u = g->unw;
	const u64 *e;
	u64 bucket;

	u->rule = WIRE_CFI_NONE;
	u->cause = WIRE_CAUSE_C_NO_MAP;
	if (!map)
		return;
	u->cause = WIRE_CAUSE_C_NO_ROW;
	u->find = u->pc - map->base;
	bucket = u->find >> WIRE_UNWIND_BUCKET_SHIFT;
	if (bucket >= map->buckets)
		return;
	u->file = map->file;
	u->rows = map->buckets;
	e = unw_row(g, u->file, (u32)bucket);
	if (!e)
		return;
	u->lo = (u32)*e;
	u->hi = u->lo + (u32)(*e >> 32);
	ss_loop(UNW_ROW_STEPS, unw_row_step, (void *)g);
	if (!u->lo)
		return;
	e = unw_row(g, u->file, u->rows + u->lo - 1);
	if (e)
		u->rule = (u32)*e;
}

#ifdef __bpf__

/* Cache of rules by program counter, like that of info tables (stg.bpf.h). */
#define UNW_RULES 4096

struct unw_slot {
	u64 pc;
	u64 owner;
	u64 rule;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, UNW_RULES);
	__type(key, u32);
	__type(value, struct unw_slot);
} unw_rules SEC(".maps");

/* Finds the rule for pc. WIRE_CFI_NONE: no row; u->cause shows whether there is a mapping. */
SS_INLINE void unw_find(const struct stg *g)
{
	struct unw *u = g->unw;
	u32 key = (u32)(u->pc ^ (u->pc >> 12)) & (UNW_RULES - 1);
	struct unw_slot *slot = 0;

	if (g->w->owner)
		slot = bpf_map_lookup_elem(&unw_rules, &key);
	if (slot && slot->pc == u->pc && slot->owner == g->w->owner) {
		u->rule = (u32)slot->rule;
		return;
	}
	unw_search(g);
	if (slot && WIRE_CFI_KIND(u->rule) != WIRE_CFI_NONE) {
		slot->pc = u->pc;
		slot->owner = g->w->owner;
		slot->rule = u->rule;
	}
}

#else

SS_INLINE void unw_find(const struct stg *g)
{
	unw_search(g);
}

#endif

SS_INLINE long unw_stop(struct unw *u, u8 result, u8 cause)
{
	u->result = result;
	u->cause = cause;
	return 1;
}

/* The CFA, or the address of the block for frames that keep their registers in one. 0: none. */
SS_INLINE u64 unw_cfa(const struct stg *g, u32 kind, u32 off)
{
	struct unw *u = g->unw;
	u64 base = u->sp + off, word = 0;

	if (kind == WIRE_CFI_RBP || kind == WIRE_CFI_RBP_DEREF) {
		if (!u->bp_known)
			return 0;
		base = kind == WIRE_CFI_RBP ? u->bp + off : u->bp - off;
	} else if (kind == WIRE_CFI_PLT) {
		/* a PLT entry pushes its number on the way to the dynamic linker's resolver */
		base = u->sp + 8 + ((u->pc & 15) >= (off >> 3) ? 8 : 0);
	}
	if (kind < WIRE_CFI_RBP_DEREF || kind > WIRE_CFI_RSP_DEREF8)
		return base;
	if (mem_u64(g->mem, &word, base))
		return 0;
	return kind == WIRE_CFI_RSP_DEREF8 ? word + 8 : word;
}

/* Frames whose return address is not just below the CFA. */
SS_INLINE long unw_block(const struct stg *g, u32 kind, u64 at)
{
	u64 sp = at + WIRE_CFI_STGRUN_IP + 8, bp = at + WIRE_CFI_STGRUN_BP,
	    ip = at + WIRE_CFI_STGRUN_IP;
	struct unw *u = g->unw;

	if (kind == WIRE_CFI_SIGNAL) {
		ip = at + WIRE_CFI_SIGNAL_IP;
		bp = at + WIRE_CFI_SIGNAL_BP;
		if (mem_u64(g->mem, &sp, at + WIRE_CFI_SIGNAL_SP))
			return unw_stop(u, UNW_FAIL, WIRE_CAUSE_C_FAULT);
	}
	if (mem_u64(g->mem, &u->ra, ip) || mem_u64(g->mem, &u->bp, bp))
		return unw_stop(u, UNW_FAIL, WIRE_CAUSE_C_FAULT);
	u->bp_known = 1;
	u->sp = sp;
	u->pc = u->ra - (kind != WIRE_CFI_SIGNAL);
	return 0;
}

/* The caller's rbp. */
SS_INLINE long unw_bp(const struct stg *g, u64 cfa, u32 slot, u64 below)
{
	struct unw *u = g->unw;
	u64 at;

	if (slot == 0)
		return 0;
	if (slot == 2) { /* by far the most frequent case, and read already */
		u->bp = below;
		u->bp_known = 1;
		return 0;
	}
	if (slot > WIRE_CFI_MAX_BP && (slot != WIRE_CFI_BP_AT_BP || !u->bp_known)) {
		u->bp_known = 0;
		return 0;
	}
	at = slot == WIRE_CFI_BP_AT_BP ? u->bp : cfa - 8 * slot;
	u->bp_known = 1;
	return mem_u64(g->mem, &u->bp, at);
}

/* A function that has popped its return address; nothing of it is left on the stack. */
SS_INLINE long unw_leaf(struct unw *u, u32 leaf)
{
	if (!leaf || !u->rdi)
		return unw_stop(u, UNW_FAIL, WIRE_CAUSE_C_RULE);
	u->sp += WIRE_CFI_OFFSET(u->rule);
	u->ra = u->rdi;
	u->pc = u->ra - 1;
	return 0;
}

/* Walks one frame; a callback of bpf_loop. */
static long unw_step(u32 i, void *ctx)
{
	const struct stg *g = ctx;
	struct unw *u = g->unw;
	u64 words[2] = {}, cfa;
	u32 kind, leaf = !u->put;

	(void)i;
	unw_find(g);
	kind = WIRE_CFI_KIND(u->rule);
	if (kind == WIRE_CFI_NONE) {
		u->result = UNW_NO_ROW;
		return 1;
	}
	if (u->put)
		stg_put(g, WIRE_FRAME_C_RET, u->ra);
	u->put = 1;
	if (kind == WIRE_CFI_END)
		return unw_stop(u, UNW_END, 0);
	if (kind == WIRE_CFI_LEAF_RDI)
		return unw_leaf(u, leaf);
	/* no more than the record holds, leaving room for the frames below */
	if (!g->w->in_tail && g->w->n >= g->w->leaf)
		return unw_stop(u, UNW_FAIL, WIRE_CAUSE_C_TOO_DEEP);
	cfa = kind < WIRE_CFI_END ? unw_cfa(g, kind, WIRE_CFI_OFFSET(u->rule)) : 0;
	if (!cfa)
		return unw_stop(u, UNW_FAIL, WIRE_CAUSE_C_RULE);
	if (kind == WIRE_CFI_SIGNAL || kind == WIRE_CFI_STGRUN)
		return unw_block(g, kind, cfa);
	/* the stack grows downward: the caller's part must be above, else the rule is wrong */
	if (cfa <= u->sp || (cfa & 7))
		return unw_stop(u, UNW_FAIL, WIRE_CAUSE_C_RULE);
	if (mem_read(g->mem, words, sizeof(words), cfa - 16) ||
	    unw_bp(g, cfa, WIRE_CFI_BP(u->rule), words[0]))
		return unw_stop(u, UNW_FAIL, WIRE_CAUSE_C_FAULT);
	u->sp = cfa;
	u->ra = words[1];
	u->pc = u->ra - 1;
	/* no caller to return to: the C library's start code */
	return u->ra ? 0 : unw_stop(u, UNW_END, 0);
}

/* Walks from pc, sp and bp upward, as far as there are rows. The result is in g->unw. */
SS_INLINE void unw_run_here(const struct stg *g)
{
	struct unw *u = g->unw;

	u->result = UNW_GOING;
	u->cause = 0;
	ss_loop(UNW_MAX_FRAMES, unw_step, (void *)g);
	if (u->result == UNW_GOING)
		unw_stop(u, UNW_FAIL, WIRE_CAUSE_C_TOO_DEEP);
}

#ifdef __bpf__

/* `maps` may be NULL: then there are no rows. */
SS_GLOBAL int unw_run_alone(struct unw *u, const struct wire_unwind_maps *maps, struct stg_walk *w,
			    struct stg_frames *frames)
{
	struct stg g = {};

	if (!u || !w || !frames)
		return 0;
	g.unw = u;
	g.maps = maps;
	g.w = w;
	g.frames = frames->v;
	unw_run_here(&g);
	return 0;
}

SS_INLINE void unw_run(const struct stg *g)
{
	unw_run_alone(g->unw, g->maps, g->w, (struct stg_frames *)g->frames);
}

#else

SS_INLINE void unw_run(const struct stg *g)
{
	unw_run_here(g);
}

#endif

#endif
