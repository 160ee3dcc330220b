/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a test program knows about its own foreign functions: how often each was called, and the
 * wall and thread CPU time that it took by the kernel's clocks. The live tests compare safescoped's
 * figures with these.
 */
#ifndef TALLY_H
#define TALLY_H

#include <stdint.h>
#include <stdio.h>
#include <time.h>

struct tally {
	const char *name;
	uint64_t calls;
	uint64_t wall_ns;
	uint64_t cpu_ns;
	uint64_t outer_ns; /* by the caller's clock, around the whole call; 0: not measured */
};

struct tally_start {
	uint64_t wall_ns;
	uint64_t cpu_ns;
};

static inline uint64_t tally__clock(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline struct tally_start tally__begin(void)
{
	struct tally_start s;

	s.wall_ns = tally__clock(CLOCK_MONOTONIC);
	s.cpu_ns = tally__clock(CLOCK_THREAD_CPUTIME_ID);
	return s;
}

static inline void tally__end(struct tally *t, struct tally_start s)
{
	uint64_t cpu_ns = tally__clock(CLOCK_THREAD_CPUTIME_ID) - s.cpu_ns;
	uint64_t wall_ns = tally__clock(CLOCK_MONOTONIC) - s.wall_ns;

	__atomic_fetch_add(&t->calls, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&t->wall_ns, wall_ns, __ATOMIC_RELAXED);
	__atomic_fetch_add(&t->cpu_ns, cpu_ns, __ATOMIC_RELAXED);
}

/*
 * Prints one line of JSON: {"NAME": {"calls": …, "wall_ns": …, "cpu_ns": …, "outer_ns": …}, …};
 * functions that were never called are left out.
 */
static inline void tally__print(const struct tally *t, unsigned n)
{
	const char *comma = "";

	printf("{");
	for (unsigned i = 0; i < n; i++) {
		if (!t[i].calls)
			continue;
		printf("%s\"%s\": {\"calls\": %llu, \"wall_ns\": %llu, \"cpu_ns\": %llu, "
		       "\"outer_ns\": %llu}",
		       comma, t[i].name, (unsigned long long)t[i].calls,
		       (unsigned long long)t[i].wall_ns, (unsigned long long)t[i].cpu_ns,
		       (unsigned long long)t[i].outer_ns);
		comma = ", ";
	}
	printf("}\n");
	fflush(stdout);
}

static inline void tally__spin(uint64_t ns)
{
	uint64_t end = tally__clock(CLOCK_MONOTONIC) + ns;

	while (tally__clock(CLOCK_MONOTONIC) < end)
		;
}

/* Sleeps for the whole time, even if the RTS timer's signal interrupts it. */
static inline void tally__sleep(uint64_t ns)
{
	struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000u),
			      .tv_nsec = (long)(ns % 1000000000u)};

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &ts) != 0)
		;
}

#endif
