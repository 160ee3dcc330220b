/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What allocates, and what stays on the heap. */
#include "test_findings_kit.h"

#define MB	   UINT64_C(1000000)
#define GB	   UINT64_C(1000000000)
#define SECONDS(n) (T0 + (n)*UINT64_C(1000000000))

static struct pic_lane *busy(void)
{
	static struct pic_slice slices[] = {SLICE(0, 1000, S_HASKELL, ST_HASKELL, 0, 90)};
	static struct pic_lane lane;

	lane = (struct pic_lane){.tid = 1,
				 .start_ns = T0,
				 .end_ns = AT(1000),
				 .slices = slices,
				 .n_slices = ARRAY_SIZE(slices)};
	return &lane;
}

/* A frame's number in each picture of these tests. */
static uint32_t number_of(uint32_t frame)
{
	struct picture *pic;
	uint32_t number = 0;

	assert_int_equal(picture__new(16, &pic), 0);
	for (uint32_t i = 0; i <= frame; i++)
		assert_int_equal(picture__add_frame(pic, &frames[i], &number), 0);
	picture__free(pic);
	return number;
}

static struct pic_alloc allocation(const struct pic_allocator *first)
{
	return (struct pic_alloc){
		.known = true,
		.from_ns = T0,
		.to_ns = AT(1000),
		.bytes = GB,
		.collections = 500,
		.reasons = {[GC_REASON_NURSERY] = 500},
		.samples = 500,
		.sampled_bytes = GB,
		.allocators = first,
		.n_allocators = 1,
	};
}

static void none(const struct pic_target *t)
{
	struct found found;

	find(t, busy(), 1, &found);
	assert_int_equal(found.n, 0);
	picture__free(found.pic);
}

static void test_one_allocator(void **state)
{
	struct pic_allocator first = {.frame = number_of(F_LOAD), .self_bytes = 620 * MB};
	struct pic_target t = {.gc = {.known = true, .pause_ns = 100 * MS},
			       .alloc = allocation(&first)};
	const struct pic_finding *f;
	struct found found;

	(void)state;
	find(&t, busy(), 1, &found);
	f = the_only(&found, "one_allocator");
	assert_says(f, "Main.load allocates 62 % of 1.00 GB a second");
	assert_says(f, "10 % of the time");
	assert_string_equal(f->where, "Main.load (app/Load.hs:7)");
	picture__free(found.pic);
	/* low cost; few samples; other functions allocate too */
	t.gc.pause_ns = 49 * MS;
	none(&t);
	t.gc.pause_ns = 100 * MS;
	t.alloc.samples = 99;
	none(&t);
	t.alloc.samples = 500;
	first.self_bytes = 499 * MB;
	none(&t);
}

/* The probes were taken off after 200 ms, in which collections paused the program for 24 ms: the
 * finding uses only that, whatever the bound for the whole session is. */
static void test_bounded_pauses(void **state)
{
	struct pic_allocator first = {.frame = number_of(F_LOAD), .self_bytes = 620 * MB};
	struct pic_target t = {.gc = {.known = true,
				      .inferred = true,
				      .pause_ns = 950 * MS,
				      .observed_ns = 200 * MS,
				      .observed_count = 2800,
				      .observed_pause_ns = 24 * MS},
			       .alloc = allocation(&first)};
	const struct pic_finding *f;
	struct found found;

	(void)state;
	find(&t, busy(), 1, &found);
	f = the_only(&found, "one_allocator");
	assert_says(f, "paused the program for 12 % of the time during which they were observed");
	assert_int_equal(f->ns, 24 * MS);
	picture__free(found.pic);
	/* the same for large objects */
	t.alloc.large_bytes = 830 * MB;
	t.alloc.large_of_bytes = t.alloc.bytes;
	t.alloc.reasons[GC_REASON_LARGE] = 400;
	first.self_bytes = 100 * MB;
	find(&t, busy(), 1, &found);
	assert_int_equal(the_only(&found, "large_objects")->ns, 24 * MS);
	picture__free(found.pic);
	t.alloc.observed_ns = 200 * MS;
	find(&t, busy(), 1, &found);
	assert_says(the_only(&found, "large_objects"),
		    "400 of 500 collections while they were observed");
	picture__free(found.pic);
	/* short as long as they were observed; never observed */
	t.gc.observed_pause_ns = 9 * MS;
	none(&t);
	t.gc.observed_ns = t.gc.observed_pause_ns = t.gc.observed_count = 0;
	none(&t);
}

static void test_large_objects(void **state)
{
	struct pic_allocator first = {.frame = number_of(F_LOAD), .self_bytes = 100 * MB};
	struct pic_target t = {.gc = {.known = true, .pause_ns = 100 * MS},
			       .rts_opts = RTS_OPTS_ALL,
			       .alloc = allocation(&first)};
	const struct pic_finding *f;
	struct found found;

	(void)state;
	t.alloc.large_bytes = 830 * MB;
	t.alloc.large_of_bytes = t.alloc.bytes;
	/* most of the bytes, but they requested no collection */
	none(&t);
	t.alloc.reasons[GC_REASON_LARGE] = 400;
	find(&t, busy(), 1, &found);
	f = the_only(&found, "large_objects");
	assert_says(f, "83 % of what is allocated");
	assert_says(f, "400 of 500 collections");
	assert_says(f, "+RTS -AL256m");
	picture__free(found.pic);
	t.alloc.large_bytes = 490 * MB;
	none(&t);
}

/* Ten major collections, one per second. */
static void test_growth(void **state)
{
	struct pic_target t = {.heap = {.known = true,
					.majors = 10,
					.growth_known = true,
					.growth_goes_on = true,
					.growth = 600e6,
					.growth_error = 100e6,
					.growth_span_ns = 9 * UINT64_C(1000000000),
					.last = {.ns = SECONDS(9), .live_bytes = 190 * MB}}};
	const struct pic_finding *f;
	struct found found;

	(void)state;
	find(&t, busy(), 1, &found);
	f = the_only(&found, "heap_grows");
	assert_says(f, "grows by 600 MB a minute (± 100 MB)");
	assert_says(f, "190 MB at the end");
	picture__free(found.pic);
	/* growth is not significant */
	t.heap.growth_error = 600e6;
	none(&t);
	/* growth is only a tenth of the heap */
	t.heap.growth_error = 1e6;
	t.heap.last.live_bytes = 1900 * MB;
	none(&t);
	t.heap.last.live_bytes = 190 * MB;
	t.heap.growth_span_ns = 4 * UINT64_C(1000000000);
	none(&t);
	t.heap.growth_span_ns = 9 * UINT64_C(1000000000);
	t.heap.majors = 5;
	none(&t);
	/* growth has ended; the growth is that of the program's whole run */
	t.heap.majors = 10;
	t.heap.growth_goes_on = false;
	none(&t);
	t.heap.growth_goes_on = true;
	t.heap.whole_run = true;
	none(&t);
	t.heap.whole_run = false;
	find(&t, busy(), 1, &found);
	the_only(&found, "heap_grows");
	picture__free(found.pic);
	/* the probes were taken off: the figure is for the beginning only */
	t.alloc.observed_ns = 9 * UINT64_C(1000000000);
	none(&t);
}

static void test_futile(void **state)
{
	struct pic_gc_event gcs[5];
	struct pic_target t = {.gcs = gcs,
			       .n_gcs = ARRAY_SIZE(gcs),
			       .rts_opts = RTS_OPTS_ALL,
			       .heap = {.known = true,
					.majors = 5,
					.futile_majors = 4,
					.last = {.live_bytes = 80 * MB, .major = true}}};
	const struct pic_finding *f;
	struct found found;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(gcs); i++)
		gcs[i] = (struct pic_gc_event){.start_ns = AT(100 * i),
					       .end_ns = AT(100 * i + 5),
					       .sync_ns = UINT64_MAX,
					       .generation = 1};
	find(&t, busy(), 1, &found);
	f = the_only(&found, "futile_major_gcs");
	assert_says(f, "4 of 5 major collections freed less than 3 %");
	assert_says(f, "25.0 ms");
	assert_says(f, "+RTS -F4");
	picture__free(found.pic);
	t.heap.futile_majors = 3;
	none(&t);
	/* short collections */
	t.heap.futile_majors = 5;
	for (size_t i = 0; i < ARRAY_SIZE(gcs); i++)
		gcs[i].end_ns = gcs[i].start_ns + MS;
	none(&t);
}

/* No heap limit reduces collections that had another cause. */
static void test_futile_for_other_reasons(void **state)
{
	struct pic_gc_event gcs[40];
	struct pic_target t = {
		.gcs = gcs,
		.n_gcs = ARRAY_SIZE(gcs),
		.threaded = true,
		.rts_opts = RTS_OPTS_ALL,
		.heap = {.known = true,
			 .majors = 40,
			 .futile_majors = 39,
			 .major_reasons = {[GC_REASON_FORCED] = 20, [GC_REASON_NURSERY] = 20}}};
	uint64_t *reasons = t.heap.major_reasons;
	const struct pic_finding *f;
	struct found found;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(gcs); i++)
		gcs[i] = (struct pic_gc_event){.start_ns = AT(20 * i),
					       .end_ns = AT(20 * i + 5),
					       .sync_ns = UINT64_MAX,
					       .generation = 1};
	find(&t, busy(), 1, &found);
	assert_says(the_only(&found, "futile_major_gcs"), "+RTS -F4");
	picture__free(found.pic);
	/* most of those with a known cause; most of these requested by the program */
	reasons[GC_REASON_FORCED] = 2;
	reasons[GC_REASON_IDLE] = 1;
	reasons[GC_REASON_NURSERY] = 1;
	reasons[GC_REASON_UNKNOWN] = 36;
	find(&t, busy(), 1, &found);
	f = the_only(&found, "futile_major_gcs");
	assert_says(f, "39 of 40 major collections freed less than 3 %");
	assert_says(f, "the program requests most of them itself");
	assert_null(strstr(f->text, "-F4"));
	picture__free(found.pic);
	/* after idle time; without -threaded there is no idle collection, but a search for
	 * deadlocks */
	reasons[GC_REASON_IDLE] = 3;
	find(&t, busy(), 1, &found);
	f = the_only(&found, "futile_major_gcs");
	assert_says(f, "idle: a longer idle time makes them rarer: +RTS -I10");
	assert_null(strstr(f->text, "-F4"));
	picture__free(found.pic);
	t.threaded = false;
	find(&t, busy(), 1, &found);
	f = the_only(&found, "futile_major_gcs");
	assert_says(f, "to find threads that wait forever");
	assert_null(strstr(f->text, "+RTS"));
	picture__free(found.pic);
}

/* A second with 120 collections of 1 ms each. */
static void test_small_nursery(void **state)
{
	struct pic_gc_event gcs[120];
	struct pic_target t = {.gcs = gcs,
			       .n_gcs = ARRAY_SIZE(gcs),
			       .capabilities = 4,
			       .rts_opts = RTS_OPTS_SOME,
			       .heap = {.known = true,
					.nursery_bytes = 16 * MB,
					.minor_bytes = 100 * MB,
					.minor_copied_bytes = 3 * MB}};
	const struct pic_finding *f;
	struct found found;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(gcs); i++)
		gcs[i] = (struct pic_gc_event){
			.start_ns = AT(8 * i), .end_ns = AT(8 * i + 1), .sync_ns = UINT64_MAX};
	find(&t, busy(), 1, &found);
	f = the_only(&found, "small_nursery");
	assert_says(f, "Nurseries of 4.00 MB were used up 120 times a second");
	assert_says(f, "for 12 % of the time");
	assert_says(f, "3.0 % of what is allocated survives");
	/* a flag that the program accepts */
	assert_says(f, "-with-rtsopts=-A64m");
	picture__free(found.pic);
	/* most survives; the area is large; they take little time; not of the youngest
	 * generation */
	t.heap.minor_copied_bytes = 30 * MB;
	none(&t);
	t.heap.minor_copied_bytes = 3 * MB;
	t.heap.nursery_bytes = 4 * 64 * MB;
	none(&t);
	t.heap.nursery_bytes = 16 * MB;
	t.n_gcs = 90;
	none(&t);
	t.n_gcs = ARRAY_SIZE(gcs);
	for (size_t i = 0; i < ARRAY_SIZE(gcs); i++)
		gcs[i].generation = 1;
	none(&t);
}

static void test_large_nursery(void **state)
{
	struct pic_target t = {.gc = {.known = true, .pause_ns = 4 * MS},
			       .capabilities = 4,
			       .rts_opts = RTS_OPTS_ALL,
			       .heap = {.known = true,
					.nursery_bytes = UINT64_C(1) << 30,
					.held_bytes = UINT64_C(3) << 29}};
	const struct pic_finding *f;
	struct found found;

	(void)state;
	find(&t, busy(), 1, &found);
	f = the_only(&found, "large_nursery");
	assert_says(f, "Nurseries take 1.07 GB of the 1.61 GB");
	assert_says(f, "+RTS -A64m");
	picture__free(found.pic);
	/* it makes collections cheap; most memory is used by other things; its share is unknown */
	t.gc.pause_ns = 6 * MS;
	none(&t);
	t.gc.pause_ns = 4 * MS;
	t.heap.held_bytes = UINT64_C(3) << 30;
	none(&t);
	t.heap.held_bytes = 0;
	none(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bounded_pauses),
		cmocka_unit_test(test_one_allocator),
		cmocka_unit_test(test_large_objects),
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_futile),
		cmocka_unit_test(test_small_nursery),
		cmocka_unit_test(test_large_nursery),
		cmocka_unit_test(test_futile_for_other_reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
