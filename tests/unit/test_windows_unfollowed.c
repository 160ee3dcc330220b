/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads that the kernel side has no room for, and that are known only where they are sampled, in
 * a replay in windows: the windows add up to the whole session.
 */
#include "capture_kit.h"

#define MAX_TID 10

struct sum {
	uint64_t states_ns[MAX_TID][LANE_STATES], cpu_ns[MAX_TID];
};

static void add(void *ctx, const struct picture *pic)
{
	struct sum *sum = ctx;
	const struct pic_lanes *lanes = &picture__target(pic, 0)->lanes[LANE_THREAD];

	check_all(pic);
	for (size_t i = 0; i < lanes->n; i++) {
		const struct pic_lane *lane = &lanes->v[i];

		assert_in_range(lane->tid, 1, MAX_TID - 1);
		sum->cpu_ns[lane->tid] += lane->cpu_ns;
		for (unsigned state = 0; state < LANE_STATES; state++)
			sum->states_ns[lane->tid][state] += lane->states_ns[state];
	}
}

static struct sum sum_of(uint64_t window_ns)
{
	struct sum sum = {0};

	replay_windows(window_ns, false, add, &sum);
	return sum;
}

static void put_unfollowed(struct kit *kit, pid_t tid, uint64_t ns, unsigned where, unsigned flags)
{
	union rec r;

	mk_sample(&r, tid, ns, where, where == WIRE_WHERE_HASKELL ? HS(1) : CFN(1), STOP);
	r.sample.rts.flags = (uint8_t)(WIRE_RTS_NO_ENTRY | flags);
	put(kit, &r);
}

/*
 * 7 was found in a call, and is sampled in one just before a cut, after which it is not seen again;
 * 8 began, and is sampled twice; 9 is sampled in calls. No sample is nearer to a cut than half a
 * period: time on the CPU that a cut separates from its sample is in no known state.
 */
static void capture(bool finished)
{
	const struct timeline_opts opts = {
		.frequency_hz = 1000000,
		.start_ns = T0,
		.start_unix_ns = UINT64_C(1795270032155432149),
	};
	struct snap_thread snaps[] = {kit_snap(7, WIRE_WHERE_SAFE_CALL, 'S'),
				      kit_snap(9, WIRE_WHERE_SAFE_CALL, 'S')};
	struct capture *capture;
	struct kit kit;
	union rec r;

	kit_capture(&kit, &opts, &capture);
	kit_add(&kit, PID, T0);
	put_snap(&kit, snaps, ARRAY_SIZE(snaps), false);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 8, T0 + 1000));
	put_unfollowed(&kit, 8, T0 + 310000, WIRE_WHERE_HASKELL, 0);
	put_unfollowed(&kit, 7, T0 + 499000, WIRE_WHERE_SAFE_CALL, WIRE_RTS_CALLS_UNKNOWN);
	put_unfollowed(&kit, 9, T0 + 610000, WIRE_WHERE_SAFE_CALL, 0);
	put_unfollowed(&kit, 9, T0 + 650000, WIRE_WHERE_SAFE_CALL, WIRE_RTS_CALLS_UNKNOWN);
	put_unfollowed(&kit, 8, T0 + 748000, WIRE_WHERE_HASKELL, 0);
	if (finished)
		assert_int_equal(timeline__finish(kit.tl, END), 0);
	assert_int_equal(capture__finish(capture), 0);
	timeline__free(kit.tl);
}

static void check(bool finished)
{
	struct sum whole;

	capture(finished);
	whole = sum_of(0);
	if (finished)
		for (pid_t tid = 7; tid < MAX_TID; tid++)
			assert_int_equal(whole.cpu_ns[tid], tid == 7 ? 1000 : 2000);
	for (uint64_t n = 2; n <= 10; n++) {
		struct sum many = sum_of((END - T0) / n);

		assert_memory_equal(&many, &whole, sizeof(whole));
	}
}

static void test_finished(void **state)
{
	(void)state;
	check(true);
}

static void test_unfinished(void **state)
{
	(void)state;
	check(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finished),
		cmocka_unit_test(test_unfinished),
	};

	log__set_level(LOG_LVL_QUIET);
	return cmocka_run_group_tests_name("windows_unfollowed", tests, make_folder, remove_folder);
}
