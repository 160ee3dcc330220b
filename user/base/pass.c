/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pass.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base.h"

/* Has room for one descriptor, aligned as the CMSG macros require. */
union control {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int))];
};

int pass__send(int to, const void *msg, size_t size, int fd, int flags)
{
	union control control = {.head = {.cmsg_len = CMSG_LEN(sizeof(int)),
					  .cmsg_level = SOL_SOCKET,
					  .cmsg_type = SCM_RIGHTS}};
	struct iovec iov = {.iov_base = (void *)msg, .iov_len = size};
	struct msghdr head = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	if (fd >= 0) {
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
		head.msg_control = &control;
		head.msg_controllen = sizeof(control);
	}
	n = sendmsg(to, &head, flags | MSG_NOSIGNAL);
	if (n < 0)
		return -errno;
	return (size_t)n == size ? 0 : -EIO;
}

static int fd_of(struct msghdr *head)
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(head);
	int fd;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
	    c->cmsg_len != CMSG_LEN(sizeof(int)))
		return -1;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

int pass__take(int from, void *ret_msg, size_t size, int flags, int *ret_fd)
{
	union control control = {.room = {0}};
	struct iovec iov = {.iov_base = ret_msg, .iov_len = size};
	struct msghdr head = {.msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      /* less than sizeof(control), which could hold two */
			      .msg_controllen = CMSG_LEN(sizeof(int))};
	ssize_t n = recvmsg(from, &head, flags | MSG_CMSG_CLOEXEC);
	int fd;

	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	fd = fd_of(&head);
	if (!n || (size_t)n != size || head.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) {
		fd__close(&fd);
		return n ? -EBADMSG : -EPIPE;
	}
	*ret_fd = fd;
	return 0;
}

int pass__write(int fd, const void *bytes, size_t len)
{
	const char *at = bytes;

	while (len) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

int pass__memory(const char *name, int *ret_fd)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

int pass__seal(int fd)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;

	return fcntl(fd, F_ADD_SEALS, seals) ? -errno : 0;
}
