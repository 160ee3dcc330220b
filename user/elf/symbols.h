/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symbols: the code symbols of one ELF file, sorted by address. Takes twelve bytes per symbol;
 * names stay in the file's mapping.
 *
 * GHC's code follows its info table (tables next to code), and the symbol X_info has the code's
 * address, so an info pointer is found exactly. The symbol's size (GHC/CmmToAsm/X86/Ppr.hs,
 * pprSizeDecl) includes the return points of the same procedure. Local closures are procedures
 * without a symbol (internalNamePrefix, 8.10 to 9.14): the nearest symbol below one ends before it,
 * so it names the closure only roughly and is not an exact hit.
 */
#ifndef SAFESCOPED_ELF_SYMBOLS_H
#define SAFESCOPED_ELF_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/elf.h"

#define SYMBOLS_MAX_DISTANCE (1U << 20) /* a symbol further below is meaningless */

struct symbols;

struct symbols_hit {
	const char *name; /* NUL-terminated, in the mapping: lives as long as the elf_file */
	size_t name_len;  /* at most 65535 */
	uint64_t start;	  /* of the symbol, as in the file */
	uint64_t size;	  /* 0: not known */
	bool exact;	  /* covers the address or begins there; else it is the nearest one below */
	uint8_t type, bind; /* STT_…, STB_… */
};

/*
 * Uses .symtab if the file has one, else the debug file's (NULL: none; the caller checks its
 * build-id), else .dynsym. Both files must outlive the result. A file without symbols gives an
 * empty index. Read aside (elf__aside(), whose errors it returns); after that only names that are
 * asked for are read, each within its table.
 */
int symbols__new(const struct elf_file *elf, struct symbols **ret_symbols);
int symbols__new_debug(const struct elf_file *elf, const struct elf_file *debug,
		       struct symbols **ret_symbols);
void symbols__free(struct symbols *symbols);

/* Checks what a child returned: addresses ascend, and each of n entries refers to one of n_symbols
 * symbols. */
#define SYMBOLS_ENTRY_SIZE 12
bool symbols__check(const void *entries, size_t n, size_t n_symbols);

size_t symbols__count(const struct symbols *symbols);

/*
 * The best name for vaddr (as in the file). -ENOENT: vaddr is in no executable section, or no
 * symbol of that section lies below it within SYMBOLS_MAX_DISTANCE.
 */
int symbols__lookup(const struct symbols *symbols, uint64_t vaddr, struct symbols_hit *ret_hit);

/* The next symbol after vaddr in the same section, after skipping `skip` symbols; never exact. */
int symbols__after(const struct symbols *symbols, uint64_t vaddr, size_t skip,
		   struct symbols_hit *ret_hit);

#endif
