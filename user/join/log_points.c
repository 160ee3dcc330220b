/* SPDX-License-Identifier: GPL-2.0-or-later */
/* log_points: collections, markers, windows and curves of a log. */
#include <errno.h>

#include "base/search.h"
#include "join_priv.h"

/* The models of a joined log exceed the session; those of a log alone have what is wanted. */
static bool is_wanted(const struct log_build *b, uint64_t start_ns, uint64_t end_ns)
{
	return !b->seen || (start_ns >= b->from_ns && end_ns <= b->to_ns);
}

int elog__gcs(struct log_build *b)
{
	size_t all = b->in.sched ? el_sched__info(b->in.sched).n_gcs : 0, n = 0;
	struct pic_gc_event *gcs;

	if (!all)
		return 0;
	gcs = picture__alloc(b->pic, all, sizeof(*gcs));
	if (!gcs)
		return -ENOMEM;
	for (size_t i = 0; i < all; i++) {
		const struct el_gc *gc = el_sched__gc(b->in.sched, i);
		uint64_t start = elog__time(b, gc->start), end = elog__time(b, gc->end);

		if (!is_wanted(b, start, end))
			continue;
		gcs[n++] = (struct pic_gc_event){
			.start_ns = start,
			.end_ns = end,
			.sync_ns = gc->request && gc->request <= gc->start ? gc->start - gc->request
									   : UINT64_MAX,
			.number = UINT64_MAX,
			.generation = gc->gen == EL_GC_NO_GEN ? -1 : gc->gen,
		};
	}
	if (!n)
		return 0;
	b->pub->gcs = gcs;
	b->pub->n_gcs = n;
	return 0;
}

int elog__marks(struct log_build *b)
{
	size_t all = b->in.info ? el_info__process(b->in.info).n_notes : 0, n = 0;
	struct pic_mark *marks;

	if (!all)
		return 0;
	marks = picture__alloc(b->pic, all, sizeof(*marks));
	if (!marks)
		return -ENOMEM;
	for (size_t i = 0; i < all; i++) {
		const struct el_note *note = el_info__note(b->in.info, i);
		uint64_t at = elog__time(b, note->time);

		if (at < b->from_ns || at > b->to_ns)
			continue;
		marks[n++] = (struct pic_mark){
			.ns = at,
			.text = picture__string(b->pic, el_info__string(b->in.info, note->text)),
			.tso = note->thread,
			.cap = note->cap == EL_CAP_GLOBAL ? UINT32_MAX : note->cap,
			.kind = note->id == EL_USER_MARKER ? MK_USER_MARKER : MK_USER_MESSAGE,
		};
	}
	b->pub->marks = marks;
	b->pub->n_marks = n;
	return 0;
}

static int by_total(const void *pa, const void *pb)
{
	const struct pic_window *a = pa, *b = pb;

	if (a->total_ns != b->total_ns)
		return a->total_ns < b->total_ns ? 1 : -1;
	return strcmp(a->label, b->label);
}

/* Subtracts the part of an interval outside the session from its label's sums. A log is not
 * trusted: the sums may be smaller than that part. */
static void leave_out(const struct log_build *b, const struct el_span *span,
		      struct pic_window *from)
{
	uint64_t start = elog__time(b, span->start), end = elog__time(b, span->end);
	uint64_t whole = end - start, inside;
	bool ends_after = end > b->to_ns && !span->open_end;

	inside = elog__clip(b, &start, &end) ? end - start : 0;
	from->total_ns -= MIN(from->total_ns, whole - inside);
	if (!inside) {
		from->count -= MIN(from->count, 1U);
		from->unfinished -= MIN(from->unfinished, (uint64_t)span->open_end);
		return;
	}
	from->unfinished += ends_after;
	from->min_ns = MIN(from->min_ns, inside);
	from->max_ns = MAX(from->max_ns, inside);
}

/* For intervals that were not kept, it is unknown how much of them is in the session. */
static int report_spans(struct log_build *b, uint64_t all, size_t kept)
{
	if (all == kept)
		return 0;
	return picture__add_missing(
		b->pic, b->pub,
		"whether %llu of %llu intervals between START and STOP messages in the eventlog "
		"are in the session: there are too many to keep, so they are added up whole",
		(unsigned long long)(all - kept), (unsigned long long)all);
}

/* The models of a joined log begin before the session and end after it. */
static int cut_to_session(struct log_build *b, struct pic_window *windows, size_t n)
{
	size_t n_spans = el_annot__info(b->in.annot).n_spans;
	struct keyed *by_label = calloc(n + 1, sizeof(*by_label));
	struct keyed *tmp = calloc(n + 1, sizeof(*tmp));
	uint64_t all = 0, longest = b->to_ns - b->from_ns;

	if (!by_label || !tmp) {
		free(by_label);
		free(tmp);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		const struct el_span_sum *sum = el_annot__sum(b->in.annot, i);

		by_label[i] = (struct keyed){.key = sum->label, .index = (uint32_t)i};
		all += sum->count;
	}
	for (size_t i = 0; i < n; i++) {
		struct pic_window *w = &windows[i];

		w->min_ns = all == n_spans ? UINT64_MAX : MIN(w->min_ns, longest);
		w->max_ns = all == n_spans ? 0 : MIN(w->max_ns, longest);
	}
	keyed__sort(by_label, tmp, n);
	for (size_t i = 0; i < n_spans; i++) {
		const struct el_span *span = el_annot__span(b->in.annot, i);
		size_t at = search__first(n, k, by_label[k].key >= span->label);

		if (at < n && by_label[at].key == span->label)
			leave_out(b, span, &windows[by_label[at].index]);
	}
	free(by_label);
	free(tmp);
	return report_spans(b, all, n_spans);
}

int elog__windows(struct log_build *b)
{
	size_t all = b->in.annot ? el_annot__info(b->in.annot).n_sums : 0, n = 0;
	struct pic_window *windows;
	int err = 0;

	if (!all)
		return 0;
	windows = picture__alloc(b->pic, all, sizeof(*windows));
	if (!windows)
		return -ENOMEM;
	for (size_t i = 0; i < all; i++) {
		const struct el_span_sum *sum = el_annot__sum(b->in.annot, i);

		windows[i] = (struct pic_window){
			.label = picture__string(b->pic, el_annot__string(b->in.annot, sum->label)),
			.count = sum->count,
			.total_ns = sum->total_ns,
			.min_ns = sum->min_ns,
			.max_ns = sum->max_ns,
			.unfinished = sum->unfinished,
		};
	}
	if (b->seen)
		err = cut_to_session(b, windows, all);
	if (err)
		return err;
	for (size_t i = 0; i < all; i++)
		if (windows[i].count)
			windows[n++] = windows[i];
	qsort(windows, n, sizeof(*windows), by_total);
	b->pub->windows = windows;
	b->pub->n_windows = n;
	return 0;
}

/* ── curves ──────────────────────────────────────────────────────────────────────────────── */

static int by_kind_and_size(const void *pa, const void *pb)
{
	const struct pic_counter *a = pa, *b = pb;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->max_value != b->max_value)
		return a->max_value < b->max_value ? 1 : -1;
	return strcmp(a->name, b->name);
}

int elog__counters(struct log_build *b)
{
	static const uint8_t kinds[] = {[ESK_HEAP] = TC_HEAP,
					[ESK_PROFILE] = TC_HEAP_PROFILE,
					[ESK_TICKY_ENTRIES] = TC_TICKY,
					[ESK_TICKY_ALLOCS] = TC_TICKY};
	size_t n = b->in.heap ? el_heap__info(b->in.heap).n_series : 0;
	struct pic_counter *counters;

	if (!n)
		return 0;
	counters = picture__alloc(b->pic, n, sizeof(*counters));
	if (!counters)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct el_series *s = el_heap__series(b->in.heap, i);
		struct pic_point *points = picture__alloc(b->pic, s->n, sizeof(*points));

		if (!points)
			return -ENOMEM;
		for (size_t k = 0; k < s->n; k++)
			points[k] = (struct pic_point){elog__time(b, s->p[k].time), s->p[k].value};
		counters[i].name = picture__string(b->pic, el_heap__string(b->in.heap, s->name));
		counters[i].points = points;
		counters[i].n_points = s->n;
		counters[i].max_value = s->max_value;
		counters[i].last_value = s->last;
		counters[i].kind = kinds[s->kind];
		counters[i].unit = s->kind == ESK_TICKY_ENTRIES ? "entries" : "bytes";
	}
	qsort(counters, n, sizeof(*counters), by_kind_and_size);
	b->pub->counters = counters;
	b->pub->n_counters = n;
	return 0;
}
