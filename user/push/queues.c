/* SPDX-License-Identifier: GPL-2.0-or-later */
/* queues: the directory of all queues, and queues of servers that nothing is sent to any more. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/base.h"
#include "push_priv.h"

int queues__path(const struct push_opts *opts, const char *url, char ret_path[PATH_MAX])
{
	/* systemd.exec(5); several directories are separated by colons */
	const char *state = getenv("STATE_DIRECTORY");
	size_t len;

	if (opts->queue_dir)
		len = (size_t)snprintf(ret_path, PATH_MAX, "%s/", opts->queue_dir);
	else if (state && *state)
		len = (size_t)snprintf(ret_path, PATH_MAX, "%.*s/push/",
				       (int)MIN(strcspn(state, ":"), (size_t)PATH_MAX), state);
	else
		len = (size_t)snprintf(ret_path, PATH_MAX, "%s/", PUSH_QUEUE_DIR);
	if (len >= PATH_MAX)
		return -ENAMETOOLONG;
	for (const char *c = url; *c && len + 1 < PATH_MAX; c++) {
		bool plain = (*c >= '0' && *c <= '9') || (*c >= 'A' && *c <= 'Z') ||
			     (*c >= 'a' && *c <= 'z') || *c == '.' || *c == '-' || *c == '+';

		ret_path[len++] = plain ? *c : '_';
	}
	if (len + 1 >= PATH_MAX)
		return -ENAMETOOLONG;
	ret_path[len] = '\0';
	return 0;
}

/* How many requests wait in a queue that no process uses; 0: none, or it is not a queue. */
static size_t count_left(int base, const char *name)
{
	int fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	size_t n = 0;

	if (!dir) {
		fd__close(&fd);
		return 0;
	}
	if (!flock(dirfd(dir), LOCK_SH | LOCK_NB))
		while ((e = readdir(dir)))
			n += queue__is_name(e->d_name);
	closedir(dir);
	return n;
}

void queues__report_left(const struct push_opts *opts)
{
	char path[PATH_MAX];
	DIR *dir = queues__path(opts, "", path) ? NULL : opendir(path);
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		size_t n = *e->d_name == '.' ? 0 : count_left(dirfd(dir), e->d_name);

		if (n)
			log_warn("%s%s: %zu requests are queued for a server that nothing is "
				 "pushed to any more; remove them if they are not wanted",
				 path, e->d_name, n);
	}
	if (dir)
		closedir(dir);
}
