/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decides what is a change, and what may be noise.
 *
 * CPU time and allocation are known by samples. The variance of n samples is n times the spread.
 * The spread is the median squared difference of all functions, relative to that of a normal
 * distribution; functions that did change hardly affect it. In addition, a program does not take
 * the same time twice, in proportion to the time: because of caches, other programs, the order of
 * events. A difference is a change if it exceeds so many standard deviations that among all
 * comparisons together, one in a hundred runs would have one there by chance (Bonferroni's bound);
 * if the spread was found from few functions, more are required (Student's distribution).
 *
 * The sessions are scaled to the same work. If no event is counted, the median function is assumed
 * not to have changed: as shares of CPU time, all others shrink when one grows. The uncertainty of
 * that median is part of every variance. Allocation has its own spread and number of samples, and
 * is scaled to the same work as CPU time.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "diff_priv.h"

/* One run in this many reports a difference that is none. */
#define ONE_IN 100
/* With fewer samples in both sessions together a function is not judged; samples that come in
 * groups count once for each group. */
#define FEW_TOGETHER 30
/* Functions with fewer samples are not used to find the scale (in each session) and the spread (in
 * both together). */
#define FEW_SAMPLES 20
/* The number of functions needed to find the scale, and the spread of allocation. */
#define FOR_SCALE 5
/* A scale within this many standard deviations of 1 is taken for 1. */
#define SCALE_LIMIT 2
/* For a normal distribution: the ratio of its standard deviation to the median distance from its
 * middle; and that of the standard deviations of its median and its mean. */
#define OF_MEDIAN_DISTANCE 1.4826
#define MEDIAN_VARIES	   1.2533
/* The spread that is assumed beforehand, from programs whose functions take turns and from those
 * with phases; and how many functions that counts for. */
#define PRIOR_SPREAD 2.0
#define PRIOR_COUNTS 10
/* The median of the square of a normally distributed number. */
#define MEDIAN_SQUARE 0.4549
/* How much runs of one program differ, measured in windows of the demo on a machine with other
 * load. The second is for code that spins for as long as others hold it up. */
#define VARIES	     0.04
#define SPINS_VARIES 0.3
#define COUNT_VARIES 0.05
/* The same for each unit of difference in load (its logarithm). */
#define LOAD_VARIES 0.1
/* Events come in bursts: their variance is this many times that of independent events. */
#define BURSTS 4
/* Differences below these do not matter: as a part of all CPU time or bytes; and relative to the
 * thing itself, for times and bytes, and for counts and single durations. */
#define LEAST_PART 0.005
#define LEAST_SELF 0.1
#define LEAST_EACH 0.25
/* Fewer bytes for each ns of CPU time have no visible cost: GHC-compiled programs allocate a
 * thousand times as much. */
#define LEAST_BYTES 0.001
/* Fewer calls or collections have no typical time. */
#define FEW_EVENTS 30

static int cmp_double(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return CMP(a, b);
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), cmp_double);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* ── the basis ───────────────────────────────────────────────────────────────────────────── */

static double cpu_of(const struct basis *b, int side)
{
	return (double)(side ? b->pair->b : b->pair->a)->cpu_ns;
}

static void find_scale(struct basis *b, const struct judged *functions, size_t n, double *room)
{
	size_t k = 0;
	double middle;

	for (size_t i = 0; i < n; i++) {
		const struct measured *m = functions[i].m;

		if (!functions[i].spins && m[0].n >= FEW_SAMPLES && m[1].n >= FEW_SAMPLES)
			room[k++] = log((double)m[1].sum / cpu_of(b, 1) /
					((double)m[0].sum / cpu_of(b, 0)));
	}
	if (k < FOR_SCALE)
		return;
	middle = median(room, k);
	for (size_t i = 0; i < k; i++)
		room[i] = fabs(room[i] - middle);
	b->pair->unknown = MEDIAN_VARIES * OF_MEDIAN_DISTANCE * median(room, k) / sqrt((double)k);
	if (fabs(middle) > SCALE_LIMIT * b->pair->unknown)
		b->t[1] *= exp(middle);
}

/* The measured amount per unit of work. */
static double value(const struct basis *b, const struct measured *m, int side)
{
	return (double)m->sum * b->unit / b->t[side];
}

/* The variance due to the number of samples; less if they are a large share of all. */
static double sampled(const struct basis *b, const struct diff_measure *by,
		      const struct measured *m, int side)
{
	double own = by->uneven && m->n ? (double)m->sum / (double)m->n : 0;
	double each = MAX(by->each[side], own) * b->unit / b->t[side];
	double share = MIN((double)m->sum / by->whole[side], 1), v = value(b, m, side);
	/* if there are none or few, two more groups of them are possible */
	double variance = ((double)m->n + 2 * by->spread) * each * each;

	return b->counted ? variance + v * v / b->t[side] : variance * (1 - share);
}

static double varies(const struct basis *b, const struct diff_measure *by, const struct judged *j)
{
	if (by->uneven)
		return b->pair->alloc_varies;
	return j->spins ? b->pair->spins_varies : b->pair->varies;
}

/* The variance between runs of something that varies by `cv`, plus that of the scale. */
static double of_runs(const struct basis *basis, double a, double b, double cv)
{
	return cv * cv * (a * a + b * b) / 2 + basis->pair->unknown * basis->pair->unknown * b * b;
}

/* The limit by Student's distribution, for the degrees of freedom of such a median. */
static double limit_of(const struct basis *b, size_t known_by)
{
	double z = b->expected;

	return z + (z * z * z + z) / (2 * (double)known_by);
}

static void find_spread(const struct basis *b, struct diff_measure *by,
			const struct judged *functions, size_t n, double *room)
{
	size_t k = 0, known_by;

	by->spread = 1;
	for (size_t i = 0; i < n; i++) {
		const struct judged *j = &functions[i];
		double x = value(b, &j->m[0], 0), y = value(b, &j->m[1], 1);

		if (j->m[0].n + j->m[1].n >= FEW_SAMPLES)
			room[k++] = (y - x) * (y - x) /
				    (sampled(b, by, &j->m[0], 0) + sampled(b, by, &j->m[1], 1) +
				     of_runs(b, x, y, varies(b, by, j)));
	}
	/* with few functions, a difference in allocation is as likely a change as noise */
	if (by->uneven && k < FOR_SCALE)
		k = 0;
	known_by = k + PRIOR_COUNTS;
	by->spread = MAX(1, (PRIOR_COUNTS * PRIOR_SPREAD +
			     (k ? (double)k * median(room, k) / MEDIAN_SQUARE : 0)) /
				    (double)known_by);
	by->limit = limit_of(b, known_by);
}

/* Computes what a sample stands for. -ERANGE: a session has none. */
static int find_each(struct diff_measure *by, const uint64_t samples[2])
{
	for (int side = 0; side < 2; side++) {
		if (!samples[side] || by->whole[side] <= 0)
			return -ERANGE;
		by->each[side] = by->whole[side] / (double)samples[side];
	}
	return 0;
}

int judge__basis(struct basis *b, const struct judged *functions, size_t n)
{
	struct diff_pair *pair = b->pair;
	uint64_t samples[2] = {0};
	double *room, kept[2];

	for (size_t i = 0; i < n; i++)
		for (int side = 0; side < 2; side++)
			samples[side] += functions[i].m[side].n;
	for (int side = 0; side < 2; side++)
		pair->cpu.whole[side] = cpu_of(b, side);
	if (find_each(&pair->cpu, samples) || b->t[0] <= 0 || b->t[1] <= 0)
		return -ERANGE;
	room = calloc(n + 1, sizeof(*room));
	if (!room)
		return -ENOMEM;
	kept[0] = (double)pair->a->preempted_ns / (double)pair->a->cpu_ns;
	kept[1] = (double)pair->b->preempted_ns / (double)pair->b->cpu_ns;
	pair->load = fabs(log((1 + kept[1]) / (1 + kept[0])));
	pair->varies = VARIES + LOAD_VARIES * pair->load;
	pair->spins_varies = SPINS_VARIES + pair->load;
	/* if work is CPU time, it varies as that does */
	pair->alloc_varies = b->counted ? VARIES : pair->varies;
	pair->scale = 1;
	pair->unknown = b->unsure;
	if (!b->counted) {
		find_scale(b, functions, n, room);
		/* the more t[1] was scaled down, the more CPU time the work took */
		pair->scale = cpu_of(b, 1) / b->t[1];
	}
	pair->work = b->t[1] / b->t[0];
	find_spread(b, &pair->cpu, functions, n, room);
	free(room);
	return 0;
}

int judge__alloc_basis(struct basis *b, const struct judged *allocators, size_t n)
{
	struct diff_pair *pair = b->pair;
	struct diff_measure by = {
		.whole = {(double)pair->a->alloc_sampled, (double)pair->b->alloc_sampled},
		.uneven = true};
	const uint64_t samples[2] = {pair->a->alloc_samples, pair->b->alloc_samples};
	int err = find_each(&by, samples);
	double *room;

	if (err)
		return err;
	room = calloc(n + 1, sizeof(*room));
	if (!room)
		return -ENOMEM;
	find_spread(b, &by, allocators, n, room);
	free(room);
	pair->alloc = by;
	return 0;
}

void judge__expect(struct basis *b, size_t n)
{
	double alpha = 1.0 / ONE_IN / (double)MAX(n, (size_t)1), low = 0, high = 40;

	/* bisection, as erfc decreases: the number of standard deviations beyond which alpha
	 * lies */
	for (int i = 0; i < 60; i++) {
		double mid = (low + high) / 2;

		if (erfc(mid / sqrt(2)) > alpha)
			low = mid;
		else
			high = mid;
	}
	b->expected = high;
}

/* ── the judgements ──────────────────────────────────────────────────────────────────────── */

static void judge(double limit, struct diff_row *row, double variance, double least)
{
	double diff = row->b - row->a;
	bool large = MAX(row->a, row->b) >= (1 + least) * MIN(row->a, row->b);

	row->noise = limit * sqrt(variance);
	row->verdict = large && fabs(diff) > row->noise ? (diff > 0) - (diff < 0) : 0;
}

/* All CPU time, or all bytes, per unit of work. */
static double whole(const struct basis *b, const struct diff_measure *by)
{
	return by->whole[0] * b->unit / b->t[0];
}

static void judge_sampled(const struct basis *b, const struct diff_measure *by,
			  const struct judged *j, struct diff_row *row)
{
	row->a = value(b, &j->m[0], 0);
	row->b = value(b, &j->m[1], 1);
	row->effect = (row->b - row->a) / whole(b, by);
	judge(by->limit, row,
	      by->spread * (sampled(b, by, &j->m[0], 0) + sampled(b, by, &j->m[1], 1)) +
		      of_runs(b, row->a, row->b, varies(b, by, j)),
	      LEAST_SELF);
	if ((double)(j->m[0].n + j->m[1].n) < FEW_TOGETHER * by->spread ||
	    fabs(row->effect) < LEAST_PART)
		row->verdict = 0;
}

void judge__cpu(const struct basis *b, const struct judged *j, struct diff_row *row)
{
	judge_sampled(b, &b->pair->cpu, j, row);
}

/* True if the difference in bytes is enough to affect the program's time. */
static bool is_seen(const struct basis *b, const struct diff_row *row)
{
	return fabs(row->b - row->a) >= LEAST_BYTES * whole(b, &b->pair->cpu);
}

void judge__alloc(const struct basis *b, const struct judged *j, struct diff_row *row)
{
	judge_sampled(b, &b->pair->alloc, j, row);
	if (!is_seen(b, row))
		row->verdict = 0;
}

void judge__bytes(const struct basis *b, const double bytes[2], const double ends[2],
		  struct diff_row *row)
{
	double variance = 0, per[2];

	for (int side = 0; side < 2; side++) {
		per[side] = b->unit / b->t[side];
		variance += ends[side] * per[side] * ends[side] * per[side];
	}
	row->a = bytes[0] * per[0];
	row->b = bytes[1] * per[1];
	row->effect = (row->b - row->a) / whole(b, &b->pair->alloc);
	judge(b->pair->alloc.limit, row,
	      variance + of_runs(b, row->a, row->b, b->pair->alloc_varies), LEAST_SELF);
	if (!is_seen(b, row))
		row->verdict = 0;
}

void judge__count(const struct basis *b, const struct measured m[2], struct diff_row *row)
{
	double variance = 0;

	row->a = (double)m[0].n * b->unit / b->t[0];
	row->b = (double)m[1].n * b->unit / b->t[1];
	for (int side = 0; side < 2; side++)
		variance += (BURSTS * (double)(m[side].n + 1) + m[side].unsure * m[side].unsure) *
			    b->unit / b->t[side] * b->unit / b->t[side];
	judge(b->pair->cpu.limit, row,
	      variance + of_runs(b, row->a, row->b, COUNT_VARIES + LOAD_VARIES * b->pair->load),
	      LEAST_EACH);
	if (m[0].n + m[1].n < FEW_EVENTS)
		row->verdict = 0;
}

void judge__each(const struct basis *b, const struct measured m[2], double cv, struct diff_row *row)
{
	double rate = (double)m[1].n * b->unit / b->t[1];

	row->effect = (row->b - row->a) * rate / whole(b, &b->pair->cpu);
	judge(b->pair->cpu.limit, row, of_runs(b, row->a, row->b, cv + LOAD_VARIES * b->pair->load),
	      LEAST_EACH);
	if (MIN(m[0].seen, m[1].seen) < FEW_EVENTS || fabs(row->effect) < LEAST_PART)
		row->verdict = 0;
}

double judge__gc_varies(const struct basis *b)
{
	return b->pair->a->parallel || b->pair->b->parallel ? b->pair->spins_varies : COUNT_VARIES;
}
