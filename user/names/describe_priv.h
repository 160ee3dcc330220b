/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What info tables in a program's code show even without symbols: a frame's type, and in profiled
 * programs the description of each closure.
 *
 * Shared by the files of this room only.
 */
#ifndef SAFESCOPED_NAMES_DESCRIBE_PRIV_H
#define SAFESCOPED_NAMES_DESCRIBE_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "elf/elf.h"

#define DESCRIBE_MAX_BACK 8192 /* hardly any procedure is longer */

/* The closure type of the info table of the entry code at vaddr; 0: none can be read. */
uint32_t describe__type(const struct elf_file *elf, uint64_t vaddr);
/* A return frame that every program has, unrelated to its own code: update, catch, stop. */
bool describe__is_plumbing(uint32_t type);
bool describe__is_thunk(uint32_t type);

/* The tables of one file. */
struct describe;

/*
 * Reads all of the file's code aside; returns elf__aside()'s errors, of which -EBUSY shows nothing
 * about the file. `profiled`: with descriptions.
 */
int describe__new(const struct elf_file *elf, bool profiled, struct describe **ret_describe);
void describe__free(struct describe *describe);

/* The parts of a description; "": it does not have that part. */
struct describe_name {
	const char *package, *module, *name;
};

/*
 * The description ("<Main.go_s3ab>") of the closure whose code contains vaddr, in a profiled
 * program: that of the nearest function or thunk before it. The strings belong to `describe`.
 * False: there is none. `elf`: the same file.
 */
bool describe__closure(const struct describe *describe, struct elf_file *elf, uint64_t vaddr,
		       struct describe_name *ret);

/*
 * The binding that contains a closure without a name of its own, of `module`, whose code contains
 * vaddr: the next closure with a name, since GHC emits the closures inside a binding before it.
 */
bool describe__enclosing(const struct describe *describe, uint64_t vaddr, const char *module,
			 struct describe_name *ret);

/*
 * The start of the block of Haskell code that contains vaddr: after the nearest info table of a
 * function, thunk or return frame, recognised by its shape. Returns vaddr itself if there is none.
 */
uint64_t describe__block(const struct describe *describe, struct elf_file *elf, uint64_t vaddr);

#endif
