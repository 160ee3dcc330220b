/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds code that lies between two functions of one module. The linker keeps an object file's
 * sections together, so that code belongs to the module even if its own function is not known. This
 * places code of modules whose name is nowhere in the file (modules_read_priv.h), if archives have
 * named some of the functions around it.
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
 * Adds the next function, whose code ends at `end`; addresses must ascend. Symbols that are not a
 * module's labels are skipped: C code and the runtime's own may lie among a module's. -E2BIG,
 * -ENOMEM.
 */
int module_runs__add(struct module_runs *runs, const char *symbol, uint64_t start, uint64_t end);
/* The module whose functions lie on both sides of vaddr; marked as certain. -ENOENT: two different
 * modules. */
int module_runs__find(const struct module_runs *runs, uint64_t vaddr, struct modules_hit *ret_hit);
/* Prints where each run lies, for comparison with a file that has symbols. */
void module_runs__log(const struct module_runs *runs, const char *file);
/* The start of the module's first function; UINT64_MAX: none is known. */
uint64_t module_runs__base(const struct module_runs *runs, const char *package, const char *module);

#endif
