/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fetch: opens local files, and has all others copied. */
#include "fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/base.h"
#include "base/retry.h"
#include "base/pass.h"
#include "base/shares.h"
#include "confine/confine.h"
#include "origin.h"

#define STEP	(1U << 20)
#define COPIES	256
#define COPY_MS 1500
/* How long an honest server may take per megabyte, and at most per file. */
#define NS_PER_MB      10000000ULL
#define HONEST_MOST_NS 500000000ULL

int fetch__stat(int fd, struct stat *ret_st)
{
	struct stat st = {0};
	struct statx sx;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &sx))
		return -errno;
	st.st_dev = makedev(sx.stx_dev_major, sx.stx_dev_minor);
	st.st_ino = sx.stx_ino;
	st.st_mode = sx.stx_mode;
	st.st_uid = sx.stx_uid;
	st.st_gid = sx.stx_gid;
	st.st_size = (off_t)sx.stx_size;
	st.st_mtim.tv_sec = sx.stx_mtime.tv_sec;
	st.st_mtim.tv_nsec = sx.stx_mtime.tv_nsec;
	st.st_ctim.tv_sec = sx.stx_ctime.tv_sec;
	st.st_ctim.tv_nsec = sx.stx_ctime.tv_nsec;
	*ret_st = st;
	return 0;
}

int fetch__stat_path(const char *path, struct stat *ret_st)
{
	int fd = open(path, O_PATH | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = fetch__stat(fd, ret_st);
	fd__close(&fd);
	return err;
}

/* ── the child ───────────────────────────────────────────────────────────────────────────── */

struct copy {
	int from, to;
	uint64_t size;
};

static void path_of(int fd, char out[64])
{
	snprintf(out, 64, "/proc/self/fd/%d", fd);
}

/* Copies up to `size` bytes or the file's end; the rest stays zero, as in a file that shrank. */
static int copy_all(void *ctx, void *out)
{
	const struct copy *c = ctx;
	static uint8_t buf[STEP];
	uint64_t at = 0;
	char path[64];
	int fd;

	(void)out;
	path_of(c->from, path);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	while (at < c->size) {
		ssize_t n = pread(fd, buf, MIN(c->size - at, sizeof(buf)), (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		if (pwrite(c->to, buf, (size_t)n, (off_t)at) != n)
			return -EIO;
		at += (uint64_t)n;
	}
	return 0;
}

/* ── the daemon ──────────────────────────────────────────────────────────────────────────── */

struct copies {
	struct shares *shares;
	uint64_t last; /* number of the last copy */
};

int copies__new(struct copies **ret_copies)
{
	struct copies *copies = calloc(1, sizeof(*copies));
	int err = copies ? shares__new(COPIES, FETCH_MAX_BYTES, &copies->shares) : -ENOMEM;

	if (err) {
		free(copies);
		return err;
	}
	*ret_copies = copies;
	return 0;
}

void copies__free(struct copies *copies)
{
	if (!copies)
		return;
	shares__free(copies->shares);
	free(copies);
}

/* Accounts for one more copy, under the next number. */
static int count(struct copies *copies, uid_t user, uint64_t size)
{
	return copies ? shares__use(copies->shares, ++copies->last, user, size) : 0;
}

static int fetch(struct copies *copies, int path_fd, uint64_t size, uid_t user, struct fetched *ret)
{
	int to = memfd_create("safescoped", MFD_CLOEXEC);
	struct copy c = {.from = path_fd, .to = to, .size = size};
	const int fds[] = {path_fd, to};
	const struct confine how = {.name = "safescoped:copy",
				    .keep = CONFINE_FILES,
				    .user = user,
				    .fds = fds,
				    .n_fds = ARRAY_SIZE(fds),
				    .file_size = size};
	void *out;
	int err;

	if (to < 0)
		return -errno;
	err = ftruncate(to, (off_t)size) ? -errno : 0;
	if (!err)
		err = confine__aside(
			&how, COPY_MS,
			MIN(CONFINE_HONEST_NS + (size >> 20) * NS_PER_MB, HONEST_MOST_NS), copy_all,
			&c, 8, &out);
	if (!err) {
		confine__free_out(out, 8);
		err = count(copies, user, size);
	}
	if (err) {
		fd__close(&to);
		return err;
	}
	*ret = (struct fetched){
		.fd = to, .is_copy = true, .copy = copies ? copies->last : 0, .user = user};
	return 0;
}

int fetch__open(struct copies *copies, pid_t pid, int path_fd, const struct stat *st, uid_t user,
		struct fetched *ret_fetched)
{
	struct origin origin;
	char path[64];
	int fd, err;

	if (!S_ISREG(st->st_mode))
		return -EINVAL;
	origin__of(pid, path_fd, 0, &origin);
	if (origin.reach != ORIGIN_FOREIGN) {
		path_of(path_fd, path);
		fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		*ret_fetched = (struct fetched){
			.fd = fd,
			.is_roots = origin.reach == ORIGIN_OWNED,
		};
		return 0;
	}
	if (st->st_size <= 0 || (uint64_t)st->st_size > FETCH_MAX_FILE ||
	    (copies && shares__ask(copies->shares, user, (uint64_t)st->st_size)))
		return -EREMOTEIO;
	err = fetch(copies, path_fd, (uint64_t)st->st_size, user, ret_fetched);
	if (!err)
		return 0;
	log_verbose("a file on a file system that is not known to be local (%s) is left out: %s",
		    origin.fs[0] ? origin.fs : "unknown", strerror(-err));
	if (err == -ENOMEM || err == -EMFILE || err == -ENFILE)
		return err;
	return retry__shows_nothing(err) ? -ETIME : -EREMOTEIO;
}

void fetch__release(struct copies *copies, const struct fetched *fetched)
{
	if (fetched->is_copy && copies)
		shares__leave(copies->shares, fetched->copy, fetched->user);
}

/* ── looking a path up ───────────────────────────────────────────────────────────────────── */

#define FIND_MS 1000

struct search {
	int root, to;
	const char *path;
};

int fetch__find_here(int root, const char *path, uint64_t flags, uint64_t resolve, int *ret_fd)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | flags,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | resolve,
	};
	int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));

	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

static int look_up(void *ctx, void *out)
{
	const struct search *s = ctx;
	int fd = -1, err = fetch__find_here(s->root, s->path, 0, 0, &fd);

	(void)out;
	return err ? err : pass__send(s->to, "", 1, fd, 0);
}

/* Receives the one descriptor; the child has ended. */
static int receive(int from, int *ret_fd)
{
	int fd = -1, flags;
	char byte;

	if (pass__take(from, &byte, sizeof(byte), MSG_DONTWAIT, &fd) || fd < 0)
		return -EIO;
	/* must be O_PATH, as requested: closing a file that was really opened could hang */
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || !(flags & O_PATH)) {
		fd__close(&fd);
		return -EIO;
	}
	*ret_fd = fd;
	return 0;
}

int fetch__find(int root, const char *path, uid_t user, int *ret_fd)
{
	struct search s = {.root = root, .path = path};
	struct confine how = {
		.name = "safescoped:find", .keep = CONFINE_FILES, .user = user, .n_fds = 2};
	int pair[2], fds[2], err;
	void *out;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	s.to = fds[0] = pair[1];
	fds[1] = root;
	how.fds = fds;
	err = confine__aside(&how, FIND_MS, CONFINE_HONEST_NS, look_up, &s, 8, &out);
	if (!err) {
		confine__free_out(out, 8);
		err = receive(pair[0], ret_fd);
	}
	close(pair[0]);
	close(pair[1]);
	return retry__shows_nothing(err) ? -EREMOTEIO : err;
}
