/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cfi_judge: decides which of the followed code is believed, by how its paths end. */
#include "cfi_node_priv.h"

#include <errno.h>
#include <stdlib.h>

#include "base/base.h"

#define MAX_HOPS 8 /* tail calls followed from one function to the next */

/* A return was reached: the entry is a function, and each call on the way returned. */
static void mark_good(struct graph_node *nodes, uint32_t origin)
{
	for (; origin & 1; origin = nodes[origin / 2].origin) {
		if (nodes[origin / 2].good_call)
			return;
		nodes[origin / 2].good_call = true;
	}
	nodes[origin / 2].good = true;
}

/* An odd end was reached: at least one call on the way does not return, so every one that never led
 * to a return is suspected. */
static void mark_bad(struct graph_node *nodes, uint32_t origin)
{
	uint32_t last = origin;
	bool any = false;

	for (; origin & 1; origin = nodes[origin / 2].origin) {
		if (nodes[origin / 2].good_call)
			continue;
		nodes[origin / 2].bad_call = true;
		any = true;
	}
	if (any)
		return;
	if (last & 1)
		nodes[last / 2].bad_call = true;
	else
		nodes[origin / 2].bad_entry = true;
}

void cfi_judge(struct graph_node *nodes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		nodes[i].good = nodes[i].good_call = nodes[i].bad_call = nodes[i].bad_entry = false;
	for (size_t i = 0; i < n; i++)
		if (nodes[i].end == END_RETURN)
			mark_good(nodes, nodes[i].origin);
	for (size_t i = 0; i < n; i++)
		if (nodes[i].end == END_ODD)
			mark_bad(nodes, nodes[i].origin);
}

bool cfi_judge__believes(const struct graph_node *nodes, uint32_t origin)
{
	uint32_t root;

	for (; origin & 1; origin = nodes[origin / 2].origin)
		if (nodes[origin / 2].bad_call)
			return false;
	root = origin / 2;
	if (nodes[root].bad_entry)
		return false;
	for (int hops = 0; hops < MAX_HOPS && root != CFI_NO_NODE; hops++, root = nodes[root].tail)
		if (nodes[root].good && !nodes[root].bad_entry)
			return true;
	return false;
}

static int by_address(const void *a, const void *b)
{
	const struct graph_node *x = a, *y = b;

	return CMP(x->at, y->at);
}

int cfi_judge__keep(struct graph_node *nodes, size_t *n)
{
	bool *believed = malloc(*n + 1);
	size_t kept = 0;

	if (!believed)
		return -ENOMEM;
	for (size_t i = 0; i < *n; i++)
		believed[i] = nodes[i].size && cfi_judge__believes(nodes, nodes[i].origin);
	for (size_t i = 0; i < *n; i++)
		if (believed[i])
			nodes[kept++] = nodes[i];
	free(believed);
	*n = kept;
	if (kept)
		qsort(nodes, kept, sizeof(*nodes), by_address);
	return 0;
}
