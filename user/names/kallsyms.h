/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of the kernel's functions, from /proc/kallsyms. */
#ifndef SAFESCOPED_NAMES_KALLSYMS_H
#define SAFESCOPED_NAMES_KALLSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct kallsyms;

/* -EPERM: the kernel shows no addresses (kernel.kptr_restrict); -EBADMSG: not such a text. */
int kallsyms__read(FILE *in, struct kallsyms **ret_syms);
int kallsyms__open(struct kallsyms **ret_syms);
void kallsyms__free(struct kallsyms *syms);

/*
 * The function that holds the address, and the module it is of ("" for the kernel itself). NULL:
 * none below it is near enough. The strings live as long as the table.
 */
const char *kallsyms__find(const struct kallsyms *syms, uint64_t addr, const char **ret_module);

/* It is code of the kernel itself, and not of a module or a BPF program, which come and go. False
 * for the last function's, too: nobody knows where that ends. */
bool kallsyms__stays(const struct kallsyms *syms, uint64_t addr);

#endif
