/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Preloaded: maps files of a folder as code before the program begins. MAP_MANY is the folder,
 * whose files are called 0, 1, 2, …; MAP_FIRST and MAP_COUNT select some of them. MAP_AT: a
 * hexadecimal address from which they are mapped, one page after the other; otherwise they are
 * mapped anywhere.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

__attribute__((constructor)) static void map_many(void)
{
	const char *folder = getenv("MAP_MANY"), *first = getenv("MAP_FIRST"),
		   *count = getenv("MAP_COUNT"), *place = getenv("MAP_AT");
	char *at = place ? (char *)strtoul(place, NULL, 16) : NULL;
	char path[4096];
	long from, to;

	if (!folder || !first || !count)
		return;
	from = strtol(first, NULL, 10);
	to = from + strtol(count, NULL, 10);
	for (long i = from; i < to; i++) {
		int fd;

		snprintf(path, sizeof(path), "%s/%ld", folder, i);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 ||
		    mmap(at, 4096, PROT_READ | PROT_EXEC,
			 MAP_PRIVATE | (at ? MAP_FIXED_NOREPLACE : 0), fd, 0) == MAP_FAILED) {
			perror(path);
			_exit(1);
		}
		close(fd);
		at = at ? at + 4096 : NULL;
	}
}
