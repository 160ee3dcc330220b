/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Haskell threads that were seen to wait, in replays, whose windows add up to the whole; and what
 * becomes of those that were last seen in a black hole.
 */
#include "capture_kit.h"
#include "test_timeline_living.h"

/*
 * A black hole lasts for milliseconds as a rule: whether the thread is still in it is known if it
 * is seen to run or to stop again, or if a look finds it there. Otherwise nothing is known, unless
 * no look is possible since the program has ended.
 */
static void test_black_hole(void **state)
{
	enum { NO_LOOK, STILL, ELSEWHERE, EXITS, RUNS_AGAIN, STOPS_AGAIN, CASES };
	const uint64_t since = T0 + 10000, again = T0 + 500000;
	const struct pic_target *t;
	struct kit kit;
	union rec r;

	(void)state;
	for (unsigned i = 0; i < CASES; i++) {
		begin(&kit);
		waits(&kit, T0, 5, BLOCKED_ON_BLACKHOLE, i < RUNS_AGAIN ? END : again);
		if (i == RUNS_AGAIN)
			waits(&kit, again, 5, BLOCKED_ON_MVAR, END);
		if (i == STOPS_AGAIN) {
			put_left(&kit, again, 0, 5, BLOCKED_ON_MVAR);
			sleeps(&kit, again, END);
		}
		if (i == EXITS)
			put(&kit, mk_event(&r, WIRE_PROC_EXIT, 7, END));
		else if (i != NO_LOOK)
			look(&kit, END - 10000, END, 5,
			     i == STILL ? BLOCKED_ON_BLACKHOLE : BLOCKED_ON_MVAR);
		t = finish(&kit);
		assert_int_equal(in_hole(t, 5), i == STILL || i == EXITS ? END - since
						: i < RUNS_AGAIN	 ? 0
									 : again - since);
		assert_int_equal(unknown(t, 5), i == NO_LOOK || i == ELSEWHERE ? END - since : 0);
		if (i >= RUNS_AGAIN)
			assert_true(waited(t, 5) >= END - again - 10000);
		assert_int_equal(find(t, 5)->end_ns, END);
		timeline__free(kit.tl);
	}
}

/* What the look at a window's end finds counts for the next window. */
static void test_black_hole_in_windows(void **state)
{
	static const unsigned found[] = {BLOCKED_ON_BLACKHOLE, BLOCKED_ON_MVAR, BLOCKED_ON_MVAR};
	struct picture *pic;
	struct kit kit;

	(void)state;
	begin(&kit);
	waits(&kit, T0, 5, BLOCKED_ON_BLACKHOLE, END);
	for (unsigned i = 0; i < ARRAY_SIZE(found); i++) {
		uint64_t at = T0 + (i + 1) * WINDOW;
		const struct pic_target *t;

		look(&kit, at - 500, at, 5, found[i]);
		t = window(&kit, at, &pic);
		assert_int_equal(in_hole(t, 5), i == 0 ? WINDOW - 10000 : 0);
		assert_int_equal(unknown(t, 5), i == 1 ? WINDOW : 0);
		assert_int_equal(waited(t, 5), i == 2 ? WINDOW : 0);
		picture__free(pic);
	}
	finish(&kit);
	timeline__free(kit.tl);
}

/* ── in captures ─────────────────────────────────────────────────────────────────────────── */

struct sum {
	uint64_t waited[8], in_hole[8], wall[8]; /* by thread */
};

static void add(void *ctx, const struct picture *pic)
{
	struct sum *sum = ctx;
	const struct pic_target *t = picture__target(pic, 0);

	for (uint64_t tso = 0; tso < ARRAY_SIZE(sum->waited); tso++)
		if (find(t, tso)) {
			sum->waited[tso] += waited(t, tso);
			sum->in_hole[tso] += in_hole(t, tso);
			sum->wall[tso] += find(t, tso)->end_ns - find(t, tso)->start_ns;
		}
}

static struct sum sum_of(uint64_t window_ns)
{
	struct sum sum = {0};

	replay_windows(window_ns, true, add, &sum);
	return sum;
}

/* The windows together have what the whole session has. */
static void check_windows(const struct sum *whole)
{
	for (uint64_t n = 2; n <= 10; n++) {
		struct sum many = sum_of((END - T0) / n);

		assert_memory_equal(&many, whole, sizeof(*whole));
	}
}

static void begin_captured(struct kit *kit, struct capture **ret_capture)
{
	union rec r;

	kit_capture(kit, &opts, ret_capture);
	kit_add(kit, PID, T0);
	put(kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
}

/* Returns what a replay of the whole capture has. */
static struct sum end_captured(struct kit *kit, struct capture *capture)
{
	assert_int_equal(timeline__finish(kit->tl, END), 0);
	assert_int_equal(capture__finish(capture), 0);
	timeline__free(kit->tl);
	return sum_of(0);
}

/* The same; the last look finds that 5 waits. */
static struct sum end_captured_waiting(struct kit *kit, struct capture *capture)
{
	put_snap(kit, NULL, 0, true);
	look(kit, END - 10000, END, 5, BLOCKED_ON_MVAR);
	return end_captured(kit, capture);
}

/*
 * 5 waits to the end, 6 up to a time between two looks, and 7 has ended before the first look. No
 * cut comes while they run.
 */
static void test_captured(void **state)
{
	struct capture *capture;
	struct sum whole;
	struct kit kit;

	(void)state;
	begin_captured(&kit, &capture);
	for (uint64_t tso = 5; tso < 8; tso++)
		waits(&kit, T0 + (tso - 5) * 20000, tso, BLOCKED_ON_MVAR,
		      tso < 7 ? T0 + (tso - 4) * 20000 : T0 + 300000);
	for (uint64_t tso = 5; tso < 7; tso++)
		look(&kit, T0 + 290000, T0 + 300000, tso, BLOCKED_ON_MVAR);
	sleeps(&kit, T0 + 300000, END);
	whole = end_captured_waiting(&kit, capture);
	assert_int_equal(whole.waited[5], END - T0 - 10000);
	assert_int_equal(whole.waited[6], 300000 - 30000);
	assert_int_equal(whole.waited[7], 0);
	check_windows(&whole);
}

/*
 * The only look finds 5. The others have ended by then: 6 is seen to run once more, and 7 to be in
 * a call. A look that missed 6 changes nothing.
 */
static void test_captured_seen_later(void **state)
{
	struct capture *capture;
	struct sum whole;
	struct kit kit;
	union rec r;

	(void)state;
	for (unsigned missed = 0; missed < 2; missed++) {
		begin_captured(&kit, &capture);
		for (uint64_t tso = 5; tso < 8; tso++)
			waits(&kit, T0 + (tso - 5) * 20000, tso, BLOCKED_ON_MVAR,
			      tso < 7 ? T0 + (tso - 4) * 20000 : T0 + 430000);
		if (missed)
			look(&kit, T0 + 290000, T0 + 300000, 5, BLOCKED_ON_MVAR);
		waits(&kit, T0 + 430000, 6, BLOCKED_ON_MVAR, T0 + 770000);
		mk_call(&r, 7, T0 + 770000, T0 + 780000, 0x1234, STOP);
		r.call.rts.tso = 0x1000;
		r.call.rts.tso_id = 7;
		put(&kit, &r);
		sleeps(&kit, T0 + 780000, END);
		whole = end_captured_waiting(&kit, capture);
		assert_int_equal(whole.waited[5], END - T0 - 10000);
		assert_int_equal(whole.waited[6], 430000 - 30000);
		assert_int_equal(whole.waited[7], 770000 - 50000);
		check_windows(&whole);
	}
}

/*
 * A thread that ran twice more, so briefly that only its stops were reported, has waited up to the
 * last stop.
 */
static void test_captured_stops(void **state)
{
	struct capture *capture;
	struct sum whole;
	struct kit kit;

	(void)state;
	begin_captured(&kit, &capture);
	waits(&kit, T0, 6, BLOCKED_ON_MVAR, T0 + 300000);
	put_left(&kit, T0 + 310000, 0, 6, BLOCKED_ON_MVAR);
	sleeps(&kit, T0 + 310000, T0 + 600000);
	put_left(&kit, T0 + 610000, 0, 6, BLOCKED_ON_MVAR);
	sleeps(&kit, T0 + 610000, END);
	whole = end_captured_waiting(&kit, capture);
	assert_int_equal(whole.waited[6], 610000 - 10000);
	check_windows(&whole);
}

/*
 * What the threads wait for is not known: 5 could not be read as it stopped, and 6 was ready. Both
 * run again, and meanwhile they are in all windows; 7 does not, and is in none after its stop. No
 * cut comes while they run.
 */
static void test_captured_gaps(void **state)
{
	struct capture *capture;
	struct sum whole;
	struct kit kit;

	(void)state;
	for (unsigned looked = 0; looked < 2; looked++) {
		begin_captured(&kit, &capture);
		waits(&kit, T0, 5, WIRE_TSO_UNKNOWN, T0 + 20000);
		waits(&kit, T0 + 20000, 6, NOT_BLOCKED, T0 + 40000);
		waits(&kit, T0 + 40000, 7, WIRE_TSO_UNKNOWN, T0 + 755000);
		waits(&kit, T0 + 755000, 6, BLOCKED_ON_MVAR, T0 + 840000);
		waits(&kit, T0 + 840000, 5, BLOCKED_ON_MVAR, END);
		put_snap(&kit, NULL, 0, true);
		if (looked)
			look(&kit, END - 10000, END, 5, BLOCKED_ON_MVAR);
		whole = end_captured(&kit, capture);
		assert_int_equal(whole.wall[5], END - T0);
		assert_int_equal(whole.wall[6], (looked ? T0 + 765000 : END) - T0 - 20000);
		assert_int_equal(whole.wall[7], 10000);
		check_windows(&whole);
	}
}

/*
 * 5 runs again, and so briefly that only its stop is reported; 6 runs again; 7 does not, and the
 * last look finds that it waits for something else. No cut comes while they run.
 */
static void test_captured_black_holes(void **state)
{
	struct capture *capture;
	struct sum whole;
	struct kit kit;

	(void)state;
	begin_captured(&kit, &capture);
	for (uint64_t tso = 5; tso < 8; tso++)
		waits(&kit, T0 + (tso - 5) * 20000, tso, BLOCKED_ON_BLACKHOLE,
		      tso < 7 ? T0 + (tso - 4) * 20000 : T0 + 600000);
	put_left(&kit, T0 + 610000, 0, 5, BLOCKED_ON_MVAR);
	sleeps(&kit, T0 + 610000, T0 + 755000);
	waits(&kit, T0 + 755000, 6, BLOCKED_ON_MVAR, END);
	put_snap(&kit, NULL, 0, true);
	for (uint64_t tso = 5; tso < 8; tso++)
		look(&kit, END - 10000, END, tso, BLOCKED_ON_MVAR);
	whole = end_captured(&kit, capture);
	assert_int_equal(whole.in_hole[5], 610000 - 10000);
	assert_int_equal(whole.waited[5], END - T0 - 610000);
	assert_int_equal(whole.in_hole[6], 755000 - 30000);
	assert_int_equal(whole.in_hole[7], 0);
	assert_int_equal(whole.waited[7], 0);
	assert_int_equal(whole.wall[7], END - T0 - 40000);
	check_windows(&whole);
}

/* No look comes, since the program ends. */
static void test_captured_exit(void **state)
{
	struct capture *capture;
	struct sum whole;
	struct kit kit;
	union rec r;

	(void)state;
	begin_captured(&kit, &capture);
	waits(&kit, T0, 5, BLOCKED_ON_BLACKHOLE, END - 1000);
	put(&kit, mk_event(&r, WIRE_PROC_EXIT, 7, END));
	whole = end_captured(&kit, capture);
	assert_int_equal(whole.in_hole[5], END - T0 - 10000);
	check_windows(&whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_black_hole),
		cmocka_unit_test(test_black_hole_in_windows),
		cmocka_unit_test(test_captured),
		cmocka_unit_test(test_captured_seen_later),
		cmocka_unit_test(test_captured_stops),
		cmocka_unit_test(test_captured_gaps),
		cmocka_unit_test(test_captured_black_holes),
		cmocka_unit_test(test_captured_exit),
	};

	log__set_level(LOG_LVL_QUIET);
	return cmocka_run_group_tests_name("timeline_waits", tests, make_folder, remove_folder);
}
