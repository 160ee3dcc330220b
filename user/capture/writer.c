/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes a capture: inputs are gathered in blocks, which go to PATH.partial. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>
#include <zstd.h>

#include "codec_priv.h"

/* A block of this size is full. */
#define BLOCK_BYTES (256u << 10)
#define ZSTD_LEVEL  3
/* A log's bytes come in pieces of this size, one per block. */
#define LOG_PIECE ((uint64_t)1 << 20)

struct capture {
	char *path;
	const char *name; /* the last component of `path` */
	char *partial;	  /* the path that it has until it is finished */
	const char *partial_name;
	int dir;
	int fd;
	int err; /* the first failure, after which nothing is written */
	struct buf raw;
	void *stored;
	size_t stored_cap;
	ZSTD_CCtx *zstd;
	uint64_t blocks, bytes;
	uint64_t log_bytes; /* of eventlogs */
};

/* ── bytes ───────────────────────────────────────────────────────────────────────────────── */

static void fail(struct capture *c, int err)
{
	if (c->err)
		return;
	c->err = err;
	log_warn("%s: %s; the capture ends here, and can be replayed up to this point", c->partial,
		 strerror(-err));
}

static void put(struct capture *c, const void *data, size_t size)
{
	const char *p = data;

	while (size && !c->err) {
		ssize_t n = write(c->fd, p, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			fail(c, n ? -errno : -EIO);
			return;
		}
		p += n;
		size -= (size_t)n;
		c->bytes += (uint64_t)n;
	}
}

void capture__flush(struct capture *c)
{
	struct block_header h = {.magic = CAPTURE_BLOCK_MAGIC, .number = c->blocks};
	size_t bound = ZSTD_compressBound(c->raw.len), size;
	const void *stored = c->raw.data;

	if (!c->raw.len || c->err)
		return;
	h.raw_size = h.stored_size = (uint32_t)c->raw.len;
	if (!array__reserve(&c->stored, &c->stored_cap, bound, 2 * CAPTURE_MAX_BLOCK, 1)) {
		size = ZSTD_compressCCtx(c->zstd, c->stored, bound, c->raw.data, c->raw.len,
					 ZSTD_LEVEL);
		if (!ZSTD_isError(size) && size < c->raw.len) {
			h.flags = CAPTURE_BLOCK_ZSTD;
			h.stored_size = (uint32_t)size;
			stored = c->stored;
		}
	}
	h.crc = (uint32_t)crc32(0, stored, h.stored_size);
	h.header_crc =
		(uint32_t)crc32(0, (const void *)&h, offsetof(struct block_header, header_crc));
	put(c, &h, sizeof(h));
	put(c, stored, h.stored_size);
	c->blocks++;
	buf__reset(&c->raw);
}

/* ── inputs ──────────────────────────────────────────────────────────────────────────────── */

void capture__take(void *ctx, const struct intake_input *input)
{
	struct capture *c = ctx;
	size_t before = c->raw.len;
	int err;

	if (c->err)
		return;
	err = code__put(&c->raw, input);
	if (err) {
		/* restore the block */
		c->raw.len = before;
		c->raw.err = 0;
		fail(c, err);
		return;
	}
	if (c->raw.len >= BLOCK_BYTES)
		capture__flush(c);
}

static int take_log_bytes(struct capture *c, pid_t pid, int fd, uint64_t size)
{
	struct intake_input piece = {.kind = TI_LOG_BYTES, .pid = pid};
	void *bytes;
	int err = 0;

	if (size > CAPTURE_MAX_LOG - c->log_bytes)
		return -EFBIG;
	bytes = malloc(LOG_PIECE);
	if (!bytes)
		return -ENOMEM;
	c->log_bytes += size;
	while (piece.a < size && !c->err) {
		ssize_t n = pread(fd, bytes, MIN(LOG_PIECE, size - piece.a), (off_t)piece.a);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			err = n ? -errno : -ENODATA;
			break;
		}
		piece.data = bytes;
		piece.size = (size_t)n;
		capture__take(c, &piece);
		piece.a += (uint64_t)n;
	}
	free(bytes);
	return err;
}

void capture__take_log(struct capture *c, pid_t pid, const char *path, int fd, uint64_t size,
		       const struct intake_log_join *how)
{
	const struct intake_input missing = {
		.kind = TI_MISSING, .pid = pid, .text = "the eventlog: it is not in the capture"};
	const struct intake_input log = {.kind = TI_LOG,
					 .pid = pid,
					 .text = path,
					 .data = how,
					 .size = sizeof(*how),
					 .a = size};
	int err = take_log_bytes(c, pid, fd, size);

	if (err) {
		log_warn("%s: %s; a replay of the capture will not have it", path,
			 err == -EFBIG	   ? "too large for the capture"
			 : err == -ENODATA ? "became shorter while it was being copied"
					   : strerror(-err));
		capture__take(c, &missing);
		return;
	}
	capture__take(c, &log);
}

/* ── the file ────────────────────────────────────────────────────────────────────────────── */

static int put_header(struct capture *c, const struct timeline_opts *opts, const char *version,
		      const char *mode)
{
	char *json = capture_header__make(opts, version, mode), crc[16];
	struct buf text;
	int err;

	if (!json)
		return -ENOMEM;
	buf__init(&text, CAPTURE_MAX_HEADER);
	buf__adds(&text, CAPTURE_MAGIC);
	buf__adds(&text, json);
	err = buf__addc(&text, '\n');
	free(json);
	if (!err) {
		snprintf(crc, sizeof(crc), "%08x\n",
			 (unsigned)crc32(0, (const void *)text.data, (uInt)text.len));
		err = buf__adds(&text, crc);
	}
	if (!err)
		put(c, text.data, text.len);
	buf__free(&text);
	return err ? err : c->err;
}

static int open_partial(struct capture *c, uid_t owner, gid_t group)
{
	int err = dir__open_of(c->path, owner, &c->dir, &c->name);
	struct stat st;

	if (err) {
		log_error("%s: cannot be written: %s; choose another place with --save", c->path,
			  err == -EPERM ? "a link in its path belongs to another user"
					: strerror(-err));
		return err;
	}
	/* the final name: detect now if something else than a regular file has it */
	if (fstatat(c->dir, c->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(st.st_mode)) {
		log_error("%s: cannot be written: it is not a regular file; choose another place "
			  "with --save",
			  c->path);
		return -EINVAL;
	}
	c->partial_name = path__base(c->partial);
	c->fd = openat(c->dir, c->partial_name,
		       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (c->fd < 0 && errno == EEXIST) {
		log_error("%s: already exists, from a session that was killed or is still running; "
			  "replay it or remove it",
			  c->partial);
		return -EEXIST;
	}
	if (c->fd < 0 ||
	    ((owner != (uid_t)-1 || group != (gid_t)-1) && fchown(c->fd, owner, group) < 0)) {
		err = -errno;
		log_error("%s: cannot be written: %s; choose another place with --save", c->partial,
			  strerror(-err));
		return err;
	}
	return 0;
}

int capture__create(const char *path, uid_t owner, gid_t group, const struct timeline_opts *opts,
		    const char *version, const char *mode, struct capture **ret_capture)
{
	struct capture *c = calloc(1, sizeof(*c));
	int err = -ENOMEM;

	if (!c)
		return -ENOMEM;
	c->fd = c->dir = -1;
	buf__init(&c->raw, CAPTURE_MAX_BLOCK);
	c->path = strdup(path);
	c->zstd = ZSTD_createCCtx();
	if (!c->path || !c->zstd || asprintf(&c->partial, "%s.partial", path) < 0) {
		log_error("no memory for the capture");
		goto fail;
	}
	err = open_partial(c, owner, group);
	if (!err)
		err = put_header(c, opts, version, mode);
	if (err)
		goto fail;
	*ret_capture = c;
	return 0;
fail:
	capture__abort(c, false);
	return err;
}

void capture__abort(struct capture *c, bool keep)
{
	if (!c)
		return;
	if (keep)
		capture__flush(c);
	if (c->fd >= 0 && !keep)
		unlinkat(c->dir, c->partial_name, 0);
	fd__close(&c->fd);
	fd__close(&c->dir);
	ZSTD_freeCCtx(c->zstd);
	buf__free(&c->raw);
	free(c->stored);
	free(c->path);
	free(c->partial);
	free(c);
}

int capture__finish(struct capture *c)
{
	const struct intake_input end = {.kind = (enum intake_input_kind)CAPTURE_END_MARK};
	int err;

	capture__take(c, &end);
	capture__flush(c);
	if (!c->err && fsync(c->fd) < 0 && errno != EINVAL && errno != EROFS)
		fail(c, -errno);
	if (!c->err && renameat(c->dir, c->partial_name, c->dir, c->name) < 0)
		fail(c, -errno);
	err = c->err;
	if (!err)
		log_info("%s: safescoped --replay %s", c->path, c->path);
	/* the file is PATH now, or still PATH.partial */
	capture__abort(c, true);
	return err;
}
