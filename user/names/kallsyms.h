/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of the kernel's functions, from /proc/kallsyms. */
#ifndef SAFESCOPED_NAMES_KALLSYMS_H
#define SAFESCOPED_NAMES_KALLSYMS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct kallsyms;

/* -EPERM: the kernel hides addresses (kernel.kptr_restrict); -EBADMSG: not the text of kallsyms. */
int kallsyms__read(FILE *in, struct kallsyms **ret_syms);
int kallsyms__open(struct kallsyms **ret_syms);
void kallsyms__free(struct kallsyms *syms);

/*
 * The function that contains the address, and its module ("" for the kernel itself). NULL: no
 * function near enough below it. The strings live as long as the table.
 */
const char *kallsyms__find(const struct kallsyms *syms, uint64_t addr, const char **ret_module);

/* True for code of the kernel itself, which stays, unlike that of modules and BPF programs. False
 * for the last function too, since its end is not known. */
bool kallsyms__stays(const struct kallsyms *syms, uint64_t addr);

#endif
