/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Safe calls in a picture: their hand-over, and what is known of them after a pause of the probes.
 */
#include "test_timeline_kit.h"

/* In suspendThread: its waits are the runtime's, and its function has not begun. */
static void test_handover(void **state)
{
	const struct tl_target *t;
	const struct tl_lane *lane;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	mk_off(&r, 7, T0 + 11000, T0 + 13000, T0 + 14000, WIRE_WHERE_SAFE_CALL, CIP(RTS(1)),
	       CALLED(HS(2)), STOP);
	r.off.rts.flags = WIRE_RTS_SUSPENDING;
	r.off.site = SITE(1);
	r.off.call_start_ns = T0 + 10000;
	put(&kit, &r);
	mk_off(&r, 7, T0 + 20000, T0 + 60000, T0 + 61000, WIRE_WHERE_SAFE_CALL, STOP);
	r.off.site = SITE(1);
	r.off.call_start_ns = T0 + 10000;
	put(&kit, &r);
	put(&kit, mk_call(&r, 7, T0 + 10000, T0 + 70000, SITE(1), RET(HS(2)), STOP));
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 90000));
	t = finish(&kit);
	lane = lane_of(t, 7);
	check_stretch(kit.tl, lane, 1, T0 + 10000, T0 + 11000, ST_SAFE_CALL_CPU, "Main.h2;c1");
	check_stretch(kit.tl, lane, 2, T0 + 11000, T0 + 13000, ST_RTS_BLOCKED,
		      "Main.h2;[RTS];r1;[RTS, blocked]");
	check_stretch(kit.tl, lane, 3, T0 + 13000, T0 + 14000, ST_PREEMPTED,
		      "Main.h2;[RTS];r1;[preempted]");
	check_stretch(kit.tl, lane, 4, T0 + 14000, T0 + 20000, ST_SAFE_CALL_CPU, "Main.h2;c1");
	assert_int_equal(lane->states_ns[ST_SAFE_CALL_BLOCKED], 40000);
	timeline__free(kit.tl);
}

/*
 * A call open at the attach, whose thread has run while no probe was on: nothing says that it was
 * the same call afterwards, but what a snapshot at the end finds.
 */
static void paused(bool at_end, bool asleep, uint64_t want_open, uint64_t want_wall)
{
	struct snap_thread snap = kit_snap(7, WIRE_WHERE_SAFE_CALL, 'S');
	struct wire_thread final = {.tgid = PID, .on_since_ns = T0 + 50000, .off_state = 1};
	const struct tl_target *t;
	struct kit kit;
	union rec r;

	kit_new(&kit);
	snap.site = SITE(1);
	put_snap(&kit, &snap, 1, false);
	for (uint64_t at = T0; at < T0 + 50000; at += 10000) {
		mk_off(&r, 7, at, at + 4000, at + 4000, WIRE_WHERE_SAFE_CALL, STOP);
		if (at > T0)
			r.off.rts.flags = WIRE_RTS_CALLS_UNKNOWN;
		put(&kit, &r);
	}
	if (asleep) {
		final.off_since_ns = T0 + 60000;
		final.off_rts.where = WIRE_WHERE_SAFE_CALL;
		final.off_rts.flags = WIRE_RTS_CALLS_UNKNOWN;
	}
	assert_int_equal(timeline__thread_state(kit.tl, 7, &final), 0);
	if (at_end)
		put_snap(&kit, &snap, 1, true);
	t = finish(&kit);
	check_lane(kit.tl, lane_of(t, 7));
	assert_int_equal(t->n_calls, 1);
	assert_int_equal(t->calls[0].open_at_start, 1);
	assert_int_equal(t->calls[0].open_at_end, want_open);
	assert_int_equal(t->calls[0].open_wall_ns, want_wall);
	timeline__free(kit.tl);
}

static void test_paused(void **state)
{
	(void)state;
	paused(false, false, 0, 0);
	paused(true, false, 1, 0);
	/* it has slept in it since then, if not for longer */
	paused(true, true, 1, END - T0 - 60000);
}

/* Where the kernel has seen all calls of a thread, the last snapshot is no evidence against it. */
static void test_known_at_end(void **state)
{
	struct snap_thread snap = kit_snap(7, WIRE_WHERE_SAFE_CALL, 'S');
	struct wire_thread final = {.tgid = PID, .on_since_ns = T0 + 50000};

	(void)state;
	for (uint32_t epoch = 0; epoch < 2; epoch++) {
		const struct tl_target *t;
		struct kit kit;
		union rec r;

		kit_new(&kit);
		snap.site = SITE(1);
		put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
		final.epoch = epoch;
		assert_int_equal(timeline__thread_state(kit.tl, 7, &final), 0);
		put_snap(&kit, &snap, 1, true);
		t = finish(&kit);
		assert_int_equal(t->n_calls, !epoch);
		if (!epoch)
			assert_int_equal(t->calls[0].open_at_end, 1);
		timeline__free(kit.tl);
	}
}

/* The row has both parts of the time. */
static void test_row(void **state)
{
	struct wire_site_key key = {.site = SITE(2), .tgid = PID};
	struct wire_site site = {.calls = 3,
				 .wall_ns = 9000,
				 .handover_ns = 700,
				 .blocked_ns = 4000,
				 .runnable_ns = 1000,
				 .min_ns = 2000,
				 .max_ns = 4000};
	const struct tl_target *t;
	struct kit kit;

	(void)state;
	kit_new(&kit);
	assert_int_equal(timeline__site_counters(kit.tl, &key, &site), 0);
	t = finish(&kit);
	assert_int_equal(t->n_calls, 1);
	assert_int_equal(t->calls[0].wall_ns, 9000);
	assert_int_equal(t->calls[0].handover_ns, 700);
	assert_int_equal(t->calls[0].cpu_ns, 4000);
	timeline__free(kit.tl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_handover),
		cmocka_unit_test(test_paused),
		cmocka_unit_test(test_known_at_end),
		cmocka_unit_test(test_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
