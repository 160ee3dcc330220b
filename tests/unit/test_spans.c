/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When and where memory was allocated: in bounded memory, without losing how much and by whom. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "picture/spans.h"
#include "test_timeline_kit.h"

#define MS 1000000ULL
#define MB 1000000ULL

#define THREADS 3
#define SPANS	5000

/* Each span lasts until the next one begins. */
static struct pic_alloc_span span_of(size_t i)
{
	return (struct pic_alloc_span){.from_ns = i * MS,
				       .to_ns = (i + 1) * MS,
				       .bytes = 1000 + i,
				       .samples = 1,
				       .tid = (pid_t)(1 + i % THREADS),
				       .stack = 7,
				       .cap = NO_CAP};
}

static void test_bounded(void **state)
{
	static const size_t bounds[] = {16, 100, SPANS, SPANS + 1};

	(void)state;
	for (size_t b = 0; b < ARRAY_SIZE(bounds); b++) {
		uint64_t want[THREADS + 1] = {0}, got[THREADS + 1] = {0}, samples = 0;
		struct alloc_spans s = {0};

		for (size_t i = 0; i < SPANS; i++) {
			const struct pic_alloc_span span = span_of(i);

			want[span.tid] += span.bytes;
			assert_int_equal(alloc_spans__put(&s, &span, bounds[b]), 0);
			assert_true(s.n <= bounds[b]);
		}
		alloc_spans__order(&s);
		for (size_t i = 0; i < s.n; i++) {
			got[s.v[i].tid] += s.v[i].bytes;
			samples += s.v[i].samples;
			/* the first sample's end may be that far from the last one's */
			assert_true(s.v[i].to_ns - s.v[i].from_ns <= s.grain_ns + MS);
			assert_true(!i || s.v[i - 1].to_ns <= s.v[i].to_ns);
		}
		assert_memory_equal(got, want, sizeof(want));
		assert_int_equal(samples, SPANS);
		/* spans are merged only when they have to be */
		assert_int_equal(s.grain_ns == 0, bounds[b] >= SPANS);
		assert_true(s.n >= MIN(bounds[b], (size_t)SPANS) / 8);
		alloc_spans__free(&s);
	}
}

/* Spans that differ in more than time cannot be merged. */
static void test_no_room(void **state)
{
	struct alloc_spans s = {0};
	uint64_t bytes = 0;

	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		const struct pic_alloc_span span = {.to_ns = i, .bytes = 5, .stack = i};
		int err = alloc_spans__put(&s, &span, 20);

		assert_int_equal(err, i < 20 ? 0 : -E2BIG);
	}
	for (size_t i = 0; i < s.n; i++)
		bytes += s.v[i].bytes;
	assert_int_equal(s.n, 20);
	assert_int_equal(bytes, 100);
	alloc_spans__free(&s);
}

/* ── in a picture ────────────────────────────────────────────────────────────────────────── */

static void put_alloc(struct kit *kit, uint64_t ns, uint32_t tid, uint32_t cap, uint32_t reason)
{
	struct {
		struct wire_alloc alloc;
		uint64_t frame;
	} r = {.alloc = {.reason = reason}, .frame = RET(HS(1))};

	r.alloc.h = (struct wire_hdr){
		.ns = ns, .tgid = PID, .tid = tid, .type = WIRE_ALLOC, .size = sizeof(r)};
	r.alloc.rts.where = WIRE_WHERE_HASKELL;
	r.alloc.rts.cap_no = cap;
	r.alloc.stack.nframes = 1;
	r.alloc.stack.end = WIRE_END_COMPLETE;
	assert_int_equal(intake__record(kit->in, &r, sizeof(r)), 0);
}

static void put_heap(struct kit *kit, uint64_t ns, uint64_t number, uint64_t a, uint64_t b)
{
	struct {
		struct wire_heap heap;
		struct wire_heap_cap caps[2];
	} r = {.heap = {.number = number,
			.reason = WIRE_ALLOC_NURSERY,
			.n_caps = 2,
			.all_caps = 2,
			.flags = WIRE_HEAP_LARGE_SEEN},
	       .caps = {{.allocated = a, .no = 0}, {.allocated = b, .no = 1}}};

	r.heap.h = (struct wire_hdr){
		.ns = ns, .tgid = PID, .tid = 7, .type = WIRE_HEAP, .size = sizeof(r)};
	assert_int_equal(intake__record(kit->in, &r, sizeof(r)), 0);
}

static void check_span(const struct pic_alloc_span *s, uint64_t from, uint64_t to, uint64_t bytes,
		       int cap, int tid)
{
	assert_int_equal(s->from_ns - T0, from);
	assert_int_equal(s->to_ns - T0, to);
	assert_int_equal(s->bytes, bytes);
	assert_int_equal(s->cap, cap);
	assert_int_equal(s->tid, tid);
}

/*
 * A span reaches from the last collection's end to the request, or further back if the capability's
 * bytes have waited for a sample for more collections. A capability that was stopped belongs to the
 * thread that held it.
 */
static void test_times(void **state)
{
	const struct pic_target *t;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 8, T0));
	for (uint64_t ms = 2; ms < 30; ms += 4) {
		put(&kit,
		    mk_sample(&r, 7, T0 + ms * MS, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
		mk_sample(&r, 8, T0 + ms * MS + 1, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP);
		r.sample.rts.cap_no = 1;
		r.sample.rts.cap = 0x4321;
		put(&kit, &r);
	}
	put_alloc(&kit, T0 + 10 * MS, 7, 0, WIRE_ALLOC_NURSERY);
	put_heap(&kit, T0 + 11 * MS, 0, 4 * MB, 1 * MB);
	put_alloc(&kit, T0 + 20 * MS, 7, 0, WIRE_ALLOC_NURSERY);
	put_heap(&kit, T0 + 21 * MS, 1, 8 * MB, 2 * MB);
	put_alloc(&kit, T0 + 30 * MS, 7, 0, WIRE_ALLOC_NURSERY);
	put_alloc(&kit, T0 + 30 * MS + 1, 7, 1, WIRE_ALLOC_STOPPED);
	put_heap(&kit, T0 + 31 * MS, 2, 12 * MB, 6 * MB);
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 40 * MS));
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 8, T0 + 40 * MS));
	assert_int_equal(timeline__finish(kit.tl, T0 + 50 * MS), 0);
	t = picture__target(timeline__picture(kit.tl), 0);
	assert_int_equal(t->alloc.n_spans, 4);
	assert_int_equal(t->alloc.span_grain_ns, 0);
	assert_int_equal(t->alloc.no_span_bytes, 0);
	check_span(&t->alloc.spans[0], 0, 10 * MS, 4 * MB, 0, 7);
	check_span(&t->alloc.spans[1], 11 * MS, 20 * MS, 4 * MB, 0, 7);
	check_span(&t->alloc.spans[2], 21 * MS, 30 * MS, 4 * MB, 0, 7);
	check_span(&t->alloc.spans[3], 0, 30 * MS + 1, 6 * MB, 1, 8);
	timeline__free(kit.tl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
