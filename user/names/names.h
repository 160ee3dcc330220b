/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * names: finds the names of code. A struct names is made for a process and names its frames and the
 * sites of its safe calls: it finds mapping, file and symbol, decodes the name and interns it.
 * kallsyms.h names the kernel's functions, ccs.h reads cost-centre stacks, symfile.h names the
 * functions of a process that is gone.
 */
#ifndef SAFESCOPED_NAMES_H
#define SAFESCOPED_NAMES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "code_name.h"

struct archives;
struct debuginfod;
struct images;
struct kallsyms;
struct rts;

/* The kernel's functions. */
struct names_kernel {
	const struct kallsyms *syms; /* NULL: the kernel hides its addresses */
	uint64_t no;		     /* unique number of this table */
	bool early; /* the code at the address may have been loaded after the table was read */
};

/*
 * The processes without rights that look up names, and their answers so far. Their memory, and the
 * time spent waiting for them, are limited for the whole machine: make one for all processes.
 */
struct names_helpers;
int names_helpers__new(struct names_helpers **ret_helpers);
void names_helpers__free(struct names_helpers *helpers);

/* What to name. Everything here belongs to the caller and outlives the names. */
struct names_of {
	pid_t pid;
	const struct images *images;
	const struct rts *rts; /* image NULL: the process has no runtime */
	/* Called before an address is looked up, which may have been mapped recently. */
	void (*want_mapped)(void *ctx, uint64_t addr);
	/* Gives the table of the kernel's functions for a kernel address; NULL: there are none. */
	void (*kernel)(void *ctx, uint64_t addr, struct names_kernel *ret_kernel);
	const struct archives *archives; /* for statically linked code; NULL: none */
	struct debuginfod *debuginfod;	 /* downloads files with symbols; NULL: does not */
	struct names_helpers *helpers;	 /* NULL: these names make their own */
	void *ctx;
};

struct names;
/* -ENOMEM */
int names__new(const struct names_of *of, struct names **ret_names);
void names__free(struct names *names);

/*
 * Starts slow reads that will be needed. Frames named meanwhile wait for them, for as long as the
 * process's user may be waited for. Only downloads are not waited for: frames named meanwhile may
 * get a better name later (code_name.partial).
 */
void names__prepare(struct names *names);
/* While that runs, a descriptor that becomes readable once it is over; else -1. */
int names__preparing(const struct names *names);

/*
 * Names a frame (wire.h, enum wire_frame_kind). Never fails: an address in no mapping gets
 * "[unmapped]". A WIRE_FRAME_SITE gets the name of the foreign function called there. The strings,
 * and those of a site, stay valid until some thousands of other names were made.
 */
void names__frame(struct names *names, uint64_t frame, struct code_name *ret_name);

/* Looks up frames of code from start to end anew: another file is mapped there. */
void names__forget(struct names *names, uint64_t start, uint64_t end);

/*
 * The site of the suspendThread or resumeThread call that returns to ret_addr. -ENOENT: not a site;
 * -EBUSY: no time to find out.
 */
int names__site(struct names *names, uint64_t ret_addr, struct target_site *ret_site);
/*
 * Finds the site of a return address in Haskell code: of the call of suspendThread, of the foreign
 * function or of resumeThread. *ret_site is the suspendThread call's return address. -ENOENT: not
 * in the code of a safe call; -EBUSY as above.
 */
int names__find_site(const struct names *names, uint64_t ret_addr, uint64_t *ret_site);

/*
 * What names the process's Haskell code: bits 1 << enum name_source; the lowest that applies to a
 * piece of code is used. Never includes NAME_NEAREST, NAME_STRINGS and those that are near.
 * Performs slow reads, for as long as the process's user may be waited for.
 */
unsigned names__sources(struct names *names);

/* Removes the hash that Cabal appends, which means nothing to the user: "text-1.2.5.0-HASH". */
void names__drop_hash(char *package);

#endif
