/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dir: the directory that a file is to be written into, reached by nobody's links but our own. The
 * kernel's own protection (fs.protected_symlinks) is for the last part of a path and for sticky
 * directories only, and may be off.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base.h"

/* As many as the kernel follows (MAXSYMLINKS). */
#define LINKS_MAX 40

struct walk {
	uid_t user; /* whose links are followed besides ours and root's */
	unsigned links;
	int at; /* O_PATH */
	char rest[PATH_MAX];
};

static int step_to(struct walk *w, int fd)
{
	if (fd < 0)
		return -errno;
	fd__close(&w->at);
	w->at = fd;
	return 0;
}

/* From the top if the rest of the path is absolute. */
static int start(struct walk *w)
{
	if (w->rest[0] != '/' && w->at >= 0)
		return 0;
	return step_to(w, open(w->rest[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

/* The link's text takes its place in the path. */
static int follow(struct walk *w, int link, const struct stat *st, const char *rest)
{
	char path[PATH_MAX];
	ssize_t len;
	int n;

	if (st->st_uid != 0 && st->st_uid != geteuid() && st->st_uid != w->user)
		return -EPERM;
	if (w->links++ == LINKS_MAX)
		return -ELOOP;
	len = readlinkat(link, "", path, sizeof(path) - 1);
	if (len < 0)
		return -errno;
	n = snprintf(path + len, sizeof(path) - (size_t)len, "/%s", rest);
	if (n < 0 || (size_t)n >= sizeof(path) - (size_t)len)
		return -ENAMETOOLONG;
	memcpy(w->rest, path, (size_t)len + (size_t)n + 1);
	return start(w);
}

/* One part of the path. */
static int step(struct walk *w)
{
	char *rest = w->rest + strspn(w->rest, "/"), *name = strsep(&rest, "/");
	struct stat st;
	int fd, err;

	rest = rest ? rest : name + strlen(name);
	if (!*name) {
		w->rest[0] = '\0';
		return 0;
	}
	fd = openat(w->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st)) {
		err = -errno;
	} else if (S_ISLNK(st.st_mode)) {
		err = follow(w, fd, &st, rest);
	} else if (S_ISDIR(st.st_mode)) {
		fd__close(&w->at);
		w->at = fd;
		fd = -1;
		memmove(w->rest, rest, strlen(rest) + 1);
		err = 0;
	} else {
		err = -ENOTDIR;
	}
	fd__close(&fd);
	return err;
}

int dir__open_of(const char *path, uid_t user, int *ret_dir, const char **ret_name)
{
	const char *name = path__base(path);
	struct walk w = {.user = user, .at = -1};
	int err, dir;

	if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
		return -EISDIR;
	if ((size_t)(name - path) >= sizeof(w.rest))
		return -ENAMETOOLONG;
	memcpy(w.rest, path, (size_t)(name - path));
	err = start(&w);
	while (!err && w.rest[0])
		err = step(&w);
	if (!err) {
		dir = openat(w.at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		err = dir < 0 ? -errno : 0;
	}
	fd__close(&w.at);
	if (err)
		return err;
	*ret_dir = dir;
	*ret_name = name;
	return 0;
}
