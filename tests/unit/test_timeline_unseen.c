/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Switches that the kernel did not report: a thread that slept is not taken to have run. */
#include "test_timeline_kit.h"

/*
 * Threads that the first snapshot found asleep, and that come back without a switch-in: the first
 * record is a sample, or a switch-out. The last one came back as the session began.
 */
static void test_unseen_switch_in(void **state)
{
	const struct timeline_opts opts = {.frequency_hz = 100000}; /* every 10 µs */
	struct snap_thread snaps[3] = {kit_snap(7, WIRE_WHERE_NO_CAP, 'S'),
				       kit_snap(8, WIRE_WHERE_NO_CAP, 'S'),
				       kit_snap(9, WIRE_WHERE_NO_CAP, 'S')};
	struct kit kit;
	const struct pic_target *t;
	union rec r;

	(void)state;
	kit_new_opts(&kit, &opts);
	put_snap(&kit, snaps, 3, false);
	put(&kit, mk_sample(&r, 9, T0 + 20000, WIRE_WHERE_HASKELL, HS(1), STOP));
	put(&kit, mk_off(&r, 9, T0 + 25000, 0, T0 + 600000, WIRE_WHERE_NO_CAP, STOP));
	put(&kit, mk_sample(&r, 7, T0 + 500000, WIRE_WHERE_HASKELL, HS(1), STOP));
	put(&kit, mk_off(&r, 7, T0 + 501000, 0, T0 + 600000, WIRE_WHERE_NO_CAP, STOP));
	put(&kit, mk_off(&r, 8, T0 + 400000, 0, T0 + 600000, WIRE_WHERE_NO_CAP, STOP));
	for (pid_t tid = 7; tid < 10; tid++)
		put(&kit, mk_event(&r, WIRE_THREAD_EXIT, tid, T0 + 600000));
	t = finish(&kit);
	assert_int_equal(lane_of(t, 7)->cpu_ns, 6000);
	assert_int_equal(lane_of(t, 7)->states_ns[ST_IDLE], 594000);
	assert_int_equal(lane_of(t, 8)->cpu_ns, 0);
	assert_int_equal(lane_of(t, 8)->states_ns[ST_IDLE], 600000);
	assert_int_equal(lane_of(t, 9)->cpu_ns, 25000);
	timeline__free(kit.tl);
}

/* The kernel's entry has the thread on the CPU, but it is asleep, and was not sampled for long. */
static void test_unseen_switch_out(void **state)
{
	const struct timeline_opts opts = {.frequency_hz = 100000};
	struct snap_thread snaps[2] = {kit_snap(7, WIRE_WHERE_NO_CAP, 'S'),
				       kit_snap(8, WIRE_WHERE_NO_CAP, 'R')};
	struct wire_thread on = {.tgid = PID, .on_since_ns = T0 + 300000};
	struct kit kit;
	const struct pic_target *t;
	union rec r;

	(void)state;
	kit_new_opts(&kit, &opts);
	put_snap(&kit, snaps, 2, false);
	for (pid_t tid = 7; tid < 9; tid++) {
		put(&kit, mk_off(&r, tid, 0, 0, T0 + 300000, WIRE_WHERE_NO_CAP, STOP));
		put(&kit, mk_sample(&r, tid, T0 + 310000, WIRE_WHERE_HASKELL, HS(1), STOP));
		assert_int_equal(intake__thread_state(kit.in, tid, &on), 0);
	}
	put_snap(&kit, snaps, 2, true);
	t = finish(&kit);
	assert_int_equal(lane_of(t, 7)->cpu_ns, 10000);
	assert_int_equal(lane_of(t, 7)->states_ns[ST_IDLE], END - T0 - 10000);
	assert_int_equal(lane_of(t, 8)->cpu_ns, END - T0 - 300000);
	timeline__free(kit.tl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unseen_switch_in),
		cmocka_unit_test(test_unseen_switch_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
