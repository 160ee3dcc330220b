/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The call frame instructions of one FDE: what they state of CFA, return address and frame pointer.
 * Shared by the files of this room only.
 */
#ifndef SAFESCOPED_UNWIND_CFI_RUN_PRIV_H
#define SAFESCOPED_UNWIND_CFI_RUN_PRIV_H

#include "elf/elf_eh.h"

/* What is followed: frame pointer, stack pointer, return address. */
enum cfi_reg { CFI_FP, CFI_SP, CFI_RA, CFI_REGS };

enum cfi_how {
	CFI_UNSAID,	/* no instruction concerns it: unchanged */
	CFI_OFFSET,	/* at CFA + value */
	CFI_VAL_OFFSET, /* is CFA + value */
	CFI_UNDEFINED,
	CFI_EXPR,     /* at the address that the expression gives */
	CFI_VAL_EXPR, /* is what the expression gives */
	CFI_OTHER,    /* in another register, whose DWARF number is the value */
};

struct cfi_expr {
	uint64_t at; /* in the section */
	uint32_t len;
};

struct cfi_place {
	enum cfi_how how;
	int64_t value;
	struct cfi_expr expr;
};

struct cfi_state {
	bool by_expr; /* CFA is what `expr` gives, else register + offset */
	uint64_t reg; /* DWARF number */
	int64_t offset;
	struct cfi_expr expr;
	struct cfi_place regs[CFI_REGS];
};

/* Called with the code [start, end) over which a state holds. Non-zero ends the run. */
typedef int (*cfi_row_fn)(void *ctx, uint64_t start, uint64_t end, const struct cfi_state *state);

/* Runs an FDE. -EBADMSG: instructions that are not known, or damaged; rows before it stay. */
int cfi__run(const struct eh_cursor *section, const struct eh_cie *cie, const struct eh_fde *fde,
	     cfi_row_fn fn, void *ctx);

/* cfi_rule.c: a state as a rule of wire.h. */
uint32_t cfi__pack(const struct eh_cursor *section, const struct cfi_state *state);

#endif
