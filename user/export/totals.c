/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "totals.h"

/* The kind of missing knowledge that a frame marks, without the number or reason in its name. NULL:
 * none. */
static const char *unknown_name(const struct pic_frame *frame)
{
	if (frame->kind != TF_MARK || !strcmp(frame->name, "[Haskell stack]"))
		return NULL;
	if (!strncmp(frame->name, "[broken", 7))
		return "[broken]";
	return strstr(frame->name, "left out]") ? "[chunks left out]" : frame->name;
}

static void add_unknown(struct totals *t, const char *name, const struct pic_row *row)
{
	size_t i = 0;

	while (i < t->n_unknown && strcmp(t->unknown[i].frame, name) != 0)
		i++;
	if (i == TOTALS_UNKNOWN)
		return;
	if (i == t->n_unknown)
		t->unknown[t->n_unknown++].frame = name;
	*(row->on_cpu ? &t->unknown[i].cpu_ns : &t->unknown[i].off_cpu_ns) += row->ns;
}

static void add_row(struct totals *t, const struct picture *pic, const struct pic_row *row)
{
	struct pic_stack stack = picture__stack(pic, row->stack);

	if (state__is_idle(LANE_THREAD, row->state))
		return;
	t->wall_ns += row->ns;
	if (row->on_cpu) {
		t->cpu_ns += row->ns;
		t->without_sample_ns += row->unsampled ? row->ns : 0;
	}
	for (uint32_t i = 0; i < stack.n; i++) {
		const char *name = unknown_name(picture__frame(pic, stack.frames[i]));

		/* only the first one, so that the time is counted once */
		if (name) {
			add_unknown(t, name, row);
			break;
		}
	}
}

static int by_name(const void *pa, const void *pb)
{
	return strcmp(((const struct totals_unknown *)pa)->frame,
		      ((const struct totals_unknown *)pb)->frame);
}

static uint64_t cpu_ns_of(const struct pic_target *target)
{
	const struct pic_lanes *threads = &target->lanes[LANE_THREAD];
	uint64_t ns = 0;

	for (size_t i = 0; i < threads->n; i++)
		if (threads->v[i].cpu_ns != UINT64_MAX)
			ns += threads->v[i].cpu_ns;
	return ns;
}

static int by_cpu(const void *pa, const void *pb, void *arg)
{
	uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
	const uint64_t *cpu_ns = arg;

	return CMP(cpu_ns[b], cpu_ns[a]) ?: CMP(a, b);
}

int totals__order(const struct picture *pic, uint32_t **ret_numbers)
{
	size_t n = picture__n_targets(pic);
	uint32_t *numbers = calloc(n + 1, sizeof(*numbers));
	uint64_t *cpu_ns = calloc(n + 1, sizeof(*cpu_ns));

	if (!numbers || !cpu_ns) {
		free(numbers);
		free(cpu_ns);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++) {
		numbers[i] = i;
		cpu_ns[i] = cpu_ns_of(picture__target(pic, i));
	}
	if (n)
		qsort_r(numbers, n, sizeof(*numbers), by_cpu, cpu_ns);
	free(cpu_ns);
	*ret_numbers = numbers;
	return 0;
}

struct totals totals__of(const struct picture *pic, const struct pic_target *target)
{
	struct totals t = {0};

	for (size_t i = 0; i < target->lanes[LANE_THREAD].n; i++) {
		const struct pic_lane *lane = &target->lanes[LANE_THREAD].v[i];

		if (lane->housekeeping)
			t.housekeeping_ns += lane->end_ns - lane->start_ns;
		for (size_t k = 0; k < lane->n_rows; k++)
			add_row(&t, pic, &lane->rows[k]);
	}
	qsort(t.unknown, t.n_unknown, sizeof(*t.unknown), by_name);
	return t;
}
