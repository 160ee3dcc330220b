/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a file's DWARF has on the addresses that were asked for: many processes of one file meet the
 * same ones, and each answer of a helper takes a switch to it and back, and now and then its start.
 *
 * C code is sampled at any of its instructions, while a frame has one line for all of a function:
 * an answer holds for the block of code it is of. Where the DWARF has nothing, as on libc's
 * memcpy and what else is written in assembly, that holds up to the next block. Haskell code is met
 * at its return addresses, which are few, and an answer holds for the address alone.
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
	/* of C code, and of what the DWARF has nothing on; by start, of one start the longest first
	 */
	struct dwarf_range *blocks;
	size_t n_blocks, blocks_cap;
};

/* 0 or -ENOENT: the answer; -ESRCH: it is not kept. */
int dwarf_kept__find(const struct dwarf_kept *kept, uint64_t vaddr, struct dwarf_place *ret_place);
/* Without memory it is not kept. place: not changed. */
void dwarf_kept__add(struct dwarf_kept *kept, uint64_t vaddr, struct dwarf_place *place);
/* The DWARF has nothing on vaddr, nor from start up to end (both may be 0: on vaddr alone). */
void dwarf_kept__add_nothing(struct dwarf_kept *kept, uint64_t vaddr, uint64_t start, uint64_t end);
/* Empties it. */
void dwarf_kept__clear(struct dwarf_kept *kept);

#endif
