/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Damaged captures: nobody runs for the time of lost records, in a whole replay and in windows. */
#include "capture_kit.h"

#define BLOCK_BYTE 60 /* of a block: in its stored bytes */

static const struct timeline_opts opts = {.frequency_hz = 99, .start_ns = T0};

/* Of a replay, in all its windows together. */
struct sum {
	unsigned windows;
	uint64_t cpu_ns[32], unknown_ns[32], wall_ns[32]; /* by thread */
};

static void add(void *ctx, const struct picture *pic)
{
	const struct pic_target *t = picture__target(pic, 0);
	struct sum *sum = ctx;

	sum->windows++;
	for (size_t i = 0; t && i < t->lanes[LANE_THREAD].n; i++) {
		const struct pic_lane *lane = &t->lanes[LANE_THREAD].v[i];

		check_lane(pic, lane);
		assert_in_range(lane->tid, 1, ARRAY_SIZE(sum->cpu_ns) - 1);
		sum->cpu_ns[lane->tid] += lane->cpu_ns;
		sum->unknown_ns[lane->tid] += lane->states_ns[ST_UNKNOWN];
		sum->wall_ns[lane->tid] += lane->end_ns - lane->start_ns;
	}
}

static struct sum replay_damaged(const char *data, size_t size, uint64_t window_ns)
{
	struct sum sum = {0};
	struct kit_windows windows = {.add = add, .ctx = &sum};
	const struct replay_hooks hooks = {
		.ctx = &windows, .window_ns = window_ns, .window = kit_take_window};
	struct replay *r;

	assert_int_equal(read_bytes(data, size, &hooks, &r), 0);
	assert_int_equal(replay__notes(r)->damaged_blocks, 1);
	add(&sum, replay__picture(r));
	replay__free(r);
	return sum;
}

/* Many records, of which a block is lost. */
static void put_crowd(struct kit *kit)
{
	union rec rec;

	for (unsigned i = 0; i < 3000; i++) {
		uint64_t at = T0 + 1000 + i * 100;

		put(kit, mk_sample(&rec, 20, at, WIRE_WHERE_HASKELL, HS(i % 7), IP(HS(i % 7)),
				   RET(HS(3)), STOP));
		put(kit, mk_off(&rec, 20, at + 20, at + 30, at + 40, WIRE_WHERE_NO_CAP,
				CIP(CFN(i % 3)), STOP));
	}
}

/* Thread 12 has no record before the lost block; the sleep of 13 begins before it and ends in it;
 * 14 and 15 have no record after it, and sleep at the end. */
static char *record(size_t *ret_size)
{
	static const pid_t tids[] = {12, 13};
	struct snap_thread snaps[4] = {
		kit_snap(12, WIRE_WHERE_NO_CAP, 'S'), kit_snap(13, WIRE_WHERE_NO_CAP, 'S'),
		kit_snap(14, WIRE_WHERE_NO_CAP, 'S'), kit_snap(15, WIRE_WHERE_NO_CAP, 'S')};
	const uint64_t late = T0 + 400000;
	const struct wire_thread finals[] = {{.tgid = PID, .off_since_ns = late + 50},
					     {.tgid = PID, .off_since_ns = END - 100}};
	struct capture *capture;
	struct kit kit;
	union rec rec;
	char *data;

	kit_capture(&kit, &opts, &capture);
	kit_add(&kit, PID, T0);
	put_snap(&kit, snaps, ARRAY_SIZE(snaps), false);
	put(&kit, mk_sample(&rec, 13, T0 + 100, WIRE_WHERE_HASKELL, HS(1), STOP));
	put(&kit, mk_sample(&rec, 14, T0 + 150, WIRE_WHERE_HASKELL, HS(1), STOP));
	put(&kit, mk_sample(&rec, 15, T0 + 160, WIRE_WHERE_HASKELL, HS(1), STOP));
	put(&kit, mk_event(&rec, WIRE_THREAD_NEW, 20, T0 + 200));
	put_crowd(&kit);
	for (size_t i = 0; i < ARRAY_SIZE(tids); i++) {
		put(&kit, mk_sample(&rec, tids[i], late, WIRE_WHERE_HASKELL, HS(1), STOP));
		put(&kit, mk_off(&rec, tids[i], late + 20, late + 30, late + 40, WIRE_WHERE_NO_CAP,
				 CIP(CFN(1)), STOP));
		put(&kit, mk_event(&rec, WIRE_THREAD_EXIT, tids[i], late + 100));
	}
	put_snap(&kit, snaps + 2, 2, true);
	assert_int_equal(intake__thread_state(kit.in, 14, &finals[0]), 0);
	assert_int_equal(intake__thread_state(kit.in, 15, &finals[1]), 0);
	assert_int_equal(timeline__finish(kit.tl, END), 0);
	assert_int_equal(capture__finish(capture), 0);
	timeline__free(kit.tl);
	data = load(ret_size);
	data[find_block(data, *ret_size, 1) + BLOCK_BYTE] ^= 1;
	return data;
}

static void test_sleepers(void **state)
{
	struct sum sum;
	size_t size;
	char *data = record(&size);

	(void)state;
	sum = replay_damaged(data, size, 0);
	for (pid_t tid = 12; tid <= 15; tid++)
		assert_in_range(sum.cpu_ns[tid], 1, 1000);
	free(data);
}

/* A gap that a cut falls into is in both windows, with its own part. */
static void test_windows(void **state)
{
	static const uint64_t windows_ns[] = {50000, 130000, 333333};
	struct sum whole;
	size_t size;
	char *data = record(&size);

	(void)state;
	whole = replay_damaged(data, size, 0);
	assert_int_equal(whole.windows, 1);
	for (size_t i = 0; i < ARRAY_SIZE(windows_ns); i++) {
		struct sum sum = replay_damaged(data, size, windows_ns[i]);

		assert_true(sum.windows > 1);
		for (size_t tid = 0; tid < ARRAY_SIZE(sum.cpu_ns); tid++) {
			assert_int_equal(sum.wall_ns[tid], whole.wall_ns[tid]);
			assert_int_equal(sum.cpu_ns[tid], whole.cpu_ns[tid]);
			assert_int_equal(sum.unknown_ns[tid], whole.unknown_ns[tid]);
		}
	}
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sleepers),
		cmocka_unit_test(test_windows),
	};

	setvbuf(stdout, NULL, _IONBF, 0);
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
