/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the C functions of a file refer to, for strategies that find one function through others.
 * For the files of this room only.
 */
#ifndef SAFESCOPED_RTS_CODE_PRIV_H
#define SAFESCOPED_RTS_CODE_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch_priv.h"
#include "elf/elf.h"

/* The C functions, as their unwind rows show them; ascending. */
struct code {
	struct elf_file *elf;
	const struct elf_fde *fdes;
	size_t n;
};

/* All code of function i; NULL: the file does not have all of it. */
const uint8_t *code__bytes(const struct code *c, size_t i, size_t *ret_len);
/* The function that starts at vaddr; n if there is none. */
size_t code__starts_at(const struct code *c, uint64_t vaddr);
/* Calls fn for each call and unconditional jump of function i. */
void code__each_branch(const struct code *c, size_t i, rts_arch_branch_fn fn, void *ctx);
/* How many of these branch to vaddr. */
size_t code__calls(const struct code *c, size_t i, uint64_t vaddr);
/* True if function i passes this string, `size` bytes with its NUL, as a first argument. */
bool code__loads_string(const struct code *c, size_t i, const char *string, size_t size);
/* The only function that passes the string at vaddr as a first argument; n if none or several
 * do. */
size_t code__user_of(const struct code *c, uint64_t vaddr);
/* The only function that calls vaddr, in one place only; n if none or several do. */
size_t code__caller_of(const struct code *c, uint64_t vaddr);

#endif
