/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "gathered.h"

#include <stdlib.h>

uint32_t pprof_source__target(const struct pprof_source *s, const struct sum *sum)
{
	size_t owner = sum->owner / LANE_STATES;

	return owner < s->views.n ? s->views.v[owner].target_no : (uint32_t)(owner - s->views.n);
}

/* A stable counting sort of the sums by process. */
static int order_sums(struct pprof_source *s)
{
	size_t n = picture__n_targets(s->pic);

	s->order = calloc(s->sums.n + 1, sizeof(*s->order));
	s->first = calloc(n + 2, sizeof(*s->first));
	if (!s->order || !s->first)
		return -ENOMEM;
	/* first count each process's sums two places up, so that first[t + 1] becomes its start */
	for (size_t i = 0; i < s->sums.n; i++)
		s->first[pprof_source__target(s, &s->sums.v[i]) + 2]++;
	for (size_t t = 0; t < n; t++)
		s->first[t + 2] += s->first[t + 1];
	for (size_t i = 0; i < s->sums.n; i++)
		s->order[s->first[pprof_source__target(s, &s->sums.v[i]) + 1]++] = (uint32_t)i;
	return 0;
}

static int find_frames(struct pprof_source *s)
{
	s->frame = calloc((size_t)s->n + 1, sizeof(*s->frame));
	s->met_location = calloc((size_t)s->n + 1, sizeof(*s->met_location));
	s->met_binary = calloc(s->binaries.n + 1, sizeof(*s->met_binary));
	s->id = calloc((size_t)s->n + 1, sizeof(*s->id));
	if (!s->frame || !s->met_location || !s->met_binary || !s->id)
		return -ENOMEM;
	/* numbers are in order of first use, so a number seen for the first time is `next` */
	for (uint32_t i = 0, next = 0; i < picture__n_frames(s->pic); i++)
		if (s->map[i] == next)
			s->frame[next++] = i;
	return 0;
}

int export_pprof__gather(const struct picture *pic, struct pprof_source **ret_source)
{
	struct pprof_source *s = calloc(1, sizeof(*s));
	const char *title;
	int err;

	if (!s)
		return -ENOMEM;
	s->pic = pic;
	err = views__collect(pic, &s->views);
	if (!err)
		err = sums__collect(pic, &s->views, SUMS_BY_STATE, &s->sums, &title);
	if (!err)
		err = carriers__of_threads(&s->views, &s->carriers);
	if (!err)
		err = binaries__collect(pic, &s->binaries);
	if (!err)
		err = frames__number_alike(pic, FRAME_SRC, &s->map, &s->n);
	if (!err)
		err = order_sums(s);
	if (!err)
		err = find_frames(s);
	if (err)
		export_pprof__free(s);
	else
		*ret_source = s;
	return err;
}

void export_pprof__free(struct pprof_source *s)
{
	if (!s)
		return;
	carriers__free_all(s->carriers, s->views.n);
	views__free(&s->views);
	sums__free(&s->sums);
	binaries__free(&s->binaries);
	free(s->map);
	free(s->frame);
	free(s->order);
	free(s->first);
	free(s->met_location);
	free(s->met_binary);
	free(s->id);
	free(s);
}

size_t pprof_source__n_sums(const struct pprof_source *s, uint32_t target)
{
	return target == EVERY_TARGET ? s->sums.n : s->first[target + 1] - s->first[target];
}

const struct sum *pprof_source__sum(const struct pprof_source *s, uint32_t target, size_t index)
{
	return &s->sums.v[target == EVERY_TARGET ? index : s->order[s->first[target] + index]];
}

/* ── what a process uses ─────────────────────────────────────────────────────────────────── */

static int cmp_numbers(const void *a, const void *b)
{
	return CMP(*(const uint32_t *)a, *(const uint32_t *)b);
}

/* Adds a number unless it was already met in this round. */
static int add_number(struct pprof_source *s, uint32_t *met, uint32_t number,
		      struct numbers *numbers)
{
	int err;

	if (met[number] == s->round)
		return 0;
	err = ARRAY_RESERVE(numbers->v, numbers->cap, numbers->n + 1, EXPORT_MAX_ENTRIES);
	if (err)
		return err;
	met[number] = s->round;
	numbers->v[numbers->n++] = number;
	return 0;
}

static int find_locations(struct pprof_source *s, uint32_t target, struct numbers *locations)
{
	int err = 0;

	for (size_t i = 0; !err && i < pprof_source__n_sums(s, target); i++) {
		struct pic_stack stack =
			picture__stack(s->pic, pprof_source__sum(s, target, i)->stack);

		for (uint32_t k = 0; !err && k < stack.n; k++)
			err = add_number(s, s->met_location, s->map[stack.frames[k]], locations);
	}
	return err;
}

static int find_executables(struct pprof_source *s, uint32_t target, struct numbers *binaries)
{
	int err = 0;

	for (uint32_t t = 0; !err && t < picture__n_targets(s->pic); t++) {
		uint32_t binary = s->binaries.of_target[t];

		if ((target == t || target == EVERY_TARGET) && binary && pprof_source__n_sums(s, t))
			err = add_number(s, s->met_binary, binary - 1, binaries);
	}
	return err;
}

static int find_binaries(struct pprof_source *s, uint32_t target, const struct numbers *locations,
			 struct numbers *binaries)
{
	int err = find_executables(s, target, binaries);

	for (size_t i = 0; !err && i < locations->n; i++) {
		uint32_t binary = s->binaries.of_frame[s->frame[locations->v[i]]];

		if (binary)
			err = add_number(s, s->met_binary, binary - 1, binaries);
	}
	return err;
}

int pprof_source__used(struct pprof_source *s, uint32_t target, struct numbers *ret_locations,
		       struct numbers *ret_binaries)
{
	struct numbers locations = {0}, binaries = {0};
	int err;

	s->round++;
	err = find_locations(s, target, &locations);
	if (!err)
		err = find_binaries(s, target, &locations, &binaries);
	if (err) {
		free(locations.v);
		free(binaries.v);
		return err;
	}
	if (locations.n)
		qsort(locations.v, locations.n, sizeof(*locations.v), cmp_numbers);
	if (binaries.n)
		qsort(binaries.v, binaries.n, sizeof(*binaries.v), cmp_numbers);
	for (size_t i = 0; i < locations.n; i++)
		s->id[locations.v[i]] = (uint32_t)i + 1;
	*ret_locations = locations;
	*ret_binaries = binaries;
	return 0;
}
