/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The processor-dependent parts of finding GHC's runtime: the code patterns that the finder looks
 * for. insn.h has what needs decoded instructions (where to probe, calls, safe calls); this header
 * has the patterns that are found by their bytes, before anything is decoded.
 *
 * To support another processor, an arch_NAME.c and an insn_NAME.c in this room implement all of
 * this and of insn.h in place of those for x86_64. The rest is in arch.h of the rooms elf and
 * unwind, and in bpf/arch.bpf.h: the registers in which Haskell code keeps Sp and BaseReg, and
 * where the kernel keeps a thread's registers.
 */
#ifndef SAFESCOPED_RTS_ARCH_PRIV_H
#define SAFESCOPED_RTS_ARCH_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ── who refers to what, in `len` bytes of code at addr ──────────────────────────────────── */

enum rts_arch_branch {
	RTS_ARCH_CALL = 1, /* direct */
	RTS_ARCH_JUMP = 2, /* unconditional; a tail call if it leaves the function */
	RTS_ARCH_COND = 4,
};

/*
 * Calls fn for everything that looks like a branch of one of these kinds (ORed), at any byte
 * offset, ascending, until fn returns false. `next` is the address after the branch: for a call,
 * its return address. Bytes that are not an instruction may look like a branch.
 */
typedef bool (*rts_arch_branch_fn)(void *ctx, uint64_t target, uint64_t next);
void rts_arch__branches(const uint8_t *code, size_t len, uint64_t addr, unsigned int kinds,
			rts_arch_branch_fn fn, void *ctx);

/* The same for what looks like loading an address as a function's first argument. */
typedef bool (*rts_arch_load_fn)(void *ctx, uint64_t target);
void rts_arch__loads(const uint8_t *code, size_t len, uint64_t addr, rts_arch_load_fn fn,
		     void *ctx);

/*
 * The same for what looks like an instruction with an address in [lo, hi] as an operand: lea, or
 * the constant of any instruction.
 */
void rts_arch__addresses(const uint8_t *code, size_t len, uint64_t addr, uint64_t lo, uint64_t hi,
			 rts_arch_load_fn fn, void *ctx);

/* The number of places that look like an atomic exchange, with or without a comparison. */
size_t rts_arch__n_exchanges(const uint8_t *code, size_t len);

/* Size in bytes of an operand by which an instruction refers to data. */
#define RTS_ARCH_OPERAND 4
/* The offset of the next operand, from `from` on, that may refer to target; len: none. */
size_t rts_arch__find_operand(const uint8_t *code, size_t len, uint64_t addr, uint64_t target,
			      size_t from);
/* What the operand at `code`, whose address is addr, may refer to: two candidates. */
void rts_arch__operand(const uint8_t *code, uint64_t addr, uint64_t ret_targets[2]);

/* ── functions of the runtime ────────────────────────────────────────────────────────────── */

/* Length of the instruction that a safe foreign call begins with: BaseReg as suspendThread's
 * argument. */
#define RTS_ARCH_SAFE_CALL 3
/* The first occurrence of it from p on; end if there is none. */
const uint8_t *rts_arch__find_safe_call(const uint8_t *p, const uint8_t *end);

/*
 * The offset in StgRun's code of the label StgReturn, to which Haskell code returns
 * (rts/StgCRun.c). 0: the function is not StgRun.
 */
size_t rts_arch__stgreturn(const uint8_t *code, size_t len);

/* What stat_startGCSync (rts/Stats.c) does: it stores the time, and nothing else. */
struct rts_arch_note {
	uint64_t clock; /* the function that it gets the time from */
	uint32_t field; /* the offset at which it stores the time in its argument's struct */
};
/* The length of such a function at the beginning of the code; 0: it is another function. */
size_t rts_arch__note(const uint8_t *code, size_t len, uint64_t addr,
		      struct rts_arch_note *ret_note);
/* Calls fn for everything that looks like an instruction that increments a 32-bit word at a
 * fixed address, until fn returns false. */
void rts_arch__counts(const uint8_t *code, size_t len, uint64_t addr, rts_arch_load_fn fn,
		      void *ctx);
/* True if some place stores a function's result at offset `field` of a struct. */
bool rts_arch__stores_result(const uint8_t *code, size_t len, uint32_t field);

#endif
