/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads another process's memory. */
#include "mem.h"

#include <errno.h>
#include <sys/uio.h>

int mem__read(pid_t pid, uint64_t addr, void *buf, size_t len)
{
	struct iovec local = {.iov_base = buf, .iov_len = len};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)addr, .iov_len = len};
	ssize_t got;

	if (addr + len < addr)
		return -EFAULT;
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
