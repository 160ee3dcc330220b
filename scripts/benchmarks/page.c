/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scripts/bench page: an html page of a made-up session: SLICES slices, in the lanes of eight
 * capabilities and forty OS threads, with stacks of up to forty frames.
 *
 *     page SLICES FILE.html
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "export/export.h"
#include "picture/make.h"

#define CAPABILITIES 8
#define THREADS	     40
#define FRAMES	     600
#define STACKS	     4000
#define DEEPEST	     40
#define POINTS	     100000
#define SPANS	     30000

static uint64_t seed = 88172645463325252ULL;

/* xorshift64: the same page each time. */
static uint64_t any_below(uint64_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % n;
}

static void must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "page: %s\n", what);
	exit(1);
}

static void add_stacks(struct picture *pic, uint32_t *stacks)
{
	uint32_t frames[FRAMES];

	for (uint32_t i = 0; i < FRAMES; i++) {
		char name[48];
		struct pic_frame frame = {.name = name,
					  .file = "Module.Of.Some.Kind",
					  .kind = i % 7 ? TF_HASKELL : TF_FOREIGN};

		snprintf(name, sizeof(name), "Module.Of.Some.Kind.function%u", i);
		must(!picture__add_frame(pic, &frame, &frames[i]), "no frame");
	}
	for (uint32_t i = 0; i < STACKS; i++) {
		uint32_t stack[DEEPEST], n = 2 + (uint32_t)any_below(DEEPEST - 2);

		/* neighbours share their roots */
		for (uint32_t d = 0; d < n; d++)
			stack[d] = frames[(d < n / 2 ? i / 50 * 7 + d : i * 13 + d * 5) % FRAMES];
		must(!picture__add_stack(pic, stack, n, &stacks[i]), "no stack");
	}
}

static uint64_t fill(struct picture *pic, struct pic_lane *lane, const uint32_t *stacks, size_t n,
		     unsigned states)
{
	struct pic_slice *slices = picture__alloc(pic, n, sizeof(*slices));
	struct pic_row *rows = picture__alloc(pic, STACKS, sizeof(*rows));
	uint64_t at = 0;

	must(slices && rows, "no memory");
	for (size_t i = 0; i < n; i++) {
		uint64_t ns = 200 + any_below(any_below(16) ? 20000 : 2000000);
		uint32_t stack = (uint32_t)any_below(STACKS);

		slices[i] = (struct pic_slice){.start_ns = at,
					       .end_ns = at + ns,
					       .stack = stacks[stack],
					       .cap = NO_CAP,
					       .samples = ns > 1000000,
					       .state = (uint8_t)any_below(states),
					       .exact = any_below(2) != 0};
		rows[stack].ns += ns;
		rows[stack].stack = stacks[stack];
		rows[stack].state = 0;
		rows[stack].on_cpu = true;
		lane->states_ns[slices[i].state] += ns;
		at += ns;
	}
	lane->end_ns = at;
	lane->threads = 1;
	lane->name = "worker";
	lane->slices = slices;
	lane->n_slices = n;
	lane->rows = rows;
	lane->n_rows = STACKS;
	return at;
}

static struct pic_lanes lanes_of(struct picture *pic, enum lane_kind kind, size_t n, size_t slices,
				 const uint32_t *stacks, uint64_t *end)
{
	struct pic_lane *v = picture__alloc(pic, n, sizeof(*v));

	must(v, "no memory");
	for (size_t i = 0; i < n; i++) {
		uint64_t at;

		v[i].kind = kind;
		v[i].cap = (uint32_t)i;
		v[i].tid = kind == LANE_THREAD ? (pid_t)(1000 + i) : 0;
		at = fill(pic, &v[i], stacks, slices, kind == LANE_THREAD ? ST_PREEMPTED : CS_IDLE);
		*end = MAX(*end, at);
	}
	return (struct pic_lanes){.v = v, .n = n};
}

static void add_curve(struct picture *pic, struct pic_target *target, uint64_t end)
{
	struct pic_counter *counter = picture__alloc(pic, 1, sizeof(*counter));
	struct pic_point *points = picture__alloc(pic, POINTS, sizeof(*points));

	must(counter && points, "no memory");
	for (size_t i = 0; i < POINTS; i++)
		points[i] = (struct pic_point){.ns = end / POINTS * i, .value = any_below(9)};
	*counter = (struct pic_counter){.name = "runnable threads",
					.unit = "threads",
					.points = points,
					.n_points = POINTS,
					.max_value = 8};
	target->counters = counter;
	target->n_counters = 1;
}

static void add_allocation(struct picture *pic, struct pic_target *target, const uint32_t *stacks,
			   uint64_t end)
{
	struct pic_alloc_span *spans = picture__alloc(pic, SPANS, sizeof(*spans));
	struct pic_alloc_row *rows = picture__alloc(pic, STACKS, sizeof(*rows));

	must(spans && rows, "no memory");
	for (uint32_t i = 0; i < STACKS; i++)
		rows[i].stack = stacks[i];
	for (size_t i = 0; i < SPANS; i++) {
		uint32_t stack = (uint32_t)any_below(STACKS);
		uint64_t bytes = 1000000 + any_below(4000000);

		spans[i] = (struct pic_alloc_span){.from_ns = end / SPANS * i,
						   .to_ns = end / SPANS * (i + 1),
						   .bytes = bytes,
						   .samples = 1,
						   .tid = (pid_t)(1000 + any_below(THREADS)),
						   .cap = (uint16_t)any_below(CAPABILITIES),
						   .stack = stacks[stack]};
		rows[stack].bytes += bytes;
		rows[stack].samples++;
		target->alloc.bytes += bytes;
		target->alloc.sampled_bytes += bytes;
	}
	target->alloc.known = true;
	target->alloc.rows = rows;
	target->alloc.n_rows = STACKS;
	target->alloc.spans = spans;
	target->alloc.n_spans = SPANS;
}

int main(int argc, char **argv)
{
	static uint32_t stacks[STACKS];
	const struct export_opts opts = {.weight = WEIGHT_CPU};
	unsigned long n = argc == 3 ? strtoul(argv[1], NULL, 10) / (CAPABILITIES + THREADS) : 0;
	struct pic_target *target;
	struct picture *pic;
	uint64_t end = 0;
	FILE *out;

	must(n > 0, "usage: page SLICES FILE.html");
	must(!picture__new(STACKS + 100, &pic), "no picture");
	add_stacks(pic, stacks);
	must(!picture__add_target(pic, &target), "no process");
	target->comm = "made-up";
	target->pid = 42;
	target->lanes[LANE_CAPABILITY] =
		lanes_of(pic, LANE_CAPABILITY, CAPABILITIES, n, stacks, &end);
	target->lanes[LANE_THREAD] = lanes_of(pic, LANE_THREAD, THREADS, n, stacks, &end);
	add_curve(pic, target, end);
	add_allocation(pic, target, stacks, end);
	*picture__edit_session(pic) =
		(struct pic_session){.version = "bench", .mode = "pid", .end_ns = end};
	out = fopen(argv[2], "w");
	must(out, "the page cannot be written");
	must(!export_html.write(out, pic, &opts) && !fclose(out), "the page cannot be written");
	picture__free(pic);
	return 0;
}
