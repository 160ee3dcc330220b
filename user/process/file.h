/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What was learnt about an ELF file, shared by all processes that map it: the second process of a
 * program costs no second analysis.
 *
 * A file counts as unchanged while device, inode, size, mtime and ctime are the same. A cached file
 * stays mapped, so its inode number cannot be reused, but its contents may be replaced.
 */
#ifndef SAFESCOPED_PROCESS_FILE_H
#define SAFESCOPED_PROCESS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include "base/retry.h"
#include "elf/elf.h"
#include "fetch.h"
#include "slots.h"

/*
 * How many files that no process maps are kept, and for how long. While a file is mapped here its
 * file system cannot be unmounted, and if it was removed its blocks are not freed. Dropping a file
 * drops what was learnt about it, which has to be found again for the next process that maps it:
 * looking for a runtime takes a millisecond or two, names of a large program take its helpers a
 * second or more. So files on the root file system, which nobody unmounts, are kept as long as
 * probes are (PROBES_UNUSED_NS of the kernel room); elsewhere long enough for a program that runs
 * once a minute.
 */
#define FILES_MAX_UNUSED     64
#define FILES_UNUSED_NS	     120000000000ULL
#define FILES_UNUSED_ROOT_NS 600000000000ULL
/*
 * How many mapped files are kept, and their total size, shared between users (base/shares.h). Fewer
 * if the limit of open descriptors is low: a file with DWARF keeps its descriptor open.
 */
#define FILES_MAX	4096U
#define FILES_MAX_BYTES (64ULL << 30)

/* The files of all processes that are looked at. */
struct file_cache;
int file_cache__new(struct file_cache **ret_cache);
/* A file that is still in use is freed by its last file__put(). */
void file_cache__free(struct file_cache *cache);
/* Drops files that have been unused for too long. Call it often. */
void file_cache__turn(struct file_cache *cache, uint64_t now_ns);

struct file {
	uint64_t dev, ino, size;
	uid_t uid;
	struct timespec mtime, ctime;
	struct elf_file *elf;	/* NULL: no readable ELF file of this processor */
	struct elf_file *debug; /* of debugfile.c: has the symbols that `elf` lacks; NULL. Found by
				   the host's own paths, and not written by anybody who could not
				   have written the file itself */
	/* If neither has symbols: a server's file of the same build-id, for names only. NULL */
	struct elf_file *downloaded;
	bool download_over; /* it is there, or is not needed; else not asked for, on its way, or no
			       server had it */
	uint64_t download_ns;	/* when to ask for it again; 0: at once */
	int elf_err;		/* why `elf` is NULL; -EREMOTEIO, -ETIME: see fetch.h */
	uint64_t again_ns;	/* when the next process that opens it reads it again; 0: never */
	struct retry again;	/* … and for the processes that have it open, which are many */
	struct retry put_off;	/* of file__put_off() */
	struct fetched fetched; /* the copy that was read, if it is one */
	bool debug_tried;	/* by build-id, which is the same for all processes */
	bool debug_given;
	struct slots slots; /* data of rooms above; freed before the ELF files */

	uint32_t refs;
	uint64_t last_used;	  /* number of the look-up: the oldest is dropped first */
	uint64_t unused_ns;	  /* when it lost its last ref */
	struct file_cache *cache; /* NULL: of one process alone */
};

/* It was not read for lack of time, or because the helper was killed: a missing `elf` shows nothing
 * about it. */
bool file__may_be_read_later(const struct file *file);
/* It is not on a local file system and has not been copied: -EREMOTEIO, -ETIME. */
bool file__is_not_copied(const struct file *file);

/*
 * Gets the file of fd, which was opened through the mounts of process pid (0: our own); O_PATH is
 * enough. Takes over fd, also on failure. cache NULL: the file is not shared. -ENOMEM, or errno of
 * statx(); not being a readable ELF file is no error.
 */
int file__get(struct file_cache *cache, pid_t pid, int fd, const char *name,
	      struct file **ret_file);
void file__put(struct file *file);
/* True if its contents are unchanged. Ignores ctime, which changes when a mapped file is removed,
 * as in an upgrade. */
bool file__is_as_it_was(const struct file *file, const struct stat *st);
/* Reads it again if that is due, after it failed for lack of time or its helper was killed. `fd` as
 * above, but it stays the caller's; `uid`: whose account it is charged to. */
bool file__is_due(const struct file *file);
void file__read_again(struct file *file, pid_t pid, uid_t uid, int fd, const char *name);
/*
 * After looking for something in the file ended with `err`: true if it took too long or the helper
 * was killed, which shows nothing about the file. Then it must not be looked for while the file
 * rests.
 */
bool file__put_off(struct file *file, int err);
bool file__rests(const struct file *file);

/*
 * The same for processes of user `uid`: the file is charged to him until he has put it as often as
 * he got it. -EDQUOT: his processes have as many files as they may.
 */
int file__get_for(struct file_cache *cache, pid_t pid, uid_t uid, int fd, const char *name,
		  struct file **ret_file);
void file__put_for(struct file *file, uid_t uid);
/*
 * Charges the user for something else that is mapped and kept for him; `what` is an address that
 * identifies it. 0, -EDQUOT or -ENOMEM. cache NULL: 0.
 */
int file_cache__charge(struct file_cache *cache, uid_t uid, const void *what, uint64_t bytes);
void file_cache__discharge(struct file_cache *cache, uid_t uid, const void *what);

#endif
