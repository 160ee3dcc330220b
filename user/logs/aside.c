/* SPDX-License-Identifier: GPL-2.0-or-later */
/* aside: reads a joined log in a process without rights. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/base.h"
#include "confine/confine.h"
#include "eventlog/pack.h"
#include "intake/tap.h"
#include "logs_priv.h"

/* For the models while they are built: their limits add up to 340 MB, plus lookup structures. */
#define MEMORY (1ULL << 30)
/* What an honest log takes per megabyte on a busy processor, and the limits for any log. */
#define HONEST_NS_PER_MB 5000000ULL
#define MS_PER_MB	 50
#define ALWAYS_MS	 5000
#define AT_MOST_MS	 600000
/*
 * How large a log's bytes may become as models: the shortest event has ten bytes, and ends a slice
 * of its capability and one of a thread, a collection, and a call.
 */
#define PACKED_PER_BYTE 64
#define PACKED_AT_LEAST ((size_t)1 << 20)

struct joined {
	const struct intake_log_join *how;
	int fd;
	bool live;
	size_t room; /* for the result, in bytes */
};

struct joined_out {
	uint64_t lost, len;
	uint8_t packed[];
};

static int read_joined(void *ctx, void *ret_out)
{
	const struct joined *j = ctx;
	struct joined_out *out = ret_out;
	struct pack p = {.data = out->packed, .size = j->room};
	struct log_models *m;
	int err = log_models__new_joined(j->how, &m);

	if (err)
		return err;
	err = log_models__read(m, j->fd, j->live, &out->lost);
	if (!err) {
		log_models__pack(m, &p);
		out->len = p.len;
		err = p.full ? -E2BIG : 0;
	}
	log_models__free(m);
	return err;
}

static int take(const struct joined *j, const struct joined_out *out, struct log_models **ret_m,
		uint64_t *ret_lost)
{
	struct unpack u = {.data = out->packed, .left = MIN(out->len, j->room)};
	int err = log_models__unpack(&u, NULL, ret_m);

	if (!err)
		*ret_lost = MIN(out->lost, log_models__stats(*ret_m)->bytes_in);
	return err == -EBADMSG ? -EIO : err;
}

int log_models__read_aside(const struct intake_log_join *how, int fd, bool live, uid_t user,
			   struct log_models **ret_m, uint64_t *ret_lost)
{
	struct joined j = {.how = how, .fd = fd, .live = live};
	struct confine by = {
		.name = "safescoped:log", .memory = MEMORY, .user = user, .fds = &fd, .n_fds = 1};
	struct statx st;
	uint64_t mb;
	int timeout_ms, err;
	void *out;

	/* DONT_SYNC: a file server may keep us waiting */
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BLOCKS | STATX_SIZE, &st))
		return -errno;
	/* by blocks: the holes of a sparse file do not count */
	mb = st.stx_blocks / 2048;
	timeout_ms = ALWAYS_MS + (int)(MIN(mb, (uint64_t)AT_MOST_MS / MS_PER_MB) * MS_PER_MB);
	by.cpu_s = (uint32_t)timeout_ms / 1000 * machine__slowness();
	j.room = PACKED_AT_LEAST +
		 MIN(st.stx_size, LOG_PACKED_MAX / PACKED_PER_BYTE) * PACKED_PER_BYTE;
	err = confine__aside(&by, timeout_ms, CONFINE_HONEST_NS + mb * HONEST_NS_PER_MB,
			     read_joined, &j, sizeof(struct joined_out) + j.room, &out);
	if (err)
		return err;
	err = take(&j, out, ret_m, ret_lost);
	confine__free_out(out, sizeof(struct joined_out) + j.room);
	return err;
}
