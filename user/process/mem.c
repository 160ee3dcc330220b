/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads another process's memory. */
#include "mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

/* Process-wide: only in a guard's child, which reads a single other process. */
static struct {
	bool used;
	int fd;
} opened;

int mem__open(pid_t pid, int *ret_fd)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : errno == EACCES ? -EPERM : -errno;
	*ret_fd = fd;
	return 0;
}

void mem__use(int fd)
{
	opened.fd = fd;
	opened.used = true;
}

static int read_opened(uint64_t addr, void *buf, size_t len)
{
	ssize_t got;

	if (opened.fd < 0)
		return -ESRCH;
	got = addr > INT64_MAX ? -1 : pread(opened.fd, buf, len, (off_t)addr);
	/* the program has ended or called exec() */
	if (got == 0 && len)
		return -ESRCH;
	return got >= 0 && (size_t)got == len ? 0 : -EFAULT;
}

int mem__read(pid_t pid, uint64_t addr, void *buf, size_t len)
{
	struct iovec local = {.iov_base = buf, .iov_len = len};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)addr, .iov_len = len};
	ssize_t got;

	if (addr + len < addr)
		return -EFAULT;
	if (opened.used)
		return read_opened(addr, buf, len);
	got = process_vm_readv(pid, &local, 1, &remote, 1, 0);
	if (got < 0)
		return -errno;
	return (size_t)got == len ? 0 : -EFAULT;
}

int mem__read_u64(pid_t pid, uint64_t addr, uint64_t *ret_value)
{
	return mem__read(pid, addr, ret_value, sizeof(*ret_value));
}

int mem__read_u32(pid_t pid, uint64_t addr, uint32_t *ret_value)
{
	return mem__read(pid, addr, ret_value, sizeof(*ret_value));
}
