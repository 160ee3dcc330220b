/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rotate: keeps count of the windows in the directory, and removes the oldest. */
#include "rotate_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "output.h"
#include "places_priv.h"

/* How many of the oldest windows are known by their names. Once they are removed, the directory is
 * read for the next ones. */
#define BATCH 1024
/* How many can be removed after one reading. */
#define MANY 65536
/* It is also read when a reading took one part in this many of the time since, or after this time:
 * others may have removed or added windows. */
#define SHARE	   300
#define LONGEST_NS 600000000000ULL
/* The same if there is a sign of that. */
#define SHARE_IF_DOUBT 10
/* Limit on the wait for another process that reads or removes. */
#define LOCK_WAIT_NS 2000000000ULL
#define NAME_SIZE    256

/* The oldest windows that are left from the last reading of the directory. */
struct batch {
	size_t at, n;
	struct rotate_window v[BATCH];
};

/* Names of windows, from the oldest on, of which those before `at` have been removed. */
struct names {
	const struct rotate_window *v;
	size_t n, at;
};

struct rotate {
	const struct output_opts *opts;
	char stem[NAME_SIZE - 64];
	uid_t owner;
	pthread_mutex_t lock; /* of all the rest */
	bool known;	      /* false: the rest is not valid */
	dev_t dev;
	ino_t ino;
	uint64_t read_ns, took_ns; /* when the directory was read, and how long it took */
	uint64_t newest;	   /* the last window that is known */
	uint64_t windows, bytes;   /* in the directory */
	bool doubt;		   /* there are signs that these are wrong */
	int err;		   /* the first failure to remove a file since the reading */
	struct batch past, ahead;
};

static int init_lock(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;
	int err = pthread_mutexattr_init(&attr);

	if (err)
		return -err;
	err = pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	if (!err)
		err = pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	if (!err)
		err = pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
	return -err;
}

int rotate__new(const struct output_opts *opts, const char *stem, uid_t owner,
		struct rotate **ret_rotate)
{
	struct rotate *r;
	int err;

	if (!opts->keep && !opts->keep_bytes && !opts->keep_for_ns) {
		*ret_rotate = NULL;
		return 0;
	}
	r = mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (r == MAP_FAILED)
		return -ENOMEM;
	r->opts = opts;
	r->owner = owner;
	err = init_lock(&r->lock);
	if (!err && snprintf(r->stem, sizeof(r->stem), "%s", stem) >= (int)sizeof(r->stem))
		err = -ENAMETOOLONG;
	if (err) {
		munmap(r, sizeof(*r));
		return err;
	}
	*ret_rotate = r;
	return 0;
}

void rotate__free(struct rotate *r)
{
	if (r)
		munmap(r, sizeof(*r));
}

/* -ETIMEDOUT: another process reads a directory that is very large, or on a disk that hangs. */
static int lock(struct rotate *r)
{
	uint64_t until = time__monotonic_ns() + LOCK_WAIT_NS;
	const struct timespec at = {.tv_sec = (time_t)(until / 1000000000),
				    .tv_nsec = (long)(until % 1000000000)};
	int err = pthread_mutex_clocklock(&r->lock, CLOCK_MONOTONIC, &at);

	if (err != EOWNERDEAD)
		return -err;
	r->known = false;
	return -pthread_mutex_consistent(&r->lock);
}

/* ── what is there ───────────────────────────────────────────────────────────────────────── */

static bool is_time_to_read(const struct rotate *r, const struct stat *st)
{
	uint64_t share = r->doubt ? SHARE_IF_DOUBT : SHARE;

	return !r->known || r->dev != st->st_dev || r->ino != st->st_ino ||
	       time__monotonic_ns() - r->read_ns >= MIN(r->took_ns * share, LONGEST_NS);
}

/* What the window's files take up. */
static uint64_t measure(const struct rotate *r, int dir, uint64_t time)
{
	char name[NAME_SIZE];
	uint64_t bytes = 0;
	struct stat st;

	for (size_t i = 0; place__suffix(i); i++) {
		rotate__name(r->stem, time, i, name, sizeof(name));
		if (!fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && rotate__is_ours(&st, r->owner))
			bytes += (uint64_t)st.st_blocks * 512;
	}
	return bytes;
}

/* ── removing ────────────────────────────────────────────────────────────────────────────── */

/* Removes all files of one window. */
static void remove_window(struct rotate *r, int dir, const struct rotate_window *w)
{
	char name[NAME_SIZE];
	struct stat st;

	for (size_t i = 0; place__suffix(i); i++) {
		if (!(w->suffixes & 1U << i))
			continue;
		rotate__name(r->stem, w->time, i, name, sizeof(name));
		if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) || !rotate__is_ours(&st, r->owner))
			r->doubt = true;
		else if (unlinkat(dir, name, 0) && errno != ENOENT && !r->err)
			r->err = -errno;
	}
	r->windows--;
	r->bytes -= MIN(r->bytes, w->bytes);
}

static bool is_over(const struct rotate *r)
{
	const struct output_opts *opts = r->opts;

	return r->windows > 1 && ((opts->keep && r->windows > opts->keep) ||
				  (opts->keep_bytes && r->bytes > opts->keep_bytes));
}

/* Removes the oldest windows with all their files until the rest is within the limits, or no more
 * are known by name. */
static void remove_oldest(struct rotate *r, int dir, struct names *past, struct names *ahead)
{
	uint64_t now = time__realtime_ns(), now_key = rotate__key(now);
	uint64_t oldest = rotate__key(now - MIN(r->opts->keep_for_ns, now));

	/* those in the future first: otherwise each new window would count as older than they
	 * are */
	while (is_over(r) && ahead->at < ahead->n) {
		const struct rotate_window *w = &ahead->v[ahead->at++];

		/* one that has become past is younger than the other past ones */
		if (w->time > now_key)
			remove_window(r, dir, w);
	}
	while (past->at < past->n) {
		const struct rotate_window *w = &past->v[past->at];

		if (w->time >= r->newest ||
		    !(is_over(r) || (r->opts->keep_for_ns && w->time < oldest)))
			break;
		past->at++;
		remove_window(r, dir, w);
	}
}

static void remove_known(struct rotate *r, int dir)
{
	struct names past = {r->past.v, r->past.n, r->past.at};
	struct names ahead = {r->ahead.v, r->ahead.n, r->ahead.at};

	remove_oldest(r, dir, &past, &ahead);
	r->past.at = past.at;
	r->ahead.at = ahead.at;
}

static void take(struct batch *batch, const struct names *left)
{
	batch->at = 0;
	batch->n = MIN(left->n - left->at, (size_t)BATCH);
	if (batch->n)
		memcpy(batch->v, left->v + left->at, batch->n * sizeof(*batch->v));
}

/* Reads the directory, and removes what has to go. Counts at most as many windows as it can remove,
 * and those that stay. */
static int read_directory(struct rotate *r, int dir, const struct stat *st)
{
	struct rotate_listing listing;
	uint64_t begun = time__monotonic_ns();
	int err;

	r->known = false;
	err = rotate__list(dir, r->stem, r->owner, (size_t)r->opts->keep + MANY + 1, &listing);
	if (!err) {
		struct names past = {listing.past.v, listing.past.n, 0};
		struct names ahead = {listing.ahead.v, listing.ahead.n, 0};

		r->windows = listing.past.n + listing.ahead.n;
		r->bytes = listing.bytes;
		r->newest = listing.newest;
		r->dev = st->st_dev;
		r->ino = st->st_ino;
		r->read_ns = time__monotonic_ns();
		r->took_ns = r->read_ns - begun;
		r->doubt = false;
		r->err = 0;
		remove_oldest(r, dir, &past, &ahead);
		take(&r->past, &past);
		take(&r->ahead, &ahead);
		r->known = true;
	}
	rotate__free_listing(&listing);
	return err;
}

/* True if further windows may have to go whose names are not known. */
static bool lacks_names(const struct rotate *r)
{
	bool over = is_over(r) || (r->opts->keep_for_ns && r->windows > 1);

	/* if removing fails, they are found again by the next reading that is due */
	return over && r->past.at == r->past.n && !r->err;
}

static int update(struct rotate *r, int dir, uint64_t time, bool written)
{
	struct stat st;
	int err;

	if (fstat(dir, &st))
		return -errno;
	/* the clock was set back, or the reading has found the window already */
	if (written && r->known && time <= r->newest)
		r->doubt = true;
	if (!is_time_to_read(r, &st)) {
		if (written && time > r->newest) {
			r->newest = time;
			r->windows++;
			if (r->opts->keep_bytes)
				r->bytes += measure(r, dir, time);
		}
		remove_known(r, dir);
		if (!lacks_names(r))
			return r->err;
	}
	err = read_directory(r, dir, &st);
	return err ? err : r->err;
}

int rotate__window(struct rotate *r, uint64_t start_unix_ns, bool written)
{
	const struct output_opts *opts = r ? r->opts : NULL;
	char path[PATH_MAX];
	const char *base;
	int dir = -1, err;

	if (!r)
		return 0;
	if (snprintf(path, sizeof(path), "%s/%s", opts->path ? opts->path : ".", r->stem) >=
	    (int)sizeof(path))
		return 0;
	err = dir__open_of(path, r->owner, &dir, &base);
	if (err)
		return err;
	err = lock(r);
	if (!err) {
		err = update(r, dir, rotate__key(start_unix_ns), written);
		pthread_mutex_unlock(&r->lock);
	} else if (err == -ETIMEDOUT) {
		/* the next reading counts the window */
		err = 0;
	}
	fd__close(&dir);
	return err;
}
