/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The foreign functions of Nest.hs. Each counts and times itself. */
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include "tally.h"

typedef void (*nest_callback)(int);

/* Made by GHC from the foreign export. */
extern void nestStep(int n);

enum {
	DOWN,
	DOWN_EXPORT,
	BOTTOM,
	JUMP,
	CALL_BACK,
	FOREIGN,
	EXIT,
	BOUND,
	INTERRUPTIBLE,
	LOOP,
	N_TALLIES
};

static struct tally tallies[N_TALLIES] = {
	[DOWN] = {.name = "nest_down"},
	[DOWN_EXPORT] = {.name = "nest_down_export"},
	[BOTTOM] = {.name = "nest_bottom_1ms"},
	[JUMP] = {.name = "nest_jump_1ms"},
	[CALL_BACK] = {.name = "nest_call_back"},
	[FOREIGN] = {.name = "nest_foreign_thread"},
	[EXIT] = {.name = "nest_exit_thread"},
	[BOUND] = {.name = "nest_bound_100us"},
	[INTERRUPTIBLE] = {.name = "nest_interruptible_10s"},
	[LOOP] = {.name = "nest_loop"},
};

void nest_down(int n, nest_callback cb);
void nest_down(int n, nest_callback cb)
{
	struct tally_start s = tally__begin();

	tally__spin(20000);
	cb(n - 1);
	tally__end(&tallies[DOWN], s);
}

void nest_down_export(int n);
void nest_down_export(int n)
{
	struct tally_start s = tally__begin();

	tally__spin(20000);
	nestStep(n - 1);
	tally__end(&tallies[DOWN_EXPORT], s);
}

void nest_bottom_1ms(void);
void nest_bottom_1ms(void)
{
	struct tally_start s = tally__begin();

	tally__spin(1000000);
	tally__end(&tallies[BOTTOM], s);
}

void nest_call_back(int n, nest_callback cb);
void nest_call_back(int n, nest_callback cb)
{
	struct tally_start s = tally__begin();

	cb(n);
	tally__end(&tallies[CALL_BACK], s);
}

static __attribute__((noinline, noreturn)) void jump_from_below(jmp_buf out, int n)
{
	if (n > 0)
		jump_from_below(out, n - 1);
	tally__spin(1000000);
	longjmp(out, 1);
}

void nest_jump_1ms(void);
void nest_jump_1ms(void)
{
	/* volatile: read after longjmp came back */
	volatile struct tally_start s = tally__begin();
	jmp_buf out;

	if (!setjmp(out))
		jump_from_below(out, 5);
	tally__end(&tallies[JUMP], (struct tally_start){s.wall_ns, s.cpu_ns});
}

struct foreign_thread {
	nest_callback cb;
	int n;
};

static void *foreign_thread__run(void *arg)
{
	struct foreign_thread *t = arg;

	t->cb(t->n);
	return NULL;
}

void nest_foreign_thread(int n, nest_callback cb);
void nest_foreign_thread(int n, nest_callback cb)
{
	struct tally_start s = tally__begin();
	struct foreign_thread t = {.cb = cb, .n = n};
	pthread_t thread;

	if (pthread_create(&thread, NULL, foreign_thread__run, &t))
		abort();
	pthread_join(thread, NULL);
	tally__end(&tallies[FOREIGN], s);
}

void nest_exit_thread(void);
void nest_exit_thread(void)
{
	struct tally_start s = tally__begin();

	tally__spin(1000000);
	tally__end(&tallies[EXIT], s);
	pthread_exit(NULL);
}

void nest_bound_100us(void);
void nest_bound_100us(void)
{
	struct tally_start s = tally__begin();

	tally__spin(100000);
	tally__end(&tallies[BOUND], s);
}

/* Returns as soon as a signal interrupts it, which is how GHC ends an interruptible call. */
void nest_interruptible_10s(void);
void nest_interruptible_10s(void)
{
	struct tally_start s = tally__begin();
	struct timespec ts = {.tv_sec = 10};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
	tally__end(&tallies[INTERRUPTIBLE], s);
}

void nest_loop(int n, nest_callback cb);
void nest_loop(int n, nest_callback cb)
{
	struct tally_start s = tally__begin();
	struct timespec ts = {.tv_nsec = 50000000};

	for (; n > 0; n--) {
		clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
		cb(n);
	}
	tally__end(&tallies[LOOP], s);
}

void nest_print(void);
void nest_print(void)
{
	tally__print(tallies, N_TALLIES);
}
