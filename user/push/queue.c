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

/* "01767225600123456789-00000.push": they sort by time. */
#define NAME_FORMAT "%020" PRIu64 "-%05u.push"
#define NAME_SHAPE  "00000000000000000000-00000.push"
#define NAME_SIZE   sizeof(NAME_SHAPE)
#define MAX_NUMBER  100000U

#define MAX_FILES ((size_t)1 << 20)

struct entry {
	char name[NAME_SIZE];
	uint64_t bytes;
};

struct queue {
	char *path;
	int dir; /* locked: there is one queue for a directory */
	uint64_t max_bytes, bytes, dropped;
	struct entry *v; /* in order of their names, from `first` on */
	size_t n, cap, first;
	bool held;
};

/* ── the directory ───────────────────────────────────────────────────────────────────────── */

/* Ours alone: what is in it is sent in our name. */
static int open_directory(const char *path, int *ret_dir)
{
	struct stat st;
	int dir, err = dir__open_own(path, &dir);

	if (err)
		return err;
	if (fstat(dir, &st))
		err = -errno;
	else if (st.st_mode & 022)
		err = -EPERM;
	else if (flock(dir, LOCK_EX | LOCK_NB))
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
		return "another session pushes from there; choose another place with --push-queue";
	if (err == -EPERM)
		return "others may write there, or on the way there; choose another place with "
		       "--push-queue";
	return strerror(-err);
}

int queue__open(const char *dir, uint64_t max_bytes, struct queue **ret_queue)
{
	struct queue *q = calloc(1, sizeof(*q));
	int err = -ENOMEM;

	if (q) {
		q->dir = -1;
		q->max_bytes = max_bytes;
		q->path = strdup(dir);
	}
	if (q && q->path)
		err = open_directory(dir, &q->dir);
	if (!err)
		err = queue__look(q);
	if (err) {
		log_error("%s: cannot hold a queue: %s", dir, why_not(err));
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
	/* what has the name may be on its way: its removal must not be another one's */
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

static bool is_name(const char *name)
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

static int list(struct queue *q)
{
	/* a descriptor of its own: closedir() closes it */
	int fd = openat(q->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	struct stat st;

	if (!d) {
		err = -errno;
		fd__close(&fd);
		return err;
	}
	q->n = q->first = 0;
	q->bytes = 0;
	while (!err && (e = readdir(d))) {
		if (!is_name(e->d_name) || fstatat(q->dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(st.st_mode))
			continue;
		err = ARRAY_RESERVE(q->v, q->cap, q->n + 1, MAX_FILES);
		if (err)
			break;
		memcpy(q->v[q->n].name, e->d_name, NAME_SIZE);
		q->v[q->n].bytes = (uint64_t)st.st_size;
		q->bytes += q->v[q->n++].bytes;
	}
	closedir(d);
	if (q->n)
		qsort(q->v, q->n, sizeof(*q->v), by_name);
	return err;
}

static void remove_at(struct queue *q, size_t i)
{
	if (unlinkat(q->dir, q->v[i].name, 0) && errno != ENOENT)
		log_error("%s/%s: cannot be removed: %s", q->path, q->v[i].name, strerror(errno));
	q->bytes -= q->v[i].bytes;
}

/* Not the one that is held, nor the newest: a queue that is too small for one file holds one. */
static void drop_oldest(struct queue *q)
{
	size_t from = q->first + q->held, i = from;

	for (; i + 1 < q->n && q->bytes > q->max_bytes; i++)
		remove_at(q, i);
	if (i == from)
		return;
	q->dropped += i - from;
	memmove(q->v + from, q->v + i, (q->n - i) * sizeof(*q->v));
	q->n -= i - from;
}

int queue__look(struct queue *q)
{
	struct entry held = q->held ? q->v[q->first] : (struct entry){.bytes = 0};
	int err = list(q);

	if (err)
		return err;
	/* older ones may have been put there by hand: the held one keeps its place */
	if (q->held) {
		struct entry *at = q->n ? bsearch(&held, q->v, q->n, sizeof(*q->v), by_name) : NULL;

		q->held = at != NULL;
		if (at) {
			memmove(q->v + 1, q->v, (size_t)(at - q->v) * sizeof(*q->v));
			q->v[0] = held;
		}
	}
	drop_oldest(q);
	return 0;
}

int queue__hold_first(struct queue *q, int *ret_fd)
{
	for (; q->first < q->n; q->first++) {
		int fd = openat(q->dir, q->v[q->first].name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

		if (fd >= 0) {
			q->held = true;
			*ret_fd = fd;
			return 0;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
			return -errno;
		if (errno != ENOENT)
			q->dropped++;
		remove_at(q, q->first);
	}
	return -ENOENT;
}

void queue__let_go(struct queue *q, bool remove)
{
	if (q->held && remove) {
		remove_at(q, q->first);
		q->first++;
	}
	q->held = false;
}

struct queue_state queue__state(const struct queue *q)
{
	struct queue_state state = {.n = q->n - q->first, .bytes = q->bytes, .dropped = q->dropped};

	if (state.n)
		state.oldest_unix_ns = strtoull(q->v[q->first].name, NULL, 10);
	return state;
}
