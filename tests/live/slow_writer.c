/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For LD_PRELOAD: a window's writer, which is nicer than the session itself, takes SLOW_WRITER_MS
 * to rename a file to a name that ends with SLOW_WRITER_NAME. It creates SLOW_WRITER_MARK before.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_slow_one(const char *name)
{
	const char *end = getenv("SLOW_WRITER_NAME");

	return end && strlen(name) >= strlen(end) &&
	       !strcmp(name + strlen(name) - strlen(end), end) && getpriority(PRIO_PROCESS, 0) > 0;
}

int renameat(int old_dir, const char *old_name, int new_dir, const char *new_name)
{
	if (is_slow_one(new_name)) {
		close(open(getenv("SLOW_WRITER_MARK"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
		usleep((useconds_t)atoi(getenv("SLOW_WRITER_MS")) * 1000);
	}
	return (int)syscall(SYS_renameat2, old_dir, old_name, new_dir, new_name, 0);
}
