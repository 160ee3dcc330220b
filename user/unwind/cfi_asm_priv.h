/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows for hand-written assembly that has none (gmp's inner loops): follows the code to find the
 * stack's depth at each instruction. Shared by the files of this room only.
 */
#ifndef SAFESCOPED_UNWIND_CFI_ASM_PRIV_H
#define SAFESCOPED_UNWIND_CFI_ASM_PRIV_H

#include <stddef.h>
#include <stdint.h>

/* Longer functions are skipped. */
#define CFI_ASM_MAX_LEN 65536

struct cfi_asm;

int cfi_asm__new(struct cfi_asm **ret_asm);
void cfi_asm__free(struct cfi_asm *a);

typedef int (*cfi_asm_fn)(void *ctx, uint64_t start, uint64_t end, uint32_t rule);

/*
 * Calls fn for each range of the function whose rule is known, ascending. Nothing is reported
 * (-EILSEQ) unless every path through the code is consistent: the same depth wherever paths meet,
 * and stack and frame pointer restored at every return and tail call.
 */
int cfi_asm__run(struct cfi_asm *a, const uint8_t *code, size_t len, uint64_t addr, cfi_asm_fn fn,
		 void *ctx);

#endif
