/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * input: the sources of a log: a file, gzip, a pipe, standard input, a Unix socket (as served by
 * the package eventlog-socket).
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
#include "reader_priv.h"

#define PIECE	     (256u << 10)
#define WAIT_MS	     200
#define GZIP_MAGIC_0 0x1f
#define GZIP_MAGIC_1 0x8b
#define HEAD	     4096
#define HEAD_LEAST   256 /* bytes needed to recognise it */
#define TEXT_MAX     (1ull << 30)

struct el_input {
	bool (*stop)(void *ctx);
	void *ctx;
	int fd;
	bool stream;	     /* not a regular file */
	bool plain;	     /* a file that is not gzip: read in place */
	bool ended;	     /* nothing more comes from fd */
	bool stopped;	     /* because `stop` returned true */
	bool gzip, examined; /* the beginning was examined; it is gzip */
	bool damaged;	     /* its packed data make no sense from some place on */
	uint8_t *raw, *out;  /* as read; unpacked */
	size_t raw_at, raw_len;
	z_stream z;
	bool z_open;
	/* the beginning, which has been examined already */
	uint8_t head[HEAD];
	size_t head_len;
};

int el_input__connect(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd, err;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, path, strlen(path));
	/* non-blocking: connect() would wait for a server that accepts no more connections */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		err = -errno;
		fd__close(&fd);
		return err;
	}
	return fd;
}

static bool told_to_stop(struct el_input *in)
{
	if (!in->stopped && in->stop && in->stop(in->ctx))
		in->stopped = true;
	return in->stopped;
}

/* Retries until the server accepts the connection. */
static int connect_patiently(const char *path, bool (*stop)(void *ctx), void *ctx)
{
	for (;;) {
		int fd = el_input__connect(path);

		if (fd != -EAGAIN)
			return fd;
		if (stop && stop(ctx))
			return -ECANCELED;
		poll(NULL, 0, WAIT_MS);
	}
}

/* Never waits for a writer: a FIFO has its first one when poll() finds something to read. */
int el_input__open_path(const char *path, bool (*stop)(void *ctx), void *ctx)
{
	struct stat st;
	int fd;

	if (!strcmp(path, "-")) {
		fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
		return fd < 0 ? -errno : fd;
	}
	if (!stat(path, &st) && S_ISSOCK(st.st_mode))
		return connect_patiently(path, stop, ctx);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

/* 1: readable; 0: stopped; negative: error. */
static int wait_readable(struct el_input *in)
{
	struct pollfd pfd = {.fd = in->fd, .events = POLLIN};

	for (;;) {
		int n;

		if (told_to_stop(in))
			return 0;
		n = poll(&pfd, 1, in->stop ? WAIT_MS : -1);
		if (n > 0)
			return 1;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
}

/* Reads the next available bytes into raw. */
static int fill_raw(struct el_input *in)
{
	while (!in->ended && in->raw_at == in->raw_len) {
		ssize_t n;
		int err = wait_readable(in);

		if (err <= 0) {
			in->ended = true;
			return err;
		}
		n = read(in->fd, in->raw, PIECE);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		/* A peer that disappears is the end of the log. */
		if (n < 0 && errno != ECONNRESET)
			return -errno;
		in->raw_at = 0;
		in->raw_len = n > 0 ? (size_t)n : 0;
		in->ended = n <= 0;
	}
	return 0;
}

/* A gzip file may have several members, one after another. */
static int unpack(struct el_input *in, uint8_t *buf, size_t size, size_t *ret_len)
{
	int ret;

	in->z.next_out = buf;
	in->z.avail_out = (unsigned)size;
	while (in->z.avail_out == size) {
		int err = fill_raw(in);

		if (err)
			return err;
		if (in->raw_at == in->raw_len)
			break;
		in->z.next_in = in->raw + in->raw_at;
		in->z.avail_in = (unsigned)(in->raw_len - in->raw_at);
		ret = inflate(&in->z, Z_NO_FLUSH);
		in->raw_at = in->raw_len - in->z.avail_in;
		if (ret == Z_MEM_ERROR)
			return -ENOMEM;
		if (ret == Z_STREAM_END && inflateReset(&in->z) != Z_OK)
			return -ENOMEM;
		if (ret != Z_OK && ret != Z_STREAM_END && ret != Z_BUF_ERROR) {
			in->damaged = in->ended = true;
			in->raw_at = in->raw_len;
			break;
		}
	}
	*ret_len = size - in->z.avail_out;
	return 0;
}

static int detect_gzip(struct el_input *in)
{
	int err = fill_raw(in);

	/* Whether one byte is the first of gzip's two shows only with the next one. */
	while (!err && !in->ended && in->raw_len == 1 && in->raw[0] == GZIP_MAGIC_0) {
		ssize_t n = wait_readable(in) == 1 ? read(in->fd, in->raw + 1, PIECE - 1) : 0;

		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			break;
		in->raw_len += (size_t)n;
	}
	if (err)
		return err;
	in->examined = true;
	in->gzip = in->raw_len > 1 && in->raw[0] == GZIP_MAGIC_0 && in->raw[1] == GZIP_MAGIC_1;
	if (!in->gzip)
		return 0;
	if (inflateInit2(&in->z, 15 + 16) != Z_OK)
		return -ENOMEM;
	in->z_open = true;
	return 0;
}

/* Returns up to `size` of the next bytes, unpacked; *ret_len 0: the end. */
static int pull(struct el_input *in, uint8_t *buf, size_t size, size_t *ret_len)
{
	int err = in->examined ? 0 : detect_gzip(in);

	if (err)
		return err;
	if (in->gzip)
		return unpack(in, buf, size, ret_len);
	err = fill_raw(in);
	if (err)
		return err;
	size = MIN(size, in->raw_len - in->raw_at);
	memcpy(buf, in->raw + in->raw_at, size);
	in->raw_at += size;
	*ret_len = size;
	return 0;
}

static int read_head(struct el_input *in)
{
	while (in->head_len < HEAD_LEAST) {
		size_t len;
		int err = pull(in, in->head + in->head_len, HEAD - in->head_len, &len);

		if (err || !len)
			return err;
		in->head_len += len;
	}
	return 0;
}

static bool is_regular(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode);
}

int el_input__take(int fd, bool (*stop)(void *ctx), void *ctx, struct el_input **ret_in)
{
	struct el_input *in = calloc(1, sizeof(*in));
	int err = -ENOMEM;

	if (!in) {
		fd__close(&fd);
		return -ENOMEM;
	}
	in->stop = stop;
	in->ctx = ctx;
	in->fd = fd;
	in->raw = malloc(PIECE);
	in->out = malloc(PIECE);
	if (!in->raw || !in->out)
		goto fail;
	err = read_head(in);
	if (err)
		goto fail;
	/* A file that is not gzip is read in place, which makes the order exact. */
	in->stream = !is_regular(in->fd);
	in->plain = !in->gzip && !in->stream && lseek(in->fd, 0, SEEK_CUR) >= 0;
	*ret_in = in;
	return 0;
fail:
	el_input__free(in);
	return err;
}

void el_input__free(struct el_input *in)
{
	if (!in)
		return;
	if (in->z_open)
		inflateEnd(&in->z);
	free(in->raw);
	free(in->out);
	fd__close(&in->fd);
	free(in);
}

bool el_input__stopped(const struct el_input *in)
{
	return in->stopped;
}

bool el_input__is_damaged(const struct el_input *in)
{
	return in->damaged;
}

enum el_input_kind el_input__kind(const struct el_input *in)
{
	static const char title[] = "Time and Allocation Profiling Report";
	size_t i = 0;

	if (!in->head_len)
		return EL_INPUT_EMPTY;
	if (in->head_len < 4 ? !memcmp(in->head, "hdrb", in->head_len)
			     : !memcmp(in->head, "hdrb", 4))
		return EL_INPUT_LOG;
	while (i < in->head_len && strchr(" \t\r\n", in->head[i]) && in->head[i])
		i++;
	if (i < in->head_len && in->head[i] == '{')
		return EL_INPUT_REPORT;
	return memmem(in->head, in->head_len, title, strlen(title)) ? EL_INPUT_REPORT
								    : EL_INPUT_OTHER;
}

int eventlog__read(struct eventlog *log, struct el_input *in)
{
	size_t len = in->head_len;
	int err;

	if (in->plain) {
		err = eventlog__open_fd(log, in->fd);
		return err ? err : eventlog__finish(log);
	}
	err = eventlog__feed(log, in->head, len);
	while (!err) {
		err = pull(in, in->out, PIECE, &len);
		if (err || !len)
			break;
		err = eventlog__feed(log, in->out, len);
	}
	return err ? err : eventlog__finish(log);
}

int prof__read(struct el_input *in, struct cctree **ret_tree, struct prof_info *ret_info)
{
	struct buf text;
	size_t len = in->head_len;
	int err;

	buf__init(&text, TEXT_MAX);
	err = buf__add(&text, in->head, len);
	while (!err) {
		err = pull(in, in->out, PIECE, &len);
		if (err || !len)
			break;
		err = buf__add(&text, in->out, len);
	}
	if (!err)
		err = prof__parse(text.data ? text.data : "", text.len, ret_tree, ret_info);
	buf__free(&text);
	return err;
}
