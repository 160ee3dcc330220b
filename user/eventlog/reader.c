/* SPDX-License-Identifier: GPL-2.0-or-later */
/* reader: one log from its first byte to its final statistics. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "reader_priv.h"

/* A stream is framed in pieces of this size, so that the fed memory stays bounded. */
#define FEED_PIECE (256u << 10)

int eventlog__new(const struct eventlog_opts *opts, struct eventlog **ret_log)
{
	struct eventlog *log = calloc(1, sizeof(*log));

	if (!log)
		return -ENOMEM;
	if (opts)
		log->opts = *opts;
	if (!log->opts.hold_max)
		log->opts.hold_max = EVENTLOG_HOLD_DEFAULT;
	log->fd = -1;
	for (size_t i = 0; i < ARRAY_SIZE(log->size); i++)
		log->size[i] = SIZE_UNKNOWN;
	*ret_log = log;
	return 0;
}

void eventlog__free(struct eventlog *log)
{
	if (!log)
		return;
	for (unsigned i = 0; i <= CAPS_MAX; i++)
		cursor__free(log->cursors[i]);
	free(log->mem);
	free(log->win);
	free(log);
}

int eventlog__subscribe(struct eventlog *log, const uint16_t *ids, size_t n_ids, eventlog_fn fn,
			void *ctx)
{
	if (log->n_subs == SUBSCRIBERS_MAX)
		return -E2BIG;
	for (size_t i = 0; i < n_ids; i++)
		if (ids[i] >= EL_IDS)
			return -EINVAL;
	for (size_t i = 0; i < n_ids; i++)
		log->want[ids[i]] |= (uint16_t)(1u << log->n_subs);
	log->subs[log->n_subs++] = (struct subscriber){fn, ctx};
	return 0;
}

const struct eventlog_stats *eventlog__stats(const struct eventlog *log)
{
	return &log->stats;
}

/* Keeps the first failure: what was delivered cannot be taken back. */
static int fail(struct eventlog *log, int err)
{
	if (err && !log->err)
		log->err = err;
	return err;
}

/* Processes the available bytes. */
static int advance(struct eventlog *log, bool last)
{
	uint64_t before;
	int err;

	if (!log->header_done) {
		err = header__parse(log);
		if (log->err)
			return log->err;
		if (err <= 0)
			return err;
		log->header_done = true;
		log->searched = log->pos;
	}
	for (;;) {
		before = log->pos;
		err = frame__run(log, last);
		if (err)
			return err;
		if (log->n_extents >= EXTENTS_MAX || log->held > log->opts.hold_max) {
			/* A finished file is merged window by window. */
			err = merge__run(log, last && log->fd >= 0 ? MERGE_ALL : MERGE_SHRINK);
			if (err)
				return err;
			continue;
		}
		if (log->pos == before || log->pos == log->avail)
			break;
	}
	if (last)
		return merge__run(log, MERGE_ALL);
	return log->opts.prompt ? merge__run(log, MERGE_SAFE) : 0;
}

int eventlog__feed(struct eventlog *log, const void *data, size_t len)
{
	const uint8_t *p = data;
	int err;

	if (log->err)
		return log->err;
	if (log->fd >= 0 || log->finished)
		return -EINVAL;
	while (len) {
		size_t n = MIN(len, (size_t)FEED_PIECE), have;

		/* what is framed has been copied */
		if (log->pos > log->mem_off) {
			uint64_t done = log->pos - log->mem_off;

			if (done > log->mem_cap / 2 || log->pos == log->avail) {
				memmove(log->mem, log->mem + done, log->avail - log->pos);
				log->mem_off = log->pos;
			}
		}
		have = (size_t)(log->avail - log->mem_off);
		err = ARRAY_RESERVE(log->mem, log->mem_cap, have + n, 4 * (size_t)BLOCK_MAX);
		if (err)
			return fail(log, err);
		memcpy(log->mem + have, p, n);
		log->avail += n;
		log->stats.bytes_in += n;
		p += n;
		len -= n;
		err = advance(log, false);
		if (err)
			return fail(log, err);
	}
	log->stats.last_time = log->emitted;
	return 0;
}

int eventlog__open_fd(struct eventlog *log, int fd)
{
	struct stat st;

	if (log->fd >= 0 || log->avail || fd < 0)
		return -EINVAL;
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ESPIPE;
	log->fd = fd;
	return 0;
}

/* How much of the file was written. No runtime leaves a hole in a log, and reading one takes as
 * long as reading that many bytes. */
static uint64_t written(int fd, uint64_t size)
{
	off_t at = lseek(fd, 0, SEEK_CUR), hole = lseek(fd, 0, SEEK_HOLE);

	lseek(fd, at, SEEK_SET);
	return hole >= 0 ? MIN((uint64_t)hole, size) : size;
}

static int file_advance(struct eventlog *log, bool last)
{
	uint64_t size, end;
	struct stat st;
	int err;

	if (fstat(log->fd, &st))
		return -errno;
	size = (uint64_t)MAX(st.st_size, 0);
	end = written(log->fd, size);
	/* A file that shrinks is read as far as it goes; the rest shows up as lost. */
	if (end > log->avail) {
		log->avail = end;
		log->win_len = 0;
	}
	log->stats.bytes_in = log->avail;
	err = advance(log, last);
	if (!err && last && end < size) {
		log->stats.bytes_in += size - end;
		log->stats.lost_bytes += size - end;
		log->stats.damages++;
	}
	return err;
}

int eventlog__poll(struct eventlog *log)
{
	int err;

	if (log->err)
		return log->err;
	if (log->fd < 0 || log->finished)
		return -EINVAL;
	err = file_advance(log, false);
	log->stats.last_time = log->emitted;
	return fail(log, err);
}

int eventlog__finish(struct eventlog *log)
{
	int err;

	if (log->err)
		return log->err;
	if (log->finished)
		return 0;
	log->finished = true;
	err = log->fd >= 0 ? file_advance(log, true) : advance(log, true);
	if (err)
		return fail(log, err);
	log->stats.last_time = log->emitted;
	/* A log that ends inside its header contains nothing. */
	if (!log->header_done) {
		log->stats.lost_bytes = log->stats.bytes_in;
		log->stats.damages = log->stats.bytes_in ? 1 : 0;
		log->stats.header_bytes = 0;
	}
	return 0;
}
