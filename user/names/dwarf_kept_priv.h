/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a file's DWARF was found to say, by address: many processes of one file meet the same
 * addresses, and each answer of a helper takes two switches to it and back.
 *
 * Shared by the files of this room only.
 */
#ifndef SAFESCOPED_NAMES_DWARF_KEPT_PRIV_H
#define SAFESCOPED_NAMES_DWARF_KEPT_PRIV_H

#include "names/dwarf_priv.h"

/* Of a file, some 2 MB: with one more all go. */
#define DWARF_KEPT_MAX 4096

struct dwarf_kept;

/* kept: NULL: there are none. 0 or -ENOENT: the answer; -ESRCH: it is not kept. */
int dwarf_kept__find(const struct dwarf_kept *kept, uint64_t vaddr, struct dwarf_place *ret_place);
/* place: not changed; NULL: the DWARF has nothing on it. Without memory it is not kept. */
void dwarf_kept__add(struct dwarf_kept **kept, uint64_t vaddr, struct dwarf_place *place);
/* All of them. */
void dwarf_kept__free(struct dwarf_kept **kept);

#endif
