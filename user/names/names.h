/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * names: what code is called. One struct names is made for a process and names its frames and the
 * sites of its safe calls: mapping, file, symbol, decoded and interned.
 * kallsyms.h has the kernel's functions, ccs.h reads cost-centre stacks, symfile.h names the
 * functions of a process that is gone.
 */
#ifndef SAFESCOPED_NAMES_H
#define SAFESCOPED_NAMES_H

#include <stdbool.h>
#include <stddef.h>
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
	const struct kallsyms *syms; /* NULL: their addresses are not shown */
	uint64_t no;		     /* no other table has it */
	bool early;		     /* the address's code may have come later than the table */
};

/*
 * The processes without rights that are asked about names, and what they answered. Their memory,
 * and the time that they are waited for, are the machine's: one for all processes that are named.
 */
struct names_helpers;
int names_helpers__new(struct names_helpers **ret_helpers);
void names_helpers__free(struct names_helpers *helpers);

/* What is named. All of it is the caller's and outlives the names. */
struct names_of {
	pid_t pid;
	const struct images *images;
	const struct rts *rts; /* image NULL: there is no runtime */
	/* Called before an address is looked up: it may have been mapped since. */
	void (*want_mapped)(void *ctx, uint64_t addr);
	/* The kernel's functions for an address of it; NULL: there are none. */
	void (*kernel)(void *ctx, uint64_t addr, struct names_kernel *ret_kernel);
	const struct archives *archives; /* of what is linked statically; NULL: there are none */
	struct debuginfod *debuginfod;	 /* has files with symbols; NULL: nobody is asked */
	struct names_helpers *helpers;	 /* NULL: these names have their own */
	void *ctx;
};

struct names;
/* -ENOMEM */
int names__new(const struct names_of *of, struct names **ret_names);
void names__free(struct names *names);

/*
 * Begins to read what takes long, if it will be needed: frames that are named meanwhile wait for
 * it, as long as the process's user is waited for. Only downloads are not waited for: what is named
 * meanwhile may have a better name later (code_name.partial).
 */
void names__prepare(struct names *names);
/* While that goes on, a descriptor that is readable once it is over; else -1. */
int names__preparing(const struct names *names);

/*
 * Names a frame (see wire.h, enum wire_frame_kind). Never fails: an address in no mapping gets
 * "[unmapped]". A WIRE_FRAME_SITE is named after the foreign function that is called there.
 * The texts hold until some thousands of others were named, and so do a site's.
 */
void names__frame(struct names *names, uint64_t frame, struct code_name *ret_name);

/* Frames of code from start up to end are looked up again: another file's code is there now. */
void names__forget(struct names *names, uint64_t start, uint64_t end);

/*
 * The site of a suspendThread or resumeThread call's return address. -ENOENT: it is none; -EBUSY:
 * there was no time to find out.
 */
int names__site(struct names *names, uint64_t ret_addr, struct target_site *ret_site);
/*
 * The site that a return address in Haskell code belongs to: of the call of suspendThread, of the
 * foreign function or of resumeThread. *ret_site is the suspendThread call's return address.
 * -ENOENT: not in a safe call's code; -EBUSY as above.
 */
int names__find_site(const struct names *names, uint64_t ret_addr, uint64_t *ret_site);

/*
 * What names its Haskell code: bits 1 << enum name_source, of which the lower one comes first for
 * each piece of code. NAME_NEAREST, NAME_MODULE_NEAR and NAME_STRINGS are not among them. Reads
 * what takes long, as long as the process's user is waited for.
 */
unsigned names__sources(struct names *names);

/* "text-1.2.5.0-HASH" without the hash that Cabal gave it, which means nothing to a reader. */
void names__drop_hash(char *package);

#endif
