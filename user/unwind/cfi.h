/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compiles a file's .eh_frame into the unwind rows that the kernel side searches (wire_unwind.h).
 * This is the only public header of the room.
 *
 * libdw is not used: it finds the row of a single address, and runs the function's whole program
 * for each, which takes many seconds for a file like libLLVM; and it would read the mapped file
 * without the protection of elf_map_priv.h. The tests compare every rule with libdw's result.
 */
#ifndef SAFESCOPED_UNWIND_CFI_H
#define SAFESCOPED_UNWIND_CFI_H

#include <stdbool.h>
#include <stdint.h>

#include "elf/elf.h"

/* Of one file: 64 MB, far more than the largest library needs. */
#define CFI_MAX_ROWS (8U << 20)

/* A file's rows, in the form that the kernel side searches (wire_unwind.h,
 * WIRE_UNWIND_BUCKET_SHIFT). */
struct cfi_rows {
	uint64_t base;	 /* as in the file; the rows' addresses are relative to it */
	uint64_t *words; /* n_buckets buckets, then n_rows rows */
	uint32_t n_buckets, n_rows;
};

/*
 * -ENOENT: the file has no rows; -ENOMEM; -E2BIG; read aside, so it may also return elf__aside()'s
 * errors. `c_only`: the file has no Haskell code, so functions without rows are assembly, for which
 * rows can be made. Otherwise rows are made for functions without any that are called by C code or
 * by Haskell code.
 */
int cfi__new(struct elf_file *elf, bool c_only, struct cfi_rows *ret_rows);
/*
 * Checks what a child returned: each row is in its bucket, and rows ascend. The rules themselves
 * may be anything: the kernel side accepts any rule.
 */
bool cfi_rows__check(const struct cfi_rows *rows);
void cfi_rows__free(struct cfi_rows *rows);

#endif
