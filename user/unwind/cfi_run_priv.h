/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interprets the call frame instructions of one FDE: where CFA, return address and frame pointer
 * are. Shared by the files of this room only.
 */
#ifndef SAFESCOPED_UNWIND_CFI_RUN_PRIV_H
#define SAFESCOPED_UNWIND_CFI_RUN_PRIV_H

#include "elf/elf_eh.h"

/* The tracked registers: frame pointer, stack pointer, return address. */
enum cfi_reg { CFI_FP, CFI_SP, CFI_RA, CFI_REGS };

enum cfi_how {
	CFI_UNSAID,	/* no instruction mentions it: unchanged */
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
	bool by_expr; /* CFA is the value of `expr`, else register + offset */
	uint64_t reg; /* DWARF number */
	int64_t offset;
	struct cfi_expr expr;
	struct cfi_place regs[CFI_REGS];
};

/* Called with the code [start, end) for which a state holds. Non-zero ends the run. */
typedef int (*cfi_row_fn)(void *ctx, uint64_t start, uint64_t end, const struct cfi_state *state);

/* Runs an FDE. -EBADMSG: unknown or damaged instructions; rows reported before stay valid. */
int cfi__run(const struct eh_cursor *section, const struct eh_cie *cie, const struct eh_fde *fde,
	     cfi_row_fn fn, void *ctx);

/* cfi_rule.c: encodes a state as a rule of wire_unwind.h. */
uint32_t cfi__pack(const struct eh_cursor *section, const struct cfi_state *state);

#endif
