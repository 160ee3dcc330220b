/* SPDX-License-Identifier: GPL-2.0-or-later */
/* findings: runs all families, then sorts and numbers what they find. */
#include <errno.h>
#include <stdio.h>
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
	static void (*const all[])(struct finder * f) = {
		findings__unsafe, findings__loops,   findings__safe,	     findings__gc,
		findings__heap,	  findings__nursery, findings__capabilities, findings__haskell,
	};
	/* the others are about OS threads */
	static void (*const of_logs[])(struct finder * f) = {findings__gc, findings__haskell};
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
	for (size_t i = 0; f.threads->n && i < ARRAY_SIZE(all) && !f.err; i++)
		all[i](&f);
	for (size_t i = 0; !f.threads->n && i < ARRAY_SIZE(of_logs) && !f.err; i++)
		of_logs[i](&f);
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
