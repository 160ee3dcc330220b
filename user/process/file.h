/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What was learnt of one ELF file, shared by all processes that map it: the second process of a
 * program costs no second analysis.
 *
 * A file is the same while device, inode, size and both times of change are: a file that is kept
 * stays mapped, so its inode number cannot pass to another one, but its contents may be replaced.
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
 * How many files are kept that no process maps any more, and for how long: while we have one mapped
 * its file system cannot be unmounted, and if it was removed its blocks are not free. What was
 * learnt of a file goes with it, and is found again for the next process that maps it: a look for a
 * runtime takes a millisecond or two, names of a large program a second or more of its helpers. So
 * what is on the root file system, which nobody unmounts, is kept as long as probes are
 * (PROBES_UNUSED_NS of the kernel room); elsewhere a program that runs once a minute stays known.
 */
#define FILES_MAX_UNUSED     64
#define FILES_UNUSED_NS	     120000000000ULL
#define FILES_UNUSED_ROOT_NS 600000000000ULL
/*
 * How many are kept that processes map, and their sizes together, shared between users as
 * base/shares.h has it; fewer where few descriptors may be open: that of a file with DWARF stays
 * open.
 */
#define FILES_MAX	4096U
#define FILES_MAX_BYTES (64ULL << 30)

/* The files of all processes that are looked at. */
struct file_cache;
int file_cache__new(struct file_cache **ret_cache);
/* A file that is still in use is freed when it is put. */
void file_cache__free(struct file_cache *cache);
/* To be called often: drops what has not been used for that long. */
void file_cache__turn(struct file_cache *cache, uint64_t now_ns);

struct file {
	uint64_t dev, ino, size;
	uid_t uid;
	struct timespec mtime, ctime;
	struct elf_file *elf;	/* NULL: no readable ELF file of this processor */
	struct elf_file *debug; /* of debugfile.c: has the symbols that `elf` lacks; NULL. Found by
				   the host's own paths, and by nobody who could not have
				   written the file itself */
	/* Where neither has: what a server has under its build-id, for names alone. NULL */
	struct elf_file *downloaded;
	bool download_over;	/* it is there, or is not needed; else nobody has asked, it is
				   awaited, or no server had it */
	uint64_t download_ns;	/* when it is asked for again; 0: at once */
	int elf_err;		/* why, if there is no `elf`; -EREMOTEIO, -ETIME: see fetch.h */
	uint64_t again_ns;	/* when it is read again for whoever opens it; 0: not to be */
	struct retry again;	/* … and for those that have it open: there are many of them */
	struct retry put_off;	/* of file__put_off() */
	struct fetched fetched; /* what holds the copy that was read, if it is one */
	bool debug_tried;	/* by its build-id, which all processes have */
	bool debug_given;
	struct slots slots; /* what rooms above have made of it; freed before the ELF files */

	uint32_t refs;
	uint64_t last_used;	  /* count of look-ups: the oldest goes first */
	uint64_t unused_ns;	  /* since when, of one without refs */
	struct file_cache *cache; /* NULL: of one process alone */
};

/* There was no time for it, or its helper was killed: that it has no `elf` means nothing. */
bool file__may_be_read_later(const struct file *file);
/* It is not on a local file system, and there is no copy of it: -EREMOTEIO, -ETIME. */
bool file__is_not_copied(const struct file *file);

/*
 * fd was opened through the mounts of process pid (0: our own); O_PATH is enough. It is taken over
 * (also on failure). cache NULL: the file is shared with nobody. -ENOMEM, or errno of statx(); a
 * file that is no ELF file, or cannot be read, is no error.
 */
int file__get(struct file_cache *cache, pid_t pid, int fd, const char *name,
	      struct file **ret_file);
void file__put(struct file *file);
/* It has the contents that it had: what is mapped may be removed meanwhile, as in an upgrade, which
 * changes its ctime. */
bool file__is_as_it_was(const struct file *file, const struct stat *st);
/* Reads it again if that failed for want of time, or its helper was killed, and it is time to. `fd`
 * as above, but it stays the caller's; `uid`: on whose account. */
bool file__is_due(const struct file *file);
void file__read_again(struct file *file, pid_t pid, uid_t uid, int fd, const char *name);
/*
 * After something was looked for in one that was read: whether it took too long, or its helper was
 * killed, which shows nothing of the file. It is not to be looked for then while the file rests.
 */
bool file__put_off(struct file *file, int err);
bool file__rests(const struct file *file);

/*
 * The same for the processes of user `uid`, on whose account the file is until it is put for him as
 * often. -EDQUOT: his have as many as they may.
 */
int file__get_for(struct file_cache *cache, pid_t pid, uid_t uid, int fd, const char *name,
		  struct file **ret_file);
void file__put_for(struct file *file, uid_t uid);
/*
 * What else is mapped for the user, and kept: `what` is an address that nothing else has. 0, or
 * -EDQUOT, -ENOMEM. cache NULL: 0.
 */
int file_cache__charge(struct file_cache *cache, uid_t uid, const void *what, uint64_t bytes);
void file_cache__discharge(struct file_cache *cache, uid_t uid, const void *what);

#endif
