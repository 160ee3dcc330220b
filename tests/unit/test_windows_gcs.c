/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Windows and collections: each window has the part of a collection that was in it. */
#include "picture/make.h"
#include "test_timeline_gc.h"

#define CUT (T0 + 500000)

/* With the thread that collects. */
static void begin(struct kit *kit)
{
	union rec r;

	kit_new(kit);
	put(kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
}

/* A collection that was over at the cut is counted, and stopped nobody after it. */
static void test_collection(void **state)
{
	struct kit kit;
	struct picture *pic;
	const struct pic_target *t;

	(void)state;
	begin(&kit);
	put_gc(&kit, 7, WIRE_GC_SYNC, T0 + 10000);
	put_gc(&kit, 7, WIRE_GC_START, T0 + 12000);
	put_gc(&kit, 7, WIRE_GC_END, T0 + 20000);
	t = kit_window(&kit, CUT, &pic);
	assert_int_equal(t->gc.count, 1);
	assert_int_equal(t->gc.pause_ns, 8000);
	picture__free(pic);
	put_gc(&kit, 7, WIRE_GC_SYNC, CUT - 30000);
	put_gc(&kit, 7, WIRE_GC_START, CUT - 25000);
	put_gc(&kit, 7, WIRE_GC_END, CUT - 20000);
	put_gc(&kit, 7, WIRE_GC_SYNC, CUT + 10000);
	put_gc(&kit, 7, WIRE_GC_START, CUT + 11000);
	put_gc(&kit, 7, WIRE_GC_END, CUT + 15000);
	t = finish(&kit);
	assert_int_equal(t->gc.count, 2);
	assert_int_equal(t->gc.pause_ns, 4000);
	assert_int_equal(t->gc.max_pause_ns, 4000);
	assert_int_equal(t->n_gcs, 1);
	timeline__free(kit.tl);
}

/* A collection that goes on at the cut: no window's longest pause exceeds the sum of its pauses. */
static void test_collection_over_a_cut(void **state)
{
	struct kit kit;
	struct picture *pic;
	const struct pic_target *t;

	(void)state;
	begin(&kit);
	put_gc(&kit, 7, WIRE_GC_SYNC, CUT - 10000);
	put_gc(&kit, 7, WIRE_GC_START, CUT - 9000);
	t = kit_window(&kit, CUT, &pic);
	assert_int_equal(t->gc.count, 0);
	assert_int_equal(t->gc.pause_ns, 9000);
	picture__free(pic);
	put_gc(&kit, 7, WIRE_GC_END, CUT + 5000);
	t = finish(&kit);
	assert_int_equal(t->gc.count, 1);
	assert_int_equal(t->gc.pause_ns, 5000);
	assert_int_equal(t->gc.max_pause_ns, 5000);
	assert_int_equal(t->gcs[0].end_ns - t->gcs[0].start_ns, 5000);
	timeline__free(kit.tl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_collection),
		cmocka_unit_test(test_collection_over_a_cut),
	};

	return cmocka_run_group_tests_name("windows_gcs", tests, NULL, NULL);
}
