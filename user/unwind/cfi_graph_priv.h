/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows for C code that has none (a libc built without them, assembly in a static program), among
 * Haskell code, which has none either. Shared by the files of this room only.
 *
 * Functions begin where C code calls to, and where Haskell code calls at all: it calls nothing but
 * C. From there the code is followed as the processor would, and each instruction gets the stack's
 * depth and the place of the caller's frame pointer. A function is believed if some way through it
 * returns with everything as it was at its entry. Where a call may not return, what follows it may
 * be another function: who is called by name has the better claim to an instruction than who falls
 * into it after a call, and what leads to a return at the wrong depth is dropped.
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
 * -ENOMEM. The FDEs say what has rows, and are the caller's. `base`: addresses from there on, up
 * to 4 GB, are looked at.
 */
int cfi_graph__new(struct elf_file *elf, const struct elf_fde *fdes, size_t n_fdes, uint64_t base,
		   struct cfi_graph **ret_graph);
void cfi_graph__free(struct cfi_graph *graph);

/* A function's entry; one that has unwind rows, or that is no code, is left alone. -ENOMEM. */
int cfi_graph__add(struct cfi_graph *graph, uint64_t vaddr);
/* The functions that C code with rows calls, and those that Haskell code does. -ENOMEM. */
int cfi_graph__add_called(struct cfi_graph *graph);

/* Called with ranges whose rule is known, ascending. Non-zero ends it. */
typedef int (*cfi_graph_fn)(void *ctx, uint64_t start, uint64_t end, uint32_t rule);
/* Follows all that was added, and what that leads to. Once. -ENOMEM; what fn returned. */
int cfi_graph__run(struct cfi_graph *graph, cfi_graph_fn fn, void *ctx);

#endif
