/* SPDX-License-Identifier: GPL-2.0-or-later */
/* replay_log: the eventlogs in a capture, which the replay's caller joins. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "replay_priv.h"

/* A piece that does not follow the previous one is dropped, and all after it; TI_LOG notices. */
int replay__log_bytes(struct replay *r, const struct intake_input *in)
{
	struct log_bytes *log = &r->log;
	const char *p = in->data;
	size_t left = in->size;

	if (!r->hooks.join)
		return 0;
	if (!in->a) {
		fd__close(&log->fd);
		*log = (struct log_bytes){.fd = memfd_create("eventlog", MFD_CLOEXEC),
					  .pid = in->pid};
		if (log->fd < 0)
			return -errno;
	}
	if (log->fd < 0 || in->pid != log->pid || in->a != log->size ||
	    in->size > CAPTURE_MAX_LOG - r->log_bytes)
		return -EBADMSG;
	while (left) {
		ssize_t n = write(log->fd, p, left);

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		p += n;
		left -= (size_t)n;
	}
	log->size += in->size;
	r->log_bytes += in->size;
	return 0;
}

int replay__log(struct replay *r, const struct intake_input *in)
{
	struct intake_log_join how = {0};
	int err = -EBADMSG;

	if (!r->hooks.join)
		return 0;
	if ((in->size != sizeof(how) && in->size != offsetof(struct intake_log_join, start_ns)) ||
	    !in->text)
		return -EBADMSG;
	memcpy(&how, in->data, in->size);
	if (how.session_ns > MAX_TIME || how.observed_ns > MAX_TIME || how.now_ns > MAX_TIME ||
	    how.now_wall_ns > MAX_TIME || how.start_ns > MAX_TIME / 8 ||
	    how.suspended_ns > MAX_TIME / 8)
		return -EBADMSG;
	if (r->log.fd >= 0 && in->pid == r->log.pid && in->a == r->log.size)
		err = r->hooks.join(r->hooks.ctx, r->tl, in->pid, in->text, r->log.fd, &how);
	fd__close(&r->log.fd);
	if (err && err != -ENOMEM)
		intake__add_missing(r->in, in->pid,
				    "the eventlog: the capture does not have all of it");
	return err;
}
