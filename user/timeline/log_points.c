/* SPDX-License-Identifier: GPL-2.0-or-later */
/* log_points: collections, markers, windows and curves of a log. */
#include <stdio.h>

#include "log_priv.h"

int elog__gcs(struct target_state *tg, struct log_build *b)
{
	size_t n = b->in.sched ? el_sched__info(b->in.sched).n_gcs : 0;
	struct tl_gc_event *gcs;

	if (!n)
		return 0;
	gcs = elog__alloc(b, n, sizeof(*gcs));
	if (!gcs)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct el_gc *gc = el_sched__gc(b->in.sched, i);

		gcs[i] = (struct tl_gc_event){
			.start_ns = elog__time(b, gc->start),
			.end_ns = elog__time(b, gc->end),
			.sync_ns = gc->request && gc->request <= gc->start ? gc->start - gc->request
									   : UINT64_MAX,
			.number = UINT64_MAX,
			.generation = gc->gen == EL_GC_NO_GEN ? -1 : gc->gen,
		};
	}
	tg->pub.gcs = gcs;
	tg->pub.n_gcs = n;
	return 0;
}

int elog__marks(struct timeline *tl, struct target_state *tg, struct log_build *b)
{
	size_t all = b->in.info ? el_info__process(b->in.info).n_notes : 0, n = 0;
	struct tl_mark *marks;

	if (!all)
		return 0;
	marks = elog__alloc(b, all, sizeof(*marks));
	if (!marks)
		return -ENOMEM;
	for (size_t i = 0; i < all; i++) {
		const struct el_note *note = el_info__note(b->in.info, i);
		uint64_t at = elog__time(b, note->time);

		if (at < b->from_ns || at > b->to_ns)
			continue;
		marks[n++] = (struct tl_mark){
			.ns = at,
			.text = tl__string(tl, el_info__string(b->in.info, note->text)),
			.tso = note->thread,
			.cap = note->cap == EL_CAP_GLOBAL ? UINT32_MAX : note->cap,
			.kind = note->id == EL_USER_MARKER ? MK_USER_MARKER : MK_USER_MESSAGE,
		};
	}
	tg->pub.marks = marks;
	tg->pub.n_marks = n;
	return 0;
}

static int by_total(const void *pa, const void *pb)
{
	const struct tl_window *a = pa, *b = pb;

	if (a->total_ns != b->total_ns)
		return a->total_ns < b->total_ns ? 1 : -1;
	return strcmp(a->label, b->label);
}

int elog__windows(struct timeline *tl, struct target_state *tg, struct log_build *b)
{
	size_t n = b->in.annot ? el_annot__info(b->in.annot).n_sums : 0;
	struct tl_window *windows;

	if (!n)
		return 0;
	windows = elog__alloc(b, n, sizeof(*windows));
	if (!windows)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct el_span_sum *sum = el_annot__sum(b->in.annot, i);

		windows[i] = (struct tl_window){
			.label = tl__string(tl, el_annot__string(b->in.annot, sum->label)),
			.count = sum->count,
			.total_ns = sum->total_ns,
			.min_ns = sum->min_ns,
			.max_ns = sum->max_ns,
			.unfinished = sum->unfinished,
		};
	}
	qsort(windows, n, sizeof(*windows), by_total);
	tg->pub.windows = windows;
	tg->pub.n_windows = n;
	return 0;
}

/* ── curves ──────────────────────────────────────────────────────────────────────────────── */

static void describe(const struct el_series *s, struct tl_counter *ret_counter)
{
	ret_counter->unit = s->kind == ESK_TICKY_ENTRIES ? "entries" : "bytes";
	switch (s->kind) {
	case ESK_PROFILE:
		ret_counter->kind = TC_HEAP_PROFILE;
		break;
	case ESK_TICKY_ENTRIES:
	case ESK_TICKY_ALLOCS:
		ret_counter->kind = TC_TICKY;
		break;
	default:
		ret_counter->kind = TC_HEAP;
		break;
	}
}

static int by_kind_and_size(const void *pa, const void *pb)
{
	const struct tl_counter *a = pa, *b = pb;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->max_value != b->max_value)
		return a->max_value < b->max_value ? 1 : -1;
	return strcmp(a->name, b->name);
}

int elog__counters(struct timeline *tl, struct target_state *tg, struct log_build *b)
{
	size_t n = b->in.heap ? el_heap__info(b->in.heap).n_series : 0;
	struct tl_counter *counters;

	if (!n)
		return 0;
	counters = elog__alloc(b, n, sizeof(*counters));
	if (!counters)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct el_series *s = el_heap__series(b->in.heap, i);
		struct tl_point *points = elog__alloc(b, s->n, sizeof(*points));

		if (!points)
			return -ENOMEM;
		for (size_t k = 0; k < s->n; k++)
			points[k] = (struct tl_point){elog__time(b, s->p[k].time), s->p[k].value};
		counters[i].name = tl__string(tl, el_heap__string(b->in.heap, s->name));
		counters[i].points = points;
		counters[i].n_points = s->n;
		counters[i].max_value = s->max_value;
		counters[i].last_value = s->last;
		describe(s, &counters[i]);
	}
	qsort(counters, n, sizeof(*counters), by_kind_and_size);
	tg->pub.counters = counters;
	tg->pub.n_counters = n;
	return 0;
}
