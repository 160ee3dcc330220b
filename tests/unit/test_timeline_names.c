/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names that improve during a session, and what was recorded before they did; names of threads; the
 * time of the probes themselves.
 */
#include "picture/make.h"
#include "test_timeline_kit.h"

static void put_samples(struct kit *kit, unsigned n)
{
	static uint64_t at;
	union rec r;

	at = n == 3 ? T0 : at;
	for (unsigned i = 0; i < n; i++) {
		at += 100;
		put(kit, mk_sample(&r, 7, at, WIRE_WHERE_HASKELL, HS(1 + i % 2), IP(HS(1 + i % 2)),
				   RET(HS(3)), STOP));
	}
}

static uint64_t samples_of(const struct pic_target *t, const char *name)
{
	uint64_t n = 0;

	for (size_t i = 0; i < t->n_functions; i++)
		if (!strcmp(t->functions[i].name, name))
			n += t->functions[i].self_samples;
	return n;
}

static void begin(struct kit *kit, bool alike)
{
	union rec r;

	kit_new(kit);
	kit->hurried = true;
	kit->alike = alike;
	put_samples(kit, 3);
	put(kit, mk_call(&r, 7, T0 + 1000, T0 + 50000, SITE(1), RET(HS(3)), STOP));
}

/* Stacks that were recorded earlier get the better names, too, and are counted by these. */
static void test_renamed(void **state)
{
	const struct pic_target *t;
	struct kit kit;

	(void)state;
	begin(&kit, false);
	kit.hurried = false;
	assert_int_equal(intake__rename(kit.in), 0);
	put_samples(&kit, 2);
	t = finish(&kit);
	assert_int_equal(samples_of(t, "Main.h1"), 3);
	assert_int_equal(samples_of(t, "Main.h2"), 2);
	for (size_t i = 0; i < t->n_functions; i++)
		assert_null(strstr(t->functions[i].name, "[prog]"));
	assert_int_equal(t->names.none, 0);
	assert_true(t->names.exact > 0);
	assert_int_equal(t->leaf_names.exact, 5);
	timeline__free(kit.tl);
}

/* A name that was met again, and asked for, before the renaming. */
static void test_renamed_after_a_meeting(void **state)
{
	const struct pic_target *t;
	struct kit kit;

	(void)state;
	begin(&kit, false);
	kit.hurried = false;
	put_samples(&kit, 8);
	assert_int_equal(intake__rename(kit.in), 0);
	t = finish(&kit);
	assert_int_equal(samples_of(t, "Main.h1"), 6);
	assert_int_equal(samples_of(t, "Main.h2"), 5);
	assert_int_equal(t->leaf_names.exact, 11);
	timeline__free(kit.tl);
}

/* Nothing shows which of the two functions is in a stack that was recorded earlier. */
static void test_one_name_for_two(void **state)
{
	const struct pic_target *t;
	struct kit kit;

	(void)state;
	begin(&kit, true);
	kit.hurried = false;
	assert_int_equal(intake__rename(kit.in), 0);
	put_samples(&kit, 2);
	t = finish(&kit);
	assert_int_equal(samples_of(t, "[prog]+0x10"), 3);
	assert_int_equal(samples_of(t, "Main.h1"), 1);
	assert_int_equal(samples_of(t, "Main.h2"), 1);
	timeline__free(kit.tl);
}

/* A site that there was no time to name is not unknown for good: the next window has its name. */
static void test_site_of_next_window(void **state)
{
	const struct wire_site_key key = {.site = SITE(3), .tgid = PID};
	struct wire_site site = {.calls = 1, .wall_ns = 49000, .min_ns = 49000, .max_ns = 49000};
	const uint64_t cut = T0 + 2000000000ULL;
	const struct pic_target *t;
	struct picture *pic;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	kit.no_sites = true;
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put(&kit, mk_call(&r, 7, T0 + 1000, T0 + 50000, SITE(3), RET(HS(3)), STOP));
	kit.no_sites = false;
	assert_int_equal(intake__site_counters(kit.in, &key, &site, 0), 0);
	assert_int_equal(timeline__window(kit.tl, cut, &pic), 0);
	kit.pic = timeline__picture(kit.tl);
	t = picture__target(pic, 0);
	assert_int_equal(t->n_calls, 1);
	assert_string_equal(t->calls[0].function, "[unknown function]");
	picture__free(pic);
	put(&kit, mk_call(&r, 7, cut + 1000, cut + 50000, SITE(3), RET(HS(3)), STOP));
	site.calls = 2;
	site.wall_ns *= 2;
	assert_int_equal(intake__site_counters(kit.in, &key, &site, 0), 0);
	t = finish(&kit);
	assert_int_equal(t->n_calls, 1);
	assert_string_equal(t->calls[0].function, "c3");
	assert_string_equal(t->calls[0].library, "libc.so");
	timeline__free(kit.tl);
}

static void check_probed(uint64_t ip, const uint64_t *frames, const char *expect, const char *own)
{
	const struct target_info info = {.pid = PID,
					 .comm = "prog",
					 .gc_end = {.found = FOUND_CODE, .addr = RTS(1) + 8},
					 .tick = {.addr = RTS(2) + 8}};
	const struct pic_target *t;
	const struct pic_lane *lane;
	struct kit kit;
	union rec r;

	kit_new(&kit);
	assert_int_equal(intake__update_target(kit.in, &info), 0);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, END - 1000));
	put(&kit,
	    mk_sample(&r, 7, END - 500, WIRE_WHERE_RTS, ip, frames[0], frames[1], frames[2], STOP));
	t = finish(&kit);
	lane = lane_of(t, 7);
	assert_int_equal(lane->n_slices, 1);
	assert_string_equal(stack_text(kit.pic, lane->slices[0].stack), expect);
	for (size_t i = 0; i < t->n_functions; i++)
		assert_int_equal(t->functions[i].self_samples, !strcmp(t->functions[i].name, own));
	timeline__free(kit.tl);
}

/* What runs right at a probed place is in the probe's trap, and is not the function's time. */
static void test_probed(void **state)
{
	static const struct {
		uint64_t ip, frames[3];
		const char *expect, *own;
	} cases[] = {
		{RTS(1) + 8,
		 {CIP(RTS(1) + 8), CRET(RTS(2))},
		 "[RTS];r2;r1;[safescoped's probe]",
		 "[safescoped's probe]"},
		/* the stack without that frame */
		{RTS(1) + 8,
		 {CRET(RTS(2))},
		 "[RTS];r2;r1;[safescoped's probe]",
		 "[safescoped's probe]"},
		/* the next instruction; a caller's frame at that place; a place without a probe */
		{RTS(1) + 10, {CIP(RTS(1) + 10), CRET(RTS(2))}, "[RTS];r2;r1", "r1"},
		{RTS(3), {CIP(RTS(3)), CRET(RTS(1) + 8)}, "[RTS];r1;r3", "r3"},
		{RTS(2) + 8, {CIP(RTS(2) + 8), CRET(RTS(3))}, "[RTS];r3;r2", "r2"},
		/* an interrupt at that very place */
		{RTS(1) + 8,
		 {FR(WIRE_FRAME_KERNEL, 0x1234), CIP(RTS(1) + 8), CRET(RTS(2))},
		 "[RTS];r2;r1;[unmapped]",
		 "[unmapped]"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_probed(cases[i].ip, cases[i].frames, cases[i].expect, cases[i].own);
}

/* A thread has its parent's name until it gets one of its own. */
static void test_thread_gets_a_name(void **state)
{
	const struct pic_target *t;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 8, T0));
	mk_event(&r, WIRE_THREAD_NAME, 7, T0 + 1000);
	memcpy(r.event.comm, "sixteen bytes 16", sizeof(r.event.comm));
	put(&kit, &r);
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 8, T0 + 2000));
	/* of a thread that has ended, and of one that is not known */
	for (pid_t tid = 8; tid <= 9; tid++) {
		mk_event(&r, WIRE_THREAD_NAME, tid, T0 + 3000);
		snprintf(r.event.comm, sizeof(r.event.comm), "late");
		put(&kit, &r);
	}
	t = finish(&kit);
	assert_int_equal(t->lanes[LANE_THREAD].n, 2);
	assert_string_equal(lane_of(t, 7)->name, "sixteen bytes 1");
	assert_string_equal(lane_of(t, 8)->name, "t8");
	timeline__free(kit.tl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_renamed),
		cmocka_unit_test(test_renamed_after_a_meeting),
		cmocka_unit_test(test_one_name_for_two),
		cmocka_unit_test(test_site_of_next_window),
		cmocka_unit_test(test_thread_gets_a_name),
		cmocka_unit_test(test_probed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
