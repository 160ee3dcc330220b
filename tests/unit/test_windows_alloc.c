/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocation in windows: each has all of its own bytes, and no others. */
#include "test_timeline_alloc.h"

/* The window up to `at`; its profile must cover all that was allocated in it. */
static const struct pic_target *window_to(struct kit *kit, uint64_t at, struct picture **ret_pic)
{
	const struct pic_target *t;

	assert_int_equal(timeline__window(kit->tl, at, ret_pic), 0);
	t = picture__target(*ret_pic, 0);
	assert_int_equal(rows_of(t), t->alloc.bytes);
	assert_int_equal(t->alloc.sampled_bytes + t->alloc.unsampled_bytes, t->alloc.bytes);
	return t;
}

static const struct pic_target *last_of(struct kit *kit)
{
	const struct pic_target *t = finish_at(kit, END);

	assert_int_equal(rows_of(t), t->alloc.bytes);
	return t;
}

/*
 * Bytes without a sample by a window's end stay without one: the next sample stands only for later
 * ones.
 */
static void test_no_sample(void **state)
{
	const struct pic_target *t;
	struct picture *first;
	struct kit kit;

	(void)state;
	kit_new(&kit);
	put_alloc(&kit, T0 + 1000, 0, WIRE_ALLOC_NURSERY, 1);
	put_heap(&kit, T0 + 2000, 0, 4 * MB, 3 * MB, 0);
	/* the end of this one comes after the cut */
	put_alloc(&kit, T0 + 9000, 0, WIRE_ALLOC_NURSERY, 1);
	t = window_to(&kit, T0 + 10000, &first);
	assert_int_equal(t->alloc.bytes, 7 * MB);
	assert_int_equal(self_of(first, t, "Main.h1"), 4 * MB);
	assert_int_equal(t->alloc.unsampled_bytes, 3 * MB);
	put_heap(&kit, T0 + 11000, 1, 9 * MB, 3 * MB, 0);
	put_alloc(&kit, T0 + 12000, 1, WIRE_ALLOC_NURSERY, 2);
	put_heap(&kit, T0 + 13000, 2, 10 * MB, 4 * MB, 0);
	t = last_of(&kit);
	assert_int_equal(t->alloc.bytes, 7 * MB);
	assert_int_equal(self_of(kit.pic, t, "Main.h1"), 5 * MB);
	assert_int_equal(self_of(kit.pic, t, "Main.h2"), 1 * MB);
	assert_int_equal(t->alloc.unsampled_bytes, 1 * MB);
	picture__free(first);
	timeline__free(kit.tl);
}

/* A collection covers what ticks had taken, in the previous window as well. */
static void test_ticks_before(void **state)
{
	const struct pic_target *t;
	struct picture *first;
	struct kit kit;

	(void)state;
	kit_new(&kit);
	put_tick(&kit, T0 + 60 * MS, 1, 10 * MB);
	put_tick(&kit, T0 + 70 * MS, 2, 14 * MB);
	t = window_to(&kit, T0 + 80 * MS, &first);
	assert_int_equal(t->heap.minor_bytes, 0);
	put_heap(&kit, T0 + 91 * MS, 0, 0, 17 * MB, 0);
	t = finish_at(&kit, T0 + 200 * MS);
	assert_int_equal(t->heap.minor_bytes, 17 * MB);
	picture__free(first);
	timeline__free(kit.tl);
}

/*
 * Nothing that is allocated ever has a sample, since the program itself requests all collections:
 * each window has its own part, and the last one does not have all of it.
 */
static void test_never_sampled(void **state)
{
	const struct pic_target *t;
	struct picture *pic;
	struct kit kit;

	(void)state;
	kit_new(&kit);
	for (uint64_t i = 0; i < 20; i++) {
		put_heap(&kit, T0 + i * 1000 + 500, i, (i + 1) * 3 * MB, (i + 1) * MB,
			 (i + 1) * MB);
		t = window_to(&kit, T0 + (i + 1) * 1000, &pic);
		assert_int_equal(t->alloc.unsampled_bytes, 4 * MB);
		assert_int_equal(t->alloc.samples, 0);
		picture__free(pic);
	}
	put_heap(&kit, T0 + 20500, 20, 61 * MB, 20 * MB, 20 * MB);
	t = last_of(&kit);
	assert_int_equal(t->alloc.unsampled_bytes, 1 * MB);
	timeline__free(kit.tl);
}

/* Samples of the next window have already come when this one is made. */
static void test_late_cut(void **state)
{
	const struct pic_target *t;
	struct picture *first;
	struct kit kit;

	(void)state;
	kit_new(&kit);
	put_alloc(&kit, T0 + 1000, 0, WIRE_ALLOC_NURSERY, 1);
	put_heap(&kit, T0 + 2000, 0, 5 * MB, 3 * MB, 0);
	put_heap(&kit, T0 + 9000, 1, 7 * MB, 4 * MB, 2 * MB);
	/* this sample stands for all that capability 1 has allocated, and so does the next one */
	put_alloc(&kit, T0 + 11000, 1, WIRE_ALLOC_NURSERY, 2);
	put_heap(&kit, T0 + 12000, 2, 8 * MB, 9 * MB, 2 * MB);
	put_alloc(&kit, T0 + 13000, 1, WIRE_ALLOC_NURSERY, 3);
	put_heap(&kit, T0 + 14000, 3, 8 * MB, 11 * MB, 2 * MB);
	/* everything that it stands for was before the cut */
	put_alloc(&kit, T0 + 15000, 0, WIRE_ALLOC_LARGE, 4);
	put_heap(&kit, T0 + 16000, 4, 8 * MB, 11 * MB, 2 * MB);
	t = window_to(&kit, T0 + 10000, &first);
	assert_int_equal(t->alloc.bytes, 11 * MB);
	assert_int_equal(t->alloc.unsampled_bytes, 6 * MB);
	t = last_of(&kit);
	assert_int_equal(t->alloc.bytes, 8 * MB);
	assert_int_equal(t->alloc.samples, 2);
	assert_int_equal(self_of(kit.pic, t, "Main.h2"), 5 * MB);
	assert_int_equal(self_of(kit.pic, t, "Main.h3"), 2 * MB);
	assert_int_equal(self_of(kit.pic, t, "Main.h4"), 0);
	assert_int_equal(t->alloc.unsampled_bytes, 1 * MB);
	picture__free(first);
	timeline__free(kit.tl);
}

/*
 * The next window's reading has already come, and the sample that it belongs to has not: the sample
 * loses nothing of what it stands for.
 */
static void test_late_reading(void **state)
{
	const struct pic_target *t;
	struct picture *first;
	struct kit kit;

	(void)state;
	kit_new(&kit);
	put_alloc(&kit, T0 + 1000, 0, WIRE_ALLOC_NURSERY, 1);
	put_heap(&kit, T0 + 2000, 0, 4 * MB, 3 * MB, 0);
	put_heap(&kit, T0 + 11000, 1, 9 * MB, 3 * MB, 0);
	t = window_to(&kit, T0 + 10000, &first);
	assert_int_equal(t->alloc.unsampled_bytes, 3 * MB);
	put_alloc(&kit, T0 + 12000, 0, WIRE_ALLOC_NURSERY, 1);
	put_heap(&kit, T0 + 13000, 2, 10 * MB, 3 * MB, 0);
	t = last_of(&kit);
	assert_int_equal(self_of(kit.pic, t, "Main.h1"), 6 * MB);
	assert_int_equal(t->alloc.unsampled_bytes, 0);
	picture__free(first);
	timeline__free(kit.tl);
}

/* A process that ends in a window, and one that is known to have ended after the window. */
static void test_end(void **state)
{
	const struct pic_target *t;
	struct picture *first, *second;
	struct kit kit;
	union rec ev;

	(void)state;
	kit_new(&kit);
	put_alloc(&kit, T0 + 1000, 0, WIRE_ALLOC_NURSERY, 1);
	put_heap(&kit, T0 + 2000, 0, 4 * MB, 3 * MB, 0);
	put_heap(&kit, T0 + 3000, 1, 5 * MB, 3 * MB, 0);
	put_heap(&kit, T0 + 9500, 2, 7 * MB, 3 * MB, 0);
	put(&kit, mk_event(&ev, WIRE_PROC_EXIT, 7, T0 + 10000));
	t = window_to(&kit, T0 + 9000, &first);
	assert_int_equal(t->alloc.bytes, 8 * MB);
	assert_int_equal(t->alloc.unsampled_bytes, 4 * MB);
	t = window_to(&kit, T0 + 20000, &second);
	assert_int_equal(t->alloc.bytes, 2 * MB);
	assert_int_equal(t->alloc.unsampled_bytes, 2 * MB);
	picture__free(first);
	picture__free(second);
	timeline__free(kit.tl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_sample),     cmocka_unit_test(test_ticks_before),
		cmocka_unit_test(test_never_sampled), cmocka_unit_test(test_late_cut),
		cmocka_unit_test(test_late_reading),  cmocka_unit_test(test_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
