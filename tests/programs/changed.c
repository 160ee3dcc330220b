/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The safe call of Changed.hs: sleeps for the given time. */
#include <time.h>

void changed_fetch(int us)
{
	const struct timespec t = {.tv_nsec = us * 1000L};

	nanosleep(&t, 0);
}
