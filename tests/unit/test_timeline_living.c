/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Haskell threads that were seen to wait, and what later looks into memory show of them. */
#include "capture/ahead_living_priv.h"
#include "capture/ahead_room_priv.h"
#include "capture_kit.h"
#include "intake/seen.h"
#include "picture/make.h"

#define WINDOW 100000ULL

#define NOT_BLOCKED	 0
#define BLOCKED_ON_MVAR	 1
#define BLOCKED_ON_STM	 6
#define BLOCKED_ON_CCALL 10
#define THREAD_RUN_GHC	 1

static const struct timeline_opts opts = {
	.haskell_lanes = true, .start_ns = T0, .start_unix_ns = UINT64_C(1795270032155432149)};

static void hs_sample(struct kit *kit, pid_t tid, uint64_t ns, uint64_t tso)
{
	union rec r;

	mk_sample(&r, tid, ns, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP);
	r.sample.rts.tso = 0x1000;
	r.sample.rts.tso_id = tso;
	put(kit, &r);
}

/*
 * From now on the OS thread runs `tso` (0: none), after leaving the thread `left` for the reason
 * `why`.
 */
static void put_left(struct kit *kit, uint64_t ns, uint64_t tso, uint64_t left, unsigned why)
{
	union {
		union rec r;
		struct wire_tso tso;
	} u;

	rec_head(&u.r, WIRE_TSO, 7, ns, sizeof(u.tso));
	u.tso.id = tso;
	u.tso.left_id = left;
	u.tso.left_why = (uint16_t)why;
	u.tso.left_what_next = THREAD_RUN_GHC;
	put(kit, &u.r);
}

static void sleeps(struct kit *kit, uint64_t from, uint64_t to)
{
	union rec r;

	put(kit, mk_off(&r, 7, from, to, to, WIRE_WHERE_NO_CAP, STOP));
}

/* `tso` runs, and begins to wait 10 µs after `at`; the OS thread sleeps until `until`. */
static void waits(struct kit *kit, uint64_t at, uint64_t tso, unsigned why, uint64_t until)
{
	put_left(kit, at + 1000, tso, 0, WIRE_TSO_UNKNOWN);
	hs_sample(kit, 7, at + 1000, tso);
	put_left(kit, at + 10000, 0, tso, why);
	sleeps(kit, at + 10000, until);
}

static void look(struct kit *kit, uint64_t began, uint64_t at, uint64_t tso, unsigned why)
{
	const struct target_living_thread v[] = {
		{.id = 1, .why_blocked = BLOCKED_ON_MVAR},
		{.id = tso, .why_blocked = (uint16_t)why},
	};

	assert_int_equal(intake__living(kit->in, PID, v, tso ? 2 : 1, began, at), 0);
}

static const struct pic_target *window(struct kit *kit, uint64_t at, struct picture **ret_pic)
{
	assert_int_equal(timeline__window(kit->tl, at, ret_pic), 0);
	assert_non_null(*ret_pic);
	check_all(*ret_pic);
	kit->pic = timeline__picture(kit->tl);
	return picture__target(*ret_pic, 0);
}

static const struct pic_lane *find(const struct pic_target *t, uint64_t tso)
{
	for (size_t i = 0; i < t->lanes[LANE_HASKELL].n; i++)
		if (t->lanes[LANE_HASKELL].v[i].tso == tso)
			return &t->lanes[LANE_HASKELL].v[i];
	return NULL;
}

static uint64_t waited(const struct pic_target *t, uint64_t tso)
{
	return find(t, tso)->states_ns[HS_BLOCKED_MVAR];
}

static void begin(struct kit *kit)
{
	union rec r;

	kit_new_opts(kit, &opts);
	put(kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
}

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

/* ── in captures ─────────────────────────────────────────────────────────────────────────── */

struct sum {
	uint64_t waited[8], wall[8]; /* by thread */
};

static void add(struct sum *sum, const struct picture *pic)
{
	const struct pic_target *t = picture__target(pic, 0);

	for (uint64_t tso = 0; tso < ARRAY_SIZE(sum->waited); tso++)
		if (find(t, tso)) {
			sum->waited[tso] += waited(t, tso);
			sum->wall[tso] += find(t, tso)->end_ns - find(t, tso)->start_ns;
		}
}

static int take_window(void *ctx, struct picture *pic)
{
	add(ctx, pic);
	picture__free(pic);
	return 0;
}

static struct sum sum_of(uint64_t window_ns)
{
	struct sum sum = {0};
	const struct replay_hooks hooks = {
		.ctx = &sum, .window_ns = window_ns, .window = take_window, .haskell_lanes = true};
	struct replay *r = replay_all(&hooks);

	add(&sum, replay__picture(r));
	replay__free(r);
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

static void end_captured(struct kit *kit, struct capture *capture)
{
	assert_int_equal(timeline__finish(kit->tl, END), 0);
	assert_int_equal(capture__finish(capture), 0);
	timeline__free(kit->tl);
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
	put_snap(&kit, NULL, 0, true);
	look(&kit, END - 10000, END, 5, BLOCKED_ON_MVAR);
	end_captured(&kit, capture);
	whole = sum_of(0);
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
		put_snap(&kit, NULL, 0, true);
		look(&kit, END - 10000, END, 5, BLOCKED_ON_MVAR);
		end_captured(&kit, capture);
		whole = sum_of(0);
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
	put_snap(&kit, NULL, 0, true);
	look(&kit, END - 10000, END, 5, BLOCKED_ON_MVAR);
	end_captured(&kit, capture);
	whole = sum_of(0);
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
		end_captured(&kit, capture);
		whole = sum_of(0);
		assert_int_equal(whole.wall[5], END - T0);
		assert_int_equal(whole.wall[6], (looked ? T0 + 765000 : END) - T0 - 20000);
		assert_int_equal(whole.wall[7], 10000);
		check_windows(&whole);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_at_the_end),     cmocka_unit_test(test_why),
		cmocka_unit_test(test_windows),	       cmocka_unit_test(test_after_the_look),
		cmocka_unit_test(test_without_a_look), cmocka_unit_test(test_collections),
		cmocka_unit_test(test_hostile),	       cmocka_unit_test(test_ahead_without_room),
		cmocka_unit_test(test_captured),       cmocka_unit_test(test_captured_seen_later),
		cmocka_unit_test(test_captured_stops), cmocka_unit_test(test_captured_gaps),
	};

	log__set_level(LOG_LVL_QUIET);
	return cmocka_run_group_tests_name("timeline_living", tests, make_folder, remove_folder);
}
