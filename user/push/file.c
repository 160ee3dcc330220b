/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

uint64_t push_file__stamp(uint64_t stamp, const char *path)
{
	struct stat st;
	uint64_t parts[7] = {0};

	if (path && !stat(path, &st)) {
		parts[0] = st.st_dev;
		parts[1] = st.st_ino;
		parts[2] = (uint64_t)st.st_size;
		parts[3] = (uint64_t)st.st_mtim.tv_sec;
		parts[4] = (uint64_t)st.st_mtim.tv_nsec;
		parts[5] = (uint64_t)st.st_ctim.tv_sec;
		parts[6] = (uint64_t)st.st_ctim.tv_nsec;
	}
	/* FNV-1a, by words */
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		stamp = (stamp ^ parts[i]) * 0x100000001b3ULL;
	return stamp;
}
