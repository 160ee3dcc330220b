/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waits.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <sys/select.h>

#include "base/base.h"

struct sets {
	fd_set read, write, except;
};

static void clear(struct sets *sets)
{
	FD_ZERO(&sets->read);
	FD_ZERO(&sets->write);
	FD_ZERO(&sets->except);
}

int waits__get(struct MHD_Daemon *mhd, struct pollfd *fds, size_t room, int *ms, size_t *ret_n)
{
	MHD_UNSIGNED_LONG_LONG due;
	struct sets sets;
	int max = -1;
	size_t n = 0;

	clear(&sets);
	if (MHD_get_fdset(mhd, &sets.read, &sets.write, &sets.except, &max) != MHD_YES)
		return -EIO;
	for (int fd = 0; fd <= max && n < room; fd++) {
		short events = (short)((FD_ISSET(fd, &sets.read) ? POLLIN : 0) |
				       (FD_ISSET(fd, &sets.write) ? POLLOUT : 0));

		if (events)
			fds[n++] = (struct pollfd){.fd = fd, .events = events};
	}
	if (MHD_get_timeout(mhd, &due) == MHD_YES && due < (MHD_UNSIGNED_LONG_LONG)MAX(*ms, 0))
		*ms = (int)due;
	*ret_n = n;
	return 0;
}

int waits__run(struct MHD_Daemon *mhd, const struct pollfd *fds, size_t n)
{
	struct sets sets;

	clear(&sets);
	for (size_t i = 0; i < n; i++) {
		bool gone = fds[i].revents & (POLLERR | POLLHUP);

		if (fds[i].events & POLLIN && (gone || fds[i].revents & POLLIN))
			FD_SET(fds[i].fd, &sets.read);
		if (fds[i].events & POLLOUT && (gone || fds[i].revents & POLLOUT))
			FD_SET(fds[i].fd, &sets.write);
	}
	return MHD_run_from_select(mhd, &sets.read, &sets.write, &sets.except) == MHD_YES ? 0
											  : -EIO;
}
