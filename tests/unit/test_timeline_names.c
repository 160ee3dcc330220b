/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names that become better while a session goes on, and what was recorded before they did. */
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

/* The stacks that were recorded by then have them, too, and they are counted as what they are. */
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

/* A name that was met again, and asked for, before that. */
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

/* Nothing shows which of them is in a stack that was recorded before. */
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

/* A site that there was no time for is not unknown for good: the next window has its name. */
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
	assert_int_equal(intake__site_counters(kit.in, &key, &site), 0);
	assert_int_equal(timeline__window(kit.tl, cut, &pic), 0);
	kit.pic = timeline__picture(kit.tl);
	t = picture__target(pic, 0);
	assert_int_equal(t->n_calls, 1);
	assert_string_equal(t->calls[0].function, "[unknown function]");
	picture__free(pic);
	put(&kit, mk_call(&r, 7, cut + 1000, cut + 50000, SITE(3), RET(HS(3)), STOP));
	site.calls = 2;
	site.wall_ns *= 2;
	assert_int_equal(intake__site_counters(kit.in, &key, &site), 0);
	t = finish(&kit);
	assert_int_equal(t->n_calls, 1);
	assert_string_equal(t->calls[0].function, "c3");
	assert_string_equal(t->calls[0].library, "libc.so");
	timeline__free(kit.tl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_renamed),
		cmocka_unit_test(test_renamed_after_a_meeting),
		cmocka_unit_test(test_one_name_for_two),
		cmocka_unit_test(test_site_of_next_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
