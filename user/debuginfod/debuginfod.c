/* SPDX-License-Identifier: GPL-2.0-or-later */
/* debuginfod: the daemon's end: asks for files, and keeps what came. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "confine/confine.h"
#include "debuginfod_priv.h"
#include "elf/elf.h"

/* TLS, and threads' stacks. */
#define MEMORY	  (512ULL << 20)
#define MORE_FDS  32
#define NICE	  10
#define REPORT_NS 2000000000ULL
#define COPY_SIZE 65536
/* Linux's, for whoever is nobody else (fs.overflowuid). */
#define NOBODY 65534

/* What names are resolved by, and whom the system trusts. */
static const char *const reads[] = {
	"/etc",
	"/run/systemd/resolve",
	"/run/resolvconf",
	"/run/NetworkManager",
	"/usr/share/ca-certificates",
	"/usr/local/share/ca-certificates",
	NULL,
};

struct debuginfod {
	struct debuginfod_opts opts;
	struct confine_peer *peer; /* NULL: it has ended */
	int file;		   /* what the peer writes to; has no name */
};

const char *debuginfod__url_error(const char *url)
{
	if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
		return "neither http:// nor https://";
	if (strlen(url) >= DEBUGINFOD_URL_MAX)
		return "too long";
	return NULL;
}

static void run(void *ctx, int channel)
{
	const struct debuginfod *d = ctx;

	download__run(&d->opts, channel, d->file);
}

static int make_directory(const char *path)
{
	char part[PATH_MAX];

	if (strlen(path) >= sizeof(part))
		return -ENAMETOOLONG;
	for (const char *end = path + strspn(path, "/"); *end;) {
		end += strcspn(end, "/");
		snprintf(part, sizeof(part), "%.*s", (int)(end - path), path);
		if (mkdir(part, 0700) < 0 && errno != EEXIST)
			return -errno;
		end += strspn(end, "/");
	}
	return 0;
}

/* A file that has no name any more. */
static int make_file(const char *dir, int *ret_fd)
{
	char path[PATH_MAX];
	int fd;

	if (snprintf(path, sizeof(path), "%s/.download-XXXXXX", dir) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path);
	*ret_fd = fd;
	return 0;
}

int debuginfod__new(const struct debuginfod_opts *opts, struct debuginfod **ret_debuginfod)
{
	struct debuginfod *d = calloc(1, sizeof(*d));
	struct confine how = {.name = "safescoped:info",
			      .memory = MEMORY,
			      .cpu_s = CONFINE_NO_END,
			      .keep = CONFINE_NETWORK,
			      .nice = NICE,
			      .more_fds = MORE_FDS,
			      .file_size = DEBUGINFOD_MAX_FILE,
			      .user = CONFINE_NOBODY,
			      .reads = reads,
			      .n_fds = 1};
	int err;

	if (!d)
		return -ENOMEM;
	d->opts = *opts;
	d->file = -1;
	err = make_directory(opts->cache);
	if (!err)
		err = make_file(opts->cache, &d->file);
	how.fds = &d->file;
	if (!err)
		err = confine_peer__start(&how, run, d, &d->peer);
	if (err) {
		log_error("debuginfod: %s: %s", opts->cache, strerror(-err));
		debuginfod__free(d);
		return err;
	}
	*ret_debuginfod = d;
	return 0;
}

void debuginfod__free(struct debuginfod *d)
{
	if (!d)
		return;
	confine_peer__free(d->peer);
	fd__close(&d->file);
	free(d);
}

/* ── keeping what came ───────────────────────────────────────────────────────────────────── */

static int copy(int from, int to, uint64_t size)
{
	char *buf = malloc(COPY_SIZE);
	int err = buf ? 0 : -ENOMEM;

	for (uint64_t at = 0; !err && at < size;) {
		ssize_t n = pread(from, buf, MIN(size - at, (uint64_t)COPY_SIZE), (off_t)at);

		if (n <= 0)
			err = n < 0 ? -errno : -EIO;
		else if (write(to, buf, (size_t)n) != n)
			err = -EIO;
		at += n > 0 ? (uint64_t)n : 0;
	}
	free(buf);
	return err;
}

/* The descriptor is taken. */
static int check_build_id(int fd, const char *build_id)
{
	struct elf_file *elf = NULL;
	char id[41];
	int err = elf__open_fd(fd, "debuginfod", &elf);

	if (!err && (!elf__build_id(elf, id) || strcmp(id, build_id) != 0))
		err = -EBADMSG;
	elf__free(elf);
	return err;
}

/* The peer still has the file that it wrote to: what is kept is a copy. */
static int keep(const struct debuginfod *d, const char *build_id, const char *path, uint64_t size)
{
	char temporary[PATH_MAX], *slash;
	int fd, err;

	if (snprintf(temporary, sizeof(temporary), "%s.%d", path, getpid()) >=
	    (int)sizeof(temporary))
		return -ENAMETOOLONG;
	slash = strrchr(temporary, '/');
	*slash = '\0';
	err = make_directory(temporary);
	*slash = '/';
	if (err)
		return err;
	fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	err = copy(d->file, fd, size);
	/* a server wrote it: by its owner it is one of those that are read aside (elf.h) */
	if (!err && geteuid() == 0 && fchown(fd, NOBODY, NOBODY) < 0)
		err = -errno;
	if (err)
		fd__close(&fd);
	else
		err = check_build_id(fd, build_id);
	if (!err && rename(temporary, path) < 0)
		err = -errno;
	if (err)
		unlink(temporary);
	return err;
}

/* ── asking ──────────────────────────────────────────────────────────────────────────────── */

/* -EAGAIN: nothing yet; -EPIPE: the peer is gone, or sends what it cannot. */
static int take_news(struct debuginfod *d, struct download_news *news)
{
	ssize_t n = recv(confine_peer__fd(d->peer), news, sizeof(*news), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	if (n != sizeof(*news) || news->err > 0 || news->err < -4095)
		return -EPIPE;
	news->text[sizeof(news->text) - 1] = '\0';
	return 0;
}

static void report(const char *build_id, const struct download_news *news)
{
	if (news->total > news->bytes)
		log_info("debuginfod: %.12s: %s of %s", build_id, human__bytes(news->bytes).s,
			 human__bytes(news->total).s);
	else
		log_info("debuginfod: %.12s: %s", build_id, human__bytes(news->bytes).s);
}

static int wait_for(struct debuginfod *d, const char *build_id, struct download_news *news)
{
	uint64_t now = time__monotonic_ns(), reported = now;
	uint64_t until = now + (uint64_t)d->opts.timeout_ms * 1000000ULL * machine__slowness();
	struct pollfd fd = {.fd = confine_peer__fd(d->peer), .events = POLLIN};

	for (;; now = time__monotonic_ns()) {
		int err = take_news(d, news);

		if (err == -EPIPE || (!err && news->done))
			return err;
		if (now >= until)
			return -ETIMEDOUT;
		if (!err && now - reported >= REPORT_NS) {
			report(build_id, news);
			reported = now;
		}
		poll(&fd, 1, (int)MIN((until - now) / 1000000ULL + 1, 1000ULL));
	}
}

static int ask(struct debuginfod *d, const char *build_id, enum debuginfod_kind kind,
	       struct download_news *news)
{
	struct download_task task = {.kind = kind};
	int err;

	memcpy(task.build_id, build_id, strlen(build_id));
	if (ftruncate(d->file, 0) < 0)
		return -errno;
	err = send(confine_peer__fd(d->peer), &task, sizeof(task), MSG_NOSIGNAL) == sizeof(task)
		      ? wait_for(d, build_id, news)
		      : -EPIPE;
	/* it may still be at it, or speak out of turn */
	if (err) {
		confine_peer__free(d->peer);
		d->peer = NULL;
	}
	return err ? err : news->err;
}

int debuginfod__fetch(struct debuginfod *d, const char *build_id, enum debuginfod_kind kind,
		      char ret_path[PATH_MAX])
{
	struct download_news news = {0};
	struct stat st;
	int err;

	if (strlen(build_id) < 2 || strlen(build_id) >= BUILD_ID_MAX ||
	    build_id[strspn(build_id, "0123456789abcdef")])
		return -ENOENT;
	if (snprintf(ret_path, PATH_MAX, "%s/%s/%s", d->opts.cache, build_id,
		     debuginfod_kind__name(kind)) >= PATH_MAX)
		return -ENAMETOOLONG;
	/* the client library notes what no server has by an empty file */
	if (stat(ret_path, &st) == 0 && st.st_size > 0)
		return 0;
	if (!d->peer)
		return -EPIPE;
	log_verbose("debuginfod: asked for the %s of %s", debuginfod_kind__name(kind), build_id);
	err = ask(d, build_id, kind, &news);
	if (!err && fstat(d->file, &st) < 0)
		err = -errno;
	if (!err)
		err = keep(d, build_id, ret_path, (uint64_t)st.st_size);
	if (err == -ENOENT)
		log_verbose("debuginfod: no server has the %s of %s", debuginfod_kind__name(kind),
			    build_id);
	else if (err)
		log_warn("debuginfod: %s: %s", build_id,
			 news.text[0]	   ? news.text
			 : err == -EBADMSG ? "what came is of another build-id"
					   : strerror(-err));
	return err;
}
