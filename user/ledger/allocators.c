/* SPDX-License-Identifier: GPL-2.0-or-later */
/* allocators: functions and modules by the bytes that they and their callees allocated. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "picture/make.h"
#include "sums.h"

struct tally {
	struct pic_allocator a;
	const struct pic_alloc_row *seen; /* the row added last: a function counts once per row */
};

static bool is_code(const struct pic_frame *frame)
{
	return frame->kind != TF_STATE && frame->kind != TF_MARK;
}

/*
 * The runtime's code, which allocates on behalf of others. The frames of a heap check have
 * Haskell's kind (rts/HeapStackCheck.cmm: stg_ret_p and others).
 */
static bool is_runtime(const struct pic_frame *frame)
{
	return picture__is_rts(frame->kind, frame->package) || !strncmp(frame->name, "stg_", 4);
}

/* The frame that allocates. */
static uint32_t own_frame(const struct picture *pic, struct pic_stack stack)
{
	for (uint32_t i = stack.n; i-- > 0;) {
		const struct pic_frame *frame = picture__frame(pic, stack.frames[i]);

		if (is_code(frame) && !is_runtime(frame))
			return i;
	}
	return stack.n - 1;
}

static void add_row(const struct picture *pic, struct tally *tallies,
		    const struct pic_alloc_row *row)
{
	struct pic_stack stack = picture__stack(pic, row->stack);
	uint32_t own = own_frame(pic, stack);

	for (uint32_t i = 0; i < stack.n; i++) {
		struct tally *tally = &tallies[stack.frames[i]];

		if (!is_code(picture__frame(pic, stack.frames[i])))
			continue;
		if (tally->seen != row) {
			tally->a.total_bytes += row->bytes;
			tally->a.total_samples += row->samples;
			tally->seen = row;
		}
		if (i == own) {
			tally->a.self_bytes += row->bytes;
			tally->a.self_samples += row->samples;
		}
	}
}

static int by_self(const void *pa, const void *pb)
{
	const struct pic_allocator *a = pa, *b = pb;

	return CMP(b->self_bytes, a->self_bytes)
		       ?: CMP(b->total_bytes, a->total_bytes)
		       ?: CMP(a->frame, b->frame);
}

static int by_name(const void *pa, const void *pb)
{
	const struct pic_alloc_module *a = pa, *b = pb;

	return strcmp(a->module, b->module) ?: strcmp(a->package, b->package);
}

static int by_bytes(const void *pa, const void *pb)
{
	const struct pic_alloc_module *a = pa, *b = pb;

	return CMP(b->bytes, a->bytes) ?: by_name(pa, pb);
}

static int fill_modules(struct picture *pic, struct pic_alloc *alloc)
{
	struct pic_alloc_module *v = picture__alloc(pic, alloc->n_allocators, sizeof(*v));
	size_t n = 0, kept = 0;

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < alloc->n_allocators; i++) {
		const struct pic_allocator *a = &alloc->allocators[i];
		const struct pic_frame *frame = picture__frame(pic, a->frame);

		if (a->self_bytes)
			v[n++] = (struct pic_alloc_module){frame->module ? frame->module : "",
							   frame->package ? frame->package : "",
							   a->self_bytes, a->self_samples};
	}
	qsort(v, n, sizeof(*v), by_name);
	for (size_t i = 1; i < n; i++) {
		if (by_name(&v[kept], &v[i])) {
			v[++kept] = v[i];
			continue;
		}
		v[kept].bytes += v[i].bytes;
		v[kept].samples += v[i].samples;
	}
	n = n ? kept + 1 : 0;
	qsort(v, n, sizeof(*v), by_bytes);
	alloc->modules = v;
	alloc->n_modules = n;
	return 0;
}

int allocators__fill(struct picture *pic, struct pic_target *target)
{
	uint32_t n_frames = picture__n_frames(pic);
	struct tally *tallies = calloc((size_t)n_frames + 1, sizeof(*tallies));
	struct pic_allocator *allocators = NULL;
	size_t n = 0;

	for (size_t i = 0; tallies && i < target->alloc.n_rows; i++)
		add_row(pic, tallies, &target->alloc.rows[i]);
	for (uint32_t i = 0; tallies && i < n_frames; i++)
		n += tallies[i].seen != NULL;
	if (tallies)
		allocators = picture__alloc(pic, n, sizeof(*allocators));
	if (!allocators) {
		free(tallies);
		return -ENOMEM;
	}
	n = 0;
	for (uint32_t i = 0; i < n_frames; i++) {
		if (!tallies[i].seen)
			continue;
		allocators[n] = tallies[i].a;
		allocators[n++].frame = i;
	}
	free(tallies);
	qsort(allocators, n, sizeof(*allocators), by_self);
	target->alloc.allocators = allocators;
	target->alloc.n_allocators = n;
	return fill_modules(pic, &target->alloc);
}
