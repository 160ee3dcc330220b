/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The foreign functions of Lanes.hs. */
#define _GNU_SOURCE /* pthread_setname_np() */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "tally.h"

enum { TOGETHER, CALL_IN, PAUSE, N_TALLIES };

static struct tally tallies[N_TALLIES] = {
	[TOGETHER] = {.name = "lanes_together"},
	[CALL_IN] = {.name = "lanes_call_in"},
	[PAUSE] = {.name = "lanes_pause"},
};

/* Sleeps until the next whole multiple of a time, so that all callers return together. */
void lanes_together(int ms);
void lanes_together(int ms)
{
	struct tally_start s = tally__begin();
	uint64_t step = (uint64_t)ms * 1000000, at = (s.wall_ns / step + 1) * step;
	struct timespec ts = {.tv_sec = (time_t)(at / 1000000000),
			      .tv_nsec = (long)(at % 1000000000)};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
	tally__end(&tallies[TOGETHER], s);
}

/* Called unsafely, it keeps the caller's capability. */
void lanes_spin(int ms);
void lanes_spin(int ms)
{
	tally__spin((uint64_t)ms * 1000000);
}

void lanes_pause(int ms);
void lanes_pause(int ms)
{
	struct tally_start s = tally__begin();

	tally__sleep((uint64_t)ms * 1000000);
	tally__end(&tallies[PAUSE], s);
}

extern int lanesBack(int n); /* Lanes.hs */

struct caller {
	pthread_t thread;
	int no, n;
};

static void *call_in(void *arg)
{
	const struct caller *c = arg;
	char name[16];

	/* until then it has its parent's name, as most threads of C libraries */
	snprintf(name, sizeof(name), "caller %d", c->no);
	pthread_setname_np(pthread_self(), name);
	for (int i = 0; i < c->n; i++) {
		struct tally_start s = tally__begin();

		lanesBack(i);
		tally__end(&tallies[CALL_IN], s);
		tally__sleep(1000000);
	}
	return NULL;
}

/* Two C threads that call Haskell n times each. */
void lanes_call_in(int n);
void lanes_call_in(int n)
{
	struct caller c[2] = {{.no = 1, .n = n}, {.no = 2, .n = n}};

	for (int i = 0; i < 2; i++)
		if (pthread_create(&c[i].thread, NULL, call_in, &c[i]))
			abort();
	for (int i = 0; i < 2; i++)
		pthread_join(c[i].thread, NULL);
}

void lanes_print(void);
void lanes_print(void)
{
	tally__print(tallies, N_TALLIES);
}
