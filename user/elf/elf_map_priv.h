/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Maps a file so that its bytes can be read at any time, whatever happens to the file.
 *
 * Touching a mapped page that the file no longer has (truncated, I/O error) raises SIGBUS, which
 * would let the file's owner kill the daemon. elf_map__open() installs one SIGBUS handler for the
 * process: if the address lies in a mapping of this module, the handler maps zeros over it from the
 * failing page to its end, and the read continues; any other SIGBUS is passed to the previous
 * handler, or kills as it would have. Each mapping is followed by one page of zeros, so a string
 * that lost its NUL to a concurrent write still ends. Shared by the files of this room only.
 */
#ifndef SAFESCOPED_ELF_MAP_PRIV_H
#define SAFESCOPED_ELF_MAP_PRIV_H

#include <stddef.h>
#include <stdint.h>

struct elf_map {
	const uint8_t *data;
	size_t size;  /* the file's, when it was opened */
	size_t total; /* reserved, in whole pages; 0: nothing is mapped */
	int slot;     /* in the handler's table; -1: nothing is mapped */
	int fd;	      /* of the file, for elf_map__make_writable(); -1: closed */
};

/* The descriptor stays the caller's, who may store it in ret_map->fd. size must be > 0. -ENFILE:
 * too many files are mapped. */
int elf_map__open(int fd, size_t size, struct elf_map *ret_map);
void elf_map__free(struct elf_map *map);
/* Drops the pages of a part; they are read again when touched. */
void elf_map__drop(const struct elf_map *map, size_t offset, size_t len);
/*
 * Makes the bytes privately writable without changing the file: for a library that keeps notes in
 * them. -ENOTSUP: they are not the mapping's, or its file is closed.
 */
int elf_map__make_writable(const struct elf_map *map);

#endif
