/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Haskell threads that were seen to wait, and what later looks into memory show of them. */
#include "capture/ahead_living_priv.h"
#include "capture/ahead_room_priv.h"
#include "intake/tap.h"
#include "test_timeline_living.h"

/*
 * 5 waits, 6 has ended unseen, and nothing is known of 7, which has waited since after the look
 * began.
 */
static void test_at_the_end(void **state)
{
	const struct pic_target *t;
	struct kit kit;

	(void)state;
	begin(&kit);
	waits(&kit, T0, 5, BLOCKED_ON_MVAR, T0 + 20000);
	waits(&kit, T0 + 20000, 6, BLOCKED_ON_MVAR, T0 + 500000);
	waits(&kit, T0 + 500000, 7, BLOCKED_ON_MVAR, END);
	look(&kit, T0 + 490000, END, 5, BLOCKED_ON_MVAR);
	t = finish(&kit);
	assert_int_equal(waited(t, 5), END - T0 - 10000);
	assert_int_equal(waited(t, 6), 0);
	assert_int_equal(find(t, 6)->end_ns, T0 + 30000);
	assert_int_equal(waited(t, 7), 0);
	assert_int_equal(find(t, 7)->end_ns, T0 + 510000);
	timeline__free(kit.tl);
}

/*
 * If the reason could not be read when the thread stopped, or the thread was ready and has run
 * unseen, the reason that the look finds counts. A thread that is ready may have run; a call would
 * have its record.
 */
static void test_why(void **state)
{
	static const struct {
		unsigned left, why;
		enum haskell_state state;
	} cases[] = {
		{WIRE_TSO_UNKNOWN, BLOCKED_ON_STM, HS_BLOCKED_STM},
		{NOT_BLOCKED, BLOCKED_ON_STM, HS_BLOCKED_STM},
		{NOT_BLOCKED, NOT_BLOCKED, HS_RUNNABLE},
		{BLOCKED_ON_MVAR, BLOCKED_ON_STM, HS_BLOCKED_MVAR},
		{WIRE_TSO_UNKNOWN, NOT_BLOCKED, HS_UNKNOWN},
		{WIRE_TSO_UNKNOWN, BLOCKED_ON_CCALL, HS_UNKNOWN},
		{WIRE_TSO_UNKNOWN, WIRE_TSO_UNKNOWN, HS_UNKNOWN},
	};
	const struct pic_lane *lane;
	struct kit kit;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		begin(&kit);
		waits(&kit, T0, 5, cases[i].left, END);
		look(&kit, T0 + 90000, END, 5, cases[i].why);
		lane = find(finish(&kit), 5);
		if (cases[i].state == HS_UNKNOWN)
			assert_int_equal(lane->end_ns, T0 + 10000);
		else
			assert_int_equal(lane->states_ns[cases[i].state], END - T0 - 10000);
		timeline__free(kit.tl);
	}
}

/*
 * Each request's thread waits for its answer and ends unseen: they do not pile up. A thread that
 * goes on waiting does so in each window, up to the look that does not find it.
 */
static void test_windows(void **state)
{
	const unsigned requests = 5;
	struct kit kit;

	(void)state;
	begin(&kit);
	waits(&kit, T0, 5, BLOCKED_ON_MVAR, T0 + 20000);
	for (unsigned w = 0; w < 6; w++) {
		uint64_t at = T0 + 20000 + w * WINDOW;
		struct picture *pic;
		const struct pic_target *t;

		for (unsigned i = 0; i < requests; i++, at += WINDOW / requests)
			waits(&kit, at, 100 * (w + 1) + i, BLOCKED_ON_MVAR, at + WINDOW / requests);
		look(&kit, at - 500, at, w < 3 ? 5 : 4, BLOCKED_ON_MVAR);
		t = window(&kit, at, &pic);
		assert_int_equal(t->lanes[LANE_HASKELL].n, requests + (w < 3));
		if (w < 3)
			assert_int_equal(find(t, 5)->end_ns, at);
		if (w && w < 3)
			assert_int_equal(waited(t, 5), WINDOW);
		for (unsigned i = 0; i < requests; i++)
			assert_int_equal(waited(t, 100 * (w + 1) + i), 0);
		picture__free(pic);
	}
	finish(&kit);
	timeline__free(kit.tl);
}

/*
 * A thread that began to wait after the look began is shown as waiting once the next look has found
 * it.
 */
static void test_after_the_look(void **state)
{
	struct kit kit;
	struct picture *pic;
	const struct pic_target *t;

	(void)state;
	begin(&kit);
	look(&kit, T0 - 1, T0 + 1, 0, 0);
	waits(&kit, T0, 5, BLOCKED_ON_MVAR, T0 + 20000);
	waits(&kit, T0 + 20000, 6, BLOCKED_ON_MVAR, T0 + 5 * WINDOW);
	look(&kit, T0 + 5000, T0 + WINDOW, 0, 0);
	t = window(&kit, T0 + WINDOW, &pic);
	assert_int_equal(waited(t, 5) + waited(t, 6), 0);
	picture__free(pic);
	/* and nothing more is known */
	t = window(&kit, T0 + WINDOW + WINDOW / 2, &pic);
	assert_int_equal(waited(t, 5), WINDOW / 2);
	assert_int_equal(waited(t, 6), WINDOW / 2);
	picture__free(pic);
	look(&kit, T0 + 2 * WINDOW - 500, T0 + 2 * WINDOW, 5, BLOCKED_ON_MVAR);
	t = window(&kit, T0 + 2 * WINDOW, &pic);
	assert_int_equal(waited(t, 5), WINDOW / 2);
	assert_null(find(t, 6));
	picture__free(pic);
	look(&kit, T0 + 3 * WINDOW - 500, T0 + 3 * WINDOW, 5, BLOCKED_ON_MVAR);
	t = window(&kit, T0 + 3 * WINDOW, &pic);
	assert_int_equal(waited(t, 5), WINDOW);
	assert_null(find(t, 6));
	picture__free(pic);
	finish(&kit);
	timeline__free(kit.tl);
}

/* Without another look, what was known holds. */
static void test_without_a_look(void **state)
{
	struct kit kit;
	struct picture *pic;

	(void)state;
	begin(&kit);
	waits(&kit, T0, 5, BLOCKED_ON_MVAR, T0 + 3 * WINDOW);
	look(&kit, T0 + WINDOW - 500, T0 + WINDOW, 5, BLOCKED_ON_MVAR);
	assert_int_equal(waited(window(&kit, T0 + WINDOW, &pic), 5), WINDOW - 10000);
	picture__free(pic);
	assert_int_equal(waited(window(&kit, T0 + 2 * WINDOW, &pic), 5), WINDOW);
	picture__free(pic);
	look(&kit, T0 + 2 * WINDOW + 20000, END, 0, 0);
	assert_null(find(finish(&kit), 5));
	timeline__free(kit.tl);
}

static void test_collections(void **state)
{
	struct kit kit;
	union rec r;

	(void)state;
	begin(&kit);
	put(&kit, mk_gc(&r, 7, WIRE_GC_START, T0 + 1000));
	assert_true(intake__collects(kit.in, PID, T0 + 2000, T0 + 3000));
	assert_false(intake__collects(kit.in, PID, T0, T0 + 500));
	put(&kit, mk_gc(&r, 7, WIRE_GC_END, T0 + 2500));
	assert_true(intake__collects(kit.in, PID, T0 + 2000, T0 + 3000));
	assert_false(intake__collects(kit.in, PID, T0 + 3000, T0 + 4000));
	assert_false(intake__collects(kit.in, PID + 1, T0, END));
	finish(&kit);
	timeline__free(kit.tl);
}

static void test_hostile(void **state)
{
	const struct target_living_thread one = {.id = 5};
	struct kit kit;

	(void)state;
	begin(&kit);
	waits(&kit, T0, 5, BLOCKED_ON_MVAR, END);
	assert_int_equal(intake__living(kit.in, PID, &one, 1, T0 + 2, T0 + 1), -EBADMSG);
	assert_int_equal(intake__living(kit.in, PID, &one, 1, T0, UINT64_MAX), -EBADMSG);
	assert_int_equal(intake__living(kit.in, PID + 1, &one, 1, T0, T0), -ENOENT);
	assert_int_equal(intake__living_ahead(kit.in, PID, &one, 1, T0 + 2, T0 + 1), -EBADMSG);
	assert_int_equal(waited(finish(&kit), 5), END - T0 - 10000);
	assert_int_equal(intake__living(kit.in, PID, &one, 1, T0, T0), -EINVAL);
	timeline__free(kit.tl);
}

/*
 * A program that has ended can no longer be looked at. What was waiting for a value in an MVar
 * waits to the end; what threw an exception at another thread has probably got rid of it, and
 * ended.
 */
static void test_ended_without_a_look(void **state)
{
	static const struct {
		unsigned why;
		uint64_t end_ns;
	} cases[] = {
		{BLOCKED_ON_MVAR, END},
		{BLOCKED_ON_THROW_TO, T0 + 10000},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct kit kit;

		begin(&kit);
		waits(&kit, T0, 5, cases[i].why, END);
		assert_int_equal(intake__end_target(kit.in, PID, "exited 0", END), 0);
		assert_int_equal(find(finish(&kit), 5)->end_ns, cases[i].end_ns);
		timeline__free(kit.tl);
	}
}

/* as many as notes.c has room for */
#define MAX_TSOS ((size_t)1 << 20)

/*
 * A look at more threads than there is room for is reported as missing; the others are kept alive
 * by it.
 */
static void test_ahead_without_room(void **state)
{
	struct target_living_thread *v = calloc(MAX_TSOS + 2, sizeof(*v));
	const struct intake_input look = {.kind = TI_LIVING,
					  .pid = PID,
					  .a = END - 1000,
					  .b = END - 2000,
					  .data = v,
					  .size = (MAX_TSOS + 2) * sizeof(*v)};
	struct ahead_living living = {.every_ns = WINDOW};
	struct ahead_room room = {0};
	struct kit kit;

	(void)state;
	assert_non_null(v);
	begin(&kit);
	waits(&kit, T0, 5, BLOCKED_ON_MVAR, END);
	for (size_t i = 0; i < MAX_TSOS + 1; i++)
		v[i].id = 1000 + i;
	v[MAX_TSOS + 1] = (struct target_living_thread){.id = 5, .why_blocked = BLOCKED_ON_STM};
	assert_int_equal(ahead_living__add(&living, &room, 0, &look), 0);
	free(v);
	assert_int_equal(ahead_living__looked(&living), 0);
	assert_int_equal(ahead_living__give(&living, &room, 0, kit.in, PID), 0);
	assert_int_equal(room.left_out[AHEAD_HASKELL], 1);
	assert_int_equal(intake__seen_ahead(kit.in, PID, 7, T0), -E2BIG);
	assert_int_equal(waited(finish(&kit), 5), END - T0 - 10000);
	ahead_living__free(&living);
	timeline__free(kit.tl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_at_the_end),
		cmocka_unit_test(test_why),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_after_the_look),
		cmocka_unit_test(test_without_a_look),
		cmocka_unit_test(test_collections),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_ahead_without_room),
		cmocka_unit_test(test_ended_without_a_look),
	};

	log__set_level(LOG_LVL_QUIET);
	return cmocka_run_group_tests_name("timeline_living", tests, NULL, NULL);
}
