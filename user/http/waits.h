/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * waits: runs libmicrohttpd within a poll() loop that also waits for descriptors of its own. For
 * the confined processes that serve HTTP: they have no epoll, and no threads.
 */
#ifndef SAFESCOPED_HTTP_WAITS_H
#define SAFESCOPED_HTTP_WAITS_H

#include <poll.h>
#include <stddef.h>

struct MHD_Daemon;

/*
 * Stores the descriptors that it waits for, at most `room`, in fds; lowers *ms to its next timeout.
 * -EIO.
 */
int waits__get(struct MHD_Daemon *mhd, struct pollfd *fds, size_t room, int *ms, size_t *ret_n);
/* Serves the descriptors that poll() reported as ready. -EIO. */
int waits__run(struct MHD_Daemon *mhd, const struct pollfd *fds, size_t n);

#endif
