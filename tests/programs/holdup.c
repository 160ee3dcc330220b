/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The foreign functions of Holdup.hs, and what they measure. */
#include "tally.h"

/* The allocating thread stands still for less than this when nobody holds anything up. */
#define STANDSTILL_NS 20000000

static struct {
	uint64_t start, end;
} holds[64];
static unsigned n_holds, n_waited;
static uint64_t last_tick, held_ns, waited_ns;

/* Sleeps for so many ms with its capability in hand. */
void holdup_take_lock(int ms);
void holdup_take_lock(int ms)
{
	unsigned i = n_holds % 64;

	__atomic_store_n(&holds[i].start, tally__clock(CLOCK_MONOTONIC), __ATOMIC_SEQ_CST);
	tally__sleep((uint64_t)ms * 1000000);
	holds[i].end = tally__clock(CLOCK_MONOTONIC);
	held_ns += holds[i].end - holds[i].start;
	__atomic_store_n(&n_holds, n_holds + 1, __ATOMIC_SEQ_CST);
}

/* The allocating thread is here again. Where it was away for long during a hold, it waited from
 * then, or from the hold's start, until the hold's end. */
void holdup_tick(void);
void holdup_tick(void)
{
	uint64_t now = tally__clock(CLOCK_MONOTONIC);
	unsigned n = __atomic_load_n(&n_holds, __ATOMIC_SEQ_CST);

	if (last_tick && now - last_tick > STANDSTILL_NS && n) {
		uint64_t start = holds[(n - 1) % 64].start, end = holds[(n - 1) % 64].end;

		start = start > last_tick ? start : last_tick;
		if (end > start) {
			waited_ns += end - start;
			n_waited++;
		}
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
	printf("{\"holds\": %u, \"held_ns\": %llu, \"waits\": %u, \"waited_ns\": %llu}\n", n_holds,
	       (unsigned long long)held_ns, n_waited, (unsigned long long)waited_ns);
	fflush(stdout);
}
