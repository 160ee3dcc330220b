/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the info tables in a program's code show by themselves, symbols or not: a frame's type, and
 * in profiled programs the description of each closure.
 *
 * Shared by the files of this room only.
 */
#ifndef SAFESCOPED_NAMES_DESCRIBE_PRIV_H
#define SAFESCOPED_NAMES_DESCRIBE_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "elf/elf.h"

#define DESCRIBE_MAX_BACK 8192 /* a procedure is hardly longer */

/* The closure type of the info table at vaddr (of its entry code); 0: none can be read. */
uint32_t describe__type(const struct elf_file *elf, uint64_t vaddr);
/* A return frame that every program has and that has nothing to do with it: update, catch, stop. */
bool describe__is_plumbing(uint32_t type);
bool describe__is_thunk(uint32_t type);

/* The tables of one file. */
struct describe;

/*
 * Reads all of its code aside (elf__aside(), whose errors it gives: -EBUSY means nothing of the
 * file). `profiled`: with descriptions.
 */
int describe__new(const struct elf_file *elf, bool profiled, struct describe **ret_describe);
void describe__free(struct describe *describe);

/*
 * The description ("<Main.go_s3ab>") of the closure whose code vaddr lies in, of a
 * profiled program: that of the nearest function or thunk before it. Strings of `describe`. False:
 * there is none. `elf`: the same file.
 */
bool describe__closure(const struct describe *describe, struct elf_file *elf, uint64_t vaddr,
		       const char **ret_module, const char **ret_name);

/*
 * Where the block of Haskell code begins that vaddr lies in: after the nearest info table of a
 * function, thunk or return frame. It is recognised by its shape; vaddr itself if there is none.
 */
uint64_t describe__block(const struct describe *describe, struct elf_file *elf, uint64_t vaddr);

#endif
