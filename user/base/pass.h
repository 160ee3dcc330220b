/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pass: fixed-size messages between two processes over a SOCK_SEQPACKET pair, each with a
 * descriptor to hand over or none; and memory files that the other process may map.
 */
#ifndef SAFESCOPED_BASE_PASS_H
#define SAFESCOPED_BASE_PASS_H

#include <stddef.h>

/* Sends a message, together with a descriptor, which stays open here (-1: none). `flags`:
 * MSG_DONTWAIT or 0; never raises SIGPIPE. Returns 0, or sendmsg()'s error: -EAGAIN, -EPIPE, … */
int pass__send(int to, const void *msg, size_t size, int fd, int flags);

/*
 * Takes the next message and its descriptor, which is closed on exec and owned by the caller (-1:
 * none). `flags` as above. -EAGAIN: none yet, or a signal arrived; -EPIPE: the other process is
 * gone; -EBADMSG: the message does not have that size, or a descriptor was lost because there was
 * no room for it or more than one was sent; other errors of recvmsg(). The descriptor of a refused
 * message is closed.
 */
int pass__take(int from, void *ret_msg, size_t size, int flags, int *ret_fd);

/* Writes everything. -errno. */
int pass__write(int fd, const void *bytes, size_t len);

/* A memory file, for the caller to write and then seal: what the other process maps cannot change
 * any more. -errno. */
int pass__memory(const char *name, int *ret_fd);
int pass__seal(int fd);

#endif
