/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dir: opens the directory in which a file is to be written, without following other users' links.
 * The kernel's own protection (fs.protected_symlinks) covers only the last part of a path, only in
 * sticky directories, and may be off.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base.h"

/* The kernel's own limit (MAXSYMLINKS). */
#define LINKS_MAX 40

struct walk {
	uid_t user; /* whose links are followed, besides ours and root's */
	/* nobody else may be able to replace a directory on the way; missing ones are created */
	bool own;
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

/* Restarts at the root if the rest of the path is absolute. */
static int start(struct walk *w)
{
	if (w->rest[0] != '/' && w->at >= 0)
		return 0;
	return step_to(w, open(w->rest[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

/* Replaces the link in the path by its text. */
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

/* In a sticky directory, nobody can remove or rename another user's files. */
static bool is_own(const struct stat *st)
{
	return (st->st_uid == 0 || st->st_uid == geteuid()) &&
	       (!(st->st_mode & 022) || st->st_mode & S_ISVTX);
}

static int open_part(struct walk *w, const char *name, bool last)
{
	int fd = openat(w->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 || errno != ENOENT || !w->own)
		return fd;
	if (mkdirat(w->at, name, last ? 0700 : 0755) && errno != EEXIST)
		return -1;
	return openat(w->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

/* Walks one part of the path. */
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
	fd = open_part(w, name, !rest[strspn(rest, "/")]);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st)) {
		err = -errno;
	} else if (S_ISLNK(st.st_mode)) {
		err = follow(w, fd, &st, rest);
	} else if (S_ISDIR(st.st_mode) && w->own && !is_own(&st)) {
		err = -EPERM;
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

/* Walks the whole path in w->rest. */
static int walk(struct walk *w, int *ret_dir)
{
	int err = start(w), dir = -1;

	while (!err && w->rest[0])
		err = step(w);
	if (!err) {
		dir = openat(w->at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		err = dir < 0 ? -errno : 0;
	}
	fd__close(&w->at);
	if (!err)
		*ret_dir = dir;
	return err;
}

int dir__open_of(const char *path, uid_t user, int *ret_dir, const char **ret_name)
{
	const char *name = path__base(path);
	struct walk w = {.user = user, .at = -1};
	int err;

	if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
		return -EISDIR;
	if ((size_t)(name - path) >= sizeof(w.rest))
		return -ENAMETOOLONG;
	memcpy(w.rest, path, (size_t)(name - path));
	err = walk(&w, ret_dir);
	if (!err)
		*ret_name = name;
	return err;
}

int dir__open_own(const char *path, int *ret_dir)
{
	struct walk w = {.user = (uid_t)-1, .own = true, .at = -1};
	int n;

	/* the way to the working directory matters as well */
	if (*path != '/' && !getcwd(w.rest, sizeof(w.rest)))
		return -errno;
	n = (int)strlen(w.rest);
	if ((size_t)n + strlen(path) + 2 > sizeof(w.rest))
		return -ENAMETOOLONG;
	snprintf(w.rest + n, sizeof(w.rest) - (size_t)n, "%s%s", n ? "/" : "", path);
	return walk(&w, ret_dir);
}

int dir__stream(int dir, DIR **ret_stream)
{
	/* closedir() closes its descriptor, so it needs one of its own */
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);

	if (!stream) {
		err = -errno;
		fd__close(&fd);
		return err;
	}
	*ret_stream = stream;
	return 0;
}
