/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The runtime's own C functions in a file without symbols, found by who calls whom. Shared by
 * the files of this room only.
 */
#ifndef SAFESCOPED_RTS_GRAPH_PRIV_H
#define SAFESCOPED_RTS_GRAPH_PRIV_H

#include <stddef.h>
#include <stdint.h>

#include "elf/elf.h"

/* Code functions at most this far apart follow each other: alignment only. */
#define RTS_GRAPH_PADDING 64

/*
 * Sets mark[i] for each of the n functions (fdes, ascending) that is the runtime's, beginning with
 * those that start at the n_seeds addresses. -ENOMEM, -E2BIG: too many calls in the file.
 */
int rts_graph__mark(const struct elf_file *elf, const struct elf_fde *fdes, size_t n,
		    const uint64_t *seeds, size_t n_seeds, uint8_t *mark);

#endif
