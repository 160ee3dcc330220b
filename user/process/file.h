/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What was learnt of one ELF file, shared by all targets that map it: the second process of a
 * program costs no second analysis. Private to the target room.
 *
 * A file is the same while device, inode, size and both times of change are: a file that is kept
 * stays mapped, so its inode number cannot pass to another one, but its contents may be replaced.
 */
#ifndef SAFESCOPED_PROCESS_FILE_H
#define SAFESCOPED_PROCESS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "elf/elf.h"

/* How many files are kept that no target maps any more. */
#define FILES_MAX_UNUSED 64

struct dwarf;
struct rts;
struct rts_text;
struct symbols;
struct target_cache;

struct file {
	uint64_t dev, ino, size;
	uid_t uid;
	struct timespec mtime, ctime;
	struct elf_file *elf;	 /* NULL: no readable x86-64 ELF file */
	struct elf_file *debug;	 /* of debugfile.c: has the symbols that `elf` lacks; NULL. Found by
				    the host's own paths, and by nobody who could not have
				    written the file itself */
	struct symbols *symbols; /* of names.c, made at first use */
	struct dwarf *dwarf;	 /* of names_source.c, made at first use; NULL: there is none */
	struct rts *rts;	 /* of rts_find.c: its addresses as in the file; NULL: holds none */
	struct rts_text *rts_text; /* of names.c */
	int elf_err;		   /* why, if there is no `elf` */
	int haskell;		   /* of names.c: 0 not looked at, 1 may hold GHC's code, -1 none */
	int verdict;		   /* of discover.c: 0 not looked at, 1 holds a runtime, -1 none */
	bool debug_tried, debug_given, symbols_tried, dwarf_tried, rts_tried;

	uint32_t refs;
	uint64_t last_used;	    /* count of look-ups: the oldest goes first */
	struct target_cache *cache; /* NULL: of one target alone */
};

/*
 * Takes fd over (also on failure). cache NULL: the file is shared with nobody. -ENOMEM, or errno
 * of fstat(); a file that is no ELF file is no error.
 */
int file__get(struct target_cache *cache, int fd, const char *name, struct file **ret_file);
void file__put(struct file *file);

/* The kernel's functions, read at the first call; NULL: they cannot be had. */
struct kallsyms;
const struct kallsyms *cache__kallsyms(struct target_cache *cache);

#endif
