/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "push_priv.h"

static int read_all(int fd, size_t max, char *text, size_t *ret_len)
{
	size_t len = 0;

	for (;;) {
		/* one byte more shows that there is more */
		ssize_t n = read(fd, text + len, max + 1 - len);

		if (n < 0)
			return -errno;
		len += (size_t)n;
		if (len > max)
			return -EFBIG;
		if (!n)
			break;
	}
	text[len] = '\0';
	*ret_len = len;
	return 0;
}

int push_file__read(const char *path, size_t max, uid_t user, char **ret_text, size_t *ret_len)
{
	char *text = malloc(max + 2);
	int fd = -1, err = text ? fd__open_own(path, user, &fd) : -ENOMEM;

	if (!err)
		err = read_all(fd, max, text, ret_len);
	fd__close(&fd);
	if (err) {
		log_error("%s: cannot be read: %s", path,
			  err == -EPERM ? "others may write it" : strerror(-err));
		free(text);
		return err;
	}
	*ret_text = text;
	return 0;
}
