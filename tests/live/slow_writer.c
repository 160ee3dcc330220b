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
	const char *mark = getenv("SLOW_WRITER_MARK"), *ms = getenv("SLOW_WRITER_MS");

	if (mark && ms && is_slow_one(new_name)) {
		close(open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
		usleep((useconds_t)strtoul(ms, NULL, 10) * 1000);
	}
	return (int)syscall(SYS_renameat2, old_dir, old_name, new_dir, new_name, 0);
}
