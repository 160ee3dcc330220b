/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symbols: the code symbols of one ELF file, sorted by address. Twelve bytes a symbol; names stay
 * in the file's mapping.
 *
 * GHC's code follows its info table (tables next to code), and the symbol X_info has the
 * code's address: an info pointer is found exactly. Its size (GHC/CmmToAsm/X86/Ppr.hs, pprSizeDecl)
 * takes in the return points of the same procedure. Local closures are procedures without a
 * symbol (internalNamePrefix, 8.10 to 9.14): the symbol below one ends before it, and names it
 * only roughly, and is no exact hit.
 */
#ifndef SAFESCOPED_ELF_SYMBOLS_H
#define SAFESCOPED_ELF_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/elf.h"

#define SYMBOLS_MAX_DISTANCE (1U << 20) /* a symbol further below means nothing */

struct symbols;

struct symbols_hit {
	const char *name;   /* NUL-terminated, in the mapping: lives as long as the elf_file */
	size_t name_len;    /* at most 65535 */
	uint64_t start;	    /* of the symbol, as in the file */
	uint64_t size;	    /* 0: not known */
	bool exact;	    /* covers the address or begins there; else the nearest one below it */
	uint8_t type, bind; /* STT_…, STB_… */
};

/*
 * Of .symtab where the file has one, else of the debug file's (NULL: none; its build-id is the
 * caller's to check), else of .dynsym. Both files must outlive the result. A file without any
 * symbol gives an empty index. Read aside (elf__aside(), whose errors it gives); then only the
 * names that are asked for are read, each within its table.
 */
int symbols__new(const struct elf_file *elf, struct symbols **ret_symbols);
int symbols__new_debug(const struct elf_file *elf, const struct elf_file *debug,
		       struct symbols **ret_symbols);
void symbols__free(struct symbols *symbols);

/* Of what a child made: addresses ascend, and each of n entries is one of n_symbols symbols. */
#define SYMBOLS_ENTRY_SIZE 12
bool symbols__check(const void *entries, size_t n, size_t n_symbols);

size_t symbols__count(const struct symbols *symbols);

/*
 * The best name for vaddr (as in the file). -ENOENT: vaddr is in no executable section, or no
 * symbol of that section lies below it within SYMBOLS_MAX_DISTANCE.
 */
int symbols__lookup(const struct symbols *symbols, uint64_t vaddr, struct symbols_hit *ret_hit);

/* The next symbol after vaddr in the same section, `skip` of them passed over; never exact. */
int symbols__after(const struct symbols *symbols, uint64_t vaddr, size_t skip,
		   struct symbols_hit *ret_hit);

#endif
