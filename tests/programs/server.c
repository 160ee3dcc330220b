/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The foreign functions of Server.hs. */
#include <semaphore.h>
#include "tally.h"

enum { WAIT, ANSWER, SPIN, N_TALLIES };

static struct tally tallies[N_TALLIES] = {
	[WAIT] = {.name = "server_wait_for_wake"},
	[ANSWER] = {.name = "server_answer_1ms"},
	[SPIN] = {.name = "server_spin"},
};

static sem_t wake;
static int parked, spinning, spun;

static __attribute__((constructor)) void server_init(void)
{
	sem_init(&wake, 0, 0);
}

void server_wait_for_wake(void);
void server_wait_for_wake(void)
{
	struct tally_start s = tally__begin();

	__atomic_fetch_add(&parked, 1, __ATOMIC_SEQ_CST);
	while (sem_wait(&wake))
		;
	tally__end(&tallies[WAIT], s);
}

void server_sleep_long(void);
void server_sleep_long(void)
{
	__atomic_fetch_add(&parked, 1, __ATOMIC_SEQ_CST);
	for (;;)
		tally__sleep(3600000000000u);
}

void server_answer_1ms(void);
void server_answer_1ms(void)
{
	struct tally_start s = tally__begin();

	tally__sleep(1000000);
	tally__end(&tallies[ANSWER], s);
}

void server_spin(void);
void server_spin(void)
{
	struct tally_start s = tally__begin();

	__atomic_store_n(&spinning, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&spun, __ATOMIC_SEQ_CST))
		;
	tally__end(&tallies[SPIN], s);
}

long server_spinning(void);
long server_spinning(void)
{
	return __atomic_load_n(&spinning, __ATOMIC_SEQ_CST);
}

void server_stop(void);
void server_stop(void)
{
	__atomic_store_n(&spun, 1, __ATOMIC_SEQ_CST);
}

void server_wake(void);
void server_wake(void)
{
	sem_post(&wake);
}

long server_parked(void);
long server_parked(void)
{
	return __atomic_load_n(&parked, __ATOMIC_SEQ_CST);
}

void server_print(void);
void server_print(void)
{
	tally__print(tallies, N_TALLIES);
}
