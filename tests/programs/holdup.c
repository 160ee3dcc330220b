/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The foreign functions of Holdup.hs, and what they measure. */
#include "tally.h"

/* While nobody holds anything up, the allocating thread stands still for less than this. */
#define STANDSTILL_NS 20000000

static struct span {
	uint64_t start, end;
} holds[64], gaps[64];
static unsigned n_holds, n_gaps;
static uint64_t last_tick, held_ns, begin_cpu_ns, held_cpu_ns;

void holdup_begin(void);
void holdup_begin(void)
{
	__atomic_store_n(&holds[n_holds % 64].start, tally__clock(CLOCK_MONOTONIC),
			 __ATOMIC_SEQ_CST);
	begin_cpu_ns = tally__clock(CLOCK_THREAD_CPUTIME_ID);
}

void holdup_end(void);
void holdup_end(void)
{
	unsigned i = n_holds % 64;

	held_cpu_ns += tally__clock(CLOCK_THREAD_CPUTIME_ID) - begin_cpu_ns;
	holds[i].end = tally__clock(CLOCK_MONOTONIC);
	held_ns += holds[i].end - holds[i].start;
	__atomic_store_n(&n_holds, n_holds + 1, __ATOMIC_SEQ_CST);
}

/* Sleeps for `ms` ms while it holds its capability. */
void holdup_take_lock(int ms);
void holdup_take_lock(int ms)
{
	holdup_begin();
	tally__sleep((uint64_t)ms * 1000000);
	holdup_end();
}

/* Called by the allocating thread whenever it runs. */
void holdup_tick(void);
void holdup_tick(void)
{
	uint64_t now = tally__clock(CLOCK_MONOTONIC);

	if (last_tick && now - last_tick > STANDSTILL_NS && n_gaps < 64) {
		gaps[n_gaps].start = last_tick;
		gaps[n_gaps++].end = now;
	}
	last_tick = now;
}

int holdup_checksum(int seed);
int holdup_checksum(int seed)
{
	for (int i = 0; i < 1000; i++)
		seed = seed * 31 + i;
	return seed;
}

int holdup_query(int ms);
int holdup_query(int ms)
{
	tally__sleep((uint64_t)ms * 1000000);
	return ms;
}

void holdup_print(void);
void holdup_print(void)
{
	unsigned n_waited = 0;
	uint64_t waited_ns = 0;

	/*
	 * the standstill that ended with the hold was the wait for it; during others the machine
	 * was busy
	 */
	for (unsigned g = 0; g < n_gaps; g++)
		for (unsigned h = 0; h < n_holds && h < 64; h++) {
			uint64_t start =
				gaps[g].start > holds[h].start ? gaps[g].start : holds[h].start;
			uint64_t end = holds[h].end;

			if (gaps[g].end >= end && end > start + STANDSTILL_NS) {
				waited_ns += end - start;
				n_waited++;
			}
		}
	printf("{\"holds\": %u, \"held_ns\": %llu, \"held_cpu_ns\": %llu, \"waits\": %u, "
	       "\"waited_ns\": %llu}\n",
	       n_holds, (unsigned long long)held_ns, (unsigned long long)held_cpu_ns, n_waited,
	       (unsigned long long)waited_ns);
	fflush(stdout);
}
