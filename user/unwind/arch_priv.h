/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What of unwinding depends on the processor: which registers are followed, the shapes of the
 * expressions that linkers and the kernel's C library write, and what an instruction does to the
 * stack. For another one, an arch_NAME.c in this room provides all of this and stands in the place
 * of arch_x86_64.c; the rules that it may give, their registers and their encoding are in wire.h,
 * and the kernel side that follows them is in bpf/unwind.bpf.h.
 */
#ifndef SAFESCOPED_UNWIND_ARCH_PRIV_H
#define SAFESCOPED_UNWIND_ARCH_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cfi_run_priv.h"

/* DWARF register numbers. */
#if defined(__x86_64__)
/* System V ABI, figure 3.36: rbp, rsp */
#define CFI_ARCH_COLUMN_FP 6
#define CFI_ARCH_COLUMN_SP 7
/* rdi: where glibc's vfork() keeps its return address (sysdeps/unix/sysv/linux/x86_64/vfork.S) */
#define CFI_ARCH_COLUMN_RA 5
#else
#error "no unwind/arch_NAME.c for this processor"
#endif

/*
 * CFI_REGS: neither frame nor stack pointer. (The return address has a column of its own, which
 * each CIE names.) Inline: it is asked for each instruction of all rows.
 */
static inline enum cfi_reg cfi_arch__reg(uint64_t column)
{
	if (column == CFI_ARCH_COLUMN_FP)
		return CFI_FP;
	return column == CFI_ARCH_COLUMN_SP ? CFI_SP : CFI_REGS;
}

/* Where a call has put the return address, relative to the CFA. */
#define CFI_ARCH_RA_AT (-8)

/* An expression of the shape register + offset [deref [+ constant]]. */
struct cfi_shape {
	enum cfi_reg reg; /* CFI_FP or CFI_SP */
	int64_t offset;
	bool deref;
	uint64_t plus;
};
/* False: the expression has another shape, or is damaged. */
bool cfi_arch__shape(const struct eh_cursor *section, const struct cfi_expr *expr,
		     struct cfi_shape *ret_shape);

/*
 * The expression that a linker writes for .plt: CFA = stack pointer + 8, and 8 more from byte
 * *ret_from of a 16-byte entry on.
 */
bool cfi_arch__is_plt(const struct eh_cursor *section, const struct cfi_expr *expr,
		      uint32_t *ret_from);

/* ── instructions, for functions without rows ────────────────────────────────────────────── */

enum cfi_flow {
	CFI_FLOW_ON,   /* to the next instruction; calls come back */
	CFI_FLOW_JUMP, /* see `target` and `conditional` */
	CFI_FLOW_RET,
	CFI_FLOW_STOP, /* a trap: nothing comes after it */
};

enum cfi_effect {
	CFI_EFFECT_NONE,
	CFI_EFFECT_PUSH, /* one word; `fp`: the frame pointer */
	CFI_EFFECT_POP,
	CFI_EFFECT_MOVE, /* the stack pointer moves by `bytes`, which are few enough to add up */
	CFI_EFFECT_FP,	 /* the frame pointer is overwritten */
	CFI_EFFECT_FP_FROM_SP, /* … by the stack pointer + `bytes` */
	CFI_EFFECT_SP_FROM_FP, /* the stack pointer becomes the frame pointer + `bytes` */
	CFI_EFFECT_LEAVE,      /* the same, and the frame pointer is popped */
	CFI_EFFECT_LOST,       /* the stack pointer is somewhere else now */
};

#define CFI_COMPARES_OTHER UINT32_MAX

struct cfi_insn {
	size_t size;
	enum cfi_flow flow;
	enum cfi_effect effect;
	bool conditional, direct; /* of a jump; direct: it has a target */
	bool fp;
	bool nop;
	bool call;    /* flow goes on after it; direct: it has a target */
	bool fp_base; /* an address is made from the frame pointer */
	bool above;   /* a conditional jump if what was compared is larger, without a sign */
	/*
	 * It compares something with a number: that + 1; CFI_COMPARES_OTHER: it may set the flags
	 * to something else; 0: it leaves them.
	 */
	uint32_t compares;
	int64_t bytes;
	uint64_t target;
	uint64_t loads; /* an address that it computes or has as a constant; 0: none */
	/* of an indirect jump by a table of absolute addresses: where that is; 0: another one */
	uint64_t table;
};

/*
 * Calls fn for what looks like a direct call, at any byte of the code: its return address is
 * `next`; of C code a jump as well, which may be the last call of a function. With `by_ghc` only
 * for such as GHC's native code generator makes them, which realigns the stack before a call of C
 * and after it (GHC/CmmToAsm/X86/CodeGen.hs, genCCall64).
 */
#define CFI_ARCH_CALL_SIZE 5 /* of such an instruction */
typedef void (*cfi_arch_call_fn)(void *ctx, uint64_t target, uint64_t next);
void cfi_arch__calls(const uint8_t *code, size_t len, uint64_t addr, bool by_ghc,
		     cfi_arch_call_fn fn, void *ctx);

/* A decoder. -ENOMEM. */
struct cfi_arch;
int cfi_arch__new(struct cfi_arch **ret_arch);
void cfi_arch__free(struct cfi_arch *arch);
/* The instruction at `code`, whose address is addr; false if there is none within len bytes. */
bool cfi_arch__decode(struct cfi_arch *arch, const uint8_t *code, size_t len, uint64_t addr,
		      struct cfi_insn *ret_insn);

#endif
