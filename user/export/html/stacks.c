/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stacks as one tree of bounded size. A subtree below a threshold is dropped as soon as it is
 * complete, so that memory never holds much more than is kept; if that is still too much, the tree
 * is rebuilt with twice the threshold.
 */
#include <stdlib.h>
#include <string.h>

#include "html_priv.h"

/* During the build a tree may be larger by this factor, since open subtrees are not judged yet. */
#define ROOM 8
/* The node of a dropped stack until its HTML_SMALL exists. */
#define PENDING UINT32_MAX

/* A frame that may still get children. */
struct open {
	size_t node;	       /* index in the tree's list */
	uint32_t frame;	       /* its number in the map */
	size_t first;	       /* the first of the stacks that have it */
	uint64_t total, small; /* weights; small: what was dropped directly below it */
};

struct building {
	struct html_stacks *tree;
	const uint64_t *weights;
	const uint32_t *order; /* the stacks, sorted */
	uint64_t least;
	size_t max;
	struct open *open;
	size_t n, cap;
	uint64_t small; /* dropped roots */
};

static int add_node(struct building *b, uint32_t depth, uint32_t frame)
{
	int err = b->tree->n < b->max
			  ? ARRAY_RESERVE(b->tree->nodes, b->tree->cap, b->tree->n + 1, b->max)
			  : -E2BIG;

	if (!err)
		b->tree->nodes[b->tree->n++] = (struct html_node){.depth = depth, .frame = frame};
	return err;
}

static int open_frame(struct building *b, uint32_t frame, size_t first)
{
	int err = ARRAY_RESERVE(b->open, b->cap, b->n + 1, EXPORT_MAX_ENTRIES);

	if (!err)
		err = add_node(b, (uint32_t)b->n, frame);
	if (!err)
		b->open[b->n++] =
			(struct open){.node = b->tree->n - 1, .frame = frame, .first = first};
	return err;
}

/* Adds an HTML_SMALL node for what was dropped among the stacks from `first` to `end`. */
static int settle(struct building *b, size_t first, size_t end, uint32_t depth, uint64_t small)
{
	int err = add_node(b, depth, HTML_SMALL);

	for (size_t i = first; i < end && !err; i++)
		if (b->tree->of_stack[b->order[i]] == PENDING)
			b->tree->of_stack[b->order[i]] = (uint32_t)b->tree->n;
	b->tree->small_ns += small;
	return err;
}

/* `end`: the number of stacks so far. */
static int close_frame(struct building *b, size_t end)
{
	const struct open *last = &b->open[--b->n];
	uint64_t *small = b->n ? &b->open[b->n - 1].small : &b->small;

	if (b->n)
		b->open[b->n - 1].total += last->total;
	if (last->total < b->least) {
		b->tree->n = last->node;
		*small += last->total;
		for (size_t i = last->first; i < end; i++)
			b->tree->of_stack[b->order[i]] = PENDING;
		return 0;
	}
	return last->small ? settle(b, last->first, end, (uint32_t)b->n + 1, last->small) : 0;
}

static int add_stack(struct building *b, struct pic_stack stack, const uint32_t *map, size_t no)
{
	uint32_t common = 0;
	int err = 0;

	while (common < stack.n && common < b->n &&
	       b->open[common].frame == map[stack.frames[common]])
		common++;
	while (!err && b->n > common)
		err = close_frame(b, no);
	while (!err && b->n < stack.n)
		err = open_frame(b, map[stack.frames[b->n]], no);
	/* a stack without frames has no node */
	if (err || !b->n)
		return err;
	b->tree->of_stack[b->order[no]] = (uint32_t)b->open[b->n - 1].node + 1;
	b->open[b->n - 1].total += b->weights[b->order[no]];
	return 0;
}

static int build(struct building *b, const struct picture *pic, size_t n, const uint32_t *map)
{
	int err = 0;

	b->tree->n = b->n = 0;
	b->tree->small_ns = b->small = 0;
	for (size_t i = 0; i < n && !err; i++)
		err = add_stack(b, picture__stack(pic, b->order[i]), map, i);
	while (!err && b->n)
		err = close_frame(b, n);
	return !err && b->small ? settle(b, 0, n, 0, b->small) : err;
}

/* ── the order ───────────────────────────────────────────────────────────────────────────── */

struct arrangement {
	const struct picture *pic;
	const uint32_t *map;
};

static int cmp_stacks(const void *pa, const void *pb, void *arg)
{
	uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
	const struct arrangement *by = arg;

	return stacks__cmp(picture__stack(by->pic, a), picture__stack(by->pic, b), by->map)
		       ?: CMP(a, b);
}

/* Sorts the stacks that have a weight and frames; returns their number. */
static size_t arrange(const struct picture *pic, const uint64_t *weights, uint32_t n_stacks,
		      const uint32_t *map, uint32_t *order)
{
	struct arrangement by = {pic, map};
	size_t n = 0;

	for (uint32_t i = 0; i < n_stacks; i++)
		if (weights[i] && picture__stack(pic, i).n)
			order[n++] = i;
	qsort_r(order, n, sizeof(*order), cmp_stacks, &by);
	return n;
}

int html_stacks__build(const struct picture *pic, const uint64_t *weights, uint32_t n_stacks,
		       const uint32_t *map, size_t most, uint64_t least,
		       struct html_stacks *ret_stacks, uint64_t *ret_least)
{
	uint32_t *order = calloc((size_t)n_stacks + 1, sizeof(*order));
	struct html_stacks tree = {.of_stack = calloc((size_t)n_stacks + 1, sizeof(uint32_t)),
				   .n_stacks = n_stacks};
	struct building b = {.tree = &tree,
			     .weights = weights,
			     .order = order,
			     .least = least,
			     .max = most * ROOM};
	uint64_t total = 0;
	size_t n;
	int err = order && tree.of_stack ? 0 : -ENOMEM;

	if (err)
		goto out;
	n = arrange(pic, weights, n_stacks, map, order);
	for (size_t i = 0; i < n; i++)
		total += weights[order[i]];
	for (;;) {
		err = build(&b, pic, n, map);
		if (err ? err != -E2BIG : tree.n <= most)
			break;
		err = -E2BIG;
		if (b.least >= total)
			break;
		/* the first step, total / 2^20, is below what any screen shows */
		b.least = b.least > UINT64_MAX / 2 ? UINT64_MAX : MAX(b.least * 2, total >> 20);
	}
	*ret_least = b.least;
out:
	free(b.open);
	free(order);
	if (err)
		html_stacks__free(&tree);
	else
		*ret_stacks = tree;
	return err;
}

void html_stacks__free(struct html_stacks *stacks)
{
	free(stacks->nodes);
	free(stacks->of_stack);
	memset(stacks, 0, sizeof(*stacks));
}
