/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A preloaded library of an ordinary user: where the program would sleep, it spins in a function of
 * any name. SYMBOL is the name.
 */
#include <stdint.h>
#include <time.h>

/* Defined by the test, but not by a linter. */
#ifndef SYMBOL
#define SYMBOL "hostile"
#endif

void hostile(const struct timespec *until) __asm__(SYMBOL);

__attribute__((noinline)) void hostile(const struct timespec *until)
{
	struct timespec now;

	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < until->tv_sec ||
		 (now.tv_sec == until->tv_sec && now.tv_nsec < until->tv_nsec));
	__asm__ volatile("" ::: "memory");
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *ask, struct timespec *left)
{
	struct timespec until;

	(void)clock;
	(void)flags;
	(void)left;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += ask->tv_nsec;
	until.tv_sec += ask->tv_sec + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	hostile(&until);
	return 0;
}
