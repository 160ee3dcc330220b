/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What of GHC's runtime depends on the processor: the shapes of code that the finder looks for.
 * insn.h has what it takes from decoded instructions (where to probe, calls, safe calls); here are
 * the shapes that are found by their bytes, before anything is decoded.
 *
 * For another processor, an arch_NAME.c and an insn_NAME.c in this room provide all of this and of
 * insn.h and stand in the place of those for x86_64. What else has to be known of it is in arch.h
 * of the rooms elf and unwind, and in bpf/arch.bpf.h: the registers that Haskell code keeps Sp and
 * BaseReg in, and where the kernel has a thread's registers.
 */
#ifndef SAFESCOPED_RTS_ARCH_PRIV_H
#define SAFESCOPED_RTS_ARCH_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ── who refers to what, in `len` bytes of code at addr ──────────────────────────────────── */

enum rts_arch_branch {
	RTS_ARCH_CALL = 1, /* direct */
	RTS_ARCH_JUMP = 2, /* unconditional: a tail call, if it leaves the function */
	RTS_ARCH_COND = 4,
};

/*
 * Calls fn for what looks like a branch of one of these kinds (a sum) at any byte, ascending, until
 * it returns false: `next` is the address after it, for a call its return address. Bytes that are
 * no instruction may look like one.
 */
typedef bool (*rts_arch_branch_fn)(void *ctx, uint64_t target, uint64_t next);
void rts_arch__branches(const uint8_t *code, size_t len, uint64_t addr, unsigned int kinds,
			rts_arch_branch_fn fn, void *ctx);

/* The same for what looks like a load of an address as a function's first argument. */
typedef bool (*rts_arch_load_fn)(void *ctx, uint64_t target);
void rts_arch__loads(const uint8_t *code, size_t len, uint64_t addr, rts_arch_load_fn fn,
		     void *ctx);

/*
 * The same for what looks like an instruction that has an address in [lo, hi] as an operand: lea,
 * or any instruction's constant.
 */
void rts_arch__addresses(const uint8_t *code, size_t len, uint64_t addr, uint64_t lo, uint64_t hi,
			 rts_arch_load_fn fn, void *ctx);

/* How many places look like an atomic exchange, with or without a comparison. */
size_t rts_arch__n_exchanges(const uint8_t *code, size_t len);

/* Bytes of an operand by which an instruction refers to data. */
#define RTS_ARCH_OPERAND 4
/* The offset, from `from` on, of the next operand that may refer to target; len: there is none. */
size_t rts_arch__find_operand(const uint8_t *code, size_t len, uint64_t addr, uint64_t target,
			      size_t from);
/* What the operand at `code`, whose address is addr, may refer to. */
void rts_arch__operand(const uint8_t *code, uint64_t addr, uint64_t ret_targets[2]);

/* ── functions of the runtime ────────────────────────────────────────────────────────────── */

/* The instruction that a safe foreign call begins with: BaseReg as suspendThread's argument. */
#define RTS_ARCH_SAFE_CALL 3
/* The first place from p on where it stands; end if there is none. */
const uint8_t *rts_arch__find_safe_call(const uint8_t *p, const uint8_t *end);

/*
 * Where in StgRun's code StgReturn begins, which is a label there: Haskell code comes back to it
 * (rts/StgCRun.c). 0: the function's code is not StgRun's.
 */
size_t rts_arch__stgreturn(const uint8_t *code, size_t len);

/* What stat_startGCSync (rts/Stats.c) does, and no more. */
struct rts_arch_note {
	uint64_t clock; /* the function that it asks for the time */
	uint32_t field; /* of its argument's struct, where it puts that */
};
/* The length of such a function at the beginning of the code; 0: it is none. */
size_t rts_arch__note(const uint8_t *code, size_t len, uint64_t addr,
		      struct rts_arch_note *ret_note);
/* Calls fn for what looks like an instruction that adds one to a 32-bit word at a fixed address,
 * until it returns false. */
void rts_arch__counts(const uint8_t *code, size_t len, uint64_t addr, rts_arch_load_fn fn,
		      void *ctx);
/* Whether some place stores a function's result into that field of a struct. */
bool rts_arch__stores_result(const uint8_t *code, size_t len, uint32_t field);

#endif
