/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The eventlogs of a capture: the same reader and models as in the session. */
#include "logs.h"

#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "timeline/tap.h"
#include "timeline/timeline.h"

#define MAX_LOGS 65536

static int add(struct joined_logs *logs, const struct tl_log_join *how, struct log_models **ret_m)
{
	int err = array__reserve((void **)&logs->v, &logs->cap, logs->n + 1, MAX_LOGS,
				 sizeof(struct log_models *));

	if (!err)
		err = log_models__new_joined(how, ret_m);
	if (!err)
		logs->v[logs->n++] = *ret_m;
	return err;
}

int joined_logs__join(void *ctx, struct timeline *tl, pid_t pid, const char *path, int fd,
		      const struct tl_log_join *how)
{
	struct tl_log in = {.path = path, .observed_ns = how->observed_ns};
	struct log_models *m;
	uint64_t lost; /* the capture has it as an input of its own */
	int err = add(ctx, how, &m);

	if (!err)
		err = log_models__read(m, fd, false, &lost);
	if (err)
		return err;
	/* a log without a clock was not joined in the session either */
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
