/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The eventlogs of a capture: the same reader and models as in the session (logs.c). */
#include "replay_logs.h"

#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "log_models.h"

#define MAX_LOGS 65536

static int add(struct joined_logs *logs, const struct tl_log_join *how, struct log_models **ret_m)
{
	struct log_models *m;
	int err = array__reserve((void **)&logs->v, &logs->cap, logs->n + 1, MAX_LOGS,
				 sizeof(struct log_models *));

	if (err)
		return err;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	err = log_models__new_joined(m, how);
	if (err) {
		free(m);
		return err;
	}
	logs->v[logs->n++] = m;
	*ret_m = m;
	return 0;
}

int joined_logs__join(void *ctx, struct timeline *tl, pid_t pid, const char *path, int fd,
		      const struct tl_log_join *how)
{
	struct tl_log in = {.path = path, .observed_ns = how->observed_ns};
	struct log_models *m;
	uint64_t lost; /* an input of its own */
	int err = add(ctx, how, &m);

	if (!err)
		err = log_models__read(m, fd, false, &lost);
	if (err)
		return err;
	/* one that tells no clock was not joined then */
	if (!m->guessed)
		return -EBADMSG;
	log_models__tell(m, &in);
	return timeline__join_log(tl, pid, &in);
}

void joined_logs__free(struct joined_logs *logs)
{
	for (size_t i = 0; i < logs->n; i++) {
		log_models__free(logs->v[i]);
		free(logs->v[i]);
	}
	free(logs->v);
	*logs = (struct joined_logs){.n = 0};
}
