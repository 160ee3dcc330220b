/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pass: messages of a fixed size between two processes, each with a descriptor if there is one to
 * hand over, by a SOCK_SEQPACKET pair; and memory files that the other process may map.
 */
#ifndef SAFESCOPED_BASE_PASS_H
#define SAFESCOPED_BASE_PASS_H

#include <stddef.h>

/* Sends a message, and with it a descriptor, which stays open here (-1: none). `flags`:
 * MSG_DONTWAIT or 0; no SIGPIPE. 0, or what sendmsg() gave: -EAGAIN, -EPIPE, … */
int pass__send(int to, const void *msg, size_t size, int fd, int flags);

/*
 * Takes the next message, and the descriptor that came with it, which is the caller's and closed on
 * exec (-1: none). `flags` as above. -EAGAIN: none yet, or a signal came; -EPIPE: the other process
 * has gone; -EBADMSG: not of that size, or a descriptor was lost, for want of room here or because
 * there was more than one; others of recvmsg(). A descriptor of a message that is refused is
 * closed.
 */
int pass__take(int from, void *ret_msg, size_t size, int flags, int *ret_fd);

/* Writes all of it. -errno. */
int pass__write(int fd, const void *bytes, size_t len);

/* A memory file, which the caller writes and then seals: what the other process maps stays as it
 * is. -errno. */
int pass__memory(const char *name, int *ret_fd);
int pass__seal(int fd);

#endif
