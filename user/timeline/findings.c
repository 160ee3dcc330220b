/* SPDX-License-Identifier: GPL-2.0-or-later */
/* findings: the list, its order, and the words that all findings use. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "findings_priv.h"

#define MAX_FINDINGS 256
#define MAX_SPANS    ((size_t)1 << 26)

/* ── the list ────────────────────────────────────────────────────────────────────────────── */

void finding__add(struct finder *f, const char *kind, uint64_t ns, const char *where,
		  const char *fmt, ...)
{
	struct findings *out = f->out;
	void *v = out->v;
	char *text = NULL, *place;
	va_list args;

	if (f->err || out->n >= MAX_FINDINGS)
		return;
	f->err = array__reserve(&v, &out->cap, out->n + 1, MAX_FINDINGS, sizeof(*out->v));
	out->v = v;
	if (f->err)
		return;
	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		text = NULL;
	va_end(args);
	place = strdup(where ? where : "");
	if (!text || !place) {
		free(text);
		free(place);
		f->err = -ENOMEM;
		return;
	}
	out->v[out->n++] =
		(struct tl_finding){.kind = kind, .text = text, .where = place, .ns = ns};
}

static int by_time(const void *pa, const void *pb)
{
	const struct tl_finding *a = pa, *b = pb;

	if (a->ns != b->ns)
		return a->ns < b->ns ? 1 : -1;
	return strcmp(a->text, b->text);
}

static void measure(struct finder *f)
{
	uint64_t start = UINT64_MAX, end = 0;

	for (size_t i = 0; i < f->t->n_lanes; i++) {
		start = MIN(start, f->t->lanes[i].start_ns);
		end = MAX(end, f->t->lanes[i].end_ns);
		f->cpu_ns += f->t->lanes[i].cpu_ns;
	}
	f->wall_ns = end > start ? end - start : 0;
}

int findings__make(const struct timeline *tl, const struct tl_target *t, struct findings *out)
{
	static void (*const all[])(struct finder * f) = {
		findings__unsafe, findings__loops,	  findings__safe,
		findings__gc,	  findings__capabilities, findings__haskell,
	};
	struct finder f = {.tl = tl, .t = t, .out = out};

	measure(&f);
	if (!f.wall_ns)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(all) && !f.err; i++)
		all[i](&f);
	if (!f.err && out->n)
		qsort(out->v, out->n, sizeof(*out->v), by_time);
	return f.err;
}

void findings__free(struct findings *f)
{
	for (size_t i = 0; i < f->n; i++) {
		free((void *)(uintptr_t)f->v[i].text);
		free((void *)(uintptr_t)f->v[i].where);
	}
	free(f->v);
	memset(f, 0, sizeof(*f));
}

/* ── words ───────────────────────────────────────────────────────────────────────────────── */

struct said said__ns(uint64_t ns)
{
	struct said said = {.s = ""};

	human__duration(said.s, sizeof(said.s), ns);
	return said;
}

struct said said__count(uint64_t n, const char *one, const char *many)
{
	struct said said = {.s = ""};
	char count[32];

	human__count(count, sizeof(count), n);
	snprintf(said.s, sizeof(said.s), "%.30s %.32s", count, n == 1 ? one : many);
	return said;
}

struct said said__rate(uint64_t n, uint64_t ns)
{
	double rate = ns ? (double)n * 1e9 / (double)ns : 0, unit = 1;
	struct said said = {.s = ""};
	char count[32];

	/* two digits: it is an average */
	while (rate / unit >= 100)
		unit *= 10;
	human__count(count, sizeof(count), (uint64_t)(rate / unit + 0.5) * (uint64_t)unit);
	snprintf(said.s, sizeof(said.s), "%.32s", count);
	return said;
}

bool finding__share(uint64_t part, uint64_t whole, unsigned percent)
{
	return whole && (double)part * 100 >= (double)whole * percent;
}

char *finding__caller(const char *caller)
{
	char *text = NULL;

	if (!caller || !*caller)
		return strdup("");
	return asprintf(&text, ", called from %s", caller) < 0 ? NULL : text;
}

char *finding__place(const struct tl_frame *frame)
{
	char *text = NULL;

	if (!frame)
		return strdup("");
	if (!frame->src || !*frame->src)
		return strdup(frame->name);
	return asprintf(&text, "%s (%s)", frame->name, frame->src) < 0 ? NULL : text;
}

/* ── stacks ──────────────────────────────────────────────────────────────────────────────── */

static bool is_c(const struct tl_frame *frame)
{
	return frame->kind == TF_FOREIGN || frame->kind == TF_RTS || frame->kind == TF_GC;
}

void finding__call_of(const struct timeline *tl, uint32_t id, uint32_t *ret_function,
		      uint32_t *ret_caller)
{
	struct tl_stack stack = timeline__stack(tl, id);

	*ret_function = UINT32_MAX;
	*ret_caller = UINT32_MAX;
	for (uint32_t i = stack.n; i-- > 0 && *ret_caller == UINT32_MAX;) {
		const struct tl_frame *frame = timeline__frame(tl, stack.frames[i]);

		if (frame && frame->kind == TF_HASKELL)
			*ret_caller = stack.frames[i];
		else if (frame && is_c(frame))
			*ret_function = stack.frames[i];
	}
}

const struct tl_frame *finding__frame(const struct timeline *tl, uint32_t id)
{
	return id == UINT32_MAX ? NULL : timeline__frame(tl, id);
}

const struct tl_frame *finding__leaf(const struct timeline *tl, uint32_t id)
{
	struct tl_stack stack = timeline__stack(tl, id);

	for (uint32_t i = stack.n; i-- > 0;) {
		const struct tl_frame *frame = timeline__frame(tl, stack.frames[i]);

		if (frame && (is_c(frame) || frame->kind == TF_HASKELL))
			return frame;
	}
	return NULL;
}

/* ── collections ─────────────────────────────────────────────────────────────────────────── */

uint64_t finding__requested_ns(const struct tl_gc_event *gc)
{
	return gc->sync_ns == UINT64_MAX || gc->sync_ns > gc->start_ns ? gc->start_ns
								       : gc->start_ns - gc->sync_ns;
}

uint64_t finding__in_sync(const struct tl_target *t, size_t *at, uint64_t start, uint64_t end)
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
	void *v = s->v;
	int err = array__reserve(&v, &s->cap, s->n + 1, MAX_SPANS, sizeof(*s->v));

	s->v = v;
	if (!err)
		s->v[s->n++] = (struct span){start, end};
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
