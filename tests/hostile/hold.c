/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hold HOW FILE COMMAND…: runs the command with a descriptor of somebody else's file, which is
 * opened as "path" (O_PATH, which is open to anyone), "read", "write" or "both".
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int flags = O_PATH;

	if (argc < 4)
		return 2;
	if (!strcmp(argv[1], "read"))
		flags = O_RDONLY;
	else if (!strcmp(argv[1], "write"))
		flags = O_WRONLY | O_APPEND;
	else if (!strcmp(argv[1], "both"))
		flags = O_RDWR | O_APPEND;
	if (open(argv[2], flags) < 0) {
		perror(argv[2]);
		return 1;
	}
	execv(argv[3], argv + 3);
	perror(argv[3]);
	return 1;
}
