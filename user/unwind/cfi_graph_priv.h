/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows for C code that has none (a libc built without them, assembly in a static program), among
 * Haskell code, which has none either. Shared by the files of this room only.
 *
 * Functions begin at the targets of calls in C code, and of all calls in Haskell code, which calls
 * nothing but C. From there the code is followed as a processor would, and each instruction gets
 * the stack's depth and the place of the caller's frame pointer. A function is believed if some
 * path through it returns with everything as it was at its entry. If a call does not return, the
 * code after it may be another function: an entry that is called directly has a better claim to an
 * instruction than a path that reaches it after a call, and paths that lead to a return at the
 * wrong depth are dropped.
 */
#ifndef SAFESCOPED_UNWIND_CFI_GRAPH_PRIV_H
#define SAFESCOPED_UNWIND_CFI_GRAPH_PRIV_H

#include <stddef.h>
#include <stdint.h>

#include "elf/elf.h"

/* Of one file: a libc has some hundred thousand. */
#define CFI_GRAPH_MAX_INSNS (1U << 20)

struct cfi_graph;

/*
 * -ENOMEM. The FDEs show which code has rows, and stay the caller's. `base`: only code from there
 * on, up to 4 GB, is considered.
 */
int cfi_graph__new(struct elf_file *elf, const struct elf_fde *fdes, size_t n_fdes, uint64_t base,
		   struct cfi_graph **ret_graph);
void cfi_graph__free(struct cfi_graph *graph);

/* Adds a function's entry; ignored if it has unwind rows, or is not code. -ENOMEM. */
int cfi_graph__add(struct cfi_graph *graph, uint64_t vaddr);
/* Adds the functions called by C code with rows, and those called by Haskell code. -ENOMEM. */
int cfi_graph__add_called(struct cfi_graph *graph);

/* Called with ranges whose rule is known, ascending. Non-zero ends the run. */
typedef int (*cfi_graph_fn)(void *ctx, uint64_t start, uint64_t end, uint32_t rule);
/* Follows everything added, and what it leads to. Call it once. -ENOMEM, or what fn returned. */
int cfi_graph__run(struct cfi_graph *graph, cfi_graph_fn fn, void *ctx);

#endif
