/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The unwind rows of a file, compiled from its .eh_frame into what the kernel side searches
 * (wire.h): all that this room offers.
 *
 * Not through libdw: it gives the row of one address only, and runs the function's whole program
 * for each, which takes many seconds for a file like libLLVM; and it would read the mapped file
 * without the protection that elf_map_priv.h gives. The tests compare every rule with libdw's
 * answer.
 */
#ifndef SAFESCOPED_UNWIND_CFI_H
#define SAFESCOPED_UNWIND_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/elf.h"

/* Of one file: 64 MB, far more than the largest library has. */
#define CFI_MAX_ROWS (8U << 20)

/* A file's rows, as the kernel side searches them (wire.h, WIRE_UNWIND_BUCKET_SHIFT). */
struct cfi_rows {
	uint64_t base;	 /* address, as in the file, that the rows' addresses count from */
	uint64_t *words; /* n_buckets buckets, then n_rows rows */
	uint32_t n_buckets, n_rows;
};

/*
 * -ENOENT: the file has no rows; -ENOMEM; -E2BIG; read aside, so that elf__aside()'s errors may
 * come as well. `c_only`: there is no Haskell code in it, so that functions
 * without rows are assembly, for which rows can be made. Else rows are made for the functions
 * without any that C code calls, or that Haskell code does.
 */
int cfi__new(struct elf_file *elf, bool c_only, struct cfi_rows *ret_rows);
/*
 * What comes of a child that made them: each row is in its bucket, and they ascend. What a row says
 * may be anything: the kernel side takes any rule.
 */
bool cfi_rows__check(const struct cfi_rows *rows);
void cfi_rows__free(struct cfi_rows *rows);

#endif
