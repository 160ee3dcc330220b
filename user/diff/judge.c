/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is a change, and what may be noise.
 *
 * Time on the CPU and allocation are known by samples. The variance of n of them is n times the
 * spread: the median
 * square of all functions' differences, over that of a normal distribution, which functions that
 * did change hardly move. To that comes that one program does not take the same time twice, in
 * proportion to the time: caches, other programs, the order of events. A change is beyond so many
 * standard deviations that of all comparisons together one in a hundred runs would have one there
 * (Bonferroni's bound), and of a spread that was found from few functions more (Student's
 * distribution).
 *
 * The sessions are brought to the same work. Where no event is counted the median function is taken
 * not to have changed: in shares of CPU time all others shrink when one grows. What is not known of
 * that median is part of the variance of everything. Allocation has a spread and a number of
 * samples of its own, and is brought to the same work as CPU time is.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "diff_priv.h"

/* Of one run in so many a difference is reported that is none. */
#define ONE_IN 100
/* Samples, in both sessions together, below which nothing is said of a function; where they come in
 * groups, groups. */
#define FEW_TOGETHER 30
/* In each session: with fewer a function does not help to find the scale and the spread. */
#define FEW_SAMPLES 20
/* So many functions are needed to find the scale, and the spread of allocation. */
#define FOR_SCALE 5
/* A scale that is no more standard deviations from 1 is none. */
#define SCALE_LIMIT 2
/* A normal distribution's standard deviation is so many times the median distance from its middle;
 * its median varies so many times as much as its mean. */
#define OF_MEDIAN_DISTANCE 1.4826
#define MEDIAN_VARIES	   1.2533
/* What the spread is taken for before anything is known of it, and how many functions that counts
 * for: of programs whose functions take turns, and of those with phases. */
#define PRIOR_SPREAD 2.0
#define PRIOR_COUNTS 10
/* The median of the square of a normally distributed number. */
#define MEDIAN_SQUARE 0.4549
/* What runs of one program differ by: measured in windows of the demo on a machine that others
 * load. The second is for what spins, as long as others hold it up. */
#define VARIES	     0.04
#define SPINS_VARIES 0.3
#define COUNT_VARIES 0.05
/* The same, for each unit that the load differs by (its logarithm). */
#define LOAD_VARIES 0.1
/* Events come in bursts: so many times the variance of those that come one by one. */
#define BURSTS 4
/* What does not matter: less than this part of all CPU time, or of the thing itself. */
#define LEAST_PART 0.005
#define LEAST_SELF 0.1
#define LEAST_EACH 0.25
/* Fewer bytes for each ns of CPU time cost nothing that is seen: GHC's programs allocate a thousand
 * times as much. */
#define LEAST_BYTES 0.001
/* Of fewer calls or collections there is no usual time. */
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

/* What is measured, for the unit of work. */
static double value(const struct basis *b, const struct measured *m, int side)
{
	return (double)m->sum * b->unit / b->t[side];
}

/* The variance that the number of its samples gives it; of a share of all of them less. */
static double sampled(const struct basis *b, const struct diff_measure *by,
		      const struct measured *m, int side)
{
	double own = by->uneven && m->n ? (double)m->sum / (double)m->n : 0;
	double each = MAX(by->each[side], own) * b->unit / b->t[side];
	double share = MIN((double)m->sum / by->whole[side], 1), v = value(b, m, side);
	/* of none, or few, two groups of them more are possible */
	double variance = ((double)m->n + 2 * by->spread) * each * each;

	return b->counted ? variance + v * v / b->t[side] : variance * (1 - share);
}

static double varies(const struct basis *b, const struct diff_measure *by, const struct judged *j)
{
	if (by->uneven)
		return b->pair->alloc_varies;
	return j->spins ? b->pair->spins_varies : b->pair->varies;
}

/* The variance of what varies so much by itself. */
static double of_runs(const struct basis *basis, double a, double b, double cv)
{
	return cv * cv * (a * a + b * b) / 2 + basis->pair->unknown * basis->pair->unknown * b * b;
}

/* As Student's distribution has it, for as many degrees of freedom as such a median has. */
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
	/* what few functions allocate is one's change as likely as noise */
	if (by->uneven && k < FOR_SCALE)
		k = 0;
	known_by = k + PRIOR_COUNTS;
	by->spread = MAX(1, (PRIOR_COUNTS * PRIOR_SPREAD +
			     (k ? (double)k * median(room, k) / MEDIAN_SQUARE : 0)) /
				    (double)known_by);
	by->limit = limit_of(b, known_by);
}

/* -ERANGE: one session has none. */
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
	/* by CPU time the work is not the same where that is not */
	pair->alloc_varies = b->counted ? VARIES : pair->varies;
	pair->scale = 1;
	pair->unknown = b->unsure;
	if (!b->counted) {
		find_scale(b, functions, n, room);
		/* the more it shrank, the more CPU time the work took */
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

	/* erfc falls: the number of standard deviations beyond which alpha lies */
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

/* What is all CPU time, or all bytes, of the unit of work. */
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

/* Whether so many bytes more or less are seen in the program's time. */
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
