/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The STG walk: a Haskell thread's stack, frame by frame, from Sp to STOP_FRAME.
 *
 * A thread's stack is a list of STACK objects (chunks) in the heap; each frame begins with an info
 * pointer, and the info table that lies just before that address holds the frame's type and size
 * (GHC: rts/include/rts/storage/ClosureMacros.h, stack_frame_sizeW; InfoTables.h with tables next
 * to code; the same in 8.10 to 9.14). Arriving at STOP_FRAME exactly at the STACK's end proves that
 * every size on the way was right.
 *
 * The same C runs in BPF and natively; see mem.bpf.h.
 */
#ifndef SAFESCOPED_STG_BPF_H
#define SAFESCOPED_STG_BPF_H

#include "wire.h"
#include "mem.bpf.h"

/* rts/include/rts/storage/ClosureTypes.h: the same numbers from 8.10 on; ANN_FRAME since 9.14 */
enum stg_type {
	STG_RET_BCO = 29,
	STG_RET_SMALL = 30,
	STG_RET_BIG = 31,
	STG_RET_FUN = 32,
	STG_UPDATE_FRAME = 33,
	STG_CATCH_FRAME = 34,
	STG_UNDERFLOW_FRAME = 35,
	STG_STOP_FRAME = 36,
	STG_TSO = 52,
	STG_STACK = 53,
	STG_ATOMICALLY_FRAME = 55,
	STG_CATCH_RETRY_FRAME = 56,
	STG_CATCH_STM_FRAME = 57,
	STG_ANN_FRAME = 65,
};

/*
 * Words above Sp in which the first frame is searched if Sp itself does not point at one. Debian's
 * pandoc has arguments on the stack in a third of its samples; ten words missed 3 % of all, 32
 * none.
 */
#define STG_RESYNC_WORDS 32
/* Candidates for the first frame that are tried before the walk gives up, … */
#define STG_ATTEMPTS 3
/* … if the walk breaks within this many frames: deeper, a break has another reason. */
#define STG_FALSE_START 8
/* Limit on chunks skipped; a chunk is 32 kB by default, so this is 64 MB of stack. */
#define STG_MAX_HOPS 2048
/* Limit on frames walked in the last chunk, of which the rootmost are kept. */
#define STG_MAX_TAIL 4096
/* Room for frames: a power of two, so that an index can be masked for the verifier. */
#define STG_FRAMES_ROOM 512
/* A STACK larger than this is not believed (1 GiB). */
#define STG_MAX_STACK_WORDS (1u << 27)

/* A power of two. */
#define STG_WINDOW_WORDS 8

_Static_assert(WIRE_FRAMES_MAX <= STG_FRAMES_ROOM, "the room for frames is too small");

struct stg_table {
	u64 layout;
	u32 type;
	u32 srt;
};

struct stg_frame {
	u64 info;
	u64 bytes;
	u32 type;
};

struct stg_walk {
	u64 sp;	     /* address of the next frame */
	u64 start;   /* first word of the chunk */
	u64 end;     /* just past the chunk's last word */
	u64 skipped; /* chunks skipped */
	u16 stack_size, stack_sp, stack_stack, bco_bitmap, updatee;
	u16 n;		       /* frames written */
	u16 leaf;	       /* frames kept before chunks are skipped */
	u16 root;	       /* rootmost frames kept after that */
	u16 base;	       /* tail: index of the first root frame */
	u16 tail;	       /* tail: root frames seen so far, counted up to 2 * root */
	u16 n0;		       /* frames written before the Haskell ones */
	u64 sp0, start0, end0; /* start of the walk */
	u8 end_state, cause, resync;
	u8 in_tail;
	u8 lost; /* the ring wrapped: frames of the last chunk are left out as well */
	u8 gap;	 /* there is a WIRE_FRAME_GAP frame */
	u8 updatees;
	u8 exact; /* sp is known to be at a frame (as a suspended thread's is) */
	/* the current frame: kept off the program's stack, which has little room left */
	struct stg_frame frame;
	struct stg_table table;
	u64 owner;  /* process and mappings that cached info tables belong to; 0: no caching */
	u64 win_at; /* address of win[]; 0: not filled */
	u64 win[STG_WINDOW_WORDS]; /* words of the chunk, read at once: a read costs more than
				      decoding a frame */
};

/*
 * The arguments of a walk. In BPF the state is in a map rather than on the program's stack: the
 * verifier then treats its fields as unknown numbers, and the states of the loops converge at once.
 */
struct cstack_scan;
struct unw;
struct unw_file;

struct stg {
	struct mem *mem;
	struct stg_walk *w;
	u64 *frames; /* STG_FRAMES_ROOM of them */
	/* for walks that start in C code */
	struct cstack_scan *scan;
	struct unw *unw;
	const struct wire_unwind_maps *maps; /* of the process; NULL: no rows */
	const struct unw_file *files;	     /* native only: array of WIRE_UNWIND_FILES */
};

SS_INLINE void stg_init(const struct stg *g, const struct wire_layout *l, u32 leaf, u32 root)
{
	struct stg_walk *w = g->w;

	__builtin_memset(w, 0, sizeof(*w));
	w->leaf = leaf;
	w->root = root;
	w->stack_size = l->stack_size;
	w->stack_sp = l->stack_sp;
	w->stack_stack = l->stack_stack;
	w->bco_bitmap = l->bco_bitmap;
	w->updatee = l->updframe_updatee;
}

SS_INLINE long stg_fail(const struct stg *g, u8 cause)
{
	g->w->end_state = WIRE_END_BROKEN;
	g->w->cause = cause;
	return 1;
}

SS_INLINE void stg_put(const struct stg *g, u64 kind, u64 addr)
{
	struct stg_walk *w = g->w;
	u32 i = w->n;

	if (w->in_tail) {
		/* a ring of the last `root` frames; the reader of the record rotates it */
		i = w->tail;
		if (i >= w->root)
			i -= w->root;
		i += w->base;
		w->tail++;
		if (w->tail > w->root)
			w->lost = 1;
		if (w->tail >= 2 * w->root)
			w->tail = w->root;
		if (w->n < w->base + w->root)
			w->n++;
	} else {
		w->n++;
	}
	i &= STG_FRAMES_ROOM - 1;
	ss_barrier(i);
	g->frames[i & (STG_FRAMES_ROOM - 1)] =
		(addr & WIRE_FRAME_ADDR_MASK) | (kind << WIRE_FRAME_KIND_SHIFT);
}

/*
 * Follows a forwarding pointer: a concurrent collection leaves one, marked by bit 0, in place of
 * the info pointer of an object that it has moved (rts/sm/Evac.h, MK_FORWARDING_PTR).
 */
SS_INLINE u64 stg_unforward(struct mem *mem, u64 obj)
{
	u64 info = 0;

	if (mem_u64(mem, &info, obj))
		return obj;
	return (info & 1) ? info & ~1ULL : obj;
}

/* Type of a heap object, from its info table; 0 if it cannot be read. */
SS_INLINE u32 stg_object_type(struct mem *mem, u64 obj)
{
	u64 info = 0;
	u32 type = 0;

	if (mem_u64(mem, &info, obj) || mem_read(mem, &type, sizeof(type), info - 8))
		return 0;
	return type;
}

/* Makes a STACK object the current chunk of the walk. Returns 0 or an enum wire_cause. */
SS_INLINE u32 stg_enter(const struct stg *g, u64 obj)
{
	struct stg_walk *w = g->w;
	u64 sp = 0, start;
	u32 size = 0;

	obj = stg_unforward(g->mem, obj);
	if (stg_object_type(g->mem, obj) != STG_STACK)
		return WIRE_CAUSE_BAD_TYPE;
	if (mem_read(g->mem, &size, sizeof(size), obj + w->stack_size) ||
	    mem_u64(g->mem, &sp, obj + w->stack_sp))
		return WIRE_CAUSE_FAULT;
	start = obj + w->stack_stack;
	if (size > STG_MAX_STACK_WORDS || sp < start || sp >= start + 8ULL * size || (sp & 7))
		return WIRE_CAUSE_SP_RANGE;
	w->start = start;
	w->end = start + 8ULL * size;
	w->sp = sp;
	return WIRE_CAUSE_NONE;
}

/* ── reading less often ──────────────────────────────────────────────────────────────────── */

/* Reads the word at sp, which is 8-aligned and in the current chunk. */
SS_INLINE long stg_word(const struct stg *g, u64 sp, u64 *ret_word)
{
	struct stg_walk *w = g->w;
	u64 k = (sp - w->win_at) >> 3;

	if (!w->win_at || k >= STG_WINDOW_WORDS) {
		w->win_at = 0;
		if (sp + sizeof(w->win) > w->end || mem_read(g->mem, w->win, sizeof(w->win), sp))
			return mem_u64(g->mem, ret_word, sp);
		w->win_at = sp;
		k = 0;
	}
	k &= STG_WINDOW_WORDS - 1;
	ss_barrier(k);
	*ret_word = w->win[k & (STG_WINDOW_WORDS - 1)];
	return 0;
}

#ifdef __bpf__

/*
 * Cache of info tables by address. They do not change while the code is mapped, and `owner` stands
 * for one process with one list of mappings. Only the sampler uses the cache: it never interrupts
 * itself on a CPU, so a slot is always consistent.
 */
#define STG_TABLES 4096

struct stg_slot {
	u64 info;
	u64 owner;
	struct stg_table table;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, STG_TABLES);
	__type(key, u32);
	__type(value, struct stg_slot);
} stg_tables SEC(".maps");

SS_INLINE long stg_read_table(const struct stg *g, u64 info)
{
	u32 key = (u32)((info >> 3) ^ (info >> 15)) & (STG_TABLES - 1);
	struct stg_slot *slot = 0;
	long err;

	if (g->w->owner)
		slot = bpf_map_lookup_elem(&stg_tables, &key);
	if (slot && slot->info == info && slot->owner == g->w->owner) {
		g->w->table = slot->table;
		return 0;
	}
	err = mem_read(g->mem, &g->w->table, sizeof(g->w->table), info - 16);
	if (!err && slot) {
		slot->info = info;
		slot->owner = g->w->owner;
		slot->table = g->w->table;
	}
	return err;
}

#else

SS_INLINE long stg_read_table(const struct stg *g, u64 info)
{
	return mem_read(g->mem, &g->w->table, sizeof(g->w->table), info - 16);
}

#endif

SS_INLINE int stg_type_is_frame(u32 type)
{
	return (type >= STG_RET_BCO && type <= STG_STOP_FRAME) ||
	       (type >= STG_ATOMICALLY_FRAME && type <= STG_CATCH_STM_FRAME) ||
	       type == STG_ANN_FRAME;
}

/* Reads the frame at sp into w->frame. Returns 0 or an enum wire_cause. */
SS_INLINE u32 stg_frame_at(const struct stg *g, u64 sp)
{
	const struct stg_table *table = &g->w->table;
	struct stg_frame *f = &g->w->frame;
	u64 words = 0, extra = 1, bco = 0;

	if (stg_word(g, sp, &f->info))
		return WIRE_CAUSE_FAULT;
	if ((f->info & 7) || f->info < 4096)
		return WIRE_CAUSE_BAD_TYPE;
	if (stg_read_table(g, f->info))
		return WIRE_CAUSE_FAULT;
	f->type = table->type;
	if (!stg_type_is_frame(table->type))
		return WIRE_CAUSE_BAD_TYPE;

	if (table->type == STG_RET_FUN) {
		if (mem_u64(g->mem, &words, sp + 8))
			return WIRE_CAUSE_FAULT;
		extra = 3;
	} else if (table->type == STG_RET_BIG) {
		/* the layout word is an offset to the large bitmap, whose first word is its size */
		if (mem_u64(g->mem, &words, f->info + (s64)(s32)table->layout))
			return WIRE_CAUSE_FAULT;
		extra = 1;
	} else if (table->type == STG_RET_BCO) {
		if (mem_u64(g->mem, &bco, sp + 8) ||
		    mem_u64(g->mem, &words, bco + g->w->bco_bitmap))
			return WIRE_CAUSE_FAULT;
		extra = 2;
	} else {
		words = table->layout & 0x3f;
	}
	/* checked before the sum, which could wrap for a bogus size */
	if (words > STG_MAX_STACK_WORDS)
		return WIRE_CAUSE_BAD_SIZE;
	words += extra;
	if (sp + 8 * words > g->w->end)
		return WIRE_CAUSE_BAD_SIZE;
	f->bytes = 8 * words;
	return WIRE_CAUSE_NONE;
}

SS_INLINE void stg_put_updatee(const struct stg *g, u64 sp)
{
	u64 obj = 0, info = 0;

	if (mem_u64(g->mem, &obj, sp + g->w->updatee) || mem_u64(g->mem, &info, obj & ~7ULL))
		return;
	if (!(info & 7))
		stg_put(g, WIRE_FRAME_UPDATEE, info);
}

/* Walks one frame; a callback of bpf_loop, so non-zero ends the walk. */
static long stg_step(u32 i, void *ctx)
{
	const struct stg *g = ctx;
	struct stg_walk *w = g->w;
	const struct stg_frame *f = &w->frame;
	u64 next = 0;
	u32 cause;

	(void)i;
	if (!w->in_tail && w->n >= w->leaf) {
		w->end_state = WIRE_END_TRUNCATED;
		return 1;
	}
	cause = stg_frame_at(g, w->sp);
	if (cause)
		return stg_fail(g, cause);
	if (f->type == STG_UNDERFLOW_FRAME) {
		if (mem_u64(g->mem, &next, w->sp + 8))
			return stg_fail(g, WIRE_CAUSE_FAULT);
		cause = stg_enter(g, next);
		return cause ? stg_fail(g, cause) : 0;
	}
	stg_put(g, WIRE_FRAME_HS_RET, f->info);
	if (f->type == STG_UPDATE_FRAME && w->updatees && !w->in_tail)
		stg_put_updatee(g, w->sp);
	w->sp += f->bytes;
	if (f->type == STG_STOP_FRAME) {
		if (w->sp != w->end)
			return stg_fail(g, WIRE_CAUSE_STOP_NOT_END);
		w->end_state = WIRE_END_COMPLETE;
		return 1;
	}
	if (w->sp >= w->end)
		return stg_fail(g, WIRE_CAUSE_SP_RANGE);
	return 0;
}

/* To the next chunk: the last two words of each chunk but the last are its underflow frame. */
static long stg_hop(u32 i, void *ctx)
{
	const struct stg *g = ctx;
	struct stg_walk *w = g->w;
	u64 info = 0, next = 0;
	u32 type = 0;

	(void)i;
	if (w->end - w->start < 16 || mem_u64(g->mem, &info, w->end - 16) || (info & 7) ||
	    mem_read(g->mem, &type, sizeof(type), info - 8) || type != STG_UNDERFLOW_FRAME)
		return 1;
	if (mem_u64(g->mem, &next, w->end - 8) || stg_enter(g, next))
		return 1;
	w->skipped++;
	return 0;
}

/*
 * Searches for the first frame from Sp up. Between safe points Sp may point at arguments or at a
 * frame under construction. The stack starts at the first word that is a return frame followed by
 * another one.
 */
static long stg_resync(u32 i, void *ctx)
{
	const struct stg *g = ctx;
	struct stg_walk *w = g->w;
	const struct stg_frame *f = &w->frame;
	u32 k = w->resync + i;
	u64 sp = w->sp0 + 8ULL * k;

	if (sp >= w->end || k > STG_RESYNC_WORDS)
		return 1;
	if (stg_frame_at(g, sp))
		return 0;
	if (f->type != STG_STOP_FRAME && f->type != STG_UNDERFLOW_FRAME &&
	    stg_frame_at(g, sp + f->bytes))
		return 0;
	w->sp = sp;
	w->resync = k;
	w->cause = WIRE_CAUSE_NONE;
	return 1;
}

/* Deep stacks: skips the middle and walks the last chunk. */
SS_INLINE void stg_walk_tail(const struct stg *g)
{
	struct stg_walk *w = g->w;

	ss_loop(STG_MAX_HOPS, stg_hop, (void *)g);
	stg_put(g, WIRE_FRAME_ELIDED, w->skipped);
	w->base = w->n;
	w->in_tail = 1;
	ss_loop(STG_MAX_TAIL, stg_step, (void *)g);
}

/* Walks from a frame to the end. */
SS_INLINE void stg_walk_all(const struct stg *g)
{
	struct stg_walk *w = g->w;

	w->end_state = WIRE_END_NONE;
	ss_loop(STG_FRAMES_ROOM, stg_step, (void *)g);
	if (w->end_state == WIRE_END_TRUNCATED) {
		w->end_state = WIRE_END_NONE;
		stg_walk_tail(g);
	}
	if (w->end_state == WIRE_END_NONE)
		w->end_state = WIRE_END_TRUNCATED;
}

/* 1 if the walk broke so soon that its first word cannot have been a frame; the search then
 * continues after that word. */
SS_INLINE int stg_again(const struct stg *g)
{
	struct stg_walk *w = g->w;

	if (w->end_state != WIRE_END_BROKEN || w->n - w->n0 > STG_FALSE_START ||
	    w->resync >= STG_RESYNC_WORDS)
		return 0;
	w->n = w->n0;
	w->start = w->start0;
	w->end = w->end0;
	w->resync++;
	return 1;
}

/* A callback of bpf_loop, so that it is verified once. */
static long stg_attempt(u32 i, void *ctx)
{
	const struct stg *g = ctx;
	struct stg_walk *w = g->w;

	(void)i;
	if (!w->exact) {
		w->cause = WIRE_CAUSE_NO_FRAME;
		ss_loop(STG_RESYNC_WORDS + 1, stg_resync, (void *)g);
		if (w->cause != WIRE_CAUSE_NONE) {
			w->end_state = WIRE_END_BROKEN;
			return 1;
		}
	}
	stg_walk_all(g);
	return w->exact || !stg_again(g);
}

/*
 * Walks from w->sp in the chunk that stg_enter() took. `exact`: Sp is known to be at a frame (as a
 * suspended thread's is). The result is in w: frames, n, end_state, cause, resync.
 */
SS_INLINE void stg_run_here(const struct stg *g, int exact)
{
	struct stg_walk *w = g->w;

	w->exact = exact;
	w->n0 = w->n;
	w->sp0 = w->sp;
	w->start0 = w->start;
	w->end0 = w->end;
	ss_loop(STG_ATTEMPTS, stg_attempt, (void *)g);
}

#ifdef __bpf__

struct stg_frames {
	u64 v[STG_FRAMES_ROOM];
};

SS_GLOBAL int stg_run_alone(struct stg_walk *w, struct stg_frames *frames, int exact)
{
	struct stg g = {};

	if (!w || !frames)
		return 0;
	g.w = w;
	g.frames = frames->v;
	stg_run_here(&g, exact);
	return 0;
}

SS_INLINE void stg_run(const struct stg *g, int exact)
{
	stg_run_alone(g->w, (struct stg_frames *)g->frames, exact);
}

#else

SS_INLINE void stg_run(const struct stg *g, int exact)
{
	stg_run_here(g, exact);
}

#endif

/* Copies the result into a record. */
SS_INLINE void stg_result(const struct stg_walk *w, struct wire_stack *s)
{
	s->nframes = w->n;
	s->end = w->end_state;
	s->cause = w->cause;
	s->resync = w->resync;
	s->elided = w->in_tail ? 1 | ((w->skipped || w->lost) ? 2 : 0) : 0;
	s->elided |= w->gap ? 4 : 0;
	s->turn = w->tail > w->root ? w->tail - w->root : 0;
}

#endif
