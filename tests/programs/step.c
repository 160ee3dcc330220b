/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The safe call of Step.hs: sleeps until the monotonic clock reaches the next multiple of `every`
 * ns.
 */
#include <time.h>

void step_wait(long every)
{
	struct timespec t;
	long long ns;

	clock_gettime(CLOCK_MONOTONIC, &t);
	ns = t.tv_sec * 1000000000LL + t.tv_nsec;
	ns += every - ns % every;
	t.tv_sec = ns / 1000000000;
	t.tv_nsec = ns % 1000000000;
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0);
}
