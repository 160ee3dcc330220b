/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames numbered by what a format shows of them, and stacks compared by these numbers.
 */
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
	/* The equal frame with the smallest index comes first and stands for all. */
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

struct alike {
	const struct picture *pic;
	enum frame_detail detail;
};

static int cmp_alike(uint32_t a, uint32_t b, void *ctx)
{
	const struct alike *alike = ctx;
	const struct pic_frame *x = picture__frame(alike->pic, a);
	const struct pic_frame *y = picture__frame(alike->pic, b);
	int diff = strcmp(x->name, y->name);

	if (!diff)
		diff = strcmp(x->file, y->file);
	return diff || alike->detail == FRAME_FILE ? diff : strcmp(x->src, y->src);
}

int frames__number_alike(const struct picture *pic, enum frame_detail detail, uint32_t **ret_map,
			 uint32_t *ret_distinct)
{
	struct alike alike = {pic, detail};

	return frames__number(picture__n_frames(pic), cmp_alike, &alike, true, ret_map,
			      ret_distinct);
}

uint32_t src__line(const char *src, size_t *ret_len)
{
	for (const char *colon = strchr(src, ':'); colon; colon = strchr(colon + 1, ':')) {
		const char *digits = colon + 1 + (colon[1] == '(');
		unsigned long line;
		char *end;

		if (*digits < '0' || *digits > '9')
			continue;
		line = strtoul(digits, &end, 10);
		if (line > INT32_MAX || end[strspn(end, "0123456789:,-()")])
			continue;
		*ret_len = (size_t)(colon - src);
		return (uint32_t)line;
	}
	*ret_len = strlen(src);
	return 0;
}

int stacks__cmp(struct pic_stack a, struct pic_stack b, const uint32_t *map)
{
	uint32_t n = MIN(a.n, b.n);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t x = map[a.frames[i]], y = map[b.frames[i]];

		if (x != y)
			return x < y ? -1 : 1;
	}
	return (a.n > b.n) - (a.n < b.n);
}
