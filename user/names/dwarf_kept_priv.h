/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a file's DWARF has on the addresses that were asked for: many processes of one file meet the
 * same ones, and each answer of a helper takes a switch to it and back, and now and then its start.
 *
 * C code is sampled at any of its instructions, while a frame has one line for all of a function:
 * an answer holds for the block of code it is of. Haskell code is met at its return addresses,
 * which are few, and an answer holds for the address alone.
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
