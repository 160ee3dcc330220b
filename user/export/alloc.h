/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Figures about allocation samples, the heap and collections that several reports show. */
#ifndef SAFESCOPED_EXPORT_ALLOC_H
#define SAFESCOPED_EXPORT_ALLOC_H

#include <math.h>

#include "export_priv.h"

/* The relative standard error of a share of the samples, at a share of one half: 1 / sqrt(samples).
 * < 0: there are no samples. */
static inline double alloc__error(const struct pic_alloc *alloc)
{
	return alloc->samples ? 1 / sqrt((double)alloc->samples) : -1;
}

/* True if all probes were off for a while and no later collection was seen whose count covers what
 * was allocated in the meantime. */
static inline bool alloc__held_up_to_end(const struct pic_target *target)
{
	return target->held_up_until_ns > MAX(target->alloc.to_ns, target->attach_ns);
}

/* True if the process started during the session and may have had collections before the first one
 * that was seen: what it allocated until then is not in the figures. */
static inline bool alloc__began_unseen(const struct pic_target *target)
{
	return target->calls_missed && (!target->gc.before_known || target->gc.before) &&
	       target->alloc.from_ns > target->attach_ns;
}

/* True if the figures are all that the runtime counted in the session, apart from what was
 * allocated after the last collection; else they are a lower bound. */
static inline bool alloc__exact(const struct pic_target *target)
{
	return !target->alloc.caps_left_out && !target->alloc.observed_ns &&
	       !alloc__held_up_to_end(target) && !alloc__began_unseen(target);
}

/* "in the first 1.37 s, before …": the part of the session that the figures cover, if the probes on
 * collections came off; "": all of it. */
struct alloc_part {
	char s[160];
};

static inline struct alloc_part alloc__part(const struct pic_alloc *alloc)
{
	struct alloc_part part = {""};

	if (alloc->observed_ns)
		snprintf(part.s, sizeof(part.s),
			 "in the first %s, before the probes on collections came off "
			 "(--max-overhead)",
			 human__duration(alloc->observed_ns).s);
	return part;
}

/* The same for a profile of all processes, or of process `only` if that is not UINT32_MAX. */
static inline struct alloc_part alloc__part_of(const struct picture *pic, uint32_t only)
{
	const struct pic_alloc *first = NULL;
	struct alloc_part part = {""};
	uint32_t n = 0, all = 0;

	for (uint32_t i = 0; i < picture__n_targets(pic); i++) {
		const struct pic_alloc *alloc = &picture__target(pic, i)->alloc;

		if (only != UINT32_MAX && only != i)
			continue;
		all++;
		n += alloc->observed_ns != 0;
		first = first || !alloc->observed_ns ? first : alloc;
	}
	if (n && all == 1)
		snprintf(part.s, sizeof(part.s), "allocation: %.140s", alloc__part(first).s);
	else if (n)
		snprintf(part.s, sizeof(part.s),
			 "allocation: for %u of %u processes, only until the probes on collections "
			 "came off (--max-overhead)",
			 n, all);
	return part;
}

/*
 * Iterates over the allocation rate between the ends of collections that are at least least_ns
 * apart: two collections in quick succession would otherwise dominate a curve.
 */
struct alloc_rates {
	const struct pic_heap_point *from, *to, *last;
	uint64_t least_ns;
};

/* The rates of a heap that has at least one point, in at most `parts` steps. */
static inline struct alloc_rates alloc_rates__of(const struct pic_heap *heap, uint64_t parts)
{
	const struct pic_heap_point *first = heap->points, *last = first + heap->n_points - 1;

	return (struct alloc_rates){first, first + 1, last, (last->ns - first->ns) / parts};
}

/* Returns the rate in bytes per second and when it begins. False: there are no more. */
static inline bool alloc_rates__next(struct alloc_rates *r, uint64_t *ret_from_ns,
				     uint64_t *ret_rate)
{
	for (; r->to <= r->last; r->to++) {
		uint64_t ns = r->to->ns - r->from->ns;

		if (!ns || (ns < r->least_ns && r->to < r->last))
			continue;
		*ret_from_ns = r->from->ns;
		*ret_rate =
			human__per_second(r->to->allocated_bytes - r->from->allocated_bytes, ns);
		r->from = r->to++;
		return true;
	}
	return false;
}

/* The share of the session's collections that was seen, 1 if that is all; < 0: not known. */
static inline double gc__observed_share(const struct pic_target *target)
{
	double missed = (double)pic_target__gcs_missed(target), seen = (double)target->gc.count;

	if (!target->gc.known || target->gc.inferred ||
	    pic_target__gcs_missed(target) == PIC_GCS_UNKNOWN)
		return -1;
	return missed > 0 ? seen / (seen + missed) : 1;
}

/* The share of bytes allocated before collections of the youngest generation that these copied; <
 * 0: there were none. */
static inline double heap__survival(const struct pic_heap *heap)
{
	return heap->minor_bytes
		       ? MIN((double)heap->minor_copied_bytes / (double)heap->minor_bytes, 1.0)
		       : -1;
}

#endif
