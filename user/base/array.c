/* SPDX-License-Identifier: GPL-2.0-or-later */
/* array: room for more elements, never beyond a maximum that the caller names. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

#define ARRAY_FIRST 16

int array__reserve(void **array, size_t *cap, size_t need, size_t max, size_t elem)
{
	size_t want, bytes;
	void *bigger;

	if (need <= *cap)
		return 0;
	if (elem == 0)
		return -EINVAL;
	if (need > max)
		return -E2BIG;

	/* Half as much again: linear cost on the whole, and less waste than doubling. */
	want = *cap + *cap / 2;
	if (want < *cap || want > max)
		want = max;
	want = MAX(want, MIN((size_t)ARRAY_FIRST, max));
	want = MAX(want, need);

	if (__builtin_mul_overflow(want, elem, &bytes)) {
		want = need;
		if (__builtin_mul_overflow(want, elem, &bytes))
			return -E2BIG;
	}
	bigger = realloc(*array, bytes);
	if (!bigger)
		return -ENOMEM;
	*array = bigger;
	*cap = want;
	return 0;
}

void array__sort(void *array, size_t n, size_t elem, int (*cmp)(const void *a, const void *b))
{
	const char *p = array;

	for (size_t i = 1; i < n; i++) {
		if (cmp(p + (i - 1) * elem, p + i * elem) > 0) {
			qsort(array, n, elem, cmp);
			return;
		}
	}
}

/* Byte by byte from the lowest; a byte that all keys have in common costs nothing. */
void keyed__sort(struct keyed *v, struct keyed *tmp, size_t n)
{
	size_t count[8][256] = {0};
	struct keyed *from = v, *to = tmp;

	for (size_t i = 0; i < n; i++)
		for (unsigned b = 0; b < 8; b++)
			count[b][v[i].key >> (8 * b) & 0xff]++;
	for (unsigned b = 0; b < 8 && n; b++) {
		struct keyed *swap = from;
		size_t at = 0;

		if (count[b][from[0].key >> (8 * b) & 0xff] == n)
			continue;
		for (unsigned d = 0; d < 256; d++) {
			size_t here = count[b][d];

			count[b][d] = at;
			at += here;
		}
		for (size_t i = 0; i < n; i++)
			to[count[b][from[i].key >> (8 * b) & 0xff]++] = from[i];
		from = to;
		to = swap;
	}
	if (from != v)
		memcpy(v, tmp, n * sizeof(*v));
}
