/* SPDX-License-Identifier: GPL-2.0-or-later */
/* functions: time and samples of functions, added up from the rows of the threads' accounts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "picture/make.h"
#include "sums.h"

static bool is_code(const struct pic_frame *frame)
{
	return frame->kind != TF_STATE && frame->kind != TF_MARK;
}

struct tally {
	struct pic_function f;
	const struct pic_row *seen; /* the row added last: a function counts once per row */
};

static void add_stack(const struct picture *pic, struct tally *tallies, const struct pic_row *row)
{
	struct pic_stack stack = picture__stack(pic, row->stack);

	for (uint32_t i = 0; i < stack.n; i++) {
		struct tally *tally = &tallies[stack.frames[i]];

		if (!is_code(picture__frame(pic, stack.frames[i])))
			continue;
		if (tally->seen != row) {
			tally->f.total_ns += row->ns;
			tally->f.total_samples += row->samples;
			tally->seen = row;
		}
		if (i + 1 == stack.n) {
			tally->f.self_ns += row->ns;
			tally->f.self_samples += row->samples;
		}
	}
}

static int by_self(const void *pa, const void *pb)
{
	const struct pic_function *a = pa, *b = pb;

	return CMP(b->self_samples, a->self_samples)
		       ?: CMP(b->total_samples, a->total_samples)
		       ?: CMP(b->self_ns, a->self_ns)
		       ?: CMP(b->total_ns, a->total_ns)
		       ?: strcmp(a->name, b->name);
}

static size_t add_lanes(const struct picture *pic, const struct pic_target *target,
			struct tally *tallies)
{
	const struct pic_lanes *threads = &target->lanes[LANE_THREAD];
	size_t n = 0;

	for (size_t k = 0; k < threads->n; k++)
		for (size_t i = 0; i < threads->v[k].n_rows; i++)
			/* unknown time has no samples, and so no function */
			if (threads->v[k].rows[i].on_cpu &&
			    threads->v[k].rows[i].state != ST_UNKNOWN)
				add_stack(pic, tallies, &threads->v[k].rows[i]);
	for (uint32_t i = 0; i < picture__n_frames(pic); i++)
		n += tallies[i].seen != NULL;
	return n;
}

int functions__fill(struct picture *pic, struct pic_target *target)
{
	uint32_t n_frames = picture__n_frames(pic);
	struct tally *tallies = calloc((size_t)n_frames + 1, sizeof(*tallies));
	struct pic_function *functions = NULL;
	size_t n = 0;

	if (tallies)
		functions =
			picture__alloc(pic, add_lanes(pic, target, tallies), sizeof(*functions));
	if (!functions) {
		free(tallies);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n_frames; i++) {
		const struct pic_frame *frame = picture__frame(pic, i);
		struct pic_function *f;

		if (!tallies[i].seen)
			continue;
		f = &functions[n++];
		*f = tallies[i].f;
		f->name = frame->name;
		f->module = frame->module;
		f->file = frame->file;
		f->package = frame->package;
		f->kind = frame->kind;
		f->approximate = frame->approximate;
	}
	free(tallies);
	qsort(functions, n, sizeof(*functions), by_self);
	target->functions = functions;
	target->n_functions = n;
	return 0;
}
