/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Haskell threads that do not run, and of which looks show that they wait for something else. */
#include "test_timeline_living.h"

#define THREAD_KILLED 3

static void put_look(struct kit *kit, uint64_t since, uint64_t at, uint64_t tso, unsigned why,
		     unsigned what_next)
{
	union {
		union rec r;
		struct wire_tso_waits waits;
	} u;

	rec_head(&u.r, WIRE_TSO_WAITS, 7, at, sizeof(u.waits));
	u.waits.id = tso;
	u.waits.since_ns = since;
	u.waits.why = why;
	u.waits.what_next = what_next;
	put(kit, &u.r);
}

/* 6 runs from here to there. */
static void other_runs(struct kit *kit, uint64_t from, uint64_t to)
{
	for (uint64_t at = from; at <= to; at += 2000)
		hs_sample(kit, 7, at, 6);
}

static void begin_with_5(struct kit *kit)
{
	begin(kit);
	put_left(kit, T0 + 1000, 5, 0, WIRE_TSO_UNKNOWN);
	hs_sample(kit, 7, T0 + 1000, 5);
}

/* 5 runs in place of 6, for the last microsecond of the OS thread. */
static void end_with_5(struct kit *kit, uint64_t at)
{
	union rec r;

	put_left(kit, at, 5, 6, NOT_BLOCKED);
	hs_sample(kit, 7, at, 5);
	put(kit, mk_event(&r, WIRE_THREAD_EXIT, 7, at + 1000));
}

/* 5 runs up to T0 + 10000, and stops for this reason. */
static void begin_with_other(struct kit *kit, unsigned why)
{
	begin_with_5(kit);
	hs_sample(kit, 7, T0 + 9000, 5);
	put_left(kit, T0 + 11000, 6, 5, why);
	other_runs(kit, T0 + 11000, T0 + 89000);
}

static const struct pic_lane *again_and_end(struct kit *kit)
{
	const struct pic_lane *lane;

	end_with_5(kit, T0 + 91000);
	lane = find(finish(kit), 5);
	assert_int_equal(lane->start_ns, T0);
	assert_int_equal(lane->end_ns, T0 + 92000);
	assert_int_equal(lane->states_ns[HS_RUNNING], 12000);
	return lane;
}

/* It becomes ready halfway between two looks. */
static void test_becomes_ready(void **state)
{
	const struct pic_lane *lane;
	struct kit kit;

	(void)state;
	begin_with_other(&kit, BLOCKED_ON_MVAR);
	put_look(&kit, T0 + 30000, T0 + 40000, 5, NOT_BLOCKED, THREAD_RUN_GHC);
	lane = again_and_end(&kit);
	assert_int_equal(lane->states_ns[HS_BLOCKED_MVAR], 25000);
	assert_int_equal(lane->states_ns[HS_RUNNABLE], 55000);
	timeline__free(kit.tl);
}

/* It has run and stopped again unseen, more than once. */
static void test_waits_again(void **state)
{
	const struct pic_lane *lane;
	struct kit kit;

	(void)state;
	begin_with_other(&kit, NOT_BLOCKED);
	put_look(&kit, T0 + 20000, T0 + 30000, 5, BLOCKED_ON_STM, THREAD_RUN_GHC);
	put_look(&kit, T0 + 50000, T0 + 60000, 5, BLOCKED_ON_BLACKHOLE, THREAD_RUN_GHC);
	put_look(&kit, T0 + 60000, T0 + 70000, 5, NOT_BLOCKED, THREAD_RUN_GHC);
	lane = again_and_end(&kit);
	assert_int_equal(lane->states_ns[HS_BLOCKED_STM], 30000);
	assert_int_equal(lane->states_ns[HS_BLOCKED_BLACKHOLE], 10000);
	assert_int_equal(lane->states_ns[HS_RUNNABLE], 15000 + 25000);
	timeline__free(kit.tl);
}

/* The capability has nothing to do for a while: nobody is ready then. */
static void test_idle_meanwhile(void **state)
{
	const uint64_t slept = T0 + 11000, woken = slept + 5000000;
	const struct pic_lane *lane;
	struct picture *pic;
	struct kit kit;

	(void)state;
	for (unsigned ready_first = 0; ready_first < 2; ready_first++) {
		begin_with_5(&kit);
		put_left(&kit, slept, 0, 5, ready_first ? NOT_BLOCKED : BLOCKED_ON_MVAR);
		sleeps(&kit, slept, woken);
		put_left(&kit, woken + 1000, 6, 0, WIRE_TSO_UNKNOWN);
		other_runs(&kit, woken + 1000, woken + 39000);
		put_look(&kit, slept, woken + 2000, 5, ready_first ? BLOCKED_ON_MVAR : NOT_BLOCKED,
			 THREAD_RUN_GHC);
		end_with_5(&kit, woken + 41000);
		lane = find(window(&kit, woken + 42000, &pic), 5);
		assert_int_equal(lane->states_ns[HS_UNKNOWN], 0);
		assert_int_equal(lane->states_ns[HS_RUNNABLE], ready_first ? 0 : 39000);
		assert_int_equal(lane->states_ns[HS_BLOCKED_MVAR],
				 5000000 + (ready_first ? 40000 : 1000));
		picture__free(pic);
		timeline__free(kit.tl);
	}
}

/* It is ready whenever it is looked at; what it waits for while the capability has nothing to do is
 * not known. */
static void test_ready_again(void **state)
{
	const uint64_t slept = T0 + 51000, woken = slept + 5000000;
	const struct pic_lane *lane;
	struct picture *pic;
	struct kit kit;

	(void)state;
	begin_with_5(&kit);
	put_left(&kit, T0 + 11000, 6, 5, NOT_BLOCKED);
	other_runs(&kit, T0 + 11000, T0 + 49000);
	put_look(&kit, T0 + 11000, T0 + 31000, 5, NOT_BLOCKED, THREAD_RUN_GHC);
	sleeps(&kit, slept, woken);
	other_runs(&kit, woken + 1000, woken + 39000);
	put_look(&kit, T0 + 31000, woken + 21000, 5, NOT_BLOCKED, THREAD_RUN_GHC);
	put_look(&kit, woken + 21000, woken + 31000, 5, NOT_BLOCKED, THREAD_RUN_GHC);
	end_with_5(&kit, woken + 41000);
	lane = find(window(&kit, woken + 42000, &pic), 5);
	assert_int_equal(lane->states_ns[HS_UNKNOWN], woken - slept);
	assert_int_equal(lane->states_ns[HS_RUNNABLE], 45000 + 40000);
	assert_int_equal(lane->states_ns[HS_RUNNING], 6000 + 2000);
	picture__free(pic);
	timeline__free(kit.tl);
}

/* It was ready, has run unseen, and was found dead; or it waited, and may have ended any time. */
static void test_ends(void **state)
{
	const struct pic_lane *lane;
	struct kit kit;

	(void)state;
	for (unsigned ready = 0; ready < 2; ready++) {
		begin_with_other(&kit, ready ? NOT_BLOCKED : BLOCKED_ON_MVAR);
		put_look(&kit, T0 + 30000, T0 + 50000, 5, NOT_BLOCKED, THREAD_KILLED);
		lane = find(finish(&kit), 5);
		assert_int_equal(lane->end_ns, T0 + (ready ? 40000 : 30000));
		assert_int_equal(lane->states_ns[ready ? HS_RUNNABLE : HS_BLOCKED_MVAR],
				 ready ? 30000 : 20000);
		timeline__free(kit.tl);
	}
}

/* The first look after it began to wait finds it dead, and the program ends. */
static void test_ends_at_once(void **state)
{
	const struct pic_lane *lane;
	struct kit kit;
	union rec r;

	(void)state;
	begin_with_other(&kit, BLOCKED_ON_MVAR);
	put_look(&kit, T0 + 11000, T0 + 50000, 5, BLOCKED_ON_MVAR, THREAD_KILLED);
	put(&kit, mk_event(&r, WIRE_PROC_EXIT, 7, END));
	lane = find(finish(&kit), 5);
	assert_int_equal(lane->end_ns, T0 + 11000);
	assert_int_equal(lane->states_ns[HS_BLOCKED_MVAR], 1000);
	timeline__free(kit.tl);
}

/* A window shows what is known by its end, and the next one goes on from there. */
static void test_windows(void **state)
{
	const struct pic_target *t;
	struct picture *pic;
	struct kit kit;

	(void)state;
	begin_with_other(&kit, BLOCKED_ON_MVAR);
	put_look(&kit, T0 + 30000, T0 + 40000, 5, NOT_BLOCKED, THREAD_RUN_GHC);
	look(&kit, T0 + 95000, T0 + WINDOW, 5, NOT_BLOCKED);
	t = window(&kit, T0 + WINDOW, &pic);
	assert_int_equal(waited(t, 5), 25000);
	assert_int_equal(find(t, 5)->states_ns[HS_RUNNABLE], WINDOW - 35000);
	picture__free(pic);
	other_runs(&kit, T0 + WINDOW + 1000, T0 + WINDOW + 59000);
	put_look(&kit, T0 + 99000, T0 + WINDOW + 41000, 5, BLOCKED_ON_MVAR, THREAD_RUN_GHC);
	look(&kit, T0 + 195000, T0 + 2 * WINDOW, 5, BLOCKED_ON_MVAR);
	t = window(&kit, T0 + 2 * WINDOW, &pic);
	assert_int_equal(find(t, 5)->states_ns[HS_RUNNABLE], 20000);
	assert_int_equal(waited(t, 5), 80000);
	picture__free(pic);
	timeline__free(kit.tl);
}

/* However many changes come with few records, none is left out. */
static void test_many(void **state)
{
	const struct timeline_opts few = {.haskell_lanes = true, .max_records = 400};
	const struct pic_target *t;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new_opts(&kit, &few);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put_left(&kit, T0 + 1000, 5, 0, WIRE_TSO_UNKNOWN);
	hs_sample(&kit, 7, T0 + 1000, 5);
	put_left(&kit, T0 + 2000, 6, 5, BLOCKED_ON_MVAR);
	for (uint64_t at = T0 + 2000; at < END - 10000; at += 1000) {
		hs_sample(&kit, 7, at, 6);
		for (unsigned i = 0; i < 5; i++)
			put_look(&kit, at - 100, at + 100 * i, 5,
				 i % 2 ? BLOCKED_ON_MVAR : NOT_BLOCKED, THREAD_RUN_GHC);
		put_left(&kit, at + 900, 5, 6, NOT_BLOCKED);
		hs_sample(&kit, 7, at + 900, 5);
		put_left(&kit, at + 950, 6, 5, BLOCKED_ON_MVAR);
	}
	t = finish(&kit);
	assert_int_equal(t->n_lost, 0);
	timeline__free(kit.tl);
}

/* Records that cannot be true do no harm. */
static void test_hostile(void **state)
{
	const struct pic_lane *lane;
	struct kit kit;

	(void)state;
	begin_with_other(&kit, BLOCKED_ON_MVAR);
	put_look(&kit, UINT64_MAX, T0 + 40000, 5, NOT_BLOCKED, THREAD_RUN_GHC);
	put_look(&kit, 0, T0 + 50000, 5, UINT32_MAX, UINT32_MAX);
	put_look(&kit, T0, T0 + 5000, 5, BLOCKED_ON_STM, THREAD_RUN_GHC);
	put_look(&kit, T0, T0 + 50000, 0, BLOCKED_ON_STM, THREAD_RUN_GHC);
	put_look(&kit, T0, T0 + 50000, 77, BLOCKED_ON_STM, THREAD_RUN_GHC);
	lane = again_and_end(&kit);
	assert_int_equal(lane->states_ns[HS_BLOCKED_STM], 0);
	timeline__free(kit.tl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_becomes_ready),  cmocka_unit_test(test_waits_again),
		cmocka_unit_test(test_idle_meanwhile), cmocka_unit_test(test_ready_again),
		cmocka_unit_test(test_ends),	       cmocka_unit_test(test_ends_at_once),
		cmocka_unit_test(test_windows),	       cmocka_unit_test(test_many),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests_name("timeline_looks", tests, NULL, NULL);
}
