/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stacks as a tree of bounded size. A subtree below a threshold is dropped as soon as it is
 * complete, so that never much more is in memory than is kept; if that is still too much, all is
 * done again with twice the threshold.
 */
#include <stdlib.h>
#include <string.h>

#include "html_priv.h"

/* The first threshold is this part of the whole: no screen shows less. */
#define LEAST_SHIFT 16
/* While it is being built a tree may be larger: its open subtrees are not judged yet. */
#define ROOM 8

/* A frame whose children may still come. */
struct open {
	size_t node;
	uint32_t frame;
	uint64_t total, small;
};

struct building {
	struct html_tree *tree;
	uint64_t least;
	size_t max;
	struct open *open;
	size_t n, cap;
	uint64_t small; /* of the roots */
};

static int add_node(struct building *b, uint32_t depth, uint32_t frame, uint64_t self)
{
	int err = b->tree->n < b->max
			  ? ARRAY_RESERVE(b->tree->nodes, b->tree->cap, b->tree->n + 1, b->max)
			  : -E2BIG;

	if (!err)
		b->tree->nodes[b->tree->n++] =
			(struct html_node){.depth = depth, .frame = frame, .self = self};
	return err;
}

static int open_frame(struct building *b, uint32_t frame)
{
	int err = ARRAY_RESERVE(b->open, b->cap, b->n + 1, EXPORT_MAX_ENTRIES);

	if (!err)
		err = add_node(b, (uint32_t)b->n, frame, 0);
	if (!err)
		b->open[b->n++] = (struct open){.node = b->tree->n - 1, .frame = frame};
	return err;
}

static int close_frame(struct building *b)
{
	const struct open *last = &b->open[--b->n];
	uint64_t *small = b->n ? &b->open[b->n - 1].small : &b->small;

	if (b->n)
		b->open[b->n - 1].total += last->total;
	if (last->total < b->least) {
		b->tree->n = last->node;
		*small += last->total;
		return 0;
	}
	return last->small ? add_node(b, (uint32_t)b->n + 1, HTML_SMALL, last->small) : 0;
}

static int add_stack(struct building *b, struct pic_stack stack, const uint32_t *map,
		     uint64_t weight)
{
	uint32_t common = 0;
	int err = 0;

	if (!stack.n) {
		b->small += weight;
		return 0;
	}
	while (common < stack.n && common < b->n &&
	       b->open[common].frame == map[stack.frames[common]])
		common++;
	while (!err && b->n > common)
		err = close_frame(b);
	while (!err && b->n < stack.n)
		err = open_frame(b, map[stack.frames[b->n]]);
	if (err)
		return err;
	b->tree->nodes[b->open[b->n - 1].node].self += weight;
	b->open[b->n - 1].total += weight;
	return 0;
}

static int build(struct building *b, const struct picture *pic, const struct sum *sums, size_t n,
		 enum export_weight weight, const uint32_t *map)
{
	int err = 0;

	b->tree->n = b->n = 0;
	b->small = 0;
	for (size_t i = 0; i < n && !err; i++)
		err = add_stack(b, picture__stack(pic, sums[i].stack), map, sums[i].by[weight]);
	while (!err && b->n)
		err = close_frame(b);
	return !err && b->small ? add_node(b, 0, HTML_SMALL, b->small) : err;
}

int html_tree__build(const struct picture *pic, const struct sum *sums, size_t n,
		     enum export_weight weight, const uint32_t *map, size_t most,
		     struct html_tree *ret_tree)
{
	struct html_tree tree = {0};
	struct building b = {.tree = &tree, .max = most * ROOM};
	int err;

	for (size_t i = 0; i < n; i++)
		tree.total += sums[i].by[weight];
	b.least = MAX(tree.total >> LEAST_SHIFT, 1);
	for (;;) {
		err = build(&b, pic, sums, n, weight, map);
		if (err ? err != -E2BIG : tree.n <= most)
			break;
		err = -E2BIG;
		if (b.least >= tree.total)
			break;
		b.least = b.least > UINT64_MAX / 2 ? UINT64_MAX : b.least * 2;
	}
	free(b.open);
	if (err) {
		html_tree__free(&tree);
		return err;
	}
	*ret_tree = tree;
	return 0;
}

void html_tree__free(struct html_tree *tree)
{
	free(tree->nodes);
	memset(tree, 0, sizeof(*tree));
}
