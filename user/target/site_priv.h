/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sites of safe calls in Haskell code. Shared by the files of this room only. */
#ifndef SAFESCOPED_TARGET_SITE_PRIV_H
#define SAFESCOPED_TARGET_SITE_PRIV_H

#include <stdint.h>

#include "target_priv.h"

/*
 * The site that a return address in Haskell code belongs to: of the call of suspendThread, of the
 * foreign function or of resumeThread. *ret_site is the suspendThread call's return address.
 * -ENOENT: not in a safe call's code.
 */
int site__find(struct target *target, uint64_t ret_addr, uint64_t *ret_site);

/*
 * The C function that the call before a return address calls. -ENOENT: no call stands there, or it
 * goes through a register.
 */
int site__callee(struct target *target, uint64_t ret_addr, struct code_name *ret_name);

/* The base name of the file that defines a symbol which `not_this` imports; "". */
const char *site__library_of(const struct target *target, const char *name,
			     const struct image *not_this);

#endif
