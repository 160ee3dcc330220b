/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the C functions of a file refer to, for strategies that find one of them by others. Shared
 * by the files of this room only.
 */
#ifndef SAFESCOPED_RTS_CODE_PRIV_H
#define SAFESCOPED_RTS_CODE_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch_priv.h"
#include "elf/elf.h"

/* By their unwind rows, ascending. */
struct code {
	struct elf_file *elf;
	const struct elf_fde *fdes;
	size_t n;
};

/* All code of function i; NULL: the file has not all of it. */
const uint8_t *code__bytes(const struct code *c, size_t i, size_t *ret_len);
/* The function that starts at vaddr; n if there is none. */
size_t code__starts_at(const struct code *c, uint64_t vaddr);
/* Calls fn for each call and unconditional jump of function i. */
void code__each_branch(const struct code *c, size_t i, rts_arch_branch_fn fn, void *ctx);
/* How many of these lead to vaddr. */
size_t code__calls(const struct code *c, size_t i, uint64_t vaddr);
/* Whether function i passes this string, `size` bytes with its NUL, as a first argument. */
bool code__loads_string(const struct code *c, size_t i, const char *string, size_t size);
/* The one function that passes the string at vaddr as a first argument; n if none or several. */
size_t code__user_of(const struct code *c, uint64_t vaddr);
/* The one function that calls that at vaddr, at one place; n if none or several. */
size_t code__caller_of(const struct code *c, uint64_t vaddr);

#endif
