/* SPDX-License-Identifier: GPL-2.0-or-later */
/* view_each: the walk over a lane's stretches, inlined with what is done for each of millions. */
#ifndef SAFESCOPED_EXPORT_VIEW_EACH_H
#define SAFESCOPED_EXPORT_VIEW_EACH_H

#include "view.h"

static inline void view_get(const struct lane_view *view, size_t i, struct span *ret)
{
	if (view->kind == LANE_CAPABILITY) {
		const struct tl_cap_stretch *s = &view->cap->stretches[i];

		*ret = (struct span){.start_ns = s->start_ns,
				     .end_ns = s->end_ns,
				     .tso = s->tso,
				     .stack = s->stack,
				     .cap = view->cap->no,
				     .samples = s->samples,
				     .tid = s->tid,
				     .state = s->state,
				     .exact = s->exact,
				     .idle = s->state == CS_IDLE};
	} else if (view->kind == LANE_HASKELL) {
		const struct tl_tso_stretch *s = &view->tso->stretches[i];

		*ret = (struct span){.start_ns = s->start_ns,
				     .end_ns = s->end_ns,
				     .tso = view->tso->tso,
				     .stack = s->stack,
				     .cap = s->cap,
				     .tid = s->tid,
				     .state = s->state,
				     .exact = s->exact};
	} else {
		const struct tl_stretch *s = &view->thread->stretches[i];

		*ret = (struct span){.start_ns = s->start_ns,
				     .end_ns = s->end_ns,
				     .stack = s->stack,
				     .cap = s->cap == 0xffff ? UINT32_MAX : s->cap,
				     .samples = s->samples,
				     .state = s->state,
				     .exact = s->exact,
				     /* without a stack: what a log does not tell of */
				     .idle = s->state == ST_IDLE ||
					     (s->state == ST_UNKNOWN && !s->stack)};
	}
}

/* Neighbours that are becoming one. */
struct pile {
	struct span span;
	uint64_t longest_ns;
	unsigned n;
};

static inline void pile_flush(struct pile *pile, void (*fn)(void *ctx, const struct span *span),
			      void *ctx)
{
	if (!pile->n)
		return;
	pile->span.merged = pile->n > 1;
	if (pile->span.merged)
		pile->span.exact = false;
	fn(ctx, &pile->span);
	pile->n = 0;
}

static inline void pile_add(struct pile *pile, const struct span *span)
{
	uint32_t samples = pile->n ? pile->span.samples + span->samples : span->samples;
	uint64_t ns = span->end_ns - span->start_ns;

	if (!pile->n || ns > pile->longest_ns) {
		uint64_t start = pile->n ? pile->span.start_ns : span->start_ns;

		pile->span = *span;
		pile->span.start_ns = start;
		pile->longest_ns = ns;
	}
	pile->span.end_ns = span->end_ns;
	pile->span.samples = samples;
	pile->n++;
}

/*
 * The lane's stretches in time order, none empty, none before the one before it. Neighbours
 * shorter than grain_ns become one, which looks like the longest of them; 0: none does.
 */
static inline __attribute__((always_inline)) void view__each(
	const struct lane_view *view, uint64_t grain_ns,
	void (*fn)(void *ctx, const struct span *span), void *ctx)
{
	struct pile pile = {.n = 0};
	uint64_t at = 0;

	for (size_t i = 0; i < view->n; i++) {
		struct span span;

		view_get(view, i, &span);
		span.start_ns = MAX(span.start_ns, at);
		if (span.end_ns <= span.start_ns)
			continue;
		/* time without a stretch is no stretch's */
		if (span.start_ns != at || span.end_ns - span.start_ns >= grain_ns)
			pile_flush(&pile, fn, ctx);
		at = span.end_ns;
		if (span.end_ns - span.start_ns >= grain_ns) {
			fn(ctx, &span);
			continue;
		}
		pile_add(&pile, &span);
		if (pile.span.end_ns - pile.span.start_ns >= grain_ns)
			pile_flush(&pile, fn, ctx);
	}
	pile_flush(&pile, fn, ctx);
}

#endif
