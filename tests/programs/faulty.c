/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The foreign functions of Faulty.hs, and what they measure. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tally.h"

#define LOCKS	 16
#define QUERIERS 16

static struct {
	uint64_t at_ns, ns; /* since 1970 */
} locks[LOCKS];
static uint64_t queries, queried_ns;
static long queriers[QUERIERS];
static unsigned n_locks, n_queriers;

/* Sleeps for `ms` ms while it holds its capability. */
void faulty_take_lock(int ms);
void faulty_take_lock(int ms)
{
	uint64_t at = tally__clock(CLOCK_REALTIME), start = tally__clock(CLOCK_MONOTONIC), ns;

	tally__sleep((uint64_t)ms * 1000000);
	ns = tally__clock(CLOCK_MONOTONIC) - start;
	if (n_locks == LOCKS)
		abort();
	locks[n_locks].at_ns = at;
	locks[n_locks++].ns = ns;
}

/* Called by one Haskell thread only, which several OS threads may run. */
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

void faulty_print(int64_t allocated);
void faulty_print(int64_t allocated)
{
	printf("{\"allocated\": %lld, \"queries\": %llu, \"queried_ns\": %llu, \"locks\": [",
	       (long long)allocated, (unsigned long long)queries, (unsigned long long)queried_ns);
	for (unsigned i = 0; i < n_locks; i++)
		printf("%s[%llu, %llu]", i ? ", " : "", (unsigned long long)locks[i].at_ns,
		       (unsigned long long)locks[i].ns);
	printf("], \"queriers\": [");
	for (unsigned i = 0; i < n_queriers; i++)
		printf("%s%ld", i ? ", " : "", queriers[i]);
	printf("]}\n");
	fflush(stdout);
}
