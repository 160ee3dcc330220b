/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The eventlogs of a capture, read with the same reader and models as in the session. */
#include "logs.h"

#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "intake/tap.h"
#include "join/join.h"
#include "timeline/timeline.h"

#define MAX_LOGS 65536

/* The capture belongs to the user who replays it, whoever owned the log, so it is waited for. */
static int read_log(struct joined_logs *logs, const struct intake_log_join *how, int fd,
		    struct log_models **ret_m)
{
	uint64_t lost; /* the capture has this as an input of its own */
	int err = ARRAY_RESERVE(logs->v, logs->cap, logs->n + 1, MAX_LOGS);

	if (!err)
		err = log_models__read_aside(how, fd, false, 0, ret_m, &lost);
	if (!err)
		logs->v[logs->n++] = *ret_m;
	return err;
}

int joined_logs__join(void *ctx, struct timeline *tl, pid_t pid, const char *path, int fd,
		      const struct intake_log_join *how)
{
	struct join_log in = {.path = path, .observed_ns = how->observed_ns};
	struct log_models *m;
	int err = read_log(ctx, how, fd, &m);

	if (err)
		return err;
	/* the session did not join a log without a clock either */
	if (!log_models__has_clock(m))
		return -EBADMSG;
	log_models__fill(m, &in);
	return timeline__join_log(tl, pid, &in);
}

void joined_logs__free(struct joined_logs *logs)
{
	for (size_t i = 0; i < logs->n; i++)
		log_models__free(logs->v[i]);
	free(logs->v);
	*logs = (struct joined_logs){0};
}
