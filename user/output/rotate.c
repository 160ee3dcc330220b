/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rotate: finds the windows' files, and removes the oldest. */
#include "rotate_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "output.h"
#include "places_priv.h"

#define MAX_FILES ((size_t)1 << 20)

struct file {
	char *name;
	const char *time; /* points into name */
	bool ahead;	  /* of the clock, which has been set back since */
	uint64_t bytes;
};

struct files {
	struct file *v;
	size_t n, cap;
	uint64_t bytes;
	size_t windows;
};

void rotate__time(uint64_t unix_ns, char ret_text[ROTATE_TIME_SIZE])
{
	time_t seconds = (time_t)(unix_ns / 1000000000);
	char date[16] = "";
	struct tm tm;

	if (gmtime_r(&seconds, &tm))
		strftime(date, sizeof(date), "%Y%m%dT%H%M%S", &tm);
	snprintf(ret_text, ROTATE_TIME_SIZE, "%s.%03uZ", date,
		 (unsigned)(unix_ns / 1000000 % 1000));
}

/* The time in the name of a window's file; NULL: not such a name. */
static const char *time_in(const char *name, const char *stem)
{
	static const char shape[] = "00000000T000000.000Z.";
	size_t len = strlen(stem);
	const char *t = name + len + 1;

	if (strncmp(name, stem, len) != 0 || name[len] != '-')
		return NULL;
	for (size_t i = 0; i + 1 < sizeof(shape); i++)
		if (shape[i] == '0' ? t[i] < '0' || t[i] > '9' : t[i] != shape[i])
			return NULL;
	return place__is_suffix(t + sizeof(shape) - 2) ? t : NULL;
}

static int same_time(const struct file *a, const struct file *b)
{
	return strncmp(a->time, b->time, ROTATE_TIME_SIZE - 4);
}

/* Sorts by time, those in the future first: otherwise each new window would count as older than
 * they are. */
static int by_time(const void *pa, const void *pb)
{
	const struct file *a = pa, *b = pb;

	return a->ahead != b->ahead ? b->ahead - a->ahead : same_time(a, b);
}

static void find_ahead(struct files *files)
{
	char now[ROTATE_TIME_SIZE];
	struct file limit = {.time = now};

	rotate__time(time__realtime_ns(), now);
	for (size_t i = 0; i < files->n; i++)
		files->v[i].ahead = same_time(&files->v[i], &limit) > 0;
}

/* Other users' files in the directory are neither counted nor removed: otherwise a terabyte file
 * dated in the far future would cause all of this user's to be removed. */
static bool is_ours(const struct stat *st, uid_t owner)
{
	return S_ISREG(st->st_mode) && st->st_nlink == 1 &&
	       (st->st_uid == 0 || st->st_uid == geteuid() || st->st_uid == owner);
}

static int add(struct files *files, int dir, const char *name, const char *stem, uid_t owner)
{
	struct file file = {0};
	struct stat st;
	int err;

	if (!time_in(name, stem) || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) ||
	    !is_ours(&st, owner))
		return 0;
	err = ARRAY_RESERVE(files->v, files->cap, files->n + 1, MAX_FILES);
	if (err)
		return err;
	file.name = strdup(name);
	if (!file.name)
		return -ENOMEM;
	file.time = time_in(file.name, stem);
	file.bytes = (uint64_t)st.st_blocks * 512;
	files->bytes += file.bytes;
	files->v[files->n++] = file;
	return 0;
}

static int list(int dir, const char *stem, uid_t owner, struct files *ret_files)
{
	struct dirent *e;
	DIR *d;
	int err = dir__stream(dir, &d);

	if (err)
		return err;
	while (!err && (e = readdir(d)))
		err = add(ret_files, dir, e->d_name, stem, owner);
	closedir(d);
	find_ahead(ret_files);
	if (ret_files->n)
		qsort(ret_files->v, ret_files->n, sizeof(*ret_files->v), by_time);
	for (size_t i = 0; i < ret_files->n; i++)
		ret_files->windows += !i || same_time(&ret_files->v[i - 1], &ret_files->v[i]);
	return err;
}

/* Removes all files of one window, those from i to `next`. */
static int remove_window(struct files *files, int dir, size_t i, size_t next)
{
	int err = 0;

	for (; i < next; i++) {
		if (unlinkat(dir, files->v[i].name, 0) && errno != ENOENT && !err)
			err = -errno;
		files->bytes -= files->v[i].bytes;
	}
	files->windows--;
	return err;
}

/* Removes the oldest windows with all their files until the rest is within the limits. */
static int remove_oldest(const struct output_opts *opts, struct files *files, int dir)
{
	char oldest[ROTATE_TIME_SIZE];
	struct file limit = {.time = oldest};
	uint64_t now = time__realtime_ns();
	int err = 0, failed;

	rotate__time(now - MIN(opts->keep_for_ns, now), oldest);
	for (size_t i = 0, next; i < files->n && files->windows > 1; i = next) {
		const struct file *first = &files->v[i];
		bool goes = (opts->keep && files->windows > opts->keep) ||
			    (opts->keep_bytes && files->bytes > opts->keep_bytes) ||
			    (opts->keep_for_ns && same_time(first, &limit) < 0);

		if (!goes && !first->ahead)
			break;
		for (next = i + 1; next < files->n && !same_time(first, &files->v[next]);)
			next++;
		failed = goes ? remove_window(files, dir, i, next) : 0;
		err = err ? err : failed;
	}
	return err;
}

int rotate__files(const struct output_opts *opts, const char *stem, uid_t owner)
{
	struct files files = {.n = 0};
	char path[PATH_MAX];
	const char *base;
	int dir = -1, err;

	if (!opts->keep && !opts->keep_bytes && !opts->keep_for_ns)
		return 0;
	if (snprintf(path, sizeof(path), "%s/%s", opts->path ? opts->path : ".", stem) >=
	    (int)sizeof(path))
		return 0;
	err = dir__open_of(path, owner, &dir, &base);
	if (!err)
		err = list(dir, stem, owner, &files);
	if (!err)
		err = remove_oldest(opts, &files, dir);
	fd__close(&dir);
	for (size_t i = 0; i < files.n; i++)
		free(files.v[i].name);
	free(files.v);
	return err;
}
