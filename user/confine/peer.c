/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process without rights that works by itself, and has a socket to the daemon. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "confine_priv.h"

struct confine_peer {
	pid_t pid;
	int fd;
};

int confine_peer__start(const struct confine *how, void (*run)(void *ctx, int fd), void *ctx,
			struct confine_peer **ret_peer)
{
	struct confine_peer *peer = calloc(1, sizeof(*peer));
	const struct sock_fprog *program;
	pid_t parent = getpid();
	int fds[2] = {-1, -1}, err;

	if (!peer)
		return -ENOMEM;
	err = how->n_fds > CONFINE_MAX_FDS ? -EINVAL : confine_filter__get(how->keep, &program);
	if (!err && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		err = -errno;
	/* only ours: the peer waits in its reads */
	if (!err && fcntl(fds[0], F_SETFL, O_NONBLOCK))
		err = -errno;
	if (!err)
		err = confine_children__fork(how, &peer->pid);
	if (err) {
		fd__close(&fds[0]);
		fd__close(&fds[1]);
		free(peer);
		return err;
	}
	if (peer->pid == 0) {
		if (confine_child__enter(how, parent, fds[1], (struct confine_memory){0}))
			_exit(2);
		run(ctx, fds[1]);
		_exit(0);
	}
	close(fds[1]);
	peer->fd = fds[0];
	*ret_peer = peer;
	return 0;
}

int confine_peer__fd(const struct confine_peer *peer)
{
	return peer->fd;
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
	fd__close(&peer->fd);
	free(peer);
}
