/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Better names than symbols are: info-table provenance, DWARF, closure descriptions. Shared by
 * the files of this room only.
 */
#ifndef SAFESCOPED_TARGET_NAMES_SOURCE_PRIV_H
#define SAFESCOPED_TARGET_NAMES_SOURCE_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "process/image.h"
#include "names_priv.h"
#include "elf/symbols.h"
#include "names/zname.h"

struct names_place {
	uint64_t addr, vaddr;	       /* in the process, as in the file */
	const struct symbols *symbols; /* NULL: the file has none */
	const struct symbols_hit *hit; /* NULL: no symbol */
	const struct zname *label;     /* hit's name taken apart; NULL: no label of GHC's */
};

/* By provenance, else by DWARF. n->code and n->file are known. */
bool names__best(struct target *target, const struct image_map *map,
		 const struct names_place *place, struct code_name *n);
/*
 * By the description of the closure whose code it is. `binding`: only if that is a binding's name,
 * and not "sat_s3hx", which says less than the nearest symbol.
 */
bool names__described(struct target *target, struct image *image, uint64_t vaddr, bool binding,
		      struct code_name *n);

/* names.c: a C function's symbol, demangled. */
void names__c_symbol(struct names *names, const struct symbols_hit *hit, struct code_name *n);

#endif
