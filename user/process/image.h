/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * process: what the kernel knows of a process (proc.h), its memory (mem.h), and the ELF files whose
 * code it maps, here, with their debug files (debugfile.h) and where they come from (origin.h).
 * Each file (device, inode) is opened once, and kept when its mapping goes: names and offsets
 * learnt from it stay valid. Where there are many of which the mappings have gone, the oldest go.
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
	struct file *file;	  /* what all processes that map it share */
	uint64_t dev, ino;	  /* as stat() has them */
	char path[PROC_PATH_LEN]; /* opens the file through /proc */
	char *name;		  /* path as mapped */
	const char *base;	  /* the last part of it */
	struct elf_file *elf;	  /* the file's; NULL: no readable ELF file of this processor */
	int elf_err;		  /* why, if NULL */
	uid_t uid;		  /* of the file's owner */
	uid_t account;		  /* see struct images, uid */
	/*
	 * Of debugfile.c: has the symbols that `elf` lacks. The file's, which all processes share,
	 * or one that only this process's own root has: that gives names, to this process alone.
	 */
	struct elf_file *debug;
	bool debug_tried, debug_is_own;
	struct slots slots; /* what rooms above have made of a debug file of its own */
	uint64_t bias;	    /* address in the process − address in the file */
	bool is_exe;
	bool stays;		  /* it is kept, mapped or not: the runtime's */
	bool goes;		  /* of image.c, which makes room */
	bool came;		  /* of image.c: it was read only now */
	struct retry debug_again; /* of debugfile.c, where there was no time to look */
};

/* Why nothing is known of a file that is mapped. */
enum image_lack {
	IMAGE_LACKS_NOTHING = 0,
	IMAGE_NO_ROOM, /* the process's files, or its user's, are too many or too large */
	IMAGE_NOT_YET, /* there was no descriptor, memory or time to open it: there may be later */
	IMAGE_NOT_COPIED, /* fetch.h: on a file system that is not a local one, and not copied */
	/* not even root may look at it (FUSE without allow_other), and something else has its name
	 */
	IMAGE_NOT_OPENED,
};

/* One executable mapping of a file. */
struct image_map {
	uint64_t start, end;
	uint64_t offset; /* in the file */
	uint64_t bias;
	struct image *image; /* NULL: no file ([vdso], JIT code), or one that is not opened */
	const char *special; /* "[vdso]"; NULL if image is set */
	enum image_lack lack;
};

/* Places where code of another file lies than before, at most so many: the last has the rest. */
#define IMAGES_RETAKEN_MAX 32U
struct image_place {
	uint64_t start, end;
};

/* How many files are kept for a process, and their sizes together. */
#define IMAGES_MAX	 1024U
#define IMAGES_MAX_BYTES (8ULL << 30)

struct images {
	struct image **images;
	size_t n, cap;
	size_t opened;		/* how many there have been; grows with each new one, and with one
				   that can be read at last */
	struct image_map *maps; /* executable mappings, ascending */
	size_t n_maps, cap_maps;
	struct image_map *past; /* of files, that are mapped no more and whose place is free */
	size_t n_past, cap_past;
	struct image_place retaken[IMAGES_RETAKEN_MAX]; /* until they are taken */
	size_t n_retaken;
	struct proc_maps proc;	  /* all mappings, as last read */
	struct file_cache *cache; /* where files come from; NULL: none is shared */
	uid_t uid;		  /* on whose account they are */
	uint64_t bytes;		  /* their sizes together */
};

/* How many executable mappings, as last read, are of files that lack for this reason. */
size_t images__left_out(const struct images *images, enum image_lack why);

/* Some could not be opened or read for want of time, descriptors or memory, or since a helper was
 * killed: images__refresh() may. */
bool images__may_come_later(const struct images *images);

/* Reads the process's maps (again) and opens the files that are new. */
int images__refresh(struct images *images, pid_t pid);
/*
 * A place where names that were found before may be those of a file that is mapped no more, since
 * another one came there. false: there is none that was not taken yet.
 */
bool images__take_retaken(struct images *images, struct image_place *ret_place);
/*
 * A file that no process maps yet, at the addresses that the file itself has. fd stays the
 * caller's; `path` opens the same file.
 */
int images__of_file(struct images *images, int fd, const char *path, const char *name, bool is_exe);
void images__free(struct images *images);
const struct image_map *images__at(const struct images *images, uint64_t addr);
/* The same, and of what was mapped there before: for names of frames seen then. */
const struct image_map *images__ever_at(const struct images *images, uint64_t addr);
/*
 * The code bytes at an address of the process, from the file: up to *ret_len of them from addr on,
 * in *ret_before those of the same segment that lie before it. NULL if no file has them.
 */
const uint8_t *images__code(const struct images *images, uint64_t addr, size_t *ret_len,
			    size_t *ret_before);
/* NULL if /proc/PID/exe is mapped no more (packed executables unmap themselves). */
struct image *images__exe(const struct images *images);

/* Maps addresses of the process to the file and back. */
uint64_t image__addr(const struct image *image, uint64_t vaddr);

#endif
