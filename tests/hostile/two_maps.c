// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An ordinary user's program that maps a real Haskell program's code, but so that the page where
 * suspendThread must be according to the other mappings is a different page of the file.
 *
 *   two_maps FILE ADDRESS OFFSET ADDRESS OFFSET…     maps a page of FILE at each address
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int fd = argc > 3 ? open(argv[1], O_RDONLY) : -1;

	if (fd < 0)
		return 2;
	for (int i = 2; i + 1 < argc; i += 2) {
		char *at = (char *)strtoul(argv[i], NULL, 0);

		if (mmap(at, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd,
			 strtol(argv[i + 1], NULL, 0)) != at)
			return 3;
	}
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
