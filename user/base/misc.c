/* SPDX-License-Identifier: GPL-2.0-or-later */
/* misc: descriptors, clocks, and resource usage of this process. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base.h"

void fd__close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	errno = saved;
}

int fd__open_regular(const char *path, int *ret_fd)
{
	/* O_PATH first: it opens no device, and waits for no writer of a FIFO */
	int at = open(path, O_PATH | O_CLOEXEC), fd = -1, err = 0;
	char again[32];
	struct stat st;

	if (at < 0)
		return -errno;
	if (fstat(at, &st) < 0 || !S_ISREG(st.st_mode)) {
		err = -EINVAL;
	} else {
		snprintf(again, sizeof(again), "/proc/self/fd/%d", at);
		fd = open(again, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		err = fd < 0 ? -errno : 0;
	}
	fd__close(&at);
	if (!err)
		*ret_fd = fd;
	return err;
}

int fd__open_own(const char *path, uid_t user, int *ret_fd)
{
	int fd = -1, err = fd__open_regular(path, &fd);
	struct stat st;

	if (err)
		return err;
	if (fstat(fd, &st))
		err = -errno;
	else if ((st.st_uid != 0 && st.st_uid != geteuid() && st.st_uid != user) ||
		 (st.st_mode & (S_IWGRP | S_IWOTH)))
		err = -EPERM;
	if (err)
		fd__close(&fd);
	else
		*ret_fd = fd;
	return err;
}

/* Global, since the limit belongs to the process. */
static struct rlimit fd_limit_before;
static bool fd_limit_raised;

void fd__raise_limit(void)
{
	struct rlimit limit;

	if (fd_limit_raised || getrlimit(RLIMIT_NOFILE, &fd_limit_before))
		return;
	limit = fd_limit_before;
	limit.rlim_cur = limit.rlim_max;
	fd_limit_raised = setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

void fd__restore_limit(void)
{
	if (fd_limit_raised)
		setrlimit(RLIMIT_NOFILE, &fd_limit_before);
}

uint64_t fd__limit(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) ? 0 : limit.rlim_cur;
}

bool fd__has_room(unsigned n)
{
	int fds[FD_ROOM_MAX], fd;
	unsigned got = 0;
	bool room;

	n = MIN(n, FD_ROOM_MAX);
	while (got < n) {
		fd = got ? fcntl(fds[0], F_DUPFD_CLOEXEC, 0) : open("/", O_PATH | O_CLOEXEC);
		if (fd < 0)
			break;
		fds[got++] = fd;
	}
	room = got == n;
	while (got)
		close(fds[--got]);
	return room;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts = {0};

	/* Cannot fail for these clocks with a valid pointer. */
	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

uint64_t time__cpu_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t time__monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t time__realtime_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

uint64_t time__suspended_ns(void)
{
	/* in this order, so that a delay between the two makes the result longer, not shorter */
	uint64_t monotonic = clock_ns(CLOCK_MONOTONIC);

	return clock_ns(CLOCK_BOOTTIME) - monotonic;
}

uint64_t time__of_boottime_ns(uint64_t boottime_ns)
{
	uint64_t suspended = time__suspended_ns();

	return boottime_ns > suspended ? boottime_ns - suspended : 0;
}

#define BOTH_WITHIN_NS 1000000ULL
#define BOTH_TRIES     5

int time__both_ns(uint64_t *ret_monotonic_ns, uint64_t *ret_realtime_ns)
{
	for (int i = 0; i < BOTH_TRIES; i++) {
		uint64_t before = clock_ns(CLOCK_MONOTONIC), realtime = clock_ns(CLOCK_REALTIME);
		uint64_t took = clock_ns(CLOCK_MONOTONIC) - before;

		if (took > BOTH_WITHIN_NS)
			continue;
		*ret_monotonic_ns = before + took / 2;
		*ret_realtime_ns = realtime;
		return 0;
	}
	return -EAGAIN;
}

uint64_t usage__cpu_ns(const struct rusage *usage)
{
	return (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000000ULL +
	       (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1000ULL;
}

void usage__own(uint64_t *ret_cpu_ns, uint64_t *ret_max_rss_bytes)
{
	struct rusage self = {};

	getrusage(RUSAGE_SELF, &self);
	*ret_cpu_ns = usage__cpu_ns(&self);
	*ret_max_rss_bytes = (uint64_t)self.ru_maxrss * 1024;
}

uint64_t usage__children_cpu_ns(void)
{
	struct rusage children = {};

	getrusage(RUSAGE_CHILDREN, &children);
	return usage__cpu_ns(&children);
}

uint64_t usage__children_max_rss_bytes(void)
{
	struct rusage usage;

	/* ru_maxrss is that of the largest child */
	return getrusage(RUSAGE_CHILDREN, &usage) ? 0 : (uint64_t)usage.ru_maxrss * 1024;
}

unsigned int machine__slowness(void)
{
	const char *text = getenv("SAFESCOPED_SLOWNESS");
	unsigned long n = text ? strtoul(text, NULL, 10) : 1;

	return (unsigned int)MIN(MAX(n, 1UL), 100UL);
}
