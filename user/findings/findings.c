/* SPDX-License-Identifier: GPL-2.0-or-later */
/* findings: runs all families, then sorts and numbers what they find. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "findings_priv.h"

static int by_time(const void *pa, const void *pb)
{
	const struct pic_finding *a = pa, *b = pb;

	return CMP(b->ns, a->ns) ?: strcmp(a->text, b->text);
}

/* A log alone has capabilities but no OS threads. */
static void measure(struct finder *f)
{
	const struct pic_lanes *lanes = f->threads->n ? f->threads : f->caps;
	uint64_t start = UINT64_MAX, end = 0;

	for (size_t i = 0; i < lanes->n; i++) {
		start = MIN(start, lanes->v[i].start_ns);
		end = MAX(end, lanes->v[i].end_ns);
	}
	for (size_t i = 0; i < f->threads->n; i++)
		f->cpu_ns += f->threads->v[i].cpu_ns;
	f->wall_ns = end > start ? end - start : 0;
}

/* Numbers the findings, continuing from those of earlier processes. */
static void number(struct finder *f)
{
	size_t before = 0;

	for (size_t i = 0; i < picture__n_targets(f->pic); i++)
		before += picture__target(f->pic, i)->n_findings;
	for (size_t i = 0; i < f->n; i++)
		f->v[i].id = finding__text(f, "f%zu", before + i + 1);
}

int findings__make(struct picture *pic, struct pic_target *target)
{
	static const struct {
		void (*look)(struct finder *f);
		bool needs_threads; /* OS threads, which a log alone does not have */
	} families[] = {
		{findings__unsafe, true},	{findings__loops, true},
		{findings__safe, true},		{findings__gc, false},
		{findings__heap, true},		{findings__nursery, true},
		{findings__capabilities, true}, {findings__haskell, false},
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
	for (size_t i = 0; i < ARRAY_SIZE(families) && !f.err; i++)
		if (f.threads->n || !families[i].needs_threads)
			families[i].look(&f);
	if (f.err || !f.n)
		return f.err;
	qsort(f.v, f.n, sizeof(*f.v), by_time);
	findings__find_moments(&f);
	number(&f);
	if (f.err)
		return f.err;
	v = picture__alloc(pic, f.n, sizeof(*v));
	if (!v)
		return -ENOMEM;
	memcpy(v, f.v, f.n * sizeof(*v));
	target->findings = v;
	target->n_findings = f.n;
	return 0;
}
