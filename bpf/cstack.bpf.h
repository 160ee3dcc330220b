/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The C stack above and below Haskell code, as far as needed to find Sp.
 *
 * StgRun reserves 16 kB of C stack and jumps into Haskell code, which never moves rsp between
 * calls: at any instruction in Haskell code the return address into schedule() is at rsp + 16432,
 * and its value is one constant for the whole process (GHC rts/StgCRun.c, x86-64: 48 bytes of saved
 * registers + RESERVED_C_STACK_BYTES). In C code called from Haskell, the same word is further up
 * by what C has pushed since; in between is the rbp that C saved, which is Sp in Haskell code.
 */
#ifndef SAFESCOPED_CSTACK_BPF_H
#define SAFESCOPED_CSTACK_BPF_H

#include "wire.h"
#include "mem.bpf.h"

#define CSTACK_STGRUN_FRAME 16432
/* The part of it without those 16 kB: the registers of its caller that StgRun saved. */
#define CSTACK_STGRUN_SAVED 48
/* StgRun's return address is searched for in this many bytes of C frames above Haskell code. */
#define CSTACK_MAX_DEPTH 65536
/* Sp is searched for in this many bytes, from the Haskell end of these frames or blindly from
 * rsp. */
#define CSTACK_SAVED_DEPTH 4096
#define CSTACK_STEP_WORDS  8
#define CSTACK_STEP_BYTES  (8 * CSTACK_STEP_WORDS)
/* RESERVED_STACK_WORDS, rts/include/rts/Constants.h: r15 in Haskell code is SpLim */
#define CSTACK_SPLIM_BYTES (8 * 21)

struct cstack_scan {
	u64 at;	    /* address that the next step reads */
	u64 left;   /* steps left */
	u64 lo, hi; /* range of the value searched for */
	u64 align;  /* bits that are clear in it */
	u64 except; /* a value in the range that does not count */
	u64 found;  /* address of the word found; 0: none */
	u64 value;
	s64 step; /* +64: upward, -64: downward */
};

/* Like struct stg: its state is in a map. */
struct cstack_ctx {
	struct mem *mem;
	struct cstack_scan *scan;
};

static long cstack_step(u32 i, void *ctx)
{
	const struct cstack_ctx *c = ctx;
	struct cstack_scan *s = c->scan;
	u64 words[CSTACK_STEP_WORDS];
	u32 k;

	(void)i;
	if (s->left == 0 || mem_read(c->mem, words, sizeof(words), s->at))
		return 1;
	s->left--;
#pragma GCC unroll 8
	for (k = 0; k < CSTACK_STEP_WORDS; k++) {
		/* nearest word first, in either direction */
		u32 j = s->step < 0 ? CSTACK_STEP_WORDS - 1 - k : k;
		u64 v = s->step < 0 ? words[CSTACK_STEP_WORDS - 1 - k] : words[k];

		if (v < s->lo || v >= s->hi || (v & s->align) || v == s->except)
			continue;
		s->found = s->at + 8 * j;
		s->value = v;
		return 1;
	}
	s->at += s->step;
	return 0;
}

/* The C stack of a thread at one moment. */
struct cstack {
	u64 hs_rsp;  /* rsp of the Haskell code that is running or has called C; 0: not found */
	u64 call_ra; /* return address into that Haskell code from the C function; 0: none */
	u64 sp;	     /* Sp as saved by C code; 0: not found */
};

/* True if a call instruction precedes the return address: e8 rel32, or ff /2 with a register or
 * memory. */
SS_INLINE int cstack_after_call(struct mem *mem, u64 ra)
{
	u8 b[8] = {};

	if (ra < 4096 || mem_read(mem, b, 7, ra - 7))
		return 0;
	return b[2] == 0xe8 || (b[5] == 0xff && (b[6] & 0x38) == 0x10) ||
	       (b[1] == 0xff && (b[2] & 0x38) == 0x10) || (b[4] == 0xff && (b[5] & 0x38) == 0x10) ||
	       (b[0] == 0xff && (b[1] & 0x38) == 0x10);
}

/* Target of the direct call that precedes a return address; 0 if it is another instruction. */
SS_INLINE u64 cstack_called(struct mem *mem, u64 ra)
{
	u8 b[5] = {};
	s32 rel;

	if (ra < 4096 || mem_read(mem, b, sizeof(b), ra - sizeof(b)) || b[0] != 0xe8)
		return 0;
	__builtin_memcpy(&rel, b + 1, sizeof(rel));
	return ra + (s64)rel;
}

/* Bytes of arguments that the code at a return address removes from the stack; 0: none. */
SS_INLINE u32 cstack_taken_off(struct mem *mem, u64 ra)
{
	u8 b[8] = {};
	u32 bytes;

	/* add $imm,%rsp: 48 83 c4 with one byte, 48 81 c4 with four */
	if (mem_read(mem, b, 7, ra) || b[0] != 0x48 || b[2] != 0xc4)
		return 0;
	__builtin_memcpy(&bytes, b + 3, sizeof(bytes));
	if (b[1] == 0x83)
		bytes = b[3];
	else if (b[1] != 0x81)
		return 0;
	return bytes < CSTACK_STGRUN_FRAME && !(bytes & 7) ? bytes : 0;
}

/* True if rsp has its value in Haskell code, so that the program counter is in Haskell code. */
SS_INLINE int cstack_in_haskell(struct mem *mem, u64 rsp, u64 stgrun_ret)
{
	u64 w[2] = {};

	if (mem_read(mem, w, sizeof(w), rsp + CSTACK_STGRUN_FRAME))
		return 0;
	/* the second word: between a call's `sub $8,%rsp` and the call itself */
	return w[0] == stgrun_ret || w[1] == stgrun_ret;
}

/*
 * Address of StgRun's return address on this thread's C stack, above rsp; 0 if it is not found. It
 * does not change during an in-call, so the address found last (`known`) is tried before the
 * search.
 */
SS_INLINE u64 cstack_landmark(const struct cstack_ctx *c, u64 rsp, u64 stgrun_ret, u64 known)
{
	struct cstack_scan *s = c->scan;
	u64 word = 0;

	if (known > rsp && !mem_u64(c->mem, &word, known) && word == stgrun_ret)
		return known;
	__builtin_memset(s, 0, sizeof(*s));
	s->at = rsp + CSTACK_STGRUN_FRAME;
	s->left = CSTACK_MAX_DEPTH / CSTACK_STEP_BYTES;
	s->step = CSTACK_STEP_BYTES;
	s->lo = stgrun_ret;
	s->hi = stgrun_ret + 1;
	ss_loop(CSTACK_MAX_DEPTH / CSTACK_STEP_BYTES, cstack_step, (void *)c);
	return s->found;
}

/*
 * Finds the place in Haskell code from which the current C code was called. [lo, hi) are the words
 * of the running thread's STACK, into which a saved Sp must point, as does SpLim, which C functions
 * save as well. `landmark`: address of StgRun's return address, or 0.
 */
SS_INLINE void cstack_find(const struct cstack_ctx *c, u64 rsp, u64 landmark, u64 lo, u64 hi,
			   struct cstack *out)
{
	struct cstack_scan *s = c->scan;
	u64 ra[2] = {};

	__builtin_memset(s, 0, sizeof(*s));
	s->lo = lo;
	s->hi = hi;
	s->align = 7;
	s->except = lo + CSTACK_SPLIM_BYTES;
	s->left = CSTACK_SAVED_DEPTH / CSTACK_STEP_BYTES;
	if (landmark) {
		out->hs_rsp = landmark - CSTACK_STGRUN_FRAME;
		if (out->hs_rsp < rsp)
			return;
		/* GHC aligns the stack for a call by `sub $8,%rsp`, unless it is aligned already */
		if (!mem_read(c->mem, ra, sizeof(ra), out->hs_rsp - 16)) {
			if (cstack_after_call(c->mem, ra[0]))
				out->call_ra = ra[0];
			else if (cstack_after_call(c->mem, ra[1]))
				out->call_ra = ra[1];
		}
		/* the saved rbp nearest to the Haskell code is that of the first C function that
		 * saved it */
		s->at = out->hs_rsp - CSTACK_STEP_BYTES;
		s->step = -CSTACK_STEP_BYTES;
		s->left = (out->hs_rsp - rsp) / CSTACK_STEP_BYTES + 1;
		if (s->left > CSTACK_SAVED_DEPTH / CSTACK_STEP_BYTES)
			s->left = CSTACK_SAVED_DEPTH / CSTACK_STEP_BYTES;
	} else {
		s->at = rsp;
		s->step = CSTACK_STEP_BYTES;
	}
	ss_loop(CSTACK_SAVED_DEPTH / CSTACK_STEP_BYTES, cstack_step, (void *)c);
	/* words below rsp are stale */
	if (s->found >= rsp)
		out->sp = s->value;
}

#endif
