/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which code is the runtime's own C, which of that the collector's, and what its functions are
 * called where they have no symbols.
 *
 * Code that GHC makes has no unwind rows, C code has. The C code of the file that holds the
 * runtime may also be a program's own (cbits), gmp, libffi or a static libc: the runtime's is found
 * by the names of its functions, and what lies between two of them is its own too, since the
 * linker keeps an archive's members together.
 */
#ifndef SAFESCOPED_RTS_TEXT_H
#define SAFESCOPED_RTS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rts.h"

struct rts_text;

/* The file is read aside: elf__aside()'s errors, of which -EBUSY shows nothing of the file. */
int rts_text__new(const struct rts *rts, struct rts_text **ret_text);
void rts_text__free(struct rts_text *text);

enum rts_part {
	RTS_PART_UNKNOWN = 0, /* code without unwind rows */
	RTS_PART_C,	      /* not the runtime's own */
	RTS_PART_RTS,	      /* the runtime's, the collector left out */
	RTS_PART_GC,
};

/* vaddr is an address in the runtime's file; `name` of the symbol there may be "". */
enum rts_part rts_text__part(const struct rts_text *text, uint64_t vaddr, const char *name);

/* Of a function that is known to be the runtime's own: RTS_PART_RTS or RTS_PART_GC, by its name. */
enum rts_part rts_text__part_of(const char *name);

/*
 * What the function at vaddr is called, by the strings that it uses and by who calls it: for files
 * without a symbol table. NULL: not known. A literal.
 */
const char *rts_text__name(const struct rts_text *text, uint64_t vaddr);

/*
 * Whether code without unwind rows at vaddr is the runtime's own Cmm code: it lies among the
 * runtime's C functions.
 */
bool rts_text__is_cmm(const struct rts_text *text, uint64_t vaddr);

/* Of what a child made of n functions: parts and names are such. */
bool rts_text__check(const uint8_t *parts, const uint16_t *names, size_t n);

#endif
