/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of addresses: mapping, file, symbol, decoded and interned. Shared by the files of this
 * room only.
 */
#ifndef SAFESCOPED_TARGET_NAMES_PRIV_H
#define SAFESCOPED_TARGET_NAMES_PRIV_H

#include <stdint.h>

#include "target.h"

struct names;

int names__new(struct names **ret_names);
void names__free(struct names *names);

/* The name of the code at addr; a return address is named by the call before it. */
void names__code(struct target *target, uint64_t addr, bool is_return, struct code_name *ret_name);
/* Interns text that lives as long as the target; "" without memory. */
const char *names__intern(struct names *names, const char *text, size_t len);

/* The C function that a capi import's wrapper calls, in buf; any other name unchanged. */
const char *names__capi(const char *name, char *buf, size_t size);

#endif
