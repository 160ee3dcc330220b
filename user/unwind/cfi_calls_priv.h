/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the functions that a file's code calls directly: calls by C code, which has rows, and by
 * Haskell code, which has none. Shared by the files of this room only.
 */
#ifndef SAFESCOPED_UNWIND_CFI_CALLS_PRIV_H
#define SAFESCOPED_UNWIND_CFI_CALLS_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/elf.h"

struct cfi_arch;

struct cfi_calls {
	struct elf_file *elf;
	const struct elf_fde *fdes; /* sorted */
	size_t n_fdes;
	struct cfi_arch *arch;
	/*
	 * Called with `add` false to ask whether a target is wanted, then with `add` true to add
	 * it. 1: it is wanted; 0: it is not; a negative errno ends the search.
	 */
	int (*fn)(void *ctx, uint64_t target, bool add);
	void *ctx;
};

/* Calls, and jumps, which may be tail calls, in the code with rows. */
int cfi_calls__of_c(const struct cfi_calls *calls);
/* Calls as GHC generates them, in all other code. */
int cfi_calls__of_haskell(const struct cfi_calls *calls);

#endif
