/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples of allocation and ends of collections, and lookups of what a picture has of them. */
#ifndef SAFESCOPED_TEST_TIMELINE_ALLOC_H
#define SAFESCOPED_TEST_TIMELINE_ALLOC_H

#include "picture/make.h"
#include "test_timeline_kit.h"

#define MS 1000000ULL
#define MB 1000000ULL

/* A sample on capability `cap`: h(leaf), called from h(0). */
static inline void put_alloc(struct kit *kit, uint64_t ns, uint32_t cap, uint32_t reason,
			     unsigned leaf)
{
	struct {
		struct wire_alloc alloc;
		uint64_t frames[2];
	} r = {.alloc = {.reason = reason & 0xff, .flags = reason >> 8}};

	r.alloc.h = (struct wire_hdr){
		.ns = ns, .tgid = PID, .tid = 7, .type = WIRE_ALLOC, .size = sizeof(r)};
	r.alloc.rts.where = WIRE_WHERE_HASKELL;
	r.alloc.rts.cap_no = cap;
	r.alloc.rts.tso = 8;
	r.alloc.rts.tso_id = 1;
	r.alloc.stack.nframes = 2;
	r.alloc.stack.end = WIRE_END_COMPLETE;
	r.frames[0] = RET(HS(leaf));
	r.frames[1] = RET(HS(0));
	assert_int_equal(intake__record(kit->in, &r, sizeof(r)), 0);
}

struct heap_end {
	struct wire_heap heap;
	struct wire_heap_cap caps[2];
};

static inline struct heap_end end_of(uint64_t ns, uint64_t number, uint64_t a, uint64_t b,
				     uint64_t large)
{
	struct heap_end r = {.heap = {.number = number,
				      .large_words = large / 8,
				      .reason = WIRE_ALLOC_NURSERY,
				      .n_caps = 2,
				      .all_caps = 2,
				      .flags = WIRE_HEAP_LARGE_SEEN},
			     .caps = {{.allocated = a, .no = 0}, {.allocated = b, .no = 1}}};

	r.heap.h = (struct wire_hdr){
		.ns = ns, .tgid = PID, .tid = 7, .type = WIRE_HEAP, .size = sizeof(r)};
	return r;
}

/* What each of the two capabilities has allocated by then (a, b), and how much of that in large
 * objects. */
static inline void put_heap(struct kit *kit, uint64_t ns, uint64_t number, uint64_t a, uint64_t b,
			    uint64_t large)
{
	struct heap_end r = end_of(ns, number, a, b, large);

	assert_int_equal(intake__record(kit->in, &r, sizeof(r)), 0);
}

static inline void put_tick(struct kit *kit, uint64_t ns, unsigned leaf, uint64_t allocated)
{
	const struct wire_allocated r = {
		.h = {.ns = ns, .tgid = PID, .tid = 7, .type = WIRE_ALLOCATED, .size = sizeof(r)},
		.allocated = allocated,
		.cap_no = 1};
	union rec sample;

	put(kit, mk_sample(&sample, 7, ns, WIRE_WHERE_HASKELL, HS(leaf), IP(HS(leaf)), STOP));
	assert_int_equal(intake__record(kit->in, &r, sizeof(r)), 0);
}

static inline const struct pic_target *finish_at(struct kit *kit, uint64_t end)
{
	assert_int_equal(timeline__finish(kit->tl, end), 0);
	kit->pic = timeline__picture(kit->tl);
	return picture__target(kit->pic, 0);
}

static inline uint64_t self_of(const struct picture *pic, const struct pic_target *t,
			       const char *name)
{
	for (size_t i = 0; i < t->alloc.n_allocators; i++)
		if (!strcmp(picture__frame(pic, t->alloc.allocators[i].frame)->name, name))
			return t->alloc.allocators[i].self_bytes;
	return 0;
}

/* The bytes of all rows, which must equal those of all spans. */
static inline uint64_t rows_of(const struct pic_target *t)
{
	uint64_t bytes = 0, spans = 0;

	for (size_t i = 0; i < t->alloc.n_rows; i++)
		bytes += t->alloc.rows[i].bytes;
	for (size_t i = 0; i < t->alloc.n_spans; i++)
		spans += t->alloc.spans[i].bytes;
	assert_int_equal(spans, bytes);
	return bytes;
}

#endif
