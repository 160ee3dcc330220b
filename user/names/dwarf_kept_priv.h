/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A cache of a file's DWARF answers, by address: many processes of one file ask for the same
 * addresses, and each answer of a helper costs a switch to it and back, and sometimes the start of
 * a helper.
 *
 * C code is sampled at any instruction, while a frame has one line for the whole function: so an
 * answer holds for its block of code. If the DWARF has nothing, as for libc's memcpy and other
 * assembly, that holds up to the next block. Haskell code is met at its return addresses, which are
 * few, so an answer holds for that address alone.
 *
 * Shared by the files of this room only.
 */
#ifndef SAFESCOPED_NAMES_DWARF_KEPT_PRIV_H
#define SAFESCOPED_NAMES_DWARF_KEPT_PRIV_H

#include <stddef.h>

#include "names/dwarf_priv.h"

/* Entries for one file, some 2 MB; the cache is emptied when it would exceed that. */
#define DWARF_KEPT_MAX 4096

struct dwarf_answer;

struct dwarf_range {
	uint64_t start, end;
	const struct dwarf_answer *answer;
};

/* Empty if zeroed. */
struct dwarf_kept {
	struct dwarf_answer *answers; /* by address */
	/* for C code, and for ranges where the DWARF has nothing; by start, of equal starts the
	 * longest first */
	struct dwarf_range *blocks;
	size_t n_blocks, blocks_cap;
};

/* 0 or -ENOENT: the cached answer; -ESRCH: not in the cache. */
int dwarf_kept__find(const struct dwarf_kept *kept, uint64_t vaddr, struct dwarf_place *ret_place);
/* Adds an answer, unless out of memory. *place is not changed. */
void dwarf_kept__add(struct dwarf_kept *kept, uint64_t vaddr, struct dwarf_place *place);
/* Notes that the DWARF has nothing on vaddr, nor from start to end (both 0: on vaddr alone). */
void dwarf_kept__add_nothing(struct dwarf_kept *kept, uint64_t vaddr, uint64_t start, uint64_t end);
/* Empties it. */
void dwarf_kept__clear(struct dwarf_kept *kept);

#endif
