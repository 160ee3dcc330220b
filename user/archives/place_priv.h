/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decides which of the matching sections are really there.
 *
 * A section is accepted at once if it has many fixed bytes and matches at one place only, unless a
 * section with other symbols matches there as well. The linker wrote into it the addresses of the
 * symbols it refers to, so the sections of these symbols are known to be there however small they
 * are, as long as their own bytes match.
 *
 * Any other section needs evidence: for C code, that a symbol it refers to is where it is known to
 * be; or that the section is adjacent to an accepted one of the same object file, as the linker
 * arranges them. References prove nothing for Haskell code: a program's own functions may have the
 * same bytes as those of one of GHC's libraries that was not linked, since GHC generates the same
 * code with the same references for the same expression.
 *
 * What remains has no name, and neither has a place at which two sections with different symbols
 * could be.
 *
 * For the files of this room only.
 */
#ifndef SAFESCOPED_ARCHIVES_PLACE_PRIV_H
#define SAFESCOPED_ARCHIVES_PLACE_PRIV_H

#include "defs_priv.h"
#include "learnt_priv.h"
#include "match_priv.h"

/* How many fixed bytes, without padding, make a section certain; the second for GHC's code. */
#define PLACE_SURE_FIXED   96
#define PLACE_SURE_HASKELL 1024
/* Between two sections of an object file there is only padding for alignment: less than this. */
#define PLACE_MAX_PADDING 64
/* The fixed bytes that a section needs if others refer to it. */
#define PLACE_MIN_FIXED 4

struct placed {
	uint64_t start;
	uint32_t section;
};

struct places {
	struct placed *v; /* by start; non-overlapping */
	size_t n, cap;
	struct learnt learnt; /* the addresses of names */
};

/* -ENOMEM, -E2BIG. */
int places__find(const struct defs *defs, const struct code *code, const struct matches *matches,
		 struct places *ret_places);
void places__free(struct places *places);
/*
 * True if the symbol of a placed section is at that place in the program, too. For a weak symbol
 * the linker may have taken another definition, to which references by that name then lead. A
 * definition in the program itself is noticed only if the archives' code refers to it.
 */
bool places__has_name(const struct places *places, const struct defs *defs,
		      const struct placed *place, uint32_t def);

#endif
