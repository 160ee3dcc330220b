/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The foreign functions of Faulty.hs, and what they measure. */
#include <sys/syscall.h>
#include <unistd.h>

#include "tally.h"

#define QUERIERS 16

static uint64_t locks, queries, queried_ns, longest_ns, longest_at_ns; /* the latter: since 1970 */
static long queriers[QUERIERS];
static unsigned n_queriers;

/* Sleeps for so many ms with its capability in hand. */
void faulty_take_lock(int ms);
void faulty_take_lock(int ms)
{
	uint64_t at = tally__clock(CLOCK_REALTIME), start = tally__clock(CLOCK_MONOTONIC), ns;

	tally__sleep((uint64_t)ms * 1000000);
	ns = tally__clock(CLOCK_MONOTONIC) - start;
	locks++;
	if (ns > longest_ns) {
		longest_ns = ns;
		longest_at_ns = at;
	}
}

/* By one Haskell thread only, which may be run by several OS threads. */
void faulty_query(int ms);
void faulty_query(int ms)
{
	uint64_t start = tally__clock(CLOCK_MONOTONIC);
	long tid = syscall(SYS_gettid);
	unsigned i = 0;

	while (i < n_queriers && queriers[i] != tid)
		i++;
	if (i == n_queriers && i < QUERIERS)
		queriers[n_queriers++] = tid;
	tally__sleep((uint64_t)ms * 1000000);
	queries++;
	queried_ns += tally__clock(CLOCK_MONOTONIC) - start;
}

void faulty_print(void);
void faulty_print(void)
{
	printf("{\"locks\": %llu, \"queries\": %llu, \"queried_ns\": %llu, \"longest_ns\": %llu, "
	       "\"longest_at_ns\": %llu, \"queriers\": [",
	       (unsigned long long)locks, (unsigned long long)queries,
	       (unsigned long long)queried_ns, (unsigned long long)longest_ns,
	       (unsigned long long)longest_at_ns);
	for (unsigned i = 0; i < n_queriers; i++)
		printf("%s%ld", i ? ", " : "", queriers[i]);
	printf("]}\n");
	fflush(stdout);
}
