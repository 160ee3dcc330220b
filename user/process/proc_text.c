/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The whole of a file in /proc. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "proc.h"

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
