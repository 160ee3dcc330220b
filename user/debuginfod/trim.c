/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * trim: removes files that nobody has read for long from the cache, by the rule of debuginfod's
 * client library (debuginfod_find_debuginfo(3), "max_unused_age_s"), which itself trims only where
 * it is used.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "debuginfod_priv.h"

#define UNUSED_AGE_S (7 * 86400)
/* A file that is still being copied has a recent mtime. */
#define UNFINISHED_AGE_S 86400

/* As in the library, a file in the directory may set another number of seconds. */
static time_t unused_age(int dir)
{
	int fd = openat(dir, "max_unused_age_s", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[24] = "";
	long long s = 0;

	if (fd < 0)
		return UNUSED_AGE_S;
	if (read(fd, text, sizeof(text) - 1) > 0)
		s = strtoll(text, NULL, 10);
	close(fd);
	return s > 0 ? (time_t)s : UNUSED_AGE_S;
}

/* Whether a file of that name may be removed; *ret_finished: it has its final name, not the
 * temporary one. */
static bool is_ours(const char *name, bool *ret_finished)
{
	for (int kind = DEBUGINFOD_DEBUGINFO; kind <= DEBUGINFOD_EXECUTABLE; kind++) {
		const char *own = debuginfod_kind__name((enum debuginfod_kind)kind);
		size_t len = strlen(own);

		if (strncmp(name, own, len) != 0)
			continue;
		*ret_finished = !name[len];
		if (*ret_finished || (name[len] == '.' && name[len + 1] &&
				      !name[len + 1 + strspn(name + len + 1, "0123456789")]))
			return true;
	}
	return false;
}

static bool is_due(int dir, const char *name, time_t now, time_t age)
{
	bool finished;
	struct stat st;

	if (!is_ours(name, &finished) || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISREG(st.st_mode))
		return false;
	/* the file system may not record access times */
	return finished ? now - MAX(st.st_atime, st.st_mtime) >= age
			: now - st.st_mtime >= UNFINISHED_AGE_S;
}

/* Trims one build-id's directory. Adds the files removed to *n_gone. */
static void trim_one(int cache, const char *build_id, time_t now, time_t age, size_t *n_gone)
{
	int fd = -1;
	DIR *dir = keep__open_one(cache, build_id, &fd) ? NULL : fdopendir(fd);
	size_t before = *n_gone;
	struct dirent *e;

	if (!dir) {
		fd__close(&fd);
		return;
	}
	while ((e = readdir(dir)))
		if (is_due(dirfd(dir), e->d_name, now, age) && !unlinkat(dirfd(dir), e->d_name, 0))
			++*n_gone;
	closedir(dir);
	/* fails if there is something else in it */
	if (*n_gone > before)
		unlinkat(cache, build_id, AT_REMOVEDIR);
}

int keep__trim(int cache, time_t now, size_t *ret_n_gone)
{
	struct dirent *e;
	size_t n = 0;
	time_t age;
	DIR *dir;
	int err = dir__stream(cache, &dir);

	if (err)
		return err;
	age = unused_age(dirfd(dir));
	while ((e = readdir(dir)))
		if (strlen(e->d_name) > 1 && !e->d_name[strspn(e->d_name, "0123456789abcdef")])
			trim_one(dirfd(dir), e->d_name, now, age, &n);
	closedir(dir);
	*ret_n_gone = n;
	return 0;
}
