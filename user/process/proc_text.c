/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads whole files of /proc. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/vfs.h>

#include "base/base.h"
#include "base/read.h"
#include "proc.h"

#define MAX_TEXT (1U << 20)

bool proc__is_mounted(const char *path, uint32_t magic)
{
	struct statfs fs;

	return statfs(path, &fs) || (uint32_t)fs.f_type == magic;
}

int proc__text(const char *path, size_t max, char **ret_text, size_t *ret_len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err;

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	err = read__all(fd, max, ret_text, ret_len);
	fd__close(&fd);
	return err;
}

int proc__text_of(pid_t pid, pid_t tid, const char *name, char **ret_text, size_t *ret_len)
{
	char path[64];

	if (tid > 0)
		snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	else
		snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return proc__text(path, MAX_TEXT, ret_text, ret_len);
}
