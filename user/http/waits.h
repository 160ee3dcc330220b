/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * waits: libmicrohttpd within a loop that waits for its own descriptors as well, by poll(). For the
 * confined processes that serve HTTP: they have no epoll, and no threads.
 */
#ifndef SAFESCOPED_HTTP_WAITS_H
#define SAFESCOPED_HTTP_WAITS_H

#include <poll.h>
#include <stddef.h>

struct MHD_Daemon;

/*
 * What it waits for, at most `room` descriptors, into fds; *ms is lowered to when it has something
 * to do by itself. -EIO.
 */
int waits__get(struct MHD_Daemon *mhd, struct pollfd *fds, size_t room, int *ms, size_t *ret_n);
/* Serves what these are ready for, after poll(). -EIO. */
int waits__run(struct MHD_Daemon *mhd, const struct pollfd *fds, size_t n);

#endif
