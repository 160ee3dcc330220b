/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The foreign functions of Calls.hs: each spins or sleeps, and times itself. */
#include "tally.h"

enum {
	SPIN_5US,
	SPIN_20US,
	SPIN_100US,
	SPIN_1MS,
	SPIN_5MS,
	SLEEP_5US,
	SLEEP_20US,
	SLEEP_100US,
	SLEEP_1MS,
	SLEEP_20MS,
	HALF_2MS,
	INTERRUPTIBLE_1MS,
	UNSAFE_SPIN_20US,
	UNSAFE_SPIN_1MS,
	UNSAFE_SLEEP_1MS,
	N_TALLIES
};

static struct tally tallies[N_TALLIES] = {
	[SPIN_5US] = {.name = "safe_spin_5us"},
	[SPIN_20US] = {.name = "safe_spin_20us"},
	[SPIN_100US] = {.name = "safe_spin_100us"},
	[SPIN_1MS] = {.name = "safe_spin_1ms"},
	[SPIN_5MS] = {.name = "safe_spin_5ms"},
	[SLEEP_5US] = {.name = "safe_sleep_5us"},
	[SLEEP_20US] = {.name = "safe_sleep_20us"},
	[SLEEP_100US] = {.name = "safe_sleep_100us"},
	[SLEEP_1MS] = {.name = "safe_sleep_1ms"},
	[SLEEP_20MS] = {.name = "safe_sleep_20ms"},
	[HALF_2MS] = {.name = "safe_half_2ms"},
	[INTERRUPTIBLE_1MS] = {.name = "interruptible_sleep_1ms"},
	[UNSAFE_SPIN_20US] = {.name = "unsafe_spin_20us"},
	[UNSAFE_SPIN_1MS] = {.name = "unsafe_spin_1ms"},
	[UNSAFE_SLEEP_1MS] = {.name = "unsafe_sleep_1ms"},
};

static inline __attribute__((always_inline)) void timed_spin(unsigned which, uint64_t ns)
{
	struct tally_start s = tally__begin();

	tally__spin(ns);
	tally__end(&tallies[which], s);
}

static inline __attribute__((always_inline)) void timed_sleep(unsigned which, uint64_t ns)
{
	struct tally_start s = tally__begin();

	tally__sleep(ns);
	tally__end(&tallies[which], s);
}

void safe_spin_5us(void);
void safe_spin_5us(void)
{
	timed_spin(SPIN_5US, 5000);
}

void safe_spin_20us(void);
void safe_spin_20us(void)
{
	timed_spin(SPIN_20US, 20000);
}

void safe_spin_100us(void);
void safe_spin_100us(void)
{
	timed_spin(SPIN_100US, 100000);
}

void safe_spin_1ms(void);
void safe_spin_1ms(void)
{
	timed_spin(SPIN_1MS, 1000000);
}

void safe_spin_5ms(void);
void safe_spin_5ms(void)
{
	timed_spin(SPIN_5MS, 5000000);
}

void safe_sleep_5us(void);
void safe_sleep_5us(void)
{
	timed_sleep(SLEEP_5US, 5000);
}

void safe_sleep_20us(void);
void safe_sleep_20us(void)
{
	timed_sleep(SLEEP_20US, 20000);
}

void safe_sleep_100us(void);
void safe_sleep_100us(void)
{
	timed_sleep(SLEEP_100US, 100000);
}

void safe_sleep_1ms(void);
void safe_sleep_1ms(void)
{
	timed_sleep(SLEEP_1MS, 1000000);
}

void safe_sleep_20ms(void);
void safe_sleep_20ms(void)
{
	timed_sleep(SLEEP_20MS, 20000000);
}

/* Half on the CPU, half asleep: wrong in a sampler that takes wall time for CPU time. */
void safe_half_2ms(void);
void safe_half_2ms(void)
{
	struct tally_start s = tally__begin();

	tally__spin(1000000);
	tally__sleep(1000000);
	tally__end(&tallies[HALF_2MS], s);
}

void interruptible_sleep_1ms(void);
void interruptible_sleep_1ms(void)
{
	timed_sleep(INTERRUPTIBLE_1MS, 1000000);
}

void unsafe_spin_20us(void);
void unsafe_spin_20us(void)
{
	timed_spin(UNSAFE_SPIN_20US, 20000);
}

void unsafe_spin_1ms(void);
void unsafe_spin_1ms(void)
{
	timed_spin(UNSAFE_SPIN_1MS, 1000000);
}

void unsafe_sleep_1ms(void);
void unsafe_sleep_1ms(void)
{
	timed_sleep(UNSAFE_SLEEP_1MS, 1000000);
}

uint64_t calls_clock(void);
uint64_t calls_clock(void)
{
	return tally__clock(CLOCK_MONOTONIC);
}

void calls_outer(int which, uint64_t ns);
void calls_outer(int which, uint64_t ns)
{
	if (which >= 0 && which < N_TALLIES)
		__atomic_fetch_add(&tallies[which].outer_ns, ns, __ATOMIC_RELAXED);
}

void calls_print(void);
void calls_print(void)
{
	tally__print(tallies, N_TALLIES);
}
