/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which code is the runtime's own C code, which part of that is the collector's, and what its
 * functions are called if they have no symbols.
 *
 * GHC's generated code has no unwind rows, C code has. The C code in the file that holds the
 * runtime may also be a program's own (cbits), gmp, libffi or a static libc. The runtime's is
 * identified by the names of its functions; what lies between two of them belongs to it too, since
 * the linker keeps an archive's members together.
 */
#ifndef SAFESCOPED_RTS_TEXT_H
#define SAFESCOPED_RTS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rts.h"

struct rts_text;

/* Reads the file in a confined child: elf__aside()'s errors, of which -EBUSY says nothing about
 * the file. */
int rts_text__new(const struct rts *rts, struct rts_text **ret_text);
void rts_text__free(struct rts_text *text);

enum rts_part {
	RTS_PART_UNKNOWN = 0, /* code without unwind rows */
	RTS_PART_C,	      /* not the runtime's own */
	RTS_PART_RTS,	      /* the runtime's, except for the collector */
	RTS_PART_GC,
};

/* vaddr is an address in the runtime's file; `name`, the symbol there, may be "". */
enum rts_part rts_text__part(const struct rts_text *text, uint64_t vaddr, const char *name);

/* For a function that is known to be the runtime's: RTS_PART_RTS or RTS_PART_GC, by its name. */
enum rts_part rts_text__part_of(const char *name);

/*
 * The name of the function at vaddr in a file without a symbol table, by the strings that it uses
 * and by who calls it. A string literal, or NULL if unknown.
 */
const char *rts_text__name(const struct rts_text *text, uint64_t vaddr);

/*
 * True if the code without unwind rows at vaddr is the runtime's own Cmm code: it lies among the
 * runtime's C functions.
 */
bool rts_text__is_cmm(const struct rts_text *text, uint64_t vaddr);

/* Validates a child's result for n functions: parts and names are within range. */
bool rts_text__check(const uint8_t *parts, const uint16_t *names, size_t n);

#endif
