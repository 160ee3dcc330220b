/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * speedscope's first profile: all threads, added up by stack, the heaviest branch first.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "speedscope_priv.h"

/* Neighbouring items that agree in all frames above some depth. */
struct group {
	size_t start, n;
	uint64_t weight;
};

static int cmp_group(const void *pa, const void *pb)
{
	const struct group *a = pa, *b = pb;

	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	return (a->start > b->start) - (a->start < b->start);
}

/* What tells items apart at a depth: the owner first, then frame by frame; 0: the stack ended. */
static uint64_t key_at(const struct speedscope *w, const struct sum *item, uint32_t depth)
{
	struct pic_stack stack;

	if (!depth)
		return item->owner;
	stack = picture__stack(w->pic, item->stack);
	return depth <= stack.n ? (uint64_t)w->map[stack.frames[depth - 1]] + 1 : 0;
}

static size_t group_end(const struct speedscope *w, const struct sum *items, size_t start, size_t n,
			uint32_t depth)
{
	uint64_t key = key_at(w, &items[start], depth);
	size_t end = start + 1;

	while (end < n && key_at(w, &items[end], depth) == key)
		end++;
	return end;
}

/*
 * Orders sorted items so that at every depth the heaviest branch comes first: then the first
 * profile reads like a flame graph as soon as it opens. tmp has room for n items. Recursion is as
 * deep as stacks branch, and the picture caps their depth.
 */
static int heaviest_first(const struct speedscope *w, struct sum *items, size_t n, uint32_t depth,
			  struct sum *tmp)
{
	struct group *groups;
	size_t n_groups = 0, at = 0;
	int err = 0;

	if (n < 2)
		return 0;
	/* Down to where they part. Items are distinct stacks, so they do. */
	while (group_end(w, items, 0, n, depth) == n)
		depth++;
	for (size_t i = 0; i < n; i = group_end(w, items, i, n, depth))
		n_groups++;
	groups = calloc(n_groups, sizeof(*groups));
	if (!groups)
		return -ENOMEM;
	for (size_t i = 0, g = 0; i < n; g++) {
		groups[g].start = i;
		groups[g].n = group_end(w, items, i, n, depth) - i;
		for (size_t k = 0; k < groups[g].n; k++)
			groups[g].weight += items[i + k].by[WEIGHT_WALL];
		i += groups[g].n;
	}
	qsort(groups, n_groups, sizeof(*groups), cmp_group);
	memcpy(tmp, items, n * sizeof(*items));
	for (size_t g = 0; g < n_groups; g++) {
		memcpy(items + at, tmp + groups[g].start, groups[g].n * sizeof(*items));
		at += groups[g].n;
	}
	at = 0;
	for (size_t g = 0; g < n_groups && !err; g++) {
		err = heaviest_first(w, items + at, groups[g].n, depth + 1, tmp);
		at += groups[g].n;
	}
	free(groups);
	return err;
}

static void put_sample(struct speedscope *w, const struct sum *item, bool first)
{
	struct pic_stack stack = picture__stack(w->pic, item->stack);
	bool comma = w->n_targets > 1;

	fputs_unlocked(first ? "[" : ",[", w->out);
	if (comma)
		put_u64(w->out, w->process_frame + item->owner);
	speedscope__put_stack(w, stack, comma);
	fputc_unlocked(']', w->out);
}

int speedscope__put_sum(struct speedscope *w)
{
	struct sums *sums = &w->sums;
	uint64_t total = 0;
	struct sum *tmp;
	int err;

	sums__arrange(sums, w->pic, w->map, WEIGHT_WALL);
	tmp = calloc(sums->n + 1, sizeof(*tmp));
	if (!tmp)
		return -ENOMEM;
	err = heaviest_first(w, sums->v, sums->n, 0, tmp);
	free(tmp);
	if (err)
		return err;
	for (size_t i = 0; i < sums->n; i++)
		total += sums->v[i].by[WEIGHT_WALL];
	speedscope__put_head(w, w->sum_title, total);
	for (size_t i = 0; i < sums->n; i++)
		put_sample(w, &sums->v[i], !i);
	fputs("],\n\"weights\":[", w->out);
	for (size_t i = 0; i < sums->n; i++)
		fprintf(w->out, "%s%" PRIu64, i ? "," : "", sums->v[i].by[WEIGHT_WALL]);
	fputs("]}", w->out);
	return 0;
}
