/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The unwind rows of a file, compiled from its .eh_frame into what the kernel side searches
 * (wire.h). Private to the target room.
 *
 * Not through libdw: it gives the row of one address only, and runs the function's whole program
 * for each, which takes many seconds for a file like libLLVM; and it would read the mapped file
 * without the protection that elf_map.h gives. The tests compare every rule with libdw's answer.
 */
#ifndef SAFESCOPED_UNWIND_CFI_H
#define SAFESCOPED_UNWIND_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/elf.h"
#include "target/target.h"

/* Of one file: 64 MB, far more than the largest library has. */
#define CFI_MAX_ROWS (8U << 20)

/*
 * -ENOENT: the file has no rows; -ENOMEM; -E2BIG. `c_only`: there is no Haskell code in it, so that
 * functions without rows are assembly, for which rows can be made.
 */
int cfi__new(struct elf_file *elf, bool c_only, struct target_rows *ret_rows);
/* The rule for an address as in the file: WIRE_CFI_NONE if there is no row. */
uint32_t cfi__rule(const struct target_rows *rows, uint64_t vaddr);

#endif
