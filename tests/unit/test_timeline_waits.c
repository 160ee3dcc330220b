/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a Haskell thread waits for that is not seen any more, or not before the next window. */
#include "picture/make.h"
#include "test_timeline_kit.h"

#define WINDOW 100000ULL

#define BLOCKED_ON_MVAR	 1
#define BLOCKED_ON_CCALL 10
#define THREAD_RUN_GHC	 1
#define THREAD_KILLED	 4

static void kit_tsos(struct kit *kit)
{
	const struct timeline_opts opts = {.haskell_lanes = true};

	kit_new_opts(kit, &opts);
}

static union rec *of_tso(union rec *r, uint64_t tso)
{
	struct wire_rts *rts = r->h.type == WIRE_SAMPLE ? &r->sample.rts : &r->call.rts;

	rts->tso = 0x1000;
	rts->tso_id = tso;
	return r;
}

static void hs_sample(struct kit *kit, pid_t tid, uint64_t ns, uint64_t tso)
{
	union rec r;

	put(kit, of_tso(mk_sample(&r, tid, ns, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP), tso));
}

/* From now on the OS thread runs `tso`, 0: none, and left another one. */
static void put_left(struct kit *kit, uint64_t ns, uint64_t tso, uint64_t left, unsigned why,
		     unsigned what_next)
{
	union {
		union rec r;
		struct wire_tso tso;
	} u;

	rec_head(&u.r, WIRE_TSO, 7, ns, sizeof(u.tso));
	u.tso.id = tso;
	u.tso.left_id = left;
	u.tso.left_why = (uint16_t)why;
	u.tso.left_what_next = (uint16_t)what_next;
	put(kit, &u.r);
}

static void sleeps(struct kit *kit, uint64_t from, uint64_t to)
{
	union rec r;

	put(kit, mk_off(&r, 7, from, to, to, WIRE_WHERE_NO_CAP, STOP));
}

static const struct pic_target *window(struct kit *kit, uint64_t at, struct picture **ret_pic)
{
	assert_int_equal(timeline__window(kit->tl, at, ret_pic), 0);
	assert_non_null(*ret_pic);
	check_all(*ret_pic);
	kit->pic = timeline__picture(kit->tl);
	return picture__target(*ret_pic, 0);
}

static uint64_t waited(const struct pic_target *t, uint64_t tso)
{
	const struct pic_lane *lane = lane_by(t, LANE_HASKELL, tso);

	return lane->states_ns[HS_BLOCKED_MVAR];
}

static bool has_lane(const struct pic_target *t, uint64_t tso)
{
	for (size_t i = 0; i < t->lanes[LANE_HASKELL].n; i++)
		if (t->lanes[LANE_HASKELL].v[i].tso == tso)
			return true;
	return false;
}

/* 5 waits while nothing runs; once 6 does, it may have run unseen, and ended. */
static void until_something_runs(bool folded)
{
	const struct pic_target *t;
	const struct pic_lane *lane;
	struct kit kit;
	union rec r;

	kit_tsos(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	hs_sample(&kit, 7, T0 + 1000, 5);
	put_left(&kit, T0 + 10000, 0, 5, BLOCKED_ON_MVAR, THREAD_RUN_GHC);
	sleeps(&kit, T0 + 10000, T0 + 20000);
	if (folded)
		assert_int_equal(timeline__fold_at(kit.tl, 0), 0);
	sleeps(&kit, T0 + 20000, T0 + 50000);
	hs_sample(&kit, 7, T0 + 51000, 6);
	sleeps(&kit, T0 + 60000, T0 + 70000);
	if (folded)
		assert_int_equal(timeline__fold_at(kit.tl, 0), 0);
	sleeps(&kit, T0 + 70000, END);
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, END));
	t = finish(&kit);
	lane = lane_by(t, LANE_HASKELL, 5);
	assert_int_equal(lane->states_ns[HS_RUNNING], 10000);
	assert_int_equal(waited(t, 5), 40000);
	assert_int_equal(lane->end_ns, T0 + 50000);
	timeline__free(kit.tl);
}

static void test_until_something_runs(void **state)
{
	(void)state;
	until_something_runs(false);
	until_something_runs(true);
}

/* Another one runs in its place already: nothing is certain after that. */
static void test_while_another_runs(void **state)
{
	const struct pic_target *t;
	struct kit kit;
	union rec r;

	(void)state;
	kit_tsos(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	hs_sample(&kit, 7, T0 + 1000, 5);
	hs_sample(&kit, 7, T0 + 3000, 6);
	put_left(&kit, T0 + 3000, 6, 5, BLOCKED_ON_MVAR, THREAD_RUN_GHC);
	hs_sample(&kit, 7, T0 + 500000, 6);
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, END));
	t = finish(&kit);
	assert_int_equal(waited(t, 5), 1000);
	assert_int_equal(lane_by(t, LANE_HASKELL, 5)->end_ns, T0 + 3000);
	timeline__free(kit.tl);
}

/* Each request's thread waits for its answer, and ends unseen: they do not pile up. */
static void test_windows_do_not_grow(void **state)
{
	const unsigned requests = 5;
	struct kit kit;
	union rec r;

	(void)state;
	kit_tsos(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	for (unsigned w = 0; w < 4; w++) {
		uint64_t at = T0 + w * WINDOW;
		struct picture *pic;
		const struct pic_target *t;
		uint64_t sum = 0;

		for (unsigned i = 0; i < requests; i++, at += WINDOW / requests) {
			uint64_t tso = 100 * (w + 1) + i;

			hs_sample(&kit, 7, at + 1000, tso);
			put_left(&kit, at + 2000, 0, tso, BLOCKED_ON_MVAR, THREAD_RUN_GHC);
			sleeps(&kit, at + 2000, at + 12000);
			hs_sample(&kit, 7, at + 13000, 5);
			put_left(&kit, at + 14000, 0, 5, BLOCKED_ON_MVAR, THREAD_RUN_GHC);
			sleeps(&kit, at + 14000, at + WINDOW / requests);
		}
		t = window(&kit, at, &pic);
		for (size_t i = 0; i < t->lanes[LANE_HASKELL].n; i++)
			if (t->lanes[LANE_HASKELL].v[i].tso != 5)
				sum += t->lanes[LANE_HASKELL].v[i].states_ns[HS_BLOCKED_MVAR];
		assert_int_equal(t->lanes[LANE_HASKELL].n, requests + 1);
		assert_int_equal(sum, requests * 10000);
		picture__free(pic);
	}
	finish(&kit);
	timeline__free(kit.tl);
}

/* Nothing can run: a wait goes on from window to window, till something does. */
static void test_goes_on_while_nothing_runs(void **state)
{
	struct kit kit;
	struct picture *pic;
	const struct pic_target *t;
	union rec r;

	(void)state;
	kit_tsos(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	hs_sample(&kit, 7, T0 + 1000, 5);
	put_left(&kit, T0 + 10000, 0, 5, BLOCKED_ON_MVAR, THREAD_RUN_GHC);
	sleeps(&kit, T0 + 10000, T0 + WINDOW - 1);
	sleeps(&kit, T0 + WINDOW - 1, T0 + 2 * WINDOW);
	t = window(&kit, T0 + WINDOW, &pic);
	assert_int_equal(waited(t, 5), WINDOW - 10000);
	picture__free(pic);
	sleeps(&kit, T0 + 2 * WINDOW, T0 + 2 * WINDOW + 30000);
	t = window(&kit, T0 + 2 * WINDOW, &pic);
	assert_int_equal(waited(t, 5), WINDOW);
	picture__free(pic);
	hs_sample(&kit, 7, T0 + 2 * WINDOW + 31000, 6);
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 2 * WINDOW + 40000));
	t = finish(&kit);
	assert_int_equal(waited(t, 5), 30000);
	timeline__free(kit.tl);
}

/* One that waits maybe is not shown; when it runs again it has waited since the window's start. */
static void test_runs_again(void **state)
{
	struct kit kit;
	struct picture *pic;
	const struct pic_target *t;
	union rec r;

	(void)state;
	kit_tsos(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	hs_sample(&kit, 7, T0 + 1000, 5);
	hs_sample(&kit, 7, T0 + 3000, 6);
	put_left(&kit, T0 + 3000, 6, 5, BLOCKED_ON_MVAR, THREAD_RUN_GHC);
	hs_sample(&kit, 7, T0 + WINDOW - 1000, 6);
	t = window(&kit, T0 + WINDOW, &pic);
	assert_int_equal(waited(t, 5), 1000);
	picture__free(pic);
	hs_sample(&kit, 7, T0 + 2 * WINDOW - 1000, 6);
	t = window(&kit, T0 + 2 * WINDOW, &pic);
	assert_false(has_lane(t, 5));
	assert_true(has_lane(t, 6));
	picture__free(pic);
	hs_sample(&kit, 7, T0 + 2 * WINDOW + 29000, 6);
	hs_sample(&kit, 7, T0 + 2 * WINDOW + 31000, 5);
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 2 * WINDOW + 40000));
	t = finish(&kit);
	assert_int_equal(waited(t, 5), 30000);
	assert_int_equal(lane_by(t, LANE_HASKELL, 5)->states_ns[HS_RUNNING], 10000);
	timeline__free(kit.tl);
}

/* Its call has ended: that it is in one is what its memory was before the collector moved it. */
static void test_after_a_call(void **state)
{
	const struct pic_target *t;
	const struct pic_lane *lane;
	struct kit kit;
	union rec r;

	(void)state;
	kit_tsos(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	hs_sample(&kit, 7, T0 + 1000, 5);
	put(&kit, of_tso(mk_call(&r, 7, T0 + 10000, T0 + 30000, SITE(1), RET(HS(1)), STOP), 5));
	put_left(&kit, T0 + 31000, 0, 5, BLOCKED_ON_CCALL, THREAD_RUN_GHC);
	sleeps(&kit, T0 + 31000, END);
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, END));
	t = finish(&kit);
	lane = lane_by(t, LANE_HASKELL, 5);
	assert_int_equal(lane->states_ns[HS_SAFE_CALL], 20000);
	assert_true(lane->end_ns <= T0 + 31000);
	timeline__free(kit.tl);
}

/* One that has ended waits for nothing. */
static void test_ended(void **state)
{
	const struct pic_target *t;
	struct kit kit;
	union rec r;

	(void)state;
	kit_tsos(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	hs_sample(&kit, 7, T0 + 1000, 5);
	put_left(&kit, T0 + 10000, 0, 5, BLOCKED_ON_MVAR, THREAD_KILLED);
	sleeps(&kit, T0 + 10000, END);
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, END));
	t = finish(&kit);
	assert_int_equal(waited(t, 5), 0);
	assert_int_equal(lane_by(t, LANE_HASKELL, 5)->end_ns, T0 + 10000);
	timeline__free(kit.tl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_until_something_runs),
		cmocka_unit_test(test_while_another_runs),
		cmocka_unit_test(test_windows_do_not_grow),
		cmocka_unit_test(test_goes_on_while_nothing_runs),
		cmocka_unit_test(test_runs_again),
		cmocka_unit_test(test_after_a_call),
		cmocka_unit_test(test_ended),
	};

	return cmocka_run_group_tests_name("timeline_waits", tests, NULL, NULL);
}
