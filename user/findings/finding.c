/* SPDX-License-Identifier: GPL-2.0-or-later */
/* finding: adding one, and the wording that the families share. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "findings_priv.h"

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
	struct pic_finding finding = {.kind = kind, .ns = ns, .longest = f->longest};
	va_list args;

	f->longest = (struct pic_moment){0};
	if (f->err || f->n == MAX_FINDINGS)
		return;
	va_start(args, fmt);
	finding.text = keep(f, fmt, args);
	va_end(args);
	finding.where = finding__text(f, "%s", where ? where : "");
	if (!f->err)
		f->v[f->n++] = finding;
}

enum pic_gc_reason finding__majors_reason(const struct pic_heap *heap)
{
	const uint64_t *n = heap->major_reasons;
	uint64_t not_heap = n[GC_REASON_FORCED] + n[GC_REASON_IDLE], known = 0;

	for (unsigned i = 0; i < GC_REASONS; i++)
		known += i == GC_REASON_UNKNOWN ? 0 : n[i];
	if (!known || not_heap <= known / 2)
		return GC_REASON_UNKNOWN;
	return n[GC_REASON_FORCED] >= n[GC_REASON_IDLE] ? GC_REASON_FORCED : GC_REASON_IDLE;
}

const char *finding__rts(struct finder *f, const char *option)
{
	switch (f->t->rts_opts) {
	case RTS_OPTS_ALL:
		return finding__text(f, "+RTS %s", option);
	case RTS_OPTS_UNKNOWN:
		return finding__text(f, "+RTS %s, or -with-rtsopts=%s when linking", option,
				     option);
	default:
		return finding__text(f,
				     "%s, which this program does not accept after +RTS: relink it "
				     "with -rtsopts, or with -with-rtsopts=%s",
				     option, option);
	}
}

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
	return human__count(human__whole(floor(rate / unit + 0.5) * unit));
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

static bool is_c(const struct pic_frame *frame)
{
	return frame->kind == TF_FOREIGN || frame->kind == TF_RTS || frame->kind == TF_GC;
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
