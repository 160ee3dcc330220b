/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The C stack under and over Haskell code, as far as it takes to find Sp.
 *
 * StgRun reserves 16 kB of C stack and jumps into Haskell code, which never moves rsp between
 * calls: at any instruction in Haskell code the return address into schedule() lies at
 * rsp + 16432, and it is one constant for the whole process (GHC rts/StgCRun.c, x86-64: 48 bytes
 * of saved registers + RESERVED_C_STACK_BYTES). In C code that Haskell called, the same word lies
 * higher by what C has pushed since; what C saved of rbp, which is Sp in Haskell code, is in
 * between.
 */
#ifndef SAFESCOPED_CSTACK_BPF_H
#define SAFESCOPED_CSTACK_BPF_H

#include "wire.h"
#include "mem.bpf.h"

#define CSTACK_STGRUN_FRAME 16432
/* … and without those 16 kB: what StgRun saved of its caller's registers. */
#define CSTACK_STGRUN_SAVED 48
/* C frames above Haskell code are searched for StgRun's return address over this many bytes. */
#define CSTACK_MAX_DEPTH 65536
/* From the Haskell code's end of them, or blindly from rsp, so many bytes are searched for Sp. */
#define CSTACK_SAVED_DEPTH 4096
#define CSTACK_STEP_WORDS  8
#define CSTACK_STEP_BYTES  (8 * CSTACK_STEP_WORDS)
/* RESERVED_STACK_WORDS, rts/include/rts/Constants.h: r15 in Haskell code is SpLim */
#define CSTACK_SPLIM_BYTES (8 * 21)

struct cstack_scan {
	u64 at;	    /* where the next step reads */
	u64 left;   /* steps */
	u64 lo, hi; /* the range in which the word looked for lies */
	u64 align;  /* bits that it has clear */
	u64 except; /* a word that is not meant though it lies in the range */
	u64 found;  /* address of the word; 0 */
	u64 value;
	s64 step; /* +64: upward, -64: downward */
};

/* As with struct stg: the state lies in a map. */
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
		/* the nearest first, whichever way */
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

/* What is known of the C stack at one moment. */
struct cstack {
	u64 hs_rsp;  /* rsp of the Haskell code that is running or has called C; 0: not found */
	u64 call_ra; /* return address into that Haskell code, of the C function; 0: none */
	u64 sp;	     /* Sp as C code saved it; 0: not found */
};

/* The bytes before a return address of a call: e8 rel32, or ff /2 with a register or memory. */
SS_INLINE int cstack_after_call(struct mem *mem, u64 ra)
{
	u8 b[8] = {};

	if (ra < 4096 || mem_read(mem, b, 7, ra - 7))
		return 0;
	return b[2] == 0xe8 || (b[5] == 0xff && (b[6] & 0x38) == 0x10) ||
	       (b[1] == 0xff && (b[2] & 0x38) == 0x10) || (b[4] == 0xff && (b[5] & 0x38) == 0x10) ||
	       (b[0] == 0xff && (b[1] & 0x38) == 0x10);
}

/* Where the direct call before a return address leads; 0: it is another instruction. */
SS_INLINE u64 cstack_called(struct mem *mem, u64 ra)
{
	u8 b[5] = {};
	s32 rel;

	if (ra < 4096 || mem_read(mem, b, sizeof(b), ra - sizeof(b)) || b[0] != 0xe8)
		return 0;
	__builtin_memcpy(&rel, b + 1, sizeof(rel));
	return ra + (s64)rel;
}

/* The arguments that the code at a return address takes off the stack, in bytes; 0: none. */
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

/* True if rsp is where Haskell code has it: the program counter is in Haskell code. */
SS_INLINE int cstack_in_haskell(struct mem *mem, u64 rsp, u64 stgrun_ret)
{
	u64 w[2] = {};

	if (mem_read(mem, w, sizeof(w), rsp + CSTACK_STGRUN_FRAME))
		return 0;
	/* the second word: between a call's `sub $8,%rsp` and the call itself */
	return w[0] == stgrun_ret || w[1] == stgrun_ret;
}

/*
 * StgRun's return address on this thread's C stack, above rsp; 0 if it is not there. The place is
 * the same all through an in-call, so the last one found (`known`) is tried before the search.
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
 * From C code called by Haskell code back to where Haskell left off. [lo, hi) are the words of the
 * running thread's STACK, the only place where a saved Sp can point to; SpLim, which C functions
 * save as well, points there too. `landmark`: where StgRun's return address is, or 0.
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
		/* GHC aligns the stack for a call by `sub $8,%rsp`, or does not need to */
		if (!mem_read(c->mem, ra, sizeof(ra), out->hs_rsp - 16)) {
			if (cstack_after_call(c->mem, ra[0]))
				out->call_ra = ra[0];
			else if (cstack_after_call(c->mem, ra[1]))
				out->call_ra = ra[1];
		}
		/* the saved rbp nearest to the Haskell code: of the first C function that saved it
		 */
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
	/* below rsp lies what is no longer there */
	if (s->found >= rsp)
		out->sp = s->value;
}

#endif
