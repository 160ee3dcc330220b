/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process without rights that stays. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "confine_priv.h"

struct confine_resident {
	pid_t pid, parent;
	int fd;
};

int confine_resident__start(const struct confine *how, int (*run)(void *ctx, int fd), void *ctx,
			    struct confine_resident **ret_resident)
{
	const struct sock_fprog *program;
	struct confine_resident *r;
	int fds[2], err;

	if (how->n_fds > CONFINE_MAX_FDS)
		return -EINVAL;
	err = confine_filter__get(how->keep, &program);
	if (err)
		return err;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds)) {
		err = -errno;
		free(r);
		return err;
	}
	r->parent = getpid();
	err = confine_children__fork(how, &r->pid);
	if (!err && r->pid == 0) {
		err = confine_child__enter(how, r->parent, fds[1], (struct confine_memory){0});
		_exit(err ? 2 : run(ctx, fds[1]) ? 1 : 0);
	}
	close(fds[1]);
	if (err) {
		close(fds[0]);
		free(r);
		return err;
	}
	r->fd = fds[0];
	*ret_resident = r;
	return 0;
}

int confine_resident__fd(const struct confine_resident *r)
{
	return r->fd;
}

pid_t confine_resident__pid(const struct confine_resident *r)
{
	return r->pid;
}

void confine_resident__free(struct confine_resident *r)
{
	if (!r)
		return;
	if (r->parent == getpid())
		confine_children__kill(r->pid);
	close(r->fd);
	free(r);
}
