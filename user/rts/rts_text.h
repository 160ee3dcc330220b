/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which code is the runtime's own C, and which of that the collector's.
 *
 * Code that GHC makes has no unwind rows, C code has. The C code of the file that holds the
 * runtime may also be a program's own (cbits), gmp, libffi or a static libc: the runtime's is found
 * by the names of its functions, and what lies between two of them is its own too, since the
 * linker keeps an archive's members together.
 */
#ifndef SAFESCOPED_RTS_TEXT_H
#define SAFESCOPED_RTS_TEXT_H

#include <stdint.h>

#include "rts.h"

struct rts_text;

/*
 * Read aside (elf__aside(), whose errors it gives): -EBUSY says nothing of the file. -ENOMEM. A
 * file without unwind rows has parts of no code.
 */
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

#endif
