/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * replay_logs: the eventlogs of a capture, read and joined as the session did. Private to the cli
 * room.
 */
#ifndef SAFESCOPED_CLI_REPLAY_LOGS_H
#define SAFESCOPED_CLI_REPLAY_LOGS_H

#include "capture/capture.h"

struct log_models;

/* Zero it first. */
struct joined_logs {
	struct log_models **v; /* each where it is, its reader and models point at it */
	size_t n, cap;
};

/* The join of struct replay_logs; ctx: struct joined_logs. */
int joined_logs__join(void *ctx, struct timeline *tl, pid_t pid, const char *path, int fd,
		      const struct tl_log_join *how);
/* After the timeline. */
void joined_logs__free(struct joined_logs *logs);

#endif
