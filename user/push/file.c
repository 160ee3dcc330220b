/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "base/read.h"
#include "push_priv.h"

int push_file__read(const char *path, size_t max, uid_t user, char **ret_text, size_t *ret_len)
{
	int fd = -1, err = fd__open_own(path, user, &fd);

	if (!err)
		err = read__all(fd, max, ret_text, ret_len);
	fd__close(&fd);
	if (err)
		log_error("%s: cannot be read: %s", path,
			  err == -EPERM ? "others can write to it" : strerror(-err));
	return err;
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
	/* FNV-1a, on 64-bit words */
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		stamp = (stamp ^ parts[i]) * 0x100000001b3ULL;
	return stamp;
}
