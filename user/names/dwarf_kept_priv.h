/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a file's DWARF was found to say: many processes of one file meet the same addresses, and
 * each answer of a helper takes two switches to it and back, and a start of it now and then.
 *
 * C code is sampled at any of its instructions, and a frame has one place for all of a function: an
 * answer is for the whole block it is of. Haskell's is for the address alone, since a block of that
 * has no symbol of its own.
 *
 * Shared by the files of this room only.
 */
#ifndef SAFESCOPED_NAMES_DWARF_KEPT_PRIV_H
#define SAFESCOPED_NAMES_DWARF_KEPT_PRIV_H

#include <stddef.h>

#include "names/dwarf_priv.h"

/* Of a file, some 2 MB: with one more all go. */
#define DWARF_KEPT_MAX 4096

struct dwarf_answer;

struct dwarf_range {
	uint64_t start, end;
	const struct dwarf_answer *answer;
};

/* Zeroed it is empty. */
struct dwarf_kept {
	struct dwarf_answer *answers; /* by address */
	struct dwarf_range *blocks;   /* of C code, by start; of one start the longest first */
	size_t n_blocks, blocks_cap;
};

/* 0 or -ENOENT: the answer; -ESRCH: it is not kept. */
int dwarf_kept__find(const struct dwarf_kept *kept, uint64_t vaddr, struct dwarf_place *ret_place);
/* place: not changed; NULL: the DWARF has nothing on it. Without memory it is not kept. */
void dwarf_kept__add(struct dwarf_kept *kept, uint64_t vaddr, struct dwarf_place *place);
/* Empties it. */
void dwarf_kept__clear(struct dwarf_kept *kept);

#endif
