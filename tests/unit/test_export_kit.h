/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pictures from tables: turns a hand-written sketch into a picture by picture/make.h, exports it,
 * and compares the export with a file.
 */
#ifndef SAFESCOPED_TEST_EXPORT_KIT_H
#define SAFESCOPED_TEST_EXPORT_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "export/export.h"
#include "picture/make.h"

/* A slice's stack is an index into `stacks`, whose frames are indices into `frames`. */
struct sketch {
	struct pic_session session;
	const struct pic_target *targets;
	size_t n_targets;
	const struct pic_frame *frames;
	uint32_t n_frames;
	const struct pic_place *places; /* of the frames; NULL if none are known */
	const struct pic_stack *stacks;
	uint32_t n_stacks;
};

#define STACK(...)                                                                                 \
	{                                                                                          \
		.frames = (const uint32_t[]){__VA_ARGS__},                                         \
		.n = sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)                    \
	}
/* A table of lanes, for `lanes` of a target. */
#define LANES(table)                                                                               \
	{                                                                                          \
		.v = (table), .n = ARRAY_SIZE(table)                                               \
	}

static inline void *kit_copy(struct picture *pic, const void *v, size_t n, size_t size)
{
	void *copy = picture__alloc(pic, n, size);

	if (!copy)
		abort();
	if (n)
		memcpy(copy, v, n * size);
	return copy;
}

/* Adds a row for each slice, since formats sum over rows. */
static inline void kit_fill_lane(struct picture *pic, struct pic_lane *lane, enum lane_kind kind,
				 const uint32_t *stacks, uint32_t n_stacks)
{
	struct pic_slice *slices = kit_copy(pic, lane->slices, lane->n_slices, sizeof(*slices));
	struct pic_row *rows = picture__alloc(pic, lane->n_slices, sizeof(*rows));

	if (!rows)
		abort();
	for (size_t i = 0; i < lane->n_slices; i++) {
		struct pic_slice *s = &slices[i];

		s->stack = s->stack < n_stacks ? stacks[s->stack] : UINT32_MAX;
		rows[i] = (struct pic_row){
			.ns = s->end_ns > s->start_ns ? s->end_ns - s->start_ns : 0,
			.samples = s->samples,
			.stack = s->stack,
			.state = s->state,
			.on_cpu = state__on_cpu(kind, s->state),
		};
		rows[i].times = !rows[i].on_cpu;
		rows[i].longest_ns = rows[i].on_cpu ? 0 : rows[i].ns;
	}
	lane->kind = kind;
	lane->threads = 1;
	lane->slices = slices;
	lane->rows = rows;
	lane->n_rows = lane->n_slices;
	if (kind == LANE_THREAD) {
		/* the sketch decides if the thread is housekeeping, and its sums if it is idle */
		bool housekeeping = lane->housekeeping;

		lane__judge(lane, 0);
		lane->housekeeping = housekeeping;
	}
}

/* *ret_stacks: the picture's stack numbers, owned by the picture; may be NULL. */
static inline struct picture *kit_picture(const struct sketch *sketch, const uint32_t **ret_stacks)
{
	uint32_t *frames, *stacks;
	struct picture *pic;

	if (picture__new(1 << 20, &pic))
		abort();
	*picture__edit_session(pic) = sketch->session;
	frames = picture__alloc(pic, sketch->n_frames, sizeof(*frames));
	stacks = picture__alloc(pic, sketch->n_stacks, sizeof(*stacks));
	for (uint32_t i = 0; i < sketch->n_frames; i++)
		if (picture__add_frame(pic, &sketch->frames[i], &frames[i]) ||
		    (sketch->places && picture__set_place(pic, frames[i], &sketch->places[i])))
			abort();
	for (uint32_t i = 0; i < sketch->n_stacks; i++) {
		uint32_t v[1024];

		for (uint32_t k = 0; k < sketch->stacks[i].n; k++)
			v[k] = frames[sketch->stacks[i].frames[k]];
		if (picture__add_stack(pic, v, sketch->stacks[i].n, &stacks[i]))
			abort();
	}
	for (size_t t = 0; t < sketch->n_targets; t++) {
		struct pic_target *target;

		if (picture__add_target(pic, &target))
			abort();
		*target = sketch->targets[t];
		for (unsigned k = 0; k < LANE_KINDS; k++) {
			struct pic_lanes *lanes = &target->lanes[k];
			struct pic_lane *v = kit_copy(pic, lanes->v, lanes->n, sizeof(*v));

			for (size_t i = 0; i < lanes->n; i++)
				kit_fill_lane(pic, &v[i], (enum lane_kind)k, stacks,
					      sketch->n_stacks);
			lanes->v = v;
		}
	}
	if (ret_stacks)
		*ret_stacks = stacks;
	return pic;
}

/* The caller frees. */
static inline char *kit_render(const char *format, const struct sketch *sketch,
			       const struct export_opts *opts, size_t *ret_len)
{
	const struct export_format *f = export__find(format, strlen(format));
	struct picture *pic = kit_picture(sketch, NULL);
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_len);

	assert_non_null(f);
	assert_non_null(out);
	assert_int_equal(f->write(out, pic, opts), 0);
	assert_int_equal(fclose(out), 0);
	picture__free(pic);
	return text;
}

static inline FILE *kit_open_golden(const char *name, const char *mode)
{
	const char *slash = strrchr(__FILE__, '/');
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%.*s/../data/export/%s", slash ? (int)(slash - __FILE__) : 1,
		 slash ? __FILE__ : ".", name);
	file = fopen(path, mode);
	if (!file)
		fail_msg("%s: cannot be opened", path);
	return file;
}

/* Compares with the file in tests/data/export/; SAFESCOPED_UPDATE=1 in the environment rewrites
 * the file. */
static inline void assert_golden(const char *name, const char *format, const struct sketch *sketch,
				 const struct export_opts *opts)
{
	char *expected;
	size_t len, n;
	char *text = kit_render(format, sketch, opts, &len);
	FILE *file;

	assert_int_equal(strlen(text), len);
	if (getenv("SAFESCOPED_UPDATE")) {
		file = kit_open_golden(name, "w");
		assert_int_equal(fwrite(text, 1, len, file), len);
		assert_int_equal(fclose(file), 0);
	}
	file = kit_open_golden(name, "r");
	expected = calloc(1, len + 2);
	assert_non_null(expected);
	n = fread(expected, 1, len + 1, file);
	fclose(file);
	if (n != len || memcmp(text, expected, len) != 0)
		fail_msg("%s: expected\n%s\ngot\n%s", name, expected, text);
	free(expected);
	free(text);
}

#endif
