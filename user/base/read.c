/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "read.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base.h"

#define STEP 4096

int read__all(int fd, size_t max, char **ret_text, size_t *ret_len)
{
	char *text = NULL;
	size_t len = 0, cap = 0;
	int err;

	for (;;) {
		ssize_t got;

		/* an extra byte detects files that are too long, and has room for the NUL */
		err = ARRAY_RESERVE(text, cap, MIN(len + STEP, max + 1), max + 1);
		if (err)
			break;
		got = read(fd, text + len, cap - len);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			err = -errno;
		if (got <= 0)
			break;
		len += (size_t)got;
		if (len > max) {
			err = -EFBIG;
			break;
		}
	}
	if (err) {
		free(text);
		return err;
	}
	text[len] = '\0';
	*ret_text = text;
	*ret_len = len;
	return 0;
}

int read__at(int fd, void *buf, size_t len, uint64_t at, size_t *ret_got)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = pread(fd, (char *)buf + got, len - got, (off_t)(at + got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		got += (size_t)n;
	}
	*ret_got = got;
	return 0;
}
