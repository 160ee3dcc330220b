/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which of the sections that match somewhere are really there.
 *
 * Taken at once is a section with many fixed bytes that matches in one place only, where no other
 * one does that has other symbols. The linker wrote into it where the symbols are that it refers
 * to: so other sections are known to be there without regard to how small they are, as long as
 * their own bytes are the same.
 *
 * Of the rest, a section needs a witness: of C code, what it refers to is where that is known to
 * be; or the section stands next to another one of its object file that was taken, as the linker
 * puts them. A program's own functions may have the same bytes as one of GHC's libraries that was
 * not linked: GHC makes the same code of the same expression, and what it refers to is the same as
 * well.
 *
 * What remains has no name, and neither has a place in which two sections may be that have other
 * symbols.
 *
 * Shared by the files of this room only.
 */
#ifndef SAFESCOPED_ARCHIVES_PLACE_PRIV_H
#define SAFESCOPED_ARCHIVES_PLACE_PRIV_H

#include "defs_priv.h"
#include "learnt_priv.h"
#include "match_priv.h"

/* Fixed bytes, but for padding, with which a section is sure to be the one that it looks like;
 * GHC's code. */
#define PLACE_SURE_FIXED   96
#define PLACE_SURE_HASKELL 1024
/* Between two sections of an object file there is no more than what aligns the second one. */
#define PLACE_MAX_PADDING 64
/* … that one needs which others show to be there. */
#define PLACE_MIN_FIXED 4

struct placed {
	uint64_t start;
	uint32_t section;
};

struct places {
	struct placed *v; /* by start; they do not overlap */
	size_t n, cap;
	struct learnt learnt; /* where names are */
};

/* -ENOMEM, -E2BIG. */
int places__find(const struct defs *defs, const struct code *code, const struct matches *matches,
		 struct places *ret_places);
void places__free(struct places *places);
/*
 * Whether a symbol of a section that is there is in that place in the program, too. For a weak one
 * the linker may have taken another's, to which then leads what refers to that name. That the
 * program has one of its own is seen only if the archives' code refers to it.
 */
bool places__has_name(const struct places *places, const struct defs *defs,
		      const struct placed *place, uint32_t def);

#endif
