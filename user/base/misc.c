/* SPDX-License-Identifier: GPL-2.0-or-later */
/* misc: descriptors and clocks. */
#include <errno.h>
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

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts = {0};

	/* Cannot fail for these two clocks with a valid pointer. */
	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

uint64_t time__monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t time__realtime_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}
