/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * log_stream: an eventlog that comes by a FIFO or a Unix socket while a session runs. A thread puts
 * it into a file without a name, so that the program never waits for us, and the session reads
 * that.
 */
#ifndef SAFESCOPED_CLI_LOG_STREAM_H
#define SAFESCOPED_CLI_LOG_STREAM_H

#include <stdbool.h>

struct log_stream;

/* -EINVAL: neither a FIFO nor a socket. *ret_fd: the file that grows; the caller closes it. */
int log_stream__open(const char *path, struct log_stream **ret_stream, int *ret_fd);
/*
 * Takes what has come so far; if the program has `ended`, all that it wrote. Nothing comes into the
 * file afterwards. Frees the stream; NULL is none.
 */
void log_stream__finish(struct log_stream *stream, bool ended);

#endif
