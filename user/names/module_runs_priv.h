/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which code lies between two functions of one module: the linker keeps an object file's sections
 * together, so that it is that module's too, whether its own function is known or not. This places
 * code whose module has left no name in the file (modules_read_priv.h), where archives have named
 * some of the functions around it.
 *
 * Shared by the files of this room only.
 */
#ifndef SAFESCOPED_NAMES_MODULE_RUNS_PRIV_H
#define SAFESCOPED_NAMES_MODULE_RUNS_PRIV_H

#include <stdint.h>

#define MODULE_RUNS_MAX (1U << 16)

struct module_runs;
struct modules_hit;

int module_runs__new(struct module_runs **ret_runs);
void module_runs__free(struct module_runs *runs);
/*
 * The next function, whose code ends at `end`; addresses ascend. What is not a label of a module's
 * is passed over: C code and the runtime's own may stand among a module's. -E2BIG, -ENOMEM.
 */
int module_runs__add(struct module_runs *runs, const char *symbol, uint64_t start, uint64_t end);
/* The module whose functions lie on both sides of vaddr, certain. -ENOENT: they are of two. */
int module_runs__find(const struct module_runs *runs, uint64_t vaddr, struct modules_hit *ret_hit);
/* Prints where each is, for whoever wants to hold it against the truth. */
void module_runs__log(const struct module_runs *runs, const char *file);
/* Where the module's first function begins; UINT64_MAX: none is known. */
uint64_t module_runs__base(const struct module_runs *runs, const char *package, const char *module);

#endif
