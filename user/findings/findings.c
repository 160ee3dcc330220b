/* SPDX-License-Identifier: GPL-2.0-or-later */
/* findings: the list, its order, and what all families use. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "findings_priv.h"

#define MAX_SPANS ((size_t)1 << 26)

/* ── the list ────────────────────────────────────────────────────────────────────────────── */

static const char *keep(struct finder *f, const char *fmt, va_list args)
{
	const char *kept = "";
	char *text;
	int len = vasprintf(&text, fmt, args);

	if (len >= 0) {
		kept = picture__string(f->strings, text);
		free(text);
	}
	if (len && !*kept && !f->err)
		f->err = -ENOMEM;
	return kept;
}

const char *finding__text(struct finder *f, const char *fmt, ...)
{
	const char *text;
	va_list args;

	va_start(args, fmt);
	text = keep(f, fmt, args);
	va_end(args);
	return text;
}

void finding__add(struct finder *f, const char *kind, uint64_t ns, const char *where,
		  const char *fmt, ...)
{
	struct pic_finding finding = {.kind = kind, .ns = ns};
	va_list args;

	if (f->err || f->n == MAX_FINDINGS)
		return;
	va_start(args, fmt);
	finding.text = keep(f, fmt, args);
	va_end(args);
	finding.where = finding__text(f, "%s", where ? where : "");
	if (!f->err)
		f->v[f->n++] = finding;
}

static int by_time(const void *pa, const void *pb)
{
	const struct pic_finding *a = pa, *b = pb;

	if (a->ns != b->ns)
		return a->ns < b->ns ? 1 : -1;
	return strcmp(a->text, b->text);
}

static void measure(struct finder *f)
{
	uint64_t start = UINT64_MAX, end = 0;

	for (size_t i = 0; i < f->threads->n; i++) {
		start = MIN(start, f->threads->v[i].start_ns);
		end = MAX(end, f->threads->v[i].end_ns);
		f->cpu_ns += f->threads->v[i].cpu_ns;
	}
	f->wall_ns = end > start ? end - start : 0;
}

int findings__make(struct picture *pic, struct pic_target *target)
{
	static void (*const all[])(struct finder * f) = {
		findings__unsafe, findings__loops,	  findings__safe,
		findings__gc,	  findings__capabilities, findings__haskell,
	};
	struct finder f = {
		.pic = pic,
		.t = target,
		.threads = &target->lanes[LANE_THREAD],
		.caps = &target->lanes[LANE_CAPABILITY],
		.haskell = &target->lanes[LANE_HASKELL],
		.strings = pic,
	};
	struct pic_finding *v;

	measure(&f);
	if (!f.wall_ns)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(all) && !f.err; i++)
		all[i](&f);
	if (f.err || !f.n)
		return f.err;
	qsort(f.v, f.n, sizeof(*f.v), by_time);
	v = picture__alloc(pic, f.n, sizeof(*v));
	if (!v)
		return -ENOMEM;
	memcpy(v, f.v, f.n * sizeof(*v));
	target->findings = v;
	target->n_findings = f.n;
	return 0;
}

/* ── words ───────────────────────────────────────────────────────────────────────────────── */

struct counted finding__counted(uint64_t n, const char *one, const char *many)
{
	struct counted text;

	snprintf(text.s, sizeof(text.s), "%s %.30s", human__count(n).s, n == 1 ? one : many);
	return text;
}

struct human finding__rate(uint64_t n, uint64_t ns)
{
	double rate = ns ? (double)n * 1e9 / (double)ns : 0, unit = 1;

	/* two digits: it is an average */
	while (rate / unit >= 100)
		unit *= 10;
	return human__count((uint64_t)(rate / unit + 0.5) * (uint64_t)unit);
}

bool finding__share(uint64_t part, uint64_t whole, unsigned percent)
{
	return whole && (double)part * 100 >= (double)whole * percent;
}

const char *finding__caller(struct finder *f, const char *caller)
{
	return caller && *caller ? finding__text(f, ", called from %s", caller) : "";
}

const char *finding__place(struct finder *f, const struct pic_frame *frame)
{
	if (!frame)
		return "";
	return *frame->src ? finding__text(f, "%s (%s)", frame->name, frame->src) : frame->name;
}

const char *finding__gc_waited(struct finder *f, uint64_t ns, uint64_t gcs, const char *caps,
			       uint64_t longest_ns)
{
	const char *longest = "";

	if (gcs > 1)
		longest = finding__text(f, " (longest %s)", human__duration(longest_ns).s);
	return finding__text(f, "GC waited %s in %s%s%s", human__duration(ns).s,
			     finding__counted(gcs, "collection", "collections").s, caps, longest);
}

/* ── stacks ──────────────────────────────────────────────────────────────────────────────── */

static bool is_c(const struct pic_frame *frame)
{
	return frame->kind == TF_FOREIGN || frame->kind == TF_RTS || frame->kind == TF_GC;
}

void finding__call_of(const struct picture *pic, uint32_t id, uint32_t *ret_function,
		      uint32_t *ret_caller)
{
	struct pic_stack stack = picture__stack(pic, id);

	*ret_function = UINT32_MAX;
	*ret_caller = UINT32_MAX;
	for (uint32_t i = stack.n; i-- > 0 && *ret_caller == UINT32_MAX;) {
		const struct pic_frame *frame = picture__frame(pic, stack.frames[i]);

		if (frame->kind == TF_HASKELL)
			*ret_caller = stack.frames[i];
		else if (is_c(frame))
			*ret_function = stack.frames[i];
	}
}

uint32_t finding__leaf(const struct picture *pic, uint32_t id, bool c)
{
	struct pic_stack stack = picture__stack(pic, id);

	for (uint32_t i = stack.n; i-- > 0;) {
		const struct pic_frame *frame = picture__frame(pic, stack.frames[i]);

		if (frame->kind == TF_HASKELL || (c && is_c(frame)))
			return stack.frames[i];
	}
	return UINT32_MAX;
}

/* ── collections ─────────────────────────────────────────────────────────────────────────── */

uint64_t finding__requested_ns(const struct pic_gc_event *gc)
{
	return gc->sync_ns == UINT64_MAX || gc->sync_ns > gc->start_ns ? gc->start_ns
								       : gc->start_ns - gc->sync_ns;
}

uint64_t finding__in_sync(const struct pic_target *t, size_t *at, uint64_t start, uint64_t end)
{
	uint64_t ns = 0;

	while (*at < t->n_gcs && t->gcs[*at].start_ns <= start)
		(*at)++;
	for (size_t i = *at; i < t->n_gcs && finding__requested_ns(&t->gcs[i]) < end; i++) {
		uint64_t from = MAX(start, finding__requested_ns(&t->gcs[i]));
		uint64_t to = MIN(end, t->gcs[i].start_ns);

		ns += to > from ? to - from : 0;
	}
	return ns;
}

/* ── spans ───────────────────────────────────────────────────────────────────────────────── */

int spans__add(struct spans *s, uint64_t start, uint64_t end)
{
	int err = ARRAY_RESERVE(s->v, s->cap, s->n + 1, MAX_SPANS);

	if (!err)
		s->v[s->n++] = (struct span){start, end};
	return err;
}

int spans__add_state(struct spans *s, const struct pic_lanes *lanes, unsigned state, uint64_t least)
{
	int err = 0;

	for (size_t i = 0; i < lanes->n; i++) {
		const struct pic_lane *lane = &lanes->v[i];

		for (size_t k = 0; k < lane->n_slices && !err; k++) {
			const struct pic_slice *slice = &lane->slices[k];

			if (slice->state == state && slice->end_ns - slice->start_ns >= least)
				err = spans__add(s, slice->start_ns, slice->end_ns);
		}
	}
	return err;
}

static int by_start(const void *pa, const void *pb)
{
	const struct span *a = pa, *b = pb;

	return (a->start > b->start) - (a->start < b->start);
}

void spans__join(struct spans *s)
{
	size_t n = 0;

	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), by_start);
	for (size_t i = 0; i < s->n; i++) {
		if (n && s->v[i].start <= s->v[n - 1].end)
			s->v[n - 1].end = MAX(s->v[n - 1].end, s->v[i].end);
		else
			s->v[n++] = s->v[i];
	}
	s->n = n;
}

uint64_t spans__overlap(const struct spans *s, size_t *at, uint64_t start, uint64_t end)
{
	uint64_t ns = 0;

	while (*at < s->n && s->v[*at].end <= start)
		(*at)++;
	for (size_t i = *at; i < s->n && s->v[i].start < end; i++)
		ns += MIN(end, s->v[i].end) - MAX(start, s->v[i].start);
	return ns;
}
