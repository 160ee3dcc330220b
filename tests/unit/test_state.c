/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which threads a summary counts as the program's own work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "picture/make.h"
#include "picture/picture.h"

#define MS 1000000ULL

static struct pic_lane judged(uint64_t cpu_ms, uint64_t idle_ms, uint64_t preempted_ms,
			      uint64_t managed_ms)
{
	struct pic_lane lane = {.end_ns = (cpu_ms + idle_ms + preempted_ms) * MS,
				.cpu_ns = cpu_ms * MS};

	lane.states_ns[ST_HASKELL] = cpu_ms * MS;
	lane.states_ns[ST_IDLE] = idle_ms * MS;
	lane.states_ns[ST_PREEMPTED] = preempted_ms * MS;
	lane__judge(&lane, managed_ms * MS);
	return lane;
}

/* A worker that mostly waits for events on behalf of others, but does half of the work as well. */
static void busy_manager(void **state)
{
	(void)state;
	assert_false(judged(1670, 2250, 80, 2200).asleep);
	assert_false(judged(1670, 2250, 80, 2200).housekeeping);
	assert_true(judged(40, 3900, 60, 3800).housekeeping);
}

/* A ticker thread is still recognised if it waits longer for its CPU than for its ticks. */
static void preempted_ticker(void **state)
{
	(void)state;
	assert_true(judged(30, 8600, 13000, 8500).housekeeping);
	/* a thread that manages nothing and gets no CPU is starved */
	assert_false(judged(30, 8600, 13000, 0).asleep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(busy_manager),
		cmocka_unit_test(preempted_ticker),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
