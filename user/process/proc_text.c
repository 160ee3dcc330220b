/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The whole of a file in /proc. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "proc.h"

#define MAX_TEXT (1U << 20)

int proc__text(const char *path, size_t max, char **ret_text, size_t *ret_len)
{
	char *text = NULL;
	size_t len = 0, cap = 0;
	int fd, err = 0;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	for (;;) {
		ssize_t got;

		/* one more than it may have, for the NUL */
		err = ARRAY_RESERVE(text, cap, MIN(len + 4096, max + 1), max + 1);
		if (!err && len + 1 >= cap)
			err = -E2BIG;
		if (err)
			break;
		got = read(fd, text + len, cap - len - 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			err = -errno;
		if (got <= 0)
			break;
		len += (size_t)got;
	}
	fd__close(&fd);
	if (err) {
		free(text);
		return err;
	}
	text[len] = '\0';
	*ret_text = text;
	*ret_len = len;
	return 0;
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
