/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "push_priv.h"

/* The queue of a killed session stays locked until its children have ended, too. */
#define BUSY_WAIT_MS 3000
#define BUSY_STEP_MS 100

/* "01767225600123456789-00000.push": sorts by time. */
#define NAME_FORMAT "%020" PRIu64 "-%05u.push"
#define NAME_SHAPE  "00000000000000000000-00000.push"
#define NAME_SIZE   sizeof(NAME_SHAPE)
#define MAX_NUMBER  100000U

struct entry {
	char name[NAME_SIZE];
	uint64_t bytes;
};

/* How many attempts a file gets that cannot be opened while others can, with pauses as for a
 * server. */
#define OPEN_TRIES 5U
/* How many files to try before giving up on opening any. */
#define OPEN_MOST 64

struct stuck {
	char name[NAME_SIZE]; /* "": none */
	unsigned tries;
	uint64_t due_ns; /* attempts before then do not count */
};

struct queue {
	char *path;
	int dir; /* locked: only one process uses a directory as a queue */
	uint64_t max_bytes, bytes, dropped, removed;
	size_t max_files;
	struct entry *v; /* sorted by name, from `first` on; the held file comes first */
	size_t n, cap, first;
	bool held;
	bool moved; /* … and was moved there, past others */
	struct stuck stuck;
	int why;	      /* the error with which the first file that cannot be opened failed */
	char last[NAME_SIZE]; /* the file held last as the first; "": none yet */
	char gone[NAME_SIZE]; /* let go, but still to be removed; "": none */
	bool reported;	      /* that a file cannot be removed */
};

/* ── the directory ───────────────────────────────────────────────────────────────────────── */

/* The directory must be writable by us alone: its content is sent in our name. Several processes
 * may open it. */
static int open_shared(const char *path, int *ret_dir)
{
	struct stat st;
	int dir, err = dir__open_own(path, &dir);

	if (err)
		return err;
	if (fstat(dir, &st))
		err = -errno;
	else if (st.st_mode & 022)
		err = -EPERM;
	if (err)
		close(dir);
	else
		*ret_dir = dir;
	return err;
}

static int open_directory(const char *path, int *ret_dir)
{
	int dir, err = open_shared(path, &dir);

	if (err)
		return err;
	if (flock(dir, LOCK_EX | LOCK_NB))
		err = errno == EWOULDBLOCK ? -EBUSY : -errno;
	if (err)
		close(dir);
	else
		*ret_dir = dir;
	return err;
}

static const char *why_not(int err)
{
	if (err == -EBUSY)
		return "another session is using it; choose another place with --push-queue";
	if (err == -EPERM)
		return "others can write to it, or to a directory above it; choose another place "
		       "with --push-queue";
	return strerror(-err);
}

static void report_failure(const char *path, int err)
{
	log_error("%s: cannot hold a queue: %s", path, why_not(err));
}

int queue__check(const char *path)
{
	int dir, err = open_shared(path, &dir);

	if (err)
		report_failure(path, err);
	else
		close(dir);
	return err;
}

int queue__open_later(const char *dir, uint64_t max_bytes, size_t max_files,
		      struct queue **ret_queue)
{
	struct queue *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	q->dir = -1;
	q->max_bytes = max_bytes;
	q->max_files = max_files;
	q->path = strdup(dir);
	if (!q->path) {
		queue__free(q);
		return -ENOMEM;
	}
	*ret_queue = q;
	return 0;
}

int queue__open(const char *dir, uint64_t max_bytes, size_t max_files, struct queue **ret_queue)
{
	struct queue *q = NULL;
	int err = queue__open_later(dir, max_bytes, max_files, &q);

	if (!err)
		err = open_directory(dir, &q->dir);
	for (int ms = 0; err == -EBUSY && ms < BUSY_WAIT_MS; ms += BUSY_STEP_MS) {
		usleep(BUSY_STEP_MS * 1000);
		err = open_directory(dir, &q->dir);
	}
	if (!err) {
		outfile__sweep(q->dir, (uid_t)-1);
		err = queue__look(q);
	}
	if (err) {
		report_failure(dir, err);
		queue__free(q);
		return err;
	}
	*ret_queue = q;
	return 0;
}

void queue__free(struct queue *q)
{
	if (!q)
		return;
	fd__close(&q->dir);
	free(q->path);
	free(q->v);
	free(q);
}

/* ── its files ───────────────────────────────────────────────────────────────────────────── */

int queue__path(const struct queue *q, uint64_t unix_ns, unsigned n, char ret_path[PATH_MAX])
{
	if (q->dir < 0)
		return -ENOENT;
	/* an existing file may be in flight, and its removal must not hit a new one of the same
	 * name */
	for (unsigned i = 0; i < MAX_NUMBER; i++) {
		int len = snprintf(ret_path, PATH_MAX, "%s/" NAME_FORMAT, q->path, unix_ns,
				   (n + i) % MAX_NUMBER);

		if (len < 0 || len >= PATH_MAX)
			return -ENAMETOOLONG;
		if (access(ret_path, F_OK))
			return errno == ENOENT ? 0 : -errno;
	}
	return -EEXIST;
}

bool queue__is_name(const char *name)
{
	for (size_t i = 0; i < NAME_SIZE; i++) {
		char shape = NAME_SHAPE[i];

		if (shape == '0' ? name[i] < '0' || name[i] > '9' : name[i] != shape)
			return false;
	}
	return true;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static void sort(struct queue *q)
{
	if (q->n > q->held)
		qsort(q->v + q->held, q->n - q->held, sizeof(*q->v), by_name);
}

/* ── what goes ───────────────────────────────────────────────────────────────────────────── */

/* Logs a single line if nothing can be removed, as when the file system has become read-only. */
static int remove_file(struct queue *q, const char *name)
{
	int err = unlinkat(q->dir, name, 0) && errno != ENOENT ? -errno : 0;

	if (err && !q->reported)
		log_error("%s/%s: cannot be removed: %s", q->path, name, strerror(-err));
	q->reported = err != 0;
	return err;
}

/* Drops the file from the queue's account even if it cannot be removed; the next look finds it
 * again. Returns 0 if it was removed. */
static int remove_at(struct queue *q, size_t i)
{
	q->bytes -= q->v[i].bytes;
	return remove_file(q, q->v[i].name);
}

static bool is_too_full(const struct queue *q, size_t gone)
{
	return q->bytes > q->max_bytes || q->n - q->first - gone > q->max_files;
}

/* Drops as many files as necessary, from `from` up to, but not including, `to`. */
static void drop(struct queue *q, size_t from, size_t to)
{
	size_t i = from;

	for (; i < to && is_too_full(q, i - from); i++)
		q->dropped += !remove_at(q, i);
	if (i == from)
		return;
	memmove(q->v + from, q->v + i, (q->n - i) * sizeof(*q->v));
	q->n -= i - from;
}

/* Never drops the held file, nor the newest: a queue too small for one file still holds one. */
static void drop_some(struct queue *q)
{
	size_t from = q->first + q->held, ahead = q->n;
	char now[NAME_SIZE];

	/* files with times in the future, after the clock was set back */
	snprintf(now, sizeof(now), NAME_FORMAT, time__realtime_ns(), MAX_NUMBER - 1);
	while (ahead > from && strcmp(q->v[ahead - 1].name, now) > 0)
		ahead--;
	drop(q, ahead, q->n - (ahead == from && ahead < q->n));
	drop(q, from, MAX(q->n, (size_t)1) - 1);
}

/* ── what there is ───────────────────────────────────────────────────────────────────────── */

static int add(struct queue *q, const char *name)
{
	struct entry *e;
	struct stat st;
	int err;

	if (!queue__is_name(name) || fstatat(q->dir, name, &st, AT_SYMLINK_NOFOLLOW) ||
	    !S_ISREG(st.st_mode))
		return 0;
	/* what has to be dropped now would be dropped at the end anyway, whatever else is found */
	if (q->n - q->held >= 2 * q->max_files) {
		sort(q);
		drop_some(q);
	}
	err = ARRAY_RESERVE(q->v, q->cap, q->n + 1, 2 * q->max_files + 1);
	if (err)
		return err;
	e = &q->v[q->n++];
	memcpy(e->name, name, NAME_SIZE);
	e->bytes = MAX((uint64_t)st.st_size, (uint64_t)st.st_blocks * 512);
	q->bytes += e->bytes;
	return 0;
}

/* Forgets all files but the held one. */
static void empty(struct queue *q)
{
	if (q->held)
		q->v[0] = q->v[q->first];
	q->first = 0;
	q->n = q->held;
	q->bytes = q->held ? q->v[0].bytes : 0;
}

static void forget_held(struct queue *q)
{
	q->bytes -= q->v[0].bytes;
	q->n--;
	memmove(q->v, q->v + 1, q->n * sizeof(*q->v));
	q->held = false;
}

/*
 * Files are written by the directory's name. If another directory has that name by now, because
 * somebody removed or replaced it, or mounted something there, that one becomes the queue. So does
 * the first one that can be opened, if none could before.
 */
static int follow_name(struct queue *q)
{
	struct stat ours, there;
	int dir, err;

	if (q->dir >= 0 && fstat(q->dir, &ours))
		return -errno;
	if (q->dir >= 0 && stat(q->path, &there) == 0 && there.st_dev == ours.st_dev &&
	    there.st_ino == ours.st_ino)
		return 0;
	err = open_directory(q->path, &dir);
	if (err)
		return err;
	if (q->dir < 0) {
		q->dir = dir;
		outfile__sweep(dir, (uid_t)-1);
		return 0;
	}
	fd__close(&q->dir);
	q->dir = dir;
	q->gone[0] = '\0';
	q->removed += q->n - q->first - q->held;
	log_warn("%s: removed or replaced; %zu queued files are gone", q->path,
		 q->n - q->first - q->held);
	return 0;
}

int queue__look(struct queue *q)
{
	bool seen = false;
	struct dirent *e;
	DIR *d;
	int err = follow_name(q);

	if (!err)
		err = dir__stream(q->dir, &d);
	if (err)
		return err;
	empty(q);
	while (!err) {
		errno = 0;
		e = readdir(d);
		if (!e) {
			err = -errno;
			break;
		}
		/* the held file stays first even if somebody has put older ones there by hand */
		if (q->held && !strcmp(e->d_name, q->v[0].name))
			seen = true;
		else
			err = add(q, e->d_name);
	}
	closedir(d);
	if (!err && q->held && !seen)
		forget_held(q);
	sort(q);
	drop_some(q);
	return err;
}

/* ── the first one ───────────────────────────────────────────────────────────────────────── */

/* Errors that do not pass: it is not a file, or not readable by us. */
static bool is_not_ours(int err)
{
	return err == -ELOOP || err == -EACCES || err == -EISDIR || err == -ENXIO;
}

/* Errors that are not about this file: nothing can be opened at the moment. */
static bool is_of_all(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM || err == -EINTR;
}

/* Removes entry i from the array; those before it keep their order. */
static void take_out(struct queue *q, size_t i)
{
	memmove(q->v + q->first + 1, q->v + q->first, (i - q->first) * sizeof(*q->v));
	q->first++;
}

/*
 * Opens the next file that can be opened, from `from` on. Entries that are not files, or that we
 * may not read, are removed on the way; files that cannot be opened for another reason stay.
 * -ENOENT: there is none.
 */
static int open_next(struct queue *q, size_t from, size_t *ret_i, int *ret_fd)
{
	int ret = -ENOENT;

	for (size_t i = from; i < q->n && i - q->first < OPEN_MOST; i++) {
		int err, fd = openat(q->dir, q->v[i].name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

		if (fd >= 0) {
			*ret_i = i;
			*ret_fd = fd;
			return 0;
		}
		err = -errno;
		if (is_of_all(err))
			return err;
		if (err == -ENOENT || is_not_ours(err)) {
			q->dropped += !remove_at(q, i) && err != -ENOENT;
			take_out(q, i);
		} else if (ret == -ENOENT) {
			q->why = ret = err;
		}
	}
	return ret;
}

/*
 * Called when the first file cannot be opened. As long as that is true of all, the disk or its
 * server is to blame, and it may pass. Once another file could be opened, the first one is to
 * blame, and gets OPEN_TRIES attempts.
 */
static void count_stuck(struct queue *q, uint64_t now, bool others)
{
	struct stuck *s = &q->stuck;
	const char *name = q->v[q->first].name;

	if (strcmp(s->name, name) != 0) {
		if (!others)
			return;
		*s = (struct stuck){.tries = 0};
		memcpy(s->name, name, NAME_SIZE);
	}
	if (now < s->due_ns)
		return;
	s->due_ns = now + backoff__ns(++s->tries, 0, 0);
	if (s->tries < OPEN_TRIES)
		return;
	if (!remove_at(q, q->first)) {
		q->dropped++;
		log_warn("%s/%s: dropped: it cannot be opened, but others can: %s", q->path, name,
			 strerror(-q->why));
	}
	take_out(q, q->first);
}

/* Moves the held file before those that cannot be opened, or are not accepted, until it is let
 * go. */
static void hold(struct queue *q, size_t i)
{
	struct entry e = q->v[i];

	q->moved = i > q->first;
	take_out(q, i);
	q->v[--q->first] = e;
	q->held = true;
}

int queue__hold_first(struct queue *q, uint64_t now, int *ret_fd, bool *ret_again)
{
	int fd, err = *q->gone ? remove_file(q, q->gone) : 0;
	size_t i;

	if (err)
		return err;
	q->gone[0] = '\0';
	err = open_next(q, q->first, &i, &fd);
	if (err ? err != -ENOENT && !is_of_all(err) : i > q->first)
		count_stuck(q, now, !err);
	if (err)
		return err;
	hold(q, i);
	*ret_again = !strcmp(q->last, q->v[q->first].name);
	memcpy(q->last, q->v[q->first].name, NAME_SIZE);
	*ret_fd = fd;
	return 0;
}

int queue__hold_second(struct queue *q, int *ret_fd)
{
	size_t i = q->first;

	if (*q->gone)
		return -ENOENT;
	while (i < q->n && strcmp(q->v[i].name, q->last) != 0)
		i++;
	/* files that cannot be opened are dealt with in queue__hold_first() */
	if (open_next(q, i + 1, &i, ret_fd))
		return -ENOENT;
	hold(q, i);
	return 0;
}

/* Moves the file back to its place in the order of names. */
static void put_back(struct queue *q)
{
	struct entry e = q->v[q->first];
	size_t i = q->first;

	for (; i + 1 < q->n && strcmp(q->v[i + 1].name, e.name) < 0; i++)
		q->v[i] = q->v[i + 1];
	q->v[i] = e;
}

void queue__let_go(struct queue *q, bool remove)
{
	if (q->held && remove) {
		struct entry *e = &q->v[q->first];

		if (remove_file(q, e->name)) {
			memcpy(q->gone, e->name, NAME_SIZE);
		} else {
			q->bytes -= e->bytes;
			q->first++;
		}
	} else if (q->held && q->moved) {
		put_back(q);
	}
	q->held = q->moved = false;
}

struct queue_state queue__state(const struct queue *q)
{
	struct queue_state state = {.n = q->n - q->first,
				    .bytes = q->bytes,
				    .dropped = q->dropped,
				    .removed = q->removed};

	if (state.n)
		state.oldest_unix_ns = strtoull(q->v[q->first].name, NULL, 10);
	return state;
}
