/* SPDX-License-Identifier: GPL-2.0-or-later */
/* files: finds archives in directories and maps them. Their content is not read here. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archives.h"
#include "base/base.h"
#include "files_priv.h"
#include "process/fetch.h"
#include "process/origin.h"

/* GHC's libraries are two levels below its own directory. */
#define MAX_DEPTH   4
#define MAX_ENTRIES 65536 /* in one directory */
#define MAX_DIRS    4096

struct walk {
	struct archives *archives;
	size_t dirs;
	dev_t local; /* a file system known to be local */
};

static bool is_archive(const char *name)
{
	return strncmp(name, "lib", 3) == 0 && text__ends_with(name, strlen(name), ".a");
}

/* True if no file server can hold up readers of the file. */
static bool is_local(struct walk *w, int fd)
{
	struct origin origin;
	struct stat st;

	if (fetch__stat(fd, &st))
		return false;
	if (st.st_dev == w->local)
		return true;
	origin__of(0, fd, geteuid(), &origin);
	if (origin.reach == ORIGIN_FOREIGN)
		return false;
	w->local = st.st_dev;
	return true;
}

/* Opens the file only after checking that it is local. */
static int open_local(struct walk *w, int dir, const char *name, int flags, int *ret_fd)
{
	int at = openat(dir, name, O_PATH | O_CLOEXEC), err = 0;
	char path[64];

	if (at < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
	if (is_local(w, at)) {
		*ret_fd = open(path, flags | O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		err = *ret_fd < 0 ? -errno : 0;
	} else {
		err = -EREMOTEIO;
	}
	fd__close(&at);
	return err;
}

static enum archive_kind kind_of(const char *name)
{
	if (strncmp(name, "libHS", 5) != 0)
		return ARCHIVE_OTHER;
	return strncmp(name, "libHSrts", 8) == 0 ? ARCHIVE_RTS : ARCHIVE_HASKELL;
}

/* -E2BIG: no room for it. */
static int map_file(struct archives *a, int fd, const char *name)
{
	struct archive_file file = {.kind = kind_of(name),
				    .profiled = text__ends_with(name, strlen(name), "_p.a")};
	struct stat st;
	int err;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0)
		return -EINVAL;
	if ((uint64_t)st.st_size > ARCHIVES_MAX_BYTES - a->bytes)
		return -E2BIG;
	err = ARRAY_RESERVE(a->files, a->cap, a->n + 1, ARCHIVES_MAX_FILES);
	if (err)
		return err;
	file.size = (size_t)st.st_size;
	file.data = mmap(NULL, file.size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (file.data == MAP_FAILED)
		return -errno;
	a->files[a->n++] = file;
	a->bytes += file.size;
	return 0;
}

static int add_file(struct walk *w, int dir, const char *name)
{
	struct archives *a = w->archives;
	int fd = -1, err = open_local(w, dir, name, 0, &fd);

	if (!err)
		err = map_file(a, fd, name);
	fd__close(&fd);
	if (!err || err == -ENOMEM)
		return err;
	log_verbose("%s: left out: %s", name, strerror(-err));
	a->left_out++;
	return 0;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names in the directory, sorted, so that results do not depend on the file system's order. */
static int list(int fd, char ***ret_names, size_t *ret_n)
{
	char **names = NULL;
	size_t n = 0, cap = 0;
	struct dirent *entry;
	DIR *dir = fdopendir(fd);
	int err = 0;

	if (!dir) {
		fd__close(&fd);
		return -ENOMEM;
	}
	while (!err && n < MAX_ENTRIES && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		err = ARRAY_RESERVE(names, cap, n + 1, MAX_ENTRIES);
		if (!err && !(names[n++] = strdup(entry->d_name)))
			err = -ENOMEM;
	}
	closedir(dir);
	if (n)
		qsort(names, n, sizeof(*names), compare);
	*ret_names = names;
	*ret_n = n;
	return err;
}

static bool is_dir(int dir, const char *name)
{
	struct stat st;

	/* symlinks to directories are not followed: they may form cycles */
	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) == 0 &&
	       S_ISDIR(st.st_mode);
}

static int walk_dir(struct walk *w, int at, const char *name, unsigned depth);

static int walk_names(struct walk *w, int fd, char *const *names, size_t n, unsigned depth)
{
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		if (is_archive(names[i]) && !is_dir(fd, names[i]))
			err = add_file(w, fd, names[i]);
		else if (depth < MAX_DEPTH && w->dirs < MAX_DIRS && is_dir(fd, names[i]))
			err = walk_dir(w, fd, names[i], depth + 1);
		/* an unreadable subdirectory counts as empty */
		if (err && err != -ENOMEM)
			err = 0;
	}
	return err;
}

/* NOLINTNEXTLINE(misc-no-recursion): no deeper than MAX_DEPTH */
static int walk_dir(struct walk *w, int at, const char *name, unsigned depth)
{
	char **names = NULL;
	size_t n = 0;
	int fd = -1, copy, err = open_local(w, at, name, O_DIRECTORY, &fd);

	if (err)
		return err;
	w->dirs++;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	err = copy < 0 ? -errno : list(copy, &names, &n);
	if (!err)
		err = walk_names(w, fd, names, n, depth);
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
	fd__close(&fd);
	return err;
}

/* *ret_last: on failure, the directory that caused it. */
static int map_dirs(struct archives *a, const char *const *dirs, size_t n, const char **ret_last)
{
	struct walk walk = {.archives = a};
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		size_t before = a->n;

		*ret_last = dirs[i];
		err = walk_dir(&walk, AT_FDCWD, dirs[i], 0);
		if (!err && a->n == before && !a->left_out)
			err = -ENODATA;
	}
	return err;
}

bool archives__are_there(const char *const *dirs, size_t n)
{
	struct archives *a = calloc(1, sizeof(*a));
	const char *last;
	bool there = a && map_dirs(a, dirs, n, &last) == 0;

	archives__free(a);
	return there;
}

int archives__open(const char *const *dirs, size_t n, struct archives **ret_archives)
{
	struct archives *a = calloc(1, sizeof(*a));
	const char *last = "";
	int err = a ? map_dirs(a, dirs, n, &last) : -ENOMEM;

	if (err) {
		log_error("--archives %s: %s", last,
			  err == -ENODATA     ? "there are no archives (lib….a)"
			  : err == -EREMOTEIO ? "not on a local file system"
					      : strerror(-err));
		archives__free(a);
		return err == -ENOMEM ? err : -ENOENT;
	}
	if (a->left_out)
		log_warn("--archives: %zu archives are left out: they cannot be read, or exceed "
			 "the limit of %u archives and %s in all",
			 a->left_out, ARCHIVES_MAX_FILES, human__bytes(ARCHIVES_MAX_BYTES).s);
	*ret_archives = a;
	return 0;
}

void archives__free(struct archives *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->n; i++)
		munmap(a->files[i].data, a->files[i].size);
	free(a->files);
	free(a);
}
