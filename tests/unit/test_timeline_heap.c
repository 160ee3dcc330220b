/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Heaps that grow: leaks, and what programs build up on purpose. */
#include "picture/make.h"
#include "test_timeline_kit.h"

#define SECOND 1000000000ULL
#define MB     1000000ULL

/* Live bytes after a major collection. */
struct live {
	double s;
	uint64_t mb;
};

static uint64_t at_s(double s)
{
	return T0 + (uint64_t)(s * (double)SECOND);
}

static void put_end(struct kit *kit, const struct live *live, uint64_t number, uint32_t reason,
		    uint32_t generation)
{
	struct wire_heap heap = {.number = number,
				 .large_words = 0,
				 .live_words = live->mb * MB / 8,
				 .reason = reason,
				 .generation = generation,
				 .n_gens = 2};

	heap.h = (struct wire_hdr){.ns = at_s(live->s),
				   .tgid = PID,
				   .tid = 7,
				   .type = WIRE_HEAP,
				   .size = sizeof(heap)};
	heap.gens[1].n_words = heap.live_words;
	assert_int_equal(intake__record(kit->in, &heap, sizeof(heap)), 0);
}

static void put_major(struct kit *kit, const struct live *live, uint64_t number)
{
	put_end(kit, live, number, WIRE_ALLOC_NURSERY, 1);
}

enum { FROM_START = 1, EXITS = 2 };

static bool grows(const struct live *v, size_t n, unsigned how, const char *end,
		  struct pic_heap *ret_heap)
{
	const struct target_info info = {.pid = PID, .comm = "prog", .capabilities = 2};
	const struct live nothing = {v[n - 1].s + 0.1, 0};
	const struct pic_target *t;
	bool found = false;
	struct kit kit;
	union rec r;

	kit_new(&kit);
	put(&kit, mk_sample(&r, 7, T0 + 1000, WIRE_WHERE_HASKELL, HS(1), RET(HS(0)), STOP));
	if (how & FROM_START)
		assert_int_equal(intake__update_target(kit.in, &info), 0);
	for (size_t i = 0; i < n; i++)
		put_major(&kit, &v[i], i);
	/* the last collection of a program that exits by itself */
	if (how & EXITS && end[0] == 'e')
		put_major(&kit, &nothing, n);
	if (how & EXITS)
		assert_int_equal(intake__end_target(kit.in, PID, end, at_s(v[n - 1].s + 0.2)), 0);
	assert_int_equal(timeline__finish(kit.tl, at_s(v[n - 1].s + 1)), 0);
	t = picture__target(timeline__picture(kit.tl), 0);
	for (size_t i = 0; i < t->n_findings; i++)
		found |= !strcmp(t->findings[i].kind, "heap_grows");
	*ret_heap = t->heap;
	timeline__free(kit.tl);
	return found;
}

/* A compiler's heap: it grows most of the time, and falls in the last two minutes. */
static void test_falls(void **state)
{
	static const struct live v[] = {{0.3, 1}, {0.6, 2},  {1, 3},	 {2, 6},     {5, 10},
					{12, 18}, {90, 200}, {113, 292}, {234, 224}, {241, 142}};
	struct pic_heap heap;

	(void)state;
	for (unsigned how = 0; how <= (FROM_START | EXITS); how++) {
		assert_false(grows(v, ARRAY_SIZE(v), how, "exited 0", &heap));
		/* a line through all points would leave no doubt */
		assert_true(heap.growth_known && heap.majors == ARRAY_SIZE(v));
		assert_true((heap.growth - heap.growth_error) * 4 > 0.2 * 142e6);
		assert_int_equal(heap.last.live_bytes, 142 * MB);
	}
	/* without the fall it would be a leak */
	assert_true(grows(v, ARRAY_SIZE(v) - 2, 0, "", &heap));
}

static void test_goes_on(void **state)
{
	struct live v[40];
	struct pic_heap heap;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		v[i] = (struct live){1 + (double)i, 20 + 5 * i + i % 3};
	for (size_t n = 6; n <= ARRAY_SIZE(v); n++)
		assert_true(grows(v, n, 0, "", &heap));
	/* it ended, and nothing is known of the time before the attach; or it goes on */
	assert_true(grows(v, ARRAY_SIZE(v), EXITS, "exited 0", &heap));
	assert_true(grows(v, ARRAY_SIZE(v), FROM_START, "", &heap));
	/* that was its whole life, and it did all that it had to do */
	assert_false(grows(v, ARRAY_SIZE(v), FROM_START | EXITS, "exited 0", &heap));
	assert_false(grows(v, ARRAY_SIZE(v), FROM_START | EXITS, "exited 1", &heap));
	/* it did not */
	assert_true(grows(v, ARRAY_SIZE(v), FROM_START | EXITS, "exited 251", &heap));
	assert_true(grows(v, ARRAY_SIZE(v), FROM_START | EXITS, "killed 9", &heap));
	/* a drop of a tenth from the maximum is chance, one of a third is not */
	v[ARRAY_SIZE(v) - 1].mb = 200;
	assert_true(grows(v, ARRAY_SIZE(v), 0, "", &heap));
	v[ARRAY_SIZE(v) - 1].mb = 145;
	assert_false(grows(v, ARRAY_SIZE(v), 0, "", &heap));
	/* the heap is at its maximum for half of the time */
	for (size_t i = 18; i < ARRAY_SIZE(v); i++)
		v[i].mb = 110 + i % 3;
	assert_false(grows(v, ARRAY_SIZE(v), 0, "", &heap));
}

/* The reasons of major collections alone, without the one at the program's end. */
static void test_reasons(void **state)
{
	static const struct {
		uint32_t reason, generation;
	} ends[] = {
		{WIRE_ALLOC_FORCED, 1},	 {WIRE_ALLOC_FORCED, 1},  {WIRE_ALLOC_IDLE, 1},
		{WIRE_ALLOC_NURSERY, 0}, {WIRE_ALLOC_UNKNOWN, 1}, {WIRE_ALLOC_FORCED, 1},
	};
	const struct pic_heap *heap;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_sample(&r, 7, T0 + 1000, WIRE_WHERE_HASKELL, HS(1), RET(HS(0)), STOP));
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		put_end(&kit, &(struct live){(double)i + 1, 20}, i, ends[i].reason,
			ends[i].generation);
	assert_int_equal(intake__end_target(kit.in, PID, "exited 0", at_s(7)), 0);
	assert_int_equal(timeline__finish(kit.tl, at_s(8)), 0);
	heap = &picture__target(timeline__picture(kit.tl), 0)->heap;
	assert_int_equal(heap->majors, 4);
	assert_int_equal(heap->major_reasons[GC_REASON_FORCED], 2);
	assert_int_equal(heap->major_reasons[GC_REASON_IDLE], 1);
	assert_int_equal(heap->major_reasons[GC_REASON_NURSERY], 0);
	assert_int_equal(heap->major_reasons[GC_REASON_UNKNOWN], 1);
	timeline__free(kit.tl);
}

/*
 * A window does not count the collection at the program's end either, even if it is the window's
 * only one. Without any collection before it, it is the only one that is known, and counts.
 */
static void test_last_alone(void **state)
{
	const struct pic_heap *heap;
	struct picture *pic;
	struct kit kit;
	union rec r;

	(void)state;
	for (uint64_t before = 0; before <= 2; before++) {
		kit_new(&kit);
		put(&kit, mk_sample(&r, 7, T0 + 1000, WIRE_WHERE_HASKELL, HS(1), RET(HS(0)), STOP));
		for (uint64_t i = 0; i < before; i++)
			put_end(&kit, &(struct live){(double)i + 1, 20}, i, WIRE_ALLOC_FORCED, 1);
		/* the second of these windows has none at all */
		for (unsigned s = 4; s <= 5; s++) {
			assert_int_equal(timeline__window(kit.tl, at_s(s), &pic), 0);
			assert_int_equal(picture__target(pic, 0)->heap.majors, s == 4 ? before : 0);
			picture__free(pic);
		}
		put_end(&kit, &(struct live){6, 1}, before, WIRE_ALLOC_FORCED, 1);
		assert_int_equal(intake__end_target(kit.in, PID, "exited 0", at_s(7)), 0);
		assert_int_equal(timeline__finish(kit.tl, at_s(8)), 0);
		heap = &picture__target(timeline__picture(kit.tl), 0)->heap;
		assert_true(heap->known);
		assert_int_equal(heap->majors, !before);
		assert_int_equal(heap->major_reasons[GC_REASON_FORCED], !before);
		timeline__free(kit.tl);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_falls),
		cmocka_unit_test(test_goes_on),
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_last_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
