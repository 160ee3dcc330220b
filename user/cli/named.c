/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "named.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"

/* NULL: not among them. */
static const pid_t *find(const struct named *named, pid_t pid)
{
	for (size_t i = 0; i < named->n; i++)
		if (named->pids[i] == pid)
			return &named->pids[i];
	return NULL;
}

void named__take(struct named *named, const struct options *o)
{
	struct named next = {.n = o->n_pids};

	for (size_t i = 0; i < next.n; i++) {
		const pid_t *had = find(named, o->pids[i]);
		int *fd = had ? &named->fds[had - named->pids] : NULL;

		next.pids[i] = o->pids[i];
		next.fds[i] = fd ? *fd : (int)syscall(SYS_pidfd_open, o->pids[i], 0);
		if (fd)
			*fd = -1;
	}
	named__close(named);
	*named = next;
}

void named__close(struct named *named)
{
	for (size_t i = 0; i < named->n; i++)
		fd__close(&named->fds[i]);
	named->n = 0;
}

bool named__has_or_finds(const struct named *named, const struct options *o)
{
	for (size_t i = 0; i < o->n_pids; i++) {
		if (find(named, o->pids[i]) || !kill(o->pids[i], 0) || errno != ESRCH)
			continue;
		log_error("pid %d: no such process", o->pids[i]);
		return false;
	}
	return true;
}

static bool has_ended(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return pidfd >= 0 && poll(&p, 1, 0) > 0;
}

size_t named__running(const struct named *named, pid_t ret_pids[OPTIONS_MAX_PIDS])
{
	size_t n = 0;

	for (size_t i = 0; i < named->n; i++)
		if (!has_ended(named->fds[i]))
			ret_pids[n++] = named->pids[i];
	if (n)
		return n;
	memcpy(ret_pids, named->pids, named->n * sizeof(*ret_pids));
	return named->n;
}
