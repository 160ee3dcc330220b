/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The timeline's limits: how many records and stacks it keeps, and that folding early changes
 * nothing.
 */
#include <malloc.h>

#include "test_timeline_kit.h"

#define SAMPLE_NS 10000000ULL

/*
 * Beyond the limit records are left out, which is reported. Records of a call that may still get a
 * record of its own cannot be folded away; those of a thread that runs can, except for the last
 * one.
 */
static void record_limit(unsigned where, unsigned n_lost)
{
	struct timeline_opts opts = {.max_records = 3};
	const struct pic_target *t;
	struct kit kit;
	union rec r;

	kit_new_opts(&kit, &opts);
	for (unsigned i = 0; i < 5; i++) {
		mk_sample(&r, 7, T0 + 100 * i, where, HS(1), IP(HS(1)), STOP);
		r.sample.call_start_ns = where == WIRE_WHERE_SAFE_CALL ? T0 : 0;
		assert_int_equal(intake__record(kit.in, &r, r.h.size),
				 i < 5 - n_lost ? 0 : -ENOSPC);
	}
	t = finish(&kit);
	assert_int_equal(t->n_lost, n_lost != 0);
	assert_int_equal(t->lost[0].n, n_lost);
	timeline__free(kit.tl);
}

static void test_record_limit(void **state)
{
	(void)state;
	record_limit(WIRE_WHERE_SAFE_CALL, 2);
	record_limit(WIRE_WHERE_HASKELL, 0);
}

static void record_cycles(struct kit *kit, unsigned n)
{
	union rec r;

	put(kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	for (uint64_t t = T0; n--; t += 1000) {
		put(kit, mk_sample(&r, 7, t + 100, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
		mk_off(&r, 7, t + 300, t + 550, t + 600, WIRE_WHERE_SAFE_CALL, RET(HS(1)), STOP);
		r.off.site = SITE(1);
		r.off.call_start_ns = t + 200;
		put(kit, &r);
		put(kit, mk_call(&r, 7, t + 200, t + 800, SITE(1), RET(HS(1)), STOP));
		put(kit, mk_off(&r, 7, t + 900, t + 950, t + 950, WIRE_WHERE_NO_CAP, STOP));
	}
}

/* With little room for records lanes are made in between, and come out the same. */
static void test_folding(void **state)
{
	static const size_t limits[] = {0, 16, 17, 18, 19, 100};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		struct timeline_opts opts = {.max_records = limits[i]};
		const struct pic_target *t;
		const struct pic_lane *lane;
		struct kit kit;

		kit_new_opts(&kit, &opts);
		record_cycles(&kit, 500);
		t = finish(&kit);
		lane = lane_of(t, 7);
		assert_int_equal(t->n_lost, 0);
		assert_int_equal(lane->states_ns[ST_SAFE_CALL_CPU], 500 * 300);
		assert_int_equal(lane->states_ns[ST_SAFE_CALL_BLOCKED], 500 * 250);
		assert_int_equal(lane->states_ns[ST_PREEMPTED], 500 * 50);
		assert_int_equal(lane->states_ns[ST_IDLE], 500 * 50);
		assert_int_equal(t->functions[0].self_samples, 500);
		assert_int_equal(lane->slices[0].start_ns, T0);
		timeline__free(kit.tl);
	}
}

static size_t allocated(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/*
 * The bytes that are allocated after a thread has run for a while beside another one, which began
 * earlier and sleeps.
 */
static size_t memory_after(unsigned n_samples)
{
	struct timeline_opts opts = {.max_records = 100, .max_slices = 16};
	struct kit kit;
	size_t before, after;
	union rec r;

	before = allocated();
	kit_new_opts(&kit, &opts);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 8, T0));
	put(&kit, mk_sample(&r, 8, T0 + 10, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
	put(&kit, mk_call(&r, 8, T0 + 100, T0 + 200000, SITE(1), RET(HS(1)), STOP));
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	for (uint64_t t = T0 + 1000; n_samples--; t += SAMPLE_NS)
		put(&kit, mk_sample(&r, 7, t, WIRE_WHERE_HASKELL, HS(n_samples % 2),
				    IP(HS(n_samples % 2)), STOP));
	after = allocated();
	timeline__free(kit.tl);
	return after - before;
}

/* A sleeping thread does not keep the other threads' records from being made into lanes. */
static void test_folding_beside_a_sleeper(void **state)
{
	(void)state;
	assert_true(memory_after(40000) < memory_after(4000) + (1 << 20));
}

static void test_stack_limit(void **state)
{
	struct timeline_opts opts = {.max_stacks = 3};
	const struct pic_lane *lane;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new_opts(&kit, &opts);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	for (unsigned i = 0; i < 6; i++)
		put(&kit,
		    mk_sample(&r, 7, T0 + 100 + i, WIRE_WHERE_HASKELL, HS(i), IP(HS(i)), STOP));
	finish(&kit);
	lane = lane_of(picture__target(kit.pic, 0), 7);
	check_slice(kit.pic, lane, 2, T0 + 101, END, ST_HASKELL, "[too many different stacks]");
	timeline__free(kit.tl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_record_limit),
		cmocka_unit_test(test_stack_limit),
		cmocka_unit_test(test_folding),
		cmocka_unit_test(test_folding_beside_a_sleeper),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
