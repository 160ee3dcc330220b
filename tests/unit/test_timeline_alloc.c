/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocation: samples and what they stand for. Nothing is lost, whatever triggers collections. */
#include "picture/figures.h"
#include "test_timeline_alloc.h"

/*
 * A sample stands for what its own capability has allocated since that capability's previous
 * sample.
 */
static void test_by_capability(void **state)
{
	const struct pic_target *t;
	struct kit kit;

	(void)state;
	kit_new(&kit);
	put_alloc(&kit, T0 + 1000, 0, WIRE_ALLOC_NURSERY, 1);
	put_heap(&kit, T0 + 2000, 0, 4 * MB, 1 * MB, 0);
	put_alloc(&kit, T0 + 3000, 0, WIRE_ALLOC_NURSERY, 1);
	put_heap(&kit, T0 + 4000, 1, 8 * MB, 2 * MB, 0);
	put_alloc(&kit, T0 + 5000, 1, WIRE_ALLOC_NURSERY, 2);
	put_heap(&kit, T0 + 6000, 2, 9 * MB, 6 * MB, 0);
	t = finish_at(&kit, END);
	assert_true(t->alloc.known);
	assert_int_equal(t->alloc.bytes, 15 * MB);
	assert_int_equal(t->alloc.samples, 3);
	assert_int_equal(t->alloc.whole_stacks, 3);
	assert_int_equal(t->alloc.collections, 3);
	assert_int_equal(t->alloc.reasons[GC_REASON_NURSERY], 3);
	assert_int_equal(self_of(kit.pic, t, "Main.h1"), 8 * MB);
	assert_int_equal(self_of(kit.pic, t, "Main.h2"), 6 * MB);
	assert_int_equal(t->alloc.sampled_bytes, 14 * MB);
	assert_int_equal(t->alloc.unsampled_bytes, 1 * MB);
	assert_int_equal(rows_of(t), 15 * MB);
	/* sorted by bytes; h0 has called both */
	assert_string_equal(picture__frame(kit.pic, t->alloc.allocators[0].frame)->name, "Main.h1");
	assert_int_equal(t->alloc.n_modules, 1);
	assert_int_equal(t->alloc.modules[0].bytes, 14 * MB);
	timeline__free(kit.tl);
}

/* Large objects have samples of their own, and take nothing away from code that fills nurseries. */
static void test_large(void **state)
{
	const struct pic_target *t;
	struct kit kit;

	(void)state;
	kit_new(&kit);
	put_alloc(&kit, T0 + 1000, 0, WIRE_ALLOC_NURSERY, 1);
	put_heap(&kit, T0 + 2000, 0, 7 * MB, 0, 3 * MB);
	put_alloc(&kit, T0 + 3000, 0, WIRE_ALLOC_LARGE, 2);
	put_heap(&kit, T0 + 4000, 1, 12 * MB, 0, 7 * MB);
	t = finish_at(&kit, END);
	assert_int_equal(t->alloc.bytes, 12 * MB);
	assert_int_equal(t->alloc.large_bytes, 7 * MB);
	assert_int_equal(t->alloc.large_of_bytes, 12 * MB);
	assert_int_equal(self_of(kit.pic, t, "Main.h1"), 4 * MB);
	assert_int_equal(self_of(kit.pic, t, "Main.h2"), 7 * MB);
	assert_int_equal(t->alloc.unsampled_bytes, 1 * MB);
	timeline__free(kit.tl);
}

/* Nurseries always fill up first: from the ninth time on, samples show who makes large objects. */
static void test_large_never_asks(void **state)
{
	const struct pic_target *t;
	struct kit kit;

	(void)state;
	kit_new(&kit);
	for (uint64_t i = 0; i < 20; i++) {
		bool primitive = i % 4 == 3;

		put_alloc(&kit, T0 + i * 1000 + 1, 0,
			  WIRE_ALLOC_NURSERY | (primitive ? WIRE_ALLOC_PRIMITIVE << 8 : 0),
			  primitive ? 2 : 1);
		put_heap(&kit, T0 + i * 1000 + 2, i, (i + 1) * 2 * MB, 0, (i + 1) * MB);
	}
	t = finish_at(&kit, END);
	/* the first of them was counted like the others */
	assert_int_equal(self_of(kit.pic, t, "Main.h2"), 20 * MB + 1 * MB);
	assert_int_equal(self_of(kit.pic, t, "Main.h1"), 18 * MB);
	assert_int_equal(t->alloc.unsampled_bytes, 1 * MB);
	timeline__free(kit.tl);
}

/*
 * The limit for large objects is always reached before the nursery is full: from the 33rd on, each
 * of these samples stands for the bytes in the nursery, too, and for those that waited until then.
 * A sample of a stopped capability in between is for the nursery alone.
 */
static void test_large_always_asks(void **state)
{
	const struct pic_target *t;
	struct kit kit;

	(void)state;
	for (unsigned stopped = 0; stopped < 2; stopped++) {
		kit_new(&kit);
		for (uint64_t i = 0; i < 50; i++) {
			bool other = stopped && i == 20;

			put_alloc(&kit, T0 + i * 1000 + 1, 0,
				  other ? WIRE_ALLOC_STOPPED : WIRE_ALLOC_LARGE, other ? 2 : 1);
			put_heap(&kit, T0 + i * 1000 + 2, i, (i + 1) * 3 * MB, 0, (i + 1) * MB);
		}
		t = finish_at(&kit, END);
		assert_int_equal(t->alloc.bytes, 150 * MB);
		assert_int_equal(self_of(kit.pic, t, "Main.h2"), stopped ? 42 * MB : 0);
		assert_int_equal(self_of(kit.pic, t, "Main.h1"), (stopped ? 50 : 150) * MB);
		/* the 29 since then are too few */
		assert_int_equal(t->alloc.unsampled_bytes, stopped ? 58 * MB : 0);
		assert_int_equal(rows_of(t), 150 * MB);
		timeline__free(kit.tl);
	}
}

/* Most collections have no record, but they count, and so does what they copied. */
static void test_skipped(void **state)
{
	struct heap_end r = end_of(T0 + 2000, 0, 4 * MB, 0, 0);
	const struct pic_target *t;
	struct kit kit;

	(void)state;
	kit_new(&kit);
	put_alloc(&kit, T0 + 1000, 0, WIRE_ALLOC_NURSERY, 1);
	r.heap.skipped = 3;
	r.heap.copied_words = 1000;
	r.heap.skipped_copied_words = 3000;
	assert_int_equal(intake__record(kit.in, &r, sizeof(r)), 0);
	t = finish_at(&kit, END);
	assert_int_equal(t->alloc.collections, 4);
	assert_int_equal(t->alloc.reasons[GC_REASON_NURSERY], 4);
	assert_int_equal(self_of(kit.pic, t, "Main.h1"), 4 * MB);
	assert_int_equal(t->heap.copied_bytes, 32000);
	assert_int_equal(t->heap.minor_copied_bytes, 32000);
	timeline__free(kit.tl);
}

/*
 * While the probes were off, 99 collections were not seen: no sample stands for them. If single
 * ones are missing, the next sample stands for them.
 */
static void test_unseen(void **state)
{
	const uint64_t off = T0 + 1000010000;
	struct heap_end r = end_of(off + 4000, 122, 324 * MB, 0, 0);
	const struct pic_target *t;
	struct kit kit;

	(void)state;
	kit_new(&kit);
	put_heap(&kit, T0 + 2000, 8, 96 * MB, 0, 0);
	put_alloc(&kit, T0 + 3000, 0, WIRE_ALLOC_NURSERY, 1);
	put_heap(&kit, T0 + 4000, 11, 102 * MB, 0, 0);
	put_alloc(&kit, off - 1000, 0, WIRE_ALLOC_NURSERY, 2);
	put_heap(&kit, off, 111, 302 * MB, 0, 0);
	put_alloc(&kit, off + 1000, 0, WIRE_ALLOC_NURSERY, 1);
	put_heap(&kit, off + 2000, 112, 304 * MB, 0, 0);
	/* if only one in so many is looked at, the next sample stands for the skipped ones */
	put_alloc(&kit, off + 3000, 0, WIRE_ALLOC_NURSERY, 1);
	r.heap.skipped = 9;
	assert_int_equal(intake__record(kit.in, &r, sizeof(r)), 0);
	t = finish_at(&kit, off + 10000);
	assert_int_equal(t->alloc.bytes, 228 * MB);
	assert_int_equal(t->alloc.unsampled_bytes, 198 * MB);
	assert_int_equal(self_of(kit.pic, t, "Main.h1"), 28 * MB);
	assert_int_equal(self_of(kit.pic, t, "Main.h2"), 2 * MB);
	assert_int_equal(rows_of(t), 228 * MB);
	timeline__free(kit.tl);
}

/* Collections are rare: the sampler's ticks stand for what was allocated in between. */
static void test_ticks(void **state)
{
	const struct pic_target *t;
	struct kit kit;

	(void)state;
	kit_new(&kit);
	/* too early to know that they are rare */
	put_tick(&kit, T0 + MS, 2, 1 * MB);
	put_tick(&kit, T0 + 60 * MS, 1, 10 * MB);
	put_tick(&kit, T0 + 70 * MS, 2, 14 * MB);
	put_tick(&kit, T0 + 80 * MS, 1, 16 * MB);
	put_alloc(&kit, T0 + 90 * MS, 1, WIRE_ALLOC_NURSERY, 1);
	put_heap(&kit, T0 + 91 * MS, 0, 0, 21 * MB, 7 * MB);
	put_tick(&kit, T0 + 100 * MS, 2, 24 * MB);
	t = finish_at(&kit, T0 + 200 * MS);
	assert_int_equal(t->alloc.bytes, 24 * MB);
	assert_int_equal(t->alloc.tick_samples, 3);
	assert_int_equal(t->alloc.tick_bytes, (4 + 2 + 3) * MB);
	assert_int_equal(t->alloc.sampled_bytes + t->alloc.unsampled_bytes, 24 * MB);
	assert_int_equal(self_of(kit.pic, t, "Main.h2"), (4 + 3) * MB);
	assert_int_equal(t->alloc.large_bytes, 7 * MB);
	assert_int_equal(t->alloc.large_of_bytes, 21 * MB);
	assert_int_equal(t->alloc.collections, 1);
	/* the collection includes what the ticks stood for */
	assert_int_equal(t->heap.minor_bytes, 21 * MB);
	timeline__free(kit.tl);
}

/* Impossible ticks, and ticks without a sample of their own before them. */
static void test_hostile_ticks(void **state)
{
	struct wire_allocated r = {
		.h = {.tgid = PID, .tid = 7, .type = WIRE_ALLOCATED, .size = sizeof(r)},
		.allocated = UINT64_MAX,
		.cap_no = 1};
	const struct pic_target *t;
	struct kit kit;

	(void)state;
	kit_new(&kit);
	put_tick(&kit, T0 + 55 * MS, 1, 10 * MB);
	r.h.ns = T0 + 60 * MS;
	assert_int_equal(intake__record(kit.in, &r, sizeof(r)), -EBADMSG);
	assert_int_equal(intake__record(kit.in, &r, sizeof(r) - 1), -EBADMSG);
	r.allocated = 50 * MB;
	assert_int_equal(intake__record(kit.in, &r, sizeof(r)), 0);
	r.cap_no = WIRE_HEAP_CAPS;
	assert_int_equal(intake__record(kit.in, &r, sizeof(r)), 0);
	/* the count went back */
	put_tick(&kit, T0 + 65 * MS, 1, 5 * MB);
	put_tick(&kit, T0 + 75 * MS, 1, 12 * MB);
	t = finish_at(&kit, T0 + 200 * MS);
	assert_int_equal(t->alloc.bytes, 2 * MB);
	assert_int_equal(t->alloc.tick_samples, 1);
	timeline__free(kit.tl);
}

/* Collections are frequent: ticks are no samples. */
static void test_no_ticks(void **state)
{
	const struct pic_target *t;
	struct kit kit;

	(void)state;
	kit_new(&kit);
	for (uint64_t i = 0; i < 20; i++) {
		put_tick(&kit, T0 + (20 * i + 5) * MS, 2, (10 * i + 5) * MB);
		put_alloc(&kit, T0 + (20 * i + 9) * MS, 1, WIRE_ALLOC_NURSERY, 1);
		put_heap(&kit, T0 + (20 * i + 10) * MS, i, 0, (10 * i + 10) * MB, 0);
	}
	t = finish_at(&kit, T0 + 500 * MS);
	assert_int_equal(t->alloc.bytes, 200 * MB);
	assert_int_equal(t->alloc.tick_samples, 0);
	assert_int_equal(self_of(kit.pic, t, "Main.h1"), 200 * MB);
	timeline__free(kit.tl);
}

static void take_figures(void *ctx, const struct figures *f, bool closed)
{
	struct figures *to = ctx;

	if (!closed)
		*to = *f;
}

/* The figures for metrics, whether lanes have already taken the records or not. */
static void test_figures(void **state)
{
	struct heap_end r = end_of(T0 + 4000, 1, 6 * MB, 3 * MB, 0);
	struct figures f = {0};
	struct kit kit;

	(void)state;
	kit_new(&kit);
	timeline__set_figures(kit.tl, take_figures, &f);
	assert_int_equal(timeline__figures(kit.tl, T0 + 1000), 0);
	assert_false(f.live_known);
	put_heap(&kit, T0 + 2000, 0, 4 * MB, 0, 0);
	r.heap.live_words = 1000;
	assert_int_equal(intake__record(kit.in, &r, sizeof(r)), 0);
	assert_int_equal(timeline__figures(kit.tl, T0 + 5000), 0);
	assert_true(f.live_known);
	assert_int_equal(f.allocated_bytes, 9 * MB);
	assert_int_equal(f.live_bytes, 8000);
	assert_int_equal(timeline__fold(kit.tl), 0);
	put_heap(&kit, T0 + 6000, 2, 7 * MB, 3 * MB, 0);
	assert_int_equal(timeline__figures(kit.tl, T0 + 7000), 0);
	assert_int_equal(f.allocated_bytes, 10 * MB);
	finish_at(&kit, END);
	timeline__free(kit.tl);
}

/*
 * Two capabilities: it is not known which of them allocated the large objects, but all bytes are
 * there.
 */
static void test_large_divided(void **state)
{
	const struct pic_target *t;
	struct kit kit;

	(void)state;
	kit_new(&kit);
	put_alloc(&kit, T0 + 1000, 0, WIRE_ALLOC_NURSERY, 1);
	put_alloc(&kit, T0 + 1001, 1, WIRE_ALLOC_STOPPED, 2);
	put_heap(&kit, T0 + 2000, 0, 6 * MB + 8, 3 * MB, 3 * MB);
	t = finish_at(&kit, END);
	assert_int_equal(t->alloc.samples, 2);
	assert_int_equal(t->alloc.bytes, 9 * MB + 8);
	assert_in_range(self_of(kit.pic, t, "Main.h1"), 4 * MB, 4 * MB + 8);
	assert_in_range(self_of(kit.pic, t, "Main.h2"), 2 * MB, 2 * MB + 8);
	assert_int_equal(t->alloc.unsampled_bytes, 3 * MB);
	assert_int_equal(rows_of(t), t->alloc.bytes);
	timeline__free(kit.tl);
}

/*
 * A process that has run before: what it has allocated by then is nobody's, but a capability that
 * appears later counts in full.
 */
static void test_from_then_on(void **state)
{
	struct heap_end one = end_of(T0 + 2000, 41, 400 * MB, 0, 0);
	const struct pic_target *t;
	struct kit kit;

	(void)state;
	kit_new(&kit);
	one.heap.n_caps = one.heap.all_caps = 1;
	one.heap.h.size -= sizeof(one.caps[0]);
	put_alloc(&kit, T0 + 1000, 0, WIRE_ALLOC_NURSERY, 1);
	assert_int_equal(intake__record(kit.in, &one, one.heap.h.size), 0);
	put_alloc(&kit, T0 + 3000, 0, WIRE_ALLOC_NURSERY, 2);
	put_heap(&kit, T0 + 4000, 42, 404 * MB, 2 * MB, 0);
	t = finish_at(&kit, END);
	assert_int_equal(t->alloc.bytes, 6 * MB);
	assert_int_equal(t->alloc.from_ns, T0 + 2000);
	assert_int_equal(t->alloc.to_ns, T0 + 4000);
	assert_int_equal(self_of(kit.pic, t, "Main.h1"), 0);
	assert_int_equal(self_of(kit.pic, t, "Main.h2"), 4 * MB);
	assert_int_equal(t->alloc.unsampled_bytes, 2 * MB);
	timeline__free(kit.tl);
}

/*
 * With more capabilities than there is room for, the allocation of the rest is reported as missing.
 */
static void test_many_capabilities(void **state)
{
	struct kit kit;

	(void)state;
	for (unsigned all = 2; all < 4; all++) {
		const struct pic_target *t;

		kit_new(&kit);
		for (uint64_t i = 0; i < 2; i++) {
			struct heap_end one = end_of(T0 + 1000 * i, 41 + i, i * MB, i * MB, 0);

			one.heap.all_caps = all;
			assert_int_equal(intake__record(kit.in, &one, one.heap.h.size), 0);
		}
		t = finish_at(&kit, END);
		assert_int_equal(t->alloc.bytes, 2 * MB);
		assert_int_equal(t->n_missing, all > 2);
		if (all > 2)
			assert_non_null(strstr(t->missing[0], "capabilities beyond the first 64"));
		timeline__free(kit.tl);
	}
}

/*
 * A capability that could not be read at first: only what it allocates from then on counts, unless
 * there were no collections before.
 */
static void test_unread(void **state)
{
	struct kit kit;

	(void)state;
	for (uint64_t first = 0; first <= 41; first += 41) {
		kit_new(&kit);
		for (uint64_t i = 0; i < 3; i++)
			put_heap(&kit, T0 + i, first + i, 9 * MB, i ? i * MB : UINT64_MAX, 0);
		assert_int_equal(finish_at(&kit, END)->alloc.bytes, (first ? 1 : 11) * MB);
		timeline__free(kit.tl);
	}
}

/* A collection each second: every tenth is a major one, after which 1 MB more is live. */
static void test_heap(void **state)
{
	const struct pic_heap *heap;
	struct kit kit;

	(void)state;
	kit_new(&kit);
	for (uint64_t i = 0; i < 20000; i++) {
		struct heap_end r = end_of(T0 + i * 1000000000, i, (i + 1) * MB, 0, 0);
		bool major = i % 10 == 9;

		r.heap.n_gens = 2;
		r.heap.generation = major;
		r.heap.live_words = ((major ? 100 : 200) + i / 10) * MB / 8;
		r.heap.copied_words = MB / 80;
		r.heap.gens[1].n_words = r.heap.live_words - 100;
		r.heap.gens[1].n_large_words = 100;
		r.heap.gens[1].n_blocks = 7;
		r.caps[0].nursery = 256;
		/* one of them is not read */
		r.heap.held = i == 19999 ? 0 : 300 + (uint32_t)(i % 100);
		r.heap.n_threads = major ? 7 + (uint16_t)(i / 10 % 5) : 0;
		assert_int_equal(intake__record(kit.in, &r, sizeof(r)), 0);
	}
	heap = &finish_at(&kit, T0 + 20000 * UINT64_C(1000000000))->heap;
	assert_true(heap->known);
	assert_int_equal(heap->majors, 2000);
	assert_true(heap->last.major);
	assert_int_equal(heap->last.live_bytes, 2099 * MB);
	assert_int_equal(heap->most_live_bytes, 2199 * MB);
	assert_int_equal(heap->nursery_bytes, 1 << 20);
	assert_int_equal(heap->held_bytes, 398 << 20);
	assert_int_equal(heap->most_held_bytes, 399 << 20);
	assert_int_equal(heap->haskell_threads, 7 + 1999 % 5);
	assert_int_equal(heap->most_haskell_threads, 11);
	assert_int_equal(heap->n_gens, 2);
	assert_int_equal(heap->gens[1].live_bytes, 2099 * MB);
	assert_int_equal(heap->gens[1].large_bytes, 800);
	assert_int_equal(heap->gens[1].block_bytes, 7 * 4096);
	assert_int_equal(heap->futile_majors, 0);
	/* six each minute; exactly a line */
	assert_true(heap->growth_known);
	assert_true(heap->growth > 5.999e6 && heap->growth < 6.001e6);
	assert_true(heap->growth_error < 1000);
	/* however few of them the curve has */
	assert_int_equal(heap->growth_span_ns, 19990 * UINT64_C(1000000000));
	/* a tenth of each allocated MB is copied */
	assert_int_equal(heap->minor_bytes, 18000 * MB);
	assert_in_range(heap->minor_copied_bytes, 1799 * MB, 1800 * MB);
	/* few enough to be drawn, in order, up to the last one */
	assert_in_range(heap->n_points, 1000, 4097);
	assert_int_equal(heap->points[0].ns, T0);
	for (size_t i = 1; i < heap->n_points; i++)
		assert_true(heap->points[i].ns > heap->points[i - 1].ns);
	assert_int_equal(heap->points[heap->n_points - 1].ns, T0 + 19999 * UINT64_C(1000000000));
	timeline__free(kit.tl);
}

static int give(struct kit *kit, const struct heap_end *r)
{
	return intake__record(kit->in, r, sizeof(*r));
}

/* Values that contradict each other. */
static void test_hostile(void **state)
{
	struct heap_end good = end_of(T0 + 2000, 0, MB, MB, 0), r = good;
	const struct pic_target *t;
	struct kit kit;

	(void)state;
	kit_new(&kit);
	r.heap.n_caps = 3;
	assert_int_equal(give(&kit, &r), -EBADMSG);
	r.heap.n_caps = WIRE_HEAP_CAPS + 1;
	assert_int_equal(give(&kit, &r), -EBADMSG);
	r = good;
	r.heap.n_gens = WIRE_HEAP_GENS + 1;
	assert_int_equal(give(&kit, &r), -EBADMSG);
	r = good;
	r.heap.large_words = UINT64_MAX / 8;
	assert_int_equal(give(&kit, &r), -EBADMSG);
	r = good;
	r.heap.reason = WIRE_ALLOC_OTHER + 1;
	assert_int_equal(give(&kit, &r), -EBADMSG);
	/* a number that is no capability's and a value that is impossible are left out */
	r = good;
	r.caps[0].no = WIRE_HEAP_CAPS;
	r.caps[1].allocated = UINT64_MAX;
	assert_int_equal(give(&kit, &r), 0);
	/* a count that goes back adds nothing until it exceeds its maximum */
	put_heap(&kit, T0 + 3000, 1, 5 * MB, 0, 4 * MB);
	put_heap(&kit, T0 + 4000, 2, 1 * MB, 0, 0);
	put_heap(&kit, T0 + 5000, 3, 6 * MB, 0, 0);
	t = finish_at(&kit, END);
	assert_int_equal(t->alloc.bytes, 6 * MB);
	assert_int_equal(rows_of(t), 6 * MB);
	timeline__free(kit.tl);
}

/* A program that retains more and more, and exits: its last collection finds nothing. */
static void test_exit(void **state)
{
	for (int exits = 0; exits < 2; exits++) {
		const struct pic_heap *heap;
		struct kit kit;
		union rec ev;

		kit_new(&kit);
		for (uint64_t i = 0; i < 11; i++) {
			struct heap_end r = end_of(T0 + i * 1000000000, i, (i + 1) * MB, 0, 0);

			r.heap.n_gens = 2;
			r.heap.generation = 1;
			r.heap.live_words = i == 10 ? 0 : (i + 1) * MB / 8;
			r.heap.gens[1].n_words = r.heap.live_words;
			r.heap.n_threads = i == 10 ? 1 : 5;
			assert_int_equal(intake__record(kit.in, &r, sizeof(r)), 0);
		}
		if (exits)
			put(&kit, mk_event(&ev, WIRE_PROC_EXIT, 7, T0 + 10500000000));
		heap = &finish_at(&kit, T0 + UINT64_C(11000000000))->heap;
		assert_int_equal(heap->majors, exits ? 10 : 11);
		assert_int_equal(heap->last.live_bytes, exits ? 10 * MB : 0);
		assert_int_equal(heap->gens[1].live_bytes, exits ? 10 * MB : 0);
		assert_int_equal(heap->haskell_threads, exits ? 5 : 1);
		assert_int_equal(heap->n_points, 11);
		assert_true(heap->growth_known);
		assert_int_equal(heap->growth_span_ns, (exits ? 9 : 10) * UINT64_C(1000000000));
		if (exits)
			assert_true(heap->growth > 59.9e6 && heap->growth < 60.1e6);
		else
			assert_true(heap->growth < 50e6);
		timeline__free(kit.tl);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_capability),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_skipped),
		cmocka_unit_test(test_unseen),
		cmocka_unit_test(test_figures),
		cmocka_unit_test(test_ticks),
		cmocka_unit_test(test_hostile_ticks),
		cmocka_unit_test(test_no_ticks),
		cmocka_unit_test(test_large_divided),
		cmocka_unit_test(test_large_never_asks),
		cmocka_unit_test(test_large_always_asks),
		cmocka_unit_test(test_from_then_on),
		cmocka_unit_test(test_unread),
		cmocka_unit_test(test_many_capabilities),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_heap),
		cmocka_unit_test(test_exit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
