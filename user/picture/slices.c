/* SPDX-License-Identifier: GPL-2.0-or-later */
/* slices: appending and merging them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "make.h"
#include "merge.h"
#include "slices.h"

static void take(struct slices *s, size_t *kept, const struct pic_slice *slice)
{
	struct pic_slice *last = *kept ? &s->v[*kept - 1] : NULL;

	if (!last || last->end_ns != slice->start_ns || !slice__alike(last, slice)) {
		s->v[(*kept)++] = *slice;
		return;
	}
	last->end_ns = slice->end_ns;
	last->samples += slice->samples;
	last->exact = last->exact && slice->exact;
}

static void merge(struct slices *s, enum lane_kind kind)
{
	struct pic_slice merged[MERGE_PARTS];
	size_t kept = 0, i = 0;
	struct merge m;

	while (i < s->n) {
		uint64_t start = s->v[i].start_ns;
		unsigned n;

		merge__begin(&m, kind, start);
		do
			merge__add(&m, &s->v[i++]);
		while (i < s->n && s->v[i].start_ns == s->v[i - 1].end_ns &&
		       s->v[i].end_ns - start < s->merged_ns);
		n = merge__end(&m, merged);
		for (unsigned k = 0; k < n; k++)
			take(s, &kept, &merged[k]);
	}
	s->n = kept;
}

static int make_room(struct slices *s, enum lane_kind kind, size_t max)
{
	uint64_t span = s->v[s->n - 1].end_ns - s->v[0].start_ns;

	if (!s->merged_ns)
		s->merged_ns = MAX(span / max, (uint64_t)2);
	/* merging only the slices added since the last time may be enough */
	merge(s, kind);
	/* widen by a factor of four, since each pass goes over all slices */
	while (s->n > max / 2 && s->merged_ns <= span) {
		s->merged_ns *= 4;
		merge(s, kind);
	}
	/* a lane whose limit was lowered gives back excess memory */
	if (s->cap > max && s->n < max / 2 + 1) {
		struct pic_slice *fit = realloc(s->v, (max / 2 + 1) * sizeof(*fit));

		if (fit) {
			s->v = fit;
			s->cap = max / 2 + 1;
		}
	}
	return s->n < max ? 0 : -E2BIG;
}

int slices__put(struct slices *s, enum lane_kind kind, const struct pic_slice *slice, size_t max)
{
	struct pic_slice *last = s->n ? &s->v[s->n - 1] : NULL;
	int err = 0;

	if (last && last->end_ns == slice->start_ns && slice__alike(last, slice)) {
		take(s, &s->n, slice);
		return 0;
	}
	max = MAX(max, (size_t)2 * MERGE_PARTS);
	if (last && s->n >= max)
		err = make_room(s, kind, max);
	if (!err)
		err = ARRAY_RESERVE(s->v, s->cap, s->n + 1, max);
	if (!err)
		s->v[s->n++] = *slice;
	return err;
}

void slices__free(struct slices *s)
{
	free(s->v);
	memset(s, 0, sizeof(*s));
}

int slices__give(struct slices *s, struct picture *pic, struct pic_lane *lane)
{
	struct pic_slice *fit = NULL;

	/* shrink the array; if that fails the old one is still valid */
	if (s->n)
		fit = realloc(s->v, s->n * sizeof(*s->v));
	if (fit)
		s->v = fit;
	if (s->n && !picture__keep(pic, s->v))
		return -ENOMEM;
	if (!s->n)
		slices__free(s);
	lane->slices = s->v;
	lane->n_slices = s->n;
	lane->merged_ns = MAX(lane->merged_ns, s->merged_ns);
	*s = (struct slices){0};
	return 0;
}
