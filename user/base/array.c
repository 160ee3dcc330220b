/* SPDX-License-Identifier: GPL-2.0-or-later */
/* array: room for more elements, never beyond the caller's maximum; sorting. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

#define ARRAY_FIRST 16
/* Smaller arrays double: most are short-lived, and to copy them costs more than the memory. */
#define ARRAY_SMALL_BYTES ((size_t)256 << 10)

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

	/* Growing by half has linear total cost, too, and wastes less than doubling. */
	want = *cap + (*cap < ARRAY_SMALL_BYTES / elem ? *cap : *cap / 2);
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

/* With more sorted runs than this, qsort() is as good. */
#define MAX_RUNS 256

struct sorter {
	size_t elem;
	int (*cmp)(const void *a, const void *b);
	size_t starts[MAX_RUNS + 1]; /* starts of the runs, and the end of the last one */
	size_t n_runs;
};

/* Finds the starts of sorted runs. False: there are too many. */
static bool find_runs(struct sorter *s, const char *v, size_t n)
{
	s->starts[0] = 0;
	s->n_runs = 1;
	for (size_t i = 1; i < n; i++) {
		if (s->cmp(v + (i - 1) * s->elem, v + i * s->elem) <= 0)
			continue;
		if (s->n_runs == MAX_RUNS)
			return false;
		s->starts[s->n_runs++] = i;
	}
	s->starts[s->n_runs] = n;
	return true;
}

/* Among equal elements, those of the first run come first. */
static void merge_runs(const struct sorter *s, const char *from, char *to, const size_t at[3])
{
	const char *a = from + at[0] * s->elem, *b = from + at[1] * s->elem;
	const char *a_end = b, *b_end = from + at[2] * s->elem;

	to += at[0] * s->elem;
	while (a < a_end && b < b_end) {
		const char **next = s->cmp(a, b) <= 0 ? &a : &b;

		memcpy(to, *next, s->elem);
		*next += s->elem;
		to += s->elem;
	}
	memcpy(to, a, (size_t)(a_end - a));
	memcpy(to + (a_end - a), b, (size_t)(b_end - b));
}

/* Merges each run with the next one. */
static void merge_all(struct sorter *s, const char *from, char *to)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_runs; i += 2) {
		const size_t second = s->starts[MIN(i + 1, s->n_runs)];
		const size_t at[] = {s->starts[i], second, s->starts[MIN(i + 2, s->n_runs)]};

		merge_runs(s, from, to, at);
		s->starts[n++] = at[0];
	}
	s->starts[n] = s->starts[s->n_runs];
	s->n_runs = n;
}

void array__sort(void *array, size_t n, size_t elem, int (*cmp)(const void *a, const void *b))
{
	struct sorter s = {.elem = elem, .cmp = cmp};
	char *from = array, *to, *tmp;

	if (n < 2)
		return;
	tmp = find_runs(&s, array, n) && s.n_runs > 1 ? malloc(n * elem) : NULL;
	if (!tmp) {
		if (s.n_runs > 1)
			qsort(array, n, elem, cmp);
		return;
	}
	for (to = tmp; s.n_runs > 1;) {
		char *swap = from;

		merge_all(&s, from, to);
		from = to;
		to = swap;
	}
	if (from == tmp)
		memcpy(array, tmp, n * elem);
	free(tmp);
}

/* Radix sort from the lowest byte; a byte that is the same in all keys is skipped. */
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
