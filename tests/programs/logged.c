/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The foreign side of Logged.hs: functions that sleep or spin for a known time. */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tally.h"

void logged_sleep(unsigned us)
{
	struct timespec ts = {.tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000};

	while (nanosleep(&ts, &ts))
		;
}

void logged_spin(unsigned us)
{
	uint64_t end = tally__clock(CLOCK_MONOTONIC) + (uint64_t)us * 1000;

	while (tally__clock(CLOCK_MONOTONIC) < end)
		;
}

long logged_tid(void)
{
	return syscall(SYS_gettid);
}
