/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A picture with allocation and heap, and its rendering in a format. */
#ifndef SAFESCOPED_TEST_EXPORT_ALLOC_H
#define SAFESCOPED_TEST_EXPORT_ALLOC_H

#include <cjson/cJSON.h>

#include "export/export.h"
#include "test_timeline_kit.h"

#define MB 1000000ULL

/* Leaf 0: the stack has only the runtime's Cmm code. */
static inline void put_alloc(struct kit *kit, uint64_t ns, uint32_t cap, unsigned leaf)
{
	struct {
		struct wire_alloc alloc;
		uint64_t frames[2];
	} r = {.alloc = {.reason = WIRE_ALLOC_NURSERY}};

	r.alloc.h = (struct wire_hdr){
		.ns = ns, .tgid = PID, .tid = 7, .type = WIRE_ALLOC, .size = sizeof(r)};
	r.alloc.rts.where = WIRE_WHERE_HASKELL;
	r.alloc.rts.cap_no = cap;
	r.alloc.stack.nframes = 2;
	r.alloc.stack.end = WIRE_END_COMPLETE;
	r.frames[0] = leaf ? RET(HS(leaf)) : IP(CMM);
	r.frames[1] = leaf ? RET(HS(0)) : RET(UPD);
	assert_int_equal(intake__record(kit->in, &r, sizeof(r)), 0);
}

static inline void put_heap(struct kit *kit, uint64_t ns, uint64_t number, uint64_t allocated,
			    uint64_t live, bool major)
{
	struct {
		struct wire_heap heap;
		struct wire_heap_cap cap;
	} r = {.heap = {.number = number,
			.reason = WIRE_ALLOC_NURSERY,
			.live_words = live / 8,
			.copied_words = MB / 8,
			.generation = major,
			.n_gens = 2,
			.n_caps = 1,
			.all_caps = 1,
			.held = 40 + (uint32_t)number,
			.n_threads = major ? WIRE_HEAP_THREADS : 0,
			.flags = WIRE_HEAP_LARGE_SEEN},
	       .cap = {.allocated = allocated, .nursery = 1024}};

	r.heap.gens[1].n_words = live / 8;
	r.heap.gens[1].n_blocks = live / 4096 + 1;
	r.heap.h = (struct wire_hdr){
		.ns = ns, .tgid = PID, .tid = 7, .type = WIRE_HEAP, .size = sizeof(r)};
	assert_int_equal(intake__record(kit->in, &r, sizeof(r)), 0);
}

/* Not inline: GCC mistakes what open_memstream() allocates for the variable that points to it. */
__attribute__((noinline)) static char *render(const struct picture *pic, const char *format,
					      enum export_weight weight, bool verbose,
					      size_t *ret_len)
{
	const struct export_opts opts = {.weight = weight, .verbose = verbose};
	const struct export_format *f = export__find(format, strlen(format));
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_len);

	assert_non_null(f);
	assert_non_null(out);
	assert_int_equal(f->write(out, pic, &opts), 0);
	assert_int_equal(fclose(out), 0);
	return text;
}

static inline const cJSON *at(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	assert_non_null(item);
	return item;
}

static inline void assert_has(const char *text, const char *what)
{
	if (!strstr(text, what))
		fail_msg("`%s` is not in:\n%s", what, text);
}

#endif
