/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the module of code in a stripped program. strip leaves enough: the `$trModule`
 * closures and the descriptions of constructors contain module names, and the linker keeps each
 * module's code together, and its data, both in the same order. modules_read_priv.h explains how
 * the boundaries between modules are found; this is done once for a file, in a process without
 * rights.
 *
 * Shared by the files of this room only.
 */
#ifndef SAFESCOPED_NAMES_MODULES_PRIV_H
#define SAFESCOPED_NAMES_MODULES_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODULES_MAX	    16384      /* pieces of code; agda has 1 600, pandoc 1 500 */
#define MODULES_MAX_STRINGS (4U << 20) /* package and module names */

struct elf_file;

/* A piece of code, in the form that the child returns. */
struct modules_raw {
	uint64_t start, end;	  /* addresses in the file */
	uint64_t base;		  /* start of the module, from which offsets are counted */
	uint32_t package, module; /* offsets into the strings */
	uint32_t uncertain;	  /* 1: it may belong to the neighbour */
	uint32_t pad;
};

/* A piece of a module's code. */
struct modules_hit {
	const char *package, *module; /* "text-1.2.5.0", "Data.Text"; live as long as the table */
	uint64_t base;		      /* where the module's code begins */
	bool uncertain;		      /* it may be the neighbouring module */
};

struct modules;

/*
 * Reads the file aside. -ENOENT: no modules were found; -ENOMEM, and elf__aside()'s errors, of
 * which -EBUSY shows nothing about the file.
 */
int modules__new(const struct elf_file *elf, bool profiled, struct modules **ret_modules);

/*
 * The same in two steps, see elf__start(): a large program takes half a second. After
 * modules__await() the caller frees the job with confine_job__free(), unless it returned -EBUSY.
 */
struct confine_job;
int modules__start(const struct elf_file *elf, bool profiled, struct confine_job **ret_job);
int modules__await(const struct elf_file *elf, struct confine_job *job,
		   struct modules **ret_modules);

void modules__free(struct modules *modules);
/* -ENOENT: the code at vaddr belongs to no known module. */
int modules__find(const struct modules *modules, uint64_t vaddr, struct modules_hit *ret_hit);
/* Calls `meet` for each piece in address order. */
void modules__each(const struct modules *modules,
		   void (*meet)(void *ctx, const struct modules_hit *piece), void *ctx);

/*
 * Checks what a child returned: pieces ascend and do not overlap, each begins at its module's base
 * or later, and strings end within the `len` bytes.
 */
bool modules__check(const struct modules_raw *raw, size_t n, const char *strings, size_t len);

#endif
