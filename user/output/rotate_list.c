/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rotate: finds the windows' files in a directory of any size, with memory for the oldest only. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "places_priv.h"
#include "rotate_priv.h"

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

/* Reads a time in a name, which ends with `end`. */
static bool parse_time(const char *text, char end, uint64_t *ret_time)
{
	static const char shape[] = "00000000T000000.000Z";
	uint64_t time = 0;

	for (size_t i = 0; shape[i]; i++) {
		if (shape[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != shape[i])
			return false;
		if (shape[i] == '0')
			time = time * 10 + (uint64_t)(text[i] - '0');
	}
	if (text[sizeof(shape) - 1] != end)
		return false;
	*ret_time = time;
	return true;
}

uint64_t rotate__key(uint64_t unix_ns)
{
	char text[ROTATE_TIME_SIZE];
	uint64_t time;

	rotate__time(unix_ns, text);
	return parse_time(text, '\0', &time) ? time : 0;
}

void rotate__name(const char *stem, uint64_t time, size_t suffix, char *name, size_t size)
{
	uint64_t date = time / 1000000000, of_day = time / 1000 % 1000000;

	snprintf(name, size, "%s-%08" PRIu64 "T%06" PRIu64 ".%03" PRIu64 "Z%s", stem, date, of_day,
		 time % 1000, place__suffix(suffix));
}

bool rotate__is_ours(const struct stat *st, uid_t owner)
{
	return S_ISREG(st->st_mode) && st->st_nlink == 1 &&
	       (st->st_uid == 0 || st->st_uid == geteuid() || st->st_uid == owner);
}

static int by_time(const void *pa, const void *pb)
{
	const struct rotate_window *a = pa, *b = pb;

	return (a->time > b->time) - (a->time < b->time);
}

/* Sorts, makes one of the files of each window, and leaves out those that are not among the
 * oldest. */
static void tidy(struct rotate_oldest *oldest)
{
	size_t n = 0;

	if (oldest->n)
		array__sort(oldest->v, oldest->n, sizeof(*oldest->v), by_time);
	for (size_t i = 0; i < oldest->n; i++) {
		struct rotate_window *last = n ? &oldest->v[n - 1] : NULL;

		if (last && last->time == oldest->v[i].time) {
			last->suffixes |= oldest->v[i].suffixes;
			last->bytes += oldest->v[i].bytes;
		} else {
			oldest->v[n++] = oldest->v[i];
		}
	}
	oldest->n = MIN(n, oldest->max);
	if (n >= oldest->max)
		oldest->limit = oldest->v[oldest->n - 1].time;
}

/* No file of a window that remains is ever left out: the limit only goes down. */
static int add_to(struct rotate_oldest *oldest, const struct rotate_window *file)
{
	int err;

	if (oldest->limit && file->time > oldest->limit)
		return 0;
	if (oldest->n == 2 * oldest->max)
		tidy(oldest);
	err = ARRAY_RESERVE(oldest->v, oldest->cap, oldest->n + 1, 2 * oldest->max);
	if (!err)
		oldest->v[oldest->n++] = *file;
	return err;
}

static int add(struct rotate_listing *listing, int dir, const char *name, const char *stem,
	       uid_t owner, uint64_t now)
{
	size_t len = strlen(stem), shape = strlen("00000000T000000.000Z");
	struct rotate_window file;
	struct stat st;
	int suffix;

	if (strncmp(name, stem, len) != 0 || name[len] != '-' ||
	    !parse_time(name + len + 1, '.', &file.time))
		return 0;
	suffix = place__find_suffix(name + len + 1 + shape);
	if (suffix < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) ||
	    !rotate__is_ours(&st, owner))
		return 0;
	file.suffixes = 1U << suffix;
	file.bytes = (uint64_t)st.st_blocks * 512;
	listing->bytes += file.bytes;
	if (file.time > now)
		return add_to(&listing->ahead, &file);
	listing->newest = MAX(listing->newest, file.time);
	return add_to(&listing->past, &file);
}

int rotate__list(int dir, const char *stem, uid_t owner, size_t max,
		 struct rotate_listing *ret_listing)
{
	uint64_t now = rotate__key(time__realtime_ns());
	struct dirent *e;
	DIR *d;
	int err;

	*ret_listing = (struct rotate_listing){.past = {.max = max}, .ahead = {.max = max}};
	err = dir__stream(dir, &d);
	if (err)
		return err;
	/* readdir() leaves errno alone at the end */
	for (errno = 0; !err && (e = readdir(d)); errno = 0)
		err = add(ret_listing, dir, e->d_name, stem, owner, now);
	if (!err && errno)
		err = -errno;
	closedir(d);
	tidy(&ret_listing->past);
	tidy(&ret_listing->ahead);
	return err;
}

void rotate__free_listing(struct rotate_listing *listing)
{
	free(listing->past.v);
	free(listing->ahead.v);
}
