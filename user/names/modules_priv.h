/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which module the code of a stripped program is of. What strip leaves shows it: the closures
 * `$trModule` and the descriptions of constructors have modules' names, and the linker keeps a
 * module's code and its data together, and both in the same order. modules_read_priv.h has how
 * the places between are found; it is done in a process without rights, once for a file.
 *
 * Shared by the files of this room only.
 */
#ifndef SAFESCOPED_NAMES_MODULES_PRIV_H
#define SAFESCOPED_NAMES_MODULES_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODULES_MAX	    16384      /* pieces of code; agda has 1 600, pandoc 1 500 */
#define MODULES_MAX_STRINGS (4U << 20) /* of packages' and modules' names */

struct elf_file;

/* A piece of code, as it is handed over by the child. */
struct modules_raw {
	uint64_t start, end;	  /* as in the file */
	uint64_t base;		  /* where the module begins: offsets count from there */
	uint32_t package, module; /* offsets into the strings */
	uint32_t uncertain;	  /* 1: it may be the neighbour's */
	uint32_t pad;
};

/* A module's piece of code. */
struct modules_hit {
	const char *package, *module; /* as GHC names them: "text-1.2.5.0"; live as the table */
	uint64_t base;		      /* where the module's code begins */
	bool uncertain;		      /* the module may be the neighbour's */
};

struct modules;

/*
 * Reads the file aside. -ENOENT: it has nothing on modules; -ENOMEM, and elf__aside()'s errors,
 * of which -EBUSY means nothing of the file.
 */
int modules__new(const struct elf_file *elf, bool profiled, struct modules **ret_modules);

/*
 * The same in two steps, see elf__start(): a large program takes half a second. After
 * modules__await() the job is to be freed by confine_job__free(), unless it had -EBUSY.
 */
struct confine_job;
int modules__start(const struct elf_file *elf, bool profiled, struct confine_job **ret_job);
int modules__await(const struct elf_file *elf, struct confine_job *job,
		   struct modules **ret_modules);

void modules__free(struct modules *modules);
/* -ENOENT: the code at vaddr is of no module that is known. */
int modules__find(const struct modules *modules, uint64_t vaddr, struct modules_hit *ret_hit);
/* Calls `meet` for each piece, in order of address. */
void modules__each(const struct modules *modules,
		   void (*meet)(void *ctx, const struct modules_hit *piece), void *ctx);

/*
 * What comes of a child: the pieces ascend and do not overlap, each begins at its module's base or
 * later, and strings end within the `len` bytes.
 */
bool modules__check(const struct modules_raw *raw, size_t n, const char *strings, size_t len);

#endif
