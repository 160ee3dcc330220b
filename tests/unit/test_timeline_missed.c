/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Collections that were missed, or of which only the end was seen. */
#include "picture/make.h"
#include "test_timeline_gc.h"

/* A collection that ends at 35000 and has its start noted at `start`; then two windows. */
static void check_unplaced(uint64_t start, unsigned missed)
{
	struct kit kit;
	union rec r;
	const struct pic_target *t;
	struct picture *window;

	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put_end(&kit, 7, 0, T0 + 15000, T0 + 20000);
	put_end(&kit, 7, 0, start, T0 + 35000);
	put_end(&kit, 7, 0, T0 + 40000, T0 + 41000);
	assert_int_equal(timeline__window(kit.tl, T0 + 50000, &window), 0);
	t = picture__target(window, 0);
	assert_int_equal(t->n_gcs, 3 - missed);
	assert_true(t->gc.known && !t->gc.inferred);
	assert_int_equal(t->gc.count, 3 - missed);
	assert_int_equal(pic_target__gcs_missed(t), missed);
	picture__free(window);
	put_end(&kit, 7, 0, T0 + 60000, T0 + 61000);
	assert_int_equal(timeline__window(kit.tl, T0 + 100000, &window), 0);
	t = picture__target(window, 0);
	assert_true(t->gc.known && !t->gc.inferred);
	assert_int_equal(t->gc.count, 1);
	assert_int_equal(pic_target__gcs_missed(t), 0);
	picture__free(window);
	timeline__free(kit.tl);
}

static void test_unplaced(void **state)
{
	(void)state;
	check_unplaced(T0 + 30000, 0);
	/* after its end, in another collection, and not read */
	check_unplaced(T0 + 36000, 1);
	check_unplaced(T0 + 19000, 1);
	check_unplaced(0, 1);
}

/* A collection that may have begun before the probes: what was seen since then is complete. */
static void test_first_unplaced(void **state)
{
	struct kit kit;
	union rec r;
	const struct pic_target *t;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put_gc(&kit, 7, WIRE_GC_END, T0 + 5000);
	put_gc(&kit, 7, WIRE_GC_START, T0 + 15000);
	put_gc(&kit, 7, WIRE_GC_END, T0 + 35000);
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 100000));
	t = finish(&kit);
	assert_true(t->gc.known && !t->gc.inferred);
	assert_int_equal(t->gc.count, 1);
	assert_int_equal(pic_target__gcs_missed(t), 0);
	timeline__free(kit.tl);
}

static void put_counted(struct kit *kit, uint64_t start, uint64_t finished)
{
	union rec r;

	put(kit, mk_gc(&r, 7, WIRE_GC_START, start));
	mk_gc(&r, 7, WIRE_GC_END, start + 1000);
	r.gc.number = finished;
	put(kit, &r);
}

static const struct pic_target *window_to(struct kit *kit, uint64_t at, struct picture **ret_window)
{
	assert_int_equal(timeline__window(kit->tl, at, ret_window), 0);
	return picture__target(*ret_window, 0);
}

/* The runtime's count shows those missed in between, across windows, and before the first one. */
static void test_missed(void **state)
{
	struct intake_cost cost = {0};
	const struct pic_target *t;
	struct picture *window;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put_counted(&kit, T0 + 10000, 18);
	put_counted(&kit, T0 + 20000, 19);
	assert_int_equal(intake__set_cost(kit.in, PID, &cost), 0);
	t = window_to(&kit, T0 + 30000, &window);
	assert_int_equal(t->gc.count, 2);
	/*
	 * if the process is older than the session, what was before the attach is not the session's
	 */
	assert_int_equal(pic_target__gcs_missed(t), 0);
	((struct pic_target *)t)->calls_missed = true;
	assert_int_equal(pic_target__gcs_missed(t), 18);
	picture__free(window);
	put_counted(&kit, T0 + 40000, 25);
	/* nothing shows when this one began */
	mk_gc(&r, 7, WIRE_GC_END, T0 + 50000);
	r.gc.number = 26;
	put(&kit, &r);
	t = window_to(&kit, T0 + 60000, &window);
	assert_int_equal(t->gc.count, 1);
	assert_int_equal(pic_target__gcs_missed(t), 5 + 1);
	picture__free(window);
	/* an impossible number, and one that was read twice */
	put_counted(&kit, T0 + 70000, UINT64_C(1) << 40);
	put_counted(&kit, T0 + 80000, 26);
	cost.calls_missed = true;
	assert_int_equal(intake__set_cost(kit.in, PID, &cost), 0);
	t = window_to(&kit, T0 + 90000, &window);
	assert_int_equal(t->gc.count, 2);
	/*
	 * once the process is known to have begun in the session, those before its first seen one
	 * are this window's
	 */
	assert_int_equal(pic_target__gcs_missed(t), 18);
	picture__free(window);
	/* no collection shows what was missed before the end of the hold */
	cost.held_up_until_ns = T0 + 95000;
	assert_int_equal(intake__set_cost(kit.in, PID, &cost), 0);
	t = window_to(&kit, T0 + 100000, &window);
	assert_true(pic_target__gcs_missed(t) == PIC_GCS_UNKNOWN);
	picture__free(window);
	put_counted(&kit, T0 + 105000, 30);
	t = window_to(&kit, T0 + 110000, &window);
	assert_int_equal(pic_target__gcs_missed(t), 3);
	picture__free(window);
	timeline__free(kit.tl);
}

/* Without any count nothing is known about a process that began in the session. */
static void test_not_counted(void **state)
{
	const struct intake_cost cost = {.calls_missed = true};
	const struct pic_target *t;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put_counted(&kit, T0 + 10000, WIRE_GC_NO_NUMBER);
	t = finish(&kit);
	assert_int_equal(pic_target__gcs_missed(t), 0);
	assert_int_equal(intake__set_cost(kit.in, PID, &cost), 0);
	assert_true(pic_target__gcs_missed(t) == PIC_GCS_UNKNOWN);
	timeline__free(kit.tl);
}

struct account {
	uint64_t count, missed;
};

static void add_account(struct account *sum, const struct pic_target *t)
{
	uint64_t missed = pic_target__gcs_missed(t);

	sum->count += t->gc.count;
	sum->missed += missed == PIC_GCS_UNKNOWN ? 0 : missed;
}

static void put_unplaced(struct kit *kit, uint64_t ns, uint64_t finished)
{
	union rec r;

	mk_gc(&r, 7, WIRE_GC_END, ns);
	r.gc.number = finished;
	put(kit, &r);
}

/*
 * A process of the session, whose first n_uncounted seen collections have no number, since it is
 * not yet known where the runtime keeps it. A cut comes before each collection whose bit is set in
 * `cuts`. The collections that were seen and those that were missed add up to the runtime's number.
 */
static void check_uncounted(unsigned n_uncounted, uint64_t before, bool unplaced, unsigned cuts)
{
	const struct intake_cost cost = {.calls_missed = true};
	uint64_t number = before, at = T0 + 5000;
	struct account sum = {0};
	struct picture *window;
	struct kit kit;
	union rec r;

	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	/* it began before the probes */
	if (unplaced)
		put_unplaced(&kit, T0 + 2000, n_uncounted ? WIRE_GC_NO_NUMBER : number);
	number += unplaced;
	for (unsigned i = 0; i <= 6; i++, at += 10000) {
		assert_int_equal(intake__set_cost(kit.in, PID, &cost), 0);
		if (cuts & 1U << i) {
			add_account(&sum, window_to(&kit, at, &window));
			picture__free(window);
			kit.pic = timeline__picture(kit.tl);
		}
		if (i == 6)
			break;
		/* and seven that were not seen */
		number += i == 4 ? 7 : 0;
		put_counted(&kit, at + 2000, i < n_uncounted ? WIRE_GC_NO_NUMBER : number++);
		number += i < n_uncounted;
	}
	assert_int_equal(intake__set_cost(kit.in, PID, &cost), 0);
	add_account(&sum, finish(&kit));
	assert_int_equal(sum.count, 6);
	assert_int_equal(sum.missed, before + unplaced + 7);
	timeline__free(kit.tl);
}

static void test_uncounted(void **state)
{
	(void)state;
	for (unsigned cuts = 0; cuts < 1U << 7; cuts++)
		for (unsigned n = 0; n <= 5; n++) {
			check_uncounted(n, 0, false, cuts);
			check_uncounted(n, 0, true, cuts);
			check_uncounted(n, 12, false, cuts);
			check_uncounted(n, 12, true, cuts);
		}
}

/* One in the middle without a number counts with the next number, like those that were not seen. */
static void test_uncounted_between(void **state)
{
	const struct pic_target *t;
	struct picture *window;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put_counted(&kit, T0 + 10000, 18);
	put_counted(&kit, T0 + 20000, WIRE_GC_NO_NUMBER);
	put_unplaced(&kit, T0 + 25000, UINT64_C(1) << 40);
	t = window_to(&kit, T0 + 30000, &window);
	assert_int_equal(t->gc.count, 2);
	assert_int_equal(pic_target__gcs_missed(t), 1);
	picture__free(window);
	put_counted(&kit, T0 + 40000, 24);
	t = window_to(&kit, T0 + 50000, &window);
	assert_int_equal(t->gc.count, 1);
	assert_int_equal(pic_target__gcs_missed(t), 3);
	picture__free(window);
	timeline__free(kit.tl);
}

/*
 * The window before the number is known does not count them; the one in which it becomes known
 * does.
 */
static void test_number_after_cut(void **state)
{
	const struct intake_cost cost = {.calls_missed = true};
	const struct pic_target *t;
	struct picture *window;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put_counted(&kit, T0 + 10000, WIRE_GC_NO_NUMBER);
	assert_int_equal(intake__set_cost(kit.in, PID, &cost), 0);
	t = window_to(&kit, T0 + 20000, &window);
	assert_true(pic_target__gcs_missed(t) == PIC_GCS_UNKNOWN);
	picture__free(window);
	t = window_to(&kit, T0 + 30000, &window);
	assert_int_equal(pic_target__gcs_missed(t), 0);
	picture__free(window);
	put_counted(&kit, T0 + 40000, 30);
	t = window_to(&kit, T0 + 50000, &window);
	assert_int_equal(t->gc.count, 1);
	assert_int_equal(pic_target__gcs_missed(t), 29);
	picture__free(window);
	t = window_to(&kit, T0 + 60000, &window);
	assert_int_equal(pic_target__gcs_missed(t), 0);
	picture__free(window);
	timeline__free(kit.tl);
}

/*
 * The probes were off before the first collection that was seen: of those that the runtime had
 * counted by then, some may be of that time.
 */
static void test_held_up_first(void **state)
{
	static const struct {
		uint64_t until, first;
		unsigned finished;
		bool known;
	} cases[] = {
		{T0 + 10000, T0 + 20000, 18, false},
		{T0 + 10000, T0 + 20000, 0, true}, /* there was none */
		{T0 + 10000, T0 + 5000, 18, true}, /* counted before, and seen after */
		{0, T0 + 20000, 18, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct intake_cost cost = {.held_up_until_ns = cases[i].until};
		const struct pic_target *t;
		struct kit kit;
		union rec r;

		kit_new(&kit);
		put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
		put_counted(&kit, cases[i].first, cases[i].finished);
		put_counted(&kit, T0 + 30000, cases[i].finished + 1);
		assert_int_equal(intake__set_cost(kit.in, PID, &cost), 0);
		t = finish(&kit);
		assert_int_equal(t->gc.count, 2);
		assert_true(pic_target__gcs_missed(t) == (cases[i].known ? 0 : PIC_GCS_UNKNOWN));
		timeline__free(kit.tl);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unplaced),	 cmocka_unit_test(test_first_unplaced),
		cmocka_unit_test(test_missed),		 cmocka_unit_test(test_not_counted),
		cmocka_unit_test(test_uncounted),	 cmocka_unit_test(test_uncounted_between),
		cmocka_unit_test(test_number_after_cut), cmocka_unit_test(test_held_up_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
