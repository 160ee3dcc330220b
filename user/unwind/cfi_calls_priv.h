/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which functions a file's code calls directly: by C code that has rows, and by Haskell code, which
 * has none. Shared by the files of this room only.
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
	 * First asked with `add` false whether that target is wanted, then given it. 1: it is;
	 * 0: it is not; a negative errno ends all.
	 */
	int (*fn)(void *ctx, uint64_t target, bool add);
	void *ctx;
};

/* Calls, and jumps, which may be the last call of a function, of the code with rows. */
int cfi_calls__of_c(const struct cfi_calls *calls);
/* Calls as GHC makes them in all other code. */
int cfi_calls__of_haskell(const struct cfi_calls *calls);

#endif
