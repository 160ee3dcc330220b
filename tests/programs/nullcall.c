/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The foreign functions of NullCall.hs. */
#include "tally.h"

int null_call(int x);
int null_call(int x)
{
	return x;
}

uint64_t null_clock(void);
uint64_t null_clock(void)
{
	return tally__clock(CLOCK_PROCESS_CPUTIME_ID);
}
