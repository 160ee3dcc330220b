/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heap: curves of the heap from the ends of collections, with a bounded number of points, and what
 * they show. */
#include <math.h>

#include "lanes_priv.h"

/* More than a screen has columns. */
#define MAX_POINTS 4096
/* With fewer major collections, growth cannot be judged. */
#define MIN_GROWTH 4
/* If a heap still grows, its live bytes at the end are at least this share of their maximum: the
 * bytes that are live when a collection comes vary by chance, but not by more than that. */
#define NEAR_MOST_PERCENT 90

void heap_curve__free(struct heap_curve *c)
{
	free(c->points.v);
	free(c->majors.v);
	*c = (struct heap_curve){0};
}

/* When there is no room, drops every other point, and from then on takes only every other one. */
static int add_point(struct heap_points *p, const struct pic_heap_point *point)
{
	size_t kept = 0;
	int err;

	if (p->stride && p->seen++ % p->stride)
		return 0;
	if (p->n == MAX_POINTS) {
		for (size_t i = 0; i < p->n; i += 2)
			p->v[kept++] = p->v[i];
		p->n = kept;
		p->stride = p->stride ? 2 * p->stride : 2;
		p->seen = 1;
	}
	err = ARRAY_RESERVE(p->v, p->cap, p->n + 1, MAX_POINTS);
	if (!err)
		p->v[p->n++] = *point;
	return err;
}

static bool is_major(const struct alloc_reading *r)
{
	/* if the generations were not read: there are two unless more are requested */
	return r->generation >= 0 && (uint32_t)r->generation + 1 >= (r->n_gens ? r->n_gens : 2);
}

int heap_curve__add(struct heap_curve *c, const struct alloc_reading *r, uint64_t allocated)
{
	struct pic_heap *h = &c->heap;
	struct pic_heap_point point = {.ns = r->ns,
				       .live_bytes = r->live,
				       .allocated_bytes = allocated,
				       .held_bytes = r->held,
				       .major = is_major(r)};
	uint64_t before = c->last.live_bytes;
	int err;

	c->before = *h;
	for (uint32_t i = 0; i < r->n_gens; i++)
		point.gens[i] = r->gens[i].live_bytes;
	memcpy(h->gens, r->gens, sizeof(h->gens));
	h->n_gens = r->n_gens;
	h->slop_bytes = r->slop;
	h->nursery_bytes = r->nursery;
	h->held_bytes = r->held ? r->held : h->held_bytes;
	h->most_held_bytes = MAX(h->most_held_bytes, r->held);
	h->haskell_threads = r->threads ? r->threads : h->haskell_threads;
	h->most_haskell_threads = MAX(h->most_haskell_threads, r->threads);
	h->copied_bytes += r->copied + r->skipped_copied;
	h->most_live_bytes = MAX(h->most_live_bytes, r->live);
	if (r->generation == 0) {
		h->minor_bytes += r->bytes + c->ticked;
		h->minor_copied_bytes += r->copied + r->skipped_copied;
	}
	c->ticked = 0;
	if (point.major || !h->majors)
		h->last = point;
	if (point.major) {
		h->majors++;
		h->major_reasons[gc__reason(r->reason)]++;
		h->most_major_bytes = MAX(h->most_major_bytes, r->live);
	}
	/* little of what survived the previous collection was freed */
	if (point.major && before &&
	    point.live_bytes >= before - before / 100 * MAJOR_FREED_LITTLE_PERCENT)
		h->futile_majors++;
	h->known = true;
	c->last = point;
	err = add_point(&c->points, &point);
	return err || !point.major ? err : add_point(&c->majors, &point);
}

/* ── growth ──────────────────────────────────────────────────────────────────────────────── */

/* Student's t for 95 %, by degrees of freedom. */
static double student(size_t freedom)
{
	static const double t[] = {0, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23};

	return freedom < ARRAY_SIZE(t) ? t[freedom] : 2.0 + 2.5 / (double)freedom;
}

struct line {
	bool known;
	double slope, error; /* bytes per minute */
};

/* Least-squares fit through the live bytes after major collections. */
static struct line line_through(const struct pic_heap_point *v, size_t n)
{
	double x0, mean_x = 0, mean_y = 0, xx = 0, xy = 0, yy = 0, rest;
	struct line line = {0};

	if (n < MIN_GROWTH)
		return line;
	x0 = (double)v[0].ns;
	for (size_t i = 0; i < n; i++) {
		mean_x += ((double)v[i].ns - x0) / 60e9 / (double)n;
		mean_y += (double)v[i].live_bytes / (double)n;
	}
	for (size_t i = 0; i < n; i++) {
		double x = ((double)v[i].ns - x0) / 60e9 - mean_x;
		double y = (double)v[i].live_bytes - mean_y;

		xx += x * x;
		xy += x * y;
		yy += y * y;
	}
	if (xx <= 0)
		return line;
	line.known = true;
	line.slope = xy / xx;
	rest = yy - line.slope * xy;
	line.error = student(n - 2) * sqrt((rest > 0 ? rest : 0) / (double)(n - 2) / xx);
	return line;
}

static bool goes_on(const struct pic_heap_point *v, size_t n)
{
	size_t later = MAX(n - n / 2, (size_t)MIN_GROWTH);
	struct line line = line_through(v + n - later, later);
	uint64_t most = 0;

	for (size_t i = 0; i < n; i++)
		most = MAX(most, v[i].live_bytes);
	return line.known && line.slope > line.error &&
	       v[n - 1].live_bytes >= most / 100 * NEAR_MOST_PERCENT;
}

static void find_growth(const struct heap_points *p, size_t n, struct pic_heap *h)
{
	struct line line = line_through(p->v, n);

	if (!line.known)
		return;
	h->growth_known = true;
	h->growth_span_ns = p->v[n - 1].ns - p->v[0].ns;
	h->growth = line.slope;
	h->growth_error = line.error;
	h->growth_goes_on = goes_on(p->v, n);
}

/*
 * A program's end has a major collection of its own, with nothing left to run (rts/Schedule.c,
 * exitScheduler); what remains after it says nothing about the program. The copied bytes and the
 * curve include it.
 */
static void leave_out_last(const struct heap_curve *c, struct pic_heap *h)
{
	const struct pic_heap *before = &c->before;

	h->last = before->last;
	h->majors = before->majors;
	memcpy(h->major_reasons, before->major_reasons, sizeof(h->major_reasons));
	h->most_major_bytes = before->most_major_bytes;
	h->futile_majors = before->futile_majors;
	memcpy(h->gens, before->gens, sizeof(h->gens));
	h->n_gens = before->n_gens;
	h->slop_bytes = before->slop_bytes;
	h->nursery_bytes = before->nursery_bytes;
	h->haskell_threads = before->haskell_threads;
}

/* The collection at the end is the only one of its window: its state of the heap stays, since the
 * window has no other, but it is not counted, as in the session as a whole. */
static void uncount_last(struct pic_heap *h)
{
	h->majors = h->futile_majors = 0;
	memset(h->major_reasons, 0, sizeof(h->major_reasons));
}

int heap_curve__fill(const struct heap_curve *c, bool exited, struct picture *pic,
		     struct pic_heap *ret_heap)
{
	bool left_out = exited && c->last.major && c->before.known;
	struct pic_heap_point *points;
	size_t n = c->points.n;

	points = picture__alloc(pic, n + 1, sizeof(*points));
	if (!points)
		return -ENOMEM;
	if (n)
		memcpy(points, c->points.v, n * sizeof(*points));
	/* the curve ends where the heap does */
	if (n && points[n - 1].ns < c->last.ns)
		points[n++] = c->last;
	*ret_heap = c->heap;
	ret_heap->points = points;
	ret_heap->n_points = n;
	if (left_out)
		leave_out_last(c, ret_heap);
	else if (exited && c->last.major && c->collected_before)
		uncount_last(ret_heap);
	find_growth(&c->majors,
		    c->majors.n - (left_out && c->majors.n &&
				   c->majors.v[c->majors.n - 1].ns == c->last.ns),
		    ret_heap);
	return 0;
}
