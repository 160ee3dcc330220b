/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * process: what the kernel shows of a process (proc.h), its memory (mem.h), and, here, the ELF
 * files whose code it maps, with their debug files (debugfile.h) and their origin (origin.h). Each
 * file (device, inode) is opened once, and kept when its mapping goes, so that names and offsets
 * found in it stay valid. If there are many unmapped files, the oldest are dropped.
 */
#ifndef SAFESCOPED_PROCESS_IMAGE_H
#define SAFESCOPED_PROCESS_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/elf.h"
#include "file.h"
#include "proc.h"

struct image {
	struct file *file;	  /* shared by all processes that map it */
	uint64_t dev, ino;	  /* as in struct stat */
	char path[PROC_PATH_LEN]; /* opens the file through /proc */
	char *name;		  /* path as mapped */
	const char *base;	  /* the last component of it */
	struct elf_file *elf;	  /* the file's; NULL: no readable ELF file of this processor */
	int elf_err;		  /* why, if NULL */
	uid_t uid;		  /* of the file's owner */
	uid_t account;		  /* see struct images, uid */
	/*
	 * Of debugfile.c: has the symbols that `elf` lacks. Either the file's, shared by all
	 * processes, or found in this process's own root, for names of this process alone.
	 */
	struct elf_file *debug;
	bool debug_tried, debug_is_own;
	struct slots slots; /* data of rooms above about a debug file of its own */
	uint64_t bias;	    /* address in the process − address in the file */
	bool is_exe;
	bool stays;		  /* kept even if it is not mapped: the runtime's */
	bool goes;		  /* of image.c: about to be dropped */
	bool came;		  /* of image.c: could be read only now */
	struct retry debug_again; /* of debugfile.c: when there was no time to look */
};

/* Why nothing is known about a mapped file. */
enum image_lack {
	IMAGE_LACKS_NOTHING = 0,
	IMAGE_NO_ROOM,	  /* the process or its user has too many files, or too large ones */
	IMAGE_NOT_YET,	  /* no descriptor, memory or time to open it; may succeed later */
	IMAGE_NOT_COPIED, /* fetch.h: on a file system that is not local, and not copied */
	/*
	 * not even root may open it (FUSE without allow_other), and its path leads to another file
	 */
	IMAGE_NOT_OPENED,
};

/* One executable mapping of a file. */
struct image_map {
	uint64_t start, end;
	uint64_t offset; /* in the file */
	uint64_t bias;
	struct image *image; /* NULL: no file ([vdso], JIT code), or a file that is not open */
	const char *special; /* "[vdso]"; NULL if image is set */
	enum image_lack lack;
};

/* Ranges where another file's code has replaced what was there; the last entry covers all that do
 * not fit. */
#define IMAGES_RETAKEN_MAX 32U
struct image_place {
	uint64_t start, end;
};

/* How many files are kept for a process, and their total size. */
#define IMAGES_MAX	 1024U
#define IMAGES_MAX_BYTES (8ULL << 30)

struct images {
	struct image **images;
	size_t n, cap;
	size_t opened; /* how many were ever opened; also counts those that could be read only later
			*/
	struct image_map *maps; /* executable mappings, ascending */
	size_t n_maps, cap_maps;
	struct image_map *past; /* earlier mappings of files, whose place is free */
	size_t n_past, cap_past;
	struct image_place retaken[IMAGES_RETAKEN_MAX]; /* until images__take_retaken() */
	size_t n_retaken;
	struct proc_maps proc;	  /* all mappings, as last read */
	struct file_cache *cache; /* cache of files; NULL: files are not shared */
	uid_t uid;		  /* whose account they are charged to */
	uint64_t bytes;		  /* total size of the files */
};

/* How many executable mappings, as last read, belong to files of which nothing is known for this
 * reason. */
size_t images__left_out(const struct images *images, enum image_lack why);

/* Some files could not be opened or read for lack of time, descriptors or memory, or because a
 * helper was killed; images__refresh() may succeed later. */
bool images__may_come_later(const struct images *images);

/* Reads the process's maps (again) and opens files that have come. */
int images__refresh(struct images *images, pid_t pid);
/*
 * Takes a range where names found earlier may be those of a file that is not mapped there any more,
 * since another one replaced it. False: no such range is left.
 */
bool images__take_retaken(struct images *images, struct image_place *ret_place);
/*
 * Adds a file that no process maps, at its own addresses, or above what is there already. fd stays
 * the caller's; `path` opens the same file.
 */
int images__of_file(struct images *images, int fd, const char *path, const char *name, bool is_exe);
void images__free(struct images *images);
const struct image_map *images__at(const struct images *images, uint64_t addr);
/* The same, but also finds what was mapped there earlier: for names of frames seen then. */
const struct image_map *images__ever_at(const struct images *images, uint64_t addr);
/*
 * The code at an address of the process, read from the file: *ret_len bytes are available from addr
 * on, and *ret_before bytes of the same segment before it. NULL if no file has them.
 */
const uint8_t *images__code(const struct images *images, uint64_t addr, size_t *ret_len,
			    size_t *ret_before);
/* NULL if /proc/PID/exe is not mapped (packed executables unmap themselves). */
struct image *images__exe(const struct images *images);

/* The address in the process of an address in the file. */
uint64_t image__addr(const struct image *image, uint64_t vaddr);

#endif
