/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * input: where a log can come from: a file, gzip, a pipe, standard input, a Unix socket (as the
 * package eventlog-socket serves it).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define ZLIB_CONST
#include <zlib.h>

#include "base/base.h"
#include "private.h"

#define PIECE	     (256u << 10)
#define WAIT_MS	     200
#define GZIP_MAGIC_0 0x1f
#define GZIP_MAGIC_1 0x8b

struct input {
	struct eventlog *log;
	const volatile bool *stop;
	int fd;
	uint8_t *in, *out;
	z_stream z;
	bool z_open, told, gzip;
	uint8_t first[2]; /* until both are here it is not known what this is */
	unsigned n_first;
};

static int connect_unix(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd, err;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		err = -errno;
		fd__close(&fd);
		return err;
	}
	return fd;
}

static int open_path(const char *path)
{
	struct stat st;
	int fd;

	if (!strcmp(path, "-")) {
		fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
		return fd < 0 ? -errno : fd;
	}
	if (!stat(path, &st) && S_ISSOCK(st.st_mode))
		return connect_unix(path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

/* 1 readable, 0 told to stop, negative: error. */
static int wait_readable(const struct input *in)
{
	struct pollfd pfd = {.fd = in->fd, .events = POLLIN};

	for (;;) {
		int n;

		if (in->stop && *in->stop)
			return 0;
		n = poll(&pfd, 1, in->stop ? WAIT_MS : -1);
		if (n > 0)
			return 1;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
}

/* A gzip file may have several members, one after another. */
static int feed_gzip(struct input *in, const uint8_t *data, size_t len)
{
	int ret, err;

	if (!in->z_open) {
		if (inflateInit2(&in->z, 15 + 16) != Z_OK)
			return -ENOMEM;
		in->z_open = true;
	}
	in->z.next_in = data;
	in->z.avail_in = (unsigned)len;
	do {
		in->z.next_out = in->out;
		in->z.avail_out = PIECE;
		ret = inflate(&in->z, Z_NO_FLUSH);
		if (ret == Z_MEM_ERROR)
			return -ENOMEM;
		err = eventlog__feed(in->log, in->out, PIECE - in->z.avail_out);
		if (err)
			return err;
		if (ret == Z_STREAM_END && inflateReset(&in->z) != Z_OK)
			return -EBADMSG;
		if (ret != Z_OK && ret != Z_STREAM_END && ret != Z_BUF_ERROR)
			return -EILSEQ;
	} while (in->z.avail_in || !in->z.avail_out);
	return 0;
}

static int feed(struct input *in, const uint8_t *data, size_t len)
{
	int err;

	while (!in->told && len) {
		in->first[in->n_first++] = *data++;
		len--;
		if (in->first[0] != GZIP_MAGIC_0 || in->n_first == 2) {
			in->told = true;
			in->gzip = in->n_first == 2 && in->first[0] == GZIP_MAGIC_0 &&
				   in->first[1] == GZIP_MAGIC_1;
			err = in->gzip ? feed_gzip(in, in->first, in->n_first)
				       : eventlog__feed(in->log, in->first, in->n_first);
			if (err)
				return err;
		}
	}
	if (!len)
		return 0;
	return in->gzip ? feed_gzip(in, data, len) : eventlog__feed(in->log, data, len);
}

static int read_stream(struct input *in)
{
	int err = -ENOMEM;

	in->in = malloc(PIECE);
	in->out = malloc(PIECE);
	if (!in->in || !in->out)
		goto out;
	for (;;) {
		ssize_t n;

		err = wait_readable(in);
		if (err <= 0)
			break;
		n = read(in->fd, in->in, PIECE);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		err = n < 0 ? -errno : 0;
		/* A peer that goes away is the end of the log. */
		if (err == -ECONNRESET)
			err = 0;
		if (n <= 0)
			break;
		err = feed(in, in->in, (size_t)n);
		if (err)
			break;
	}
	if (err == -EILSEQ) {
		log_warn("eventlog: damaged gzip data: read as far as it goes");
		err = 0;
	}
	if (!err && !in->told && in->n_first)
		err = eventlog__feed(in->log, in->first, in->n_first);
out:
	if (in->z_open)
		inflateEnd(&in->z);
	free(in->in);
	free(in->out);
	return err;
}

/* A file that is no gzip is read where it lies: the order is exact. */
static bool is_plain_file(int fd)
{
	uint8_t magic[2] = {0, 0};
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return false;
	if (pread(fd, magic, 2, 0) != 2)
		return true;
	return magic[0] != GZIP_MAGIC_0 || magic[1] != GZIP_MAGIC_1;
}

int eventlog__read_path(struct eventlog *log, const char *path, const volatile bool *stop)
{
	struct input in = {.log = log, .stop = stop};
	int err;

	in.fd = open_path(path);
	if (in.fd < 0)
		return in.fd;
	if (is_plain_file(in.fd))
		err = eventlog__open_fd(log, in.fd);
	else
		err = read_stream(&in);
	if (!err)
		err = eventlog__finish(log);
	fd__close(&in.fd);
	return err;
}
