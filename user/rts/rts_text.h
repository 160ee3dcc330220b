/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which code is the runtime's own C, and which of that the collector's. Private to the target
 * room.
 *
 * Code that GHC makes has no unwind rows, C code has. The C code of the file that holds the
 * runtime may also be a program's own (cbits), gmp, libffi or a static libc: the runtime's is told
 * by the names of its functions, and what lies between two of them is its own too, since the
 * linker keeps an archive's members together.
 */
#ifndef SAFESCOPED_RTS_TEXT_H
#define SAFESCOPED_RTS_TEXT_H

#include <stdint.h>

#include "rts_find.h"

struct rts_text;

int rts_text__new(const struct rts *rts, struct rts_text **ret_text);
void rts_text__free(struct rts_text *text);

/*
 * CODE_RTS, CODE_GC, CODE_C, or CODE_UNKNOWN for code without unwind rows. vaddr is an address in
 * the runtime's file; `name` of the symbol there may be "".
 */
enum code_class rts_text__class(const struct rts_text *text, uint64_t vaddr, const char *name);

#endif
