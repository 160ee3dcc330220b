/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads another process's memory, in a child that can be killed. */
#include "mem.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"

#define GUARD_KILL_WAIT_MS 200

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

/* Waits for the child to end; -ETIMEDOUT. Without a pidfd, by asking again and again. */
static int wait_exit(pid_t child, int pidfd, int timeout_ms, int *ret_status)
{
	uint64_t deadline = time__monotonic_ns() + (uint64_t)MAX(timeout_ms, 0) * 1000000ULL;

	for (;;) {
		uint64_t now = time__monotonic_ns();
		pid_t got = waitpid(child, ret_status, WNOHANG);

		if (got == child)
			return 0;
		if (got < 0 && errno != EINTR)
			return -errno;
		if (now >= deadline)
			return -ETIMEDOUT;
		if (pidfd >= 0) {
			struct pollfd pfd = {.fd = pidfd, .events = POLLIN};

			poll(&pfd, 1, (int)((deadline - now) / 1000000ULL) + 1);
		} else {
			struct timespec ts = {.tv_nsec = 1000000};

			nanosleep(&ts, NULL);
		}
	}
}

static void child_main(pid_t parent, int (*fn)(void *ctx, void *out), void *ctx, void *out)
{
	struct sigaction dfl = {.sa_handler = SIG_DFL};
	sigset_t none;
	int err;

	/* The daemon's handlers are not for the child, and it must not outlive the daemon. */
	sigaction(SIGINT, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	sigaction(SIGTERM, &dfl, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	err = fn(ctx, out);
	/* the exit status has 8 bits; the result goes by the word after `out` */
	((volatile int *)out)[-2] = err;
	_exit(0);
}

int mem__guard(int timeout_ms, int (*fn)(void *ctx, void *out), void *ctx, size_t size,
	       void **ret_out)
{
	/* a head of 16 bytes keeps `out` aligned and takes fn's result */
	size_t total = size + 16;
	pid_t parent = getpid(), child;
	int pidfd, status = 0, err;
	char *base;

	if (total < size)
		return -EINVAL;
	base = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		return -errno;
	child = fork();
	if (child < 0) {
		err = -errno;
		munmap(base, total);
		return err;
	}
	if (child == 0)
		child_main(parent, fn, ctx, base + 16);

	pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	err = wait_exit(child, pidfd, timeout_ms, &status);
	if (err == -ETIMEDOUT) {
		kill(child, SIGKILL);
		/*
		 * In the worst case the kernel holds it in an unkillable wait. It then stays as a
		 * child of ours, and dies when the wait ends: better than to wait with it.
		 */
		if (wait_exit(child, pidfd, GUARD_KILL_WAIT_MS, &status) < 0)
			log_warn("helper process %d: cannot be killed while it reads memory",
				 child);
		err = -ETIMEDOUT;
	} else if (err == 0) {
		err = WIFEXITED(status) && WEXITSTATUS(status) == 0 ? ((int *)(base + 16))[-2]
								    : -EIO;
	}
	fd__close(&pidfd);
	if (err < 0) {
		munmap(base, total);
		return err;
	}
	*ret_out = base + 16;
	return 0;
}

void mem__guard_free(void *out, size_t size)
{
	if (out)
		munmap((char *)out - 16, size + 16);
}
