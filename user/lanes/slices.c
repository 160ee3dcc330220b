/* SPDX-License-Identifier: GPL-2.0-or-later */
/* slices: putting them down, and merging them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/search.h"
#include "slices.h"

#define FACES 8 /* of a group, so many different ones are told apart */

static bool alike(const struct pic_slice *a, const struct pic_slice *b)
{
	return a->state == b->state && a->stack == b->stack && a->cap == b->cap &&
	       a->tso == b->tso && a->tid == b->tid;
}

/* What took most of v[0…n). */
static const struct pic_slice *heaviest(const struct pic_slice *v, size_t n)
{
	const struct pic_slice *faces[FACES] = {v};
	uint64_t ns[FACES] = {0};
	size_t n_faces = 0, best = 0;

	for (size_t i = 0; i < n; i++) {
		size_t k = 0;

		while (k < n_faces && !alike(faces[k], &v[i]))
			k++;
		if (k == FACES)
			continue;
		if (k == n_faces)
			faces[n_faces++] = &v[i];
		ns[k] += v[i].end_ns - v[i].start_ns;
	}
	for (size_t k = 1; k < n_faces; k++)
		if (ns[k] > ns[best])
			best = k;
	return faces[best];
}

static struct pic_slice merge_group(const struct pic_slice *v, size_t n)
{
	struct pic_slice merged = *heaviest(v, n);

	merged.start_ns = v[0].start_ns;
	merged.end_ns = v[n - 1].end_ns;
	merged.samples = 0;
	for (size_t i = 0; i < n; i++)
		merged.samples += v[i].samples;
	if (n > 1)
		merged.exact = 0;
	return merged;
}

static void merge(struct slices *s)
{
	size_t kept = 0, i = 0;

	while (i < s->n) {
		struct pic_slice merged;
		size_t end = i + 1;

		while (end < s->n && s->v[end].start_ns == s->v[end - 1].end_ns &&
		       s->v[end].end_ns - s->v[i].start_ns < s->merged_ns)
			end++;
		merged = merge_group(&s->v[i], end - i);
		if (kept && s->v[kept - 1].end_ns == merged.start_ns &&
		    alike(&s->v[kept - 1], &merged)) {
			s->v[kept - 1].end_ns = merged.end_ns;
			s->v[kept - 1].samples += merged.samples;
			s->v[kept - 1].exact = s->v[kept - 1].exact && merged.exact;
		} else {
			s->v[kept++] = merged;
		}
		i = end;
	}
	s->n = kept;
}

static int make_room(struct slices *s, size_t max)
{
	uint64_t span = s->v[s->n - 1].end_ns - s->v[0].start_ns;

	if (!s->merged_ns)
		s->merged_ns = MAX(span / max, (uint64_t)2);
	/* those that came since the last time may be enough */
	merge(s);
	/* in steps of four: each pass over all of them costs */
	while (s->n > max / 2 && s->merged_ns <= span) {
		s->merged_ns *= 4;
		merge(s);
	}
	return s->n < max ? 0 : -E2BIG;
}

int slices__put(struct slices *s, const struct pic_slice *slice, size_t max)
{
	struct pic_slice *last = s->n ? &s->v[s->n - 1] : NULL;
	int err = 0;

	if (last && last->end_ns == slice->start_ns && alike(last, slice)) {
		last->end_ns = slice->end_ns;
		last->samples += slice->samples;
		last->exact = last->exact && slice->exact;
		return 0;
	}
	max = MAX(max, (size_t)2);
	if (s->n >= max)
		err = make_room(s, max);
	if (!err)
		err = ARRAY_RESERVE(s->v, s->cap, s->n + 1, max);
	if (!err)
		s->v[s->n++] = *slice;
	return err;
}

int slices__copy(const struct slices *from, struct slices *ret_to)
{
	struct slices to = {.n = from->n, .cap = from->n, .merged_ns = from->merged_ns};

	if (from->n) {
		to.v = malloc(from->n * sizeof(*to.v));
		if (!to.v)
			return -ENOMEM;
		memcpy(to.v, from->v, from->n * sizeof(*to.v));
	}
	*ret_to = to;
	return 0;
}

void slices__free(struct slices *s)
{
	free(s->v);
	memset(s, 0, sizeof(*s));
}

size_t slices__after(const struct pic_slice *v, size_t n, uint64_t t)
{
	return search__first(n, i, v[i].end_ns > t);
}
