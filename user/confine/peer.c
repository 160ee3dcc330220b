/* SPDX-License-Identifier: GPL-2.0-or-later */
/* peer: a process without rights that works by itself, and exchanges messages with the daemon. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "base/pass.h"
#include "confine_priv.h"

struct confine_peer {
	pid_t pid;
	int in, out; /* a pipe from it; a socket to it */
};

static void close_pair(int fds[2])
{
	fd__close(&fds[0]);
	fd__close(&fds[1]);
}

/*
 * A socket for messages to the peer, since they may carry descriptors, and a pipe for messages from
 * it. Descriptors that the peer sends over the socket would be queued at our end until it is
 * closed: so receiving is shut down there.
 */
static int open_channel(int sockets[2], int pipes[2])
{
	int err = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
		return -errno;
	/* only our ends are non-blocking: the peer blocks in reads and writes */
	if (pipe2(pipes, O_CLOEXEC | O_DIRECT) || shutdown(sockets[0], SHUT_RD) ||
	    fcntl(sockets[0], F_SETFL, O_NONBLOCK) || fcntl(pipes[0], F_SETFL, O_NONBLOCK))
		err = -errno;
	if (err) {
		close_pair(sockets);
		close_pair(pipes);
	}
	return err;
}

/* Built here once, not in every child; a copy of the child cannot build its own. */
static int make_filters(uint32_t keep)
{
	const struct sock_fprog *program;
	int err = confine_filter__get(keep, &program);

	return err || !(keep & CONFINE_FORK)
		       ? err
		       : confine_filter__get(keep & ~(uint32_t)CONFINE_FORK, &program);
}

int confine_peer__start(const struct confine *how, void (*run)(void *ctx, int in, int out),
			void *ctx, struct confine_peer **ret_peer)
{
	struct confine_peer *peer = calloc(1, sizeof(*peer));
	int sockets[2] = {-1, -1}, pipes[2] = {-1, -1}, err;
	pid_t parent = getpid();

	if (!peer)
		return -ENOMEM;
	err = how->n_fds > CONFINE_MAX_FDS ? -EINVAL : make_filters(how->keep);
	if (!err)
		err = open_channel(sockets, pipes);
	if (!err)
		err = confine_children__fork(how, &peer->pid);
	if (err) {
		close_pair(sockets);
		close_pair(pipes);
		free(peer);
		return err;
	}
	if (peer->pid == 0) {
		struct confine_ends ends = {sockets[1], pipes[1]};

		if (confine_child__enter(how, parent, ends, (struct confine_memory){0}))
			_exit(2);
		run(ctx, ends.in, ends.out);
		_exit(0);
	}
	close(sockets[1]);
	close(pipes[1]);
	peer->in = pipes[0];
	peer->out = sockets[0];
	*ret_peer = peer;
	return 0;
}

int confine_peer__fd(const struct confine_peer *peer)
{
	return peer->in;
}

int confine_peer__send(struct confine_peer *peer, const void *msg, size_t size, int fd, int flags)
{
	return pass__send(peer->out, msg, size, fd, flags);
}

int confine_peer__take(struct confine_peer *peer, void *ret_msg, size_t size)
{
	ssize_t n = read(peer->in, ret_msg, size);

	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	if (n == 0)
		return -EPIPE;
	return (size_t)n == size ? 0 : -EBADMSG;
}

pid_t confine_peer__pid(const struct confine_peer *peer)
{
	return peer->pid;
}

void confine_peer__free(struct confine_peer *peer)
{
	if (!peer)
		return;
	confine_children__kill(peer->pid);
	fd__close(&peer->in);
	fd__close(&peer->out);
	free(peer);
}
