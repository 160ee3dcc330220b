/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Weights added up by stack, and frames numbered by what a format shows of them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export_priv.h"

struct order {
	frame_cmp cmp;
	void *ctx;
};

static int cmp_index(const void *pa, const void *pb, void *arg)
{
	const struct order *order = arg;
	uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
	int diff = order->cmp(a, b, order->ctx);

	return diff ? diff : (a > b) - (a < b);
}

int frames__number(uint32_t n, frame_cmp cmp, void *ctx, bool by_use, uint32_t **ret_map,
		   uint32_t *ret_distinct)
{
	struct order order = {.cmp = cmp, .ctx = ctx};
	uint32_t *index = calloc((size_t)n + 1, sizeof(*index));
	uint32_t *map = calloc((size_t)n + 1, sizeof(*map));
	uint32_t distinct = 0, first = 0;

	if (!index || !map) {
		free(index);
		free(map);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++)
		index[i] = i;
	qsort_r(index, n, sizeof(*index), cmp_index, &order);
	/* Of equal frames the one with the smallest index comes first and stands for all. */
	for (uint32_t i = 0; i < n; i++) {
		if (!i || cmp(index[i - 1], index[i], ctx)) {
			first = index[i];
			distinct++;
		}
		map[index[i]] = by_use ? first : distinct - 1;
	}
	if (by_use) {
		distinct = 0;
		for (uint32_t i = 0; i < n; i++)
			map[i] = map[i] == i ? distinct++ : map[map[i]];
	}
	free(index);
	*ret_map = map;
	*ret_distinct = distinct;
	return 0;
}

void weights__free(struct weights *w)
{
	free(w->items);
	memset(w, 0, sizeof(*w));
}

int weights__add(struct weights *w, uint32_t owner, uint32_t stack, uint64_t weight)
{
	uint32_t *recent = &w->recent[stack % ARRAY_SIZE(w->recent)];
	int err;

	if (!weight)
		return 0;
	if (*recent < w->n && w->items[*recent].owner == owner &&
	    w->items[*recent].stack == stack) {
		w->items[*recent].weight += weight;
		return 0;
	}
	/*
	 * Most stretches repeat a stack, so merging first keeps this as small as the stacks are
	 * many; growing when merging freed less than half keeps the merges rare.
	 */
	if (w->n == w->cap) {
		weights__merge(w);
		err = array__reserve((void **)&w->items, &w->cap, MAX(w->n * 2, (size_t)256),
				     EXPORT_MAX_ENTRIES, sizeof(*w->items));
		if (err)
			return err;
	}
	*recent = (uint32_t)w->n;
	w->items[w->n++] = (struct weighted){.owner = owner, .stack = stack, .weight = weight};
	return 0;
}

static int cmp_weighted(const void *pa, const void *pb)
{
	const struct weighted *a = pa, *b = pb;

	if (a->owner != b->owner)
		return a->owner < b->owner ? -1 : 1;
	return (a->stack > b->stack) - (a->stack < b->stack);
}

void weights__merge(struct weights *w)
{
	size_t kept = 0;

	if (!w->n)
		return;
	qsort(w->items, w->n, sizeof(*w->items), cmp_weighted);
	for (size_t i = 1; i < w->n; i++) {
		if (!cmp_weighted(&w->items[kept], &w->items[i]))
			w->items[kept].weight += w->items[i].weight;
		else
			w->items[++kept] = w->items[i];
	}
	w->n = kept + 1;
}

int stacks__cmp(struct tl_stack a, struct tl_stack b, const uint32_t *map)
{
	uint32_t n = MIN(a.n, b.n);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t x = map[a.frames[i]], y = map[b.frames[i]];

		if (x != y)
			return x < y ? -1 : 1;
	}
	return (a.n > b.n) - (a.n < b.n);
}

bool stacks__equal(struct tl_stack a, struct tl_stack b, const uint32_t *map)
{
	return a.n == b.n && !stacks__cmp(a, b, map);
}

bool session__log_alone(const struct timeline *tl)
{
	const struct tl_session *session = timeline__session(tl);

	return session->mode && !strcmp(session->mode, "eventlog");
}
