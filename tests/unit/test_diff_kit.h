/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the tests of --diff: made-up sessions, and lookups in a comparison. */
#ifndef SAFESCOPED_TEST_DIFF_KIT_H
#define SAFESCOPED_TEST_DIFF_KIT_H

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "diff/diff.h"

#define S 1000000000ULL

/* ── sessions made up ────────────────────────────────────────────────────────────────────── */

#define FUNCTIONS 24
#define HZ	  99

/* Seeds for time and for allocation. */
static uint64_t seed = 1, alloc_seed = 2;

static inline double uniform(uint64_t *from)
{
	*from = *from * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(*from >> 11) / 9007199254740992.0;
}

/* The number of arrivals in a period in which `mean` are expected. */
static inline uint64_t poisson(uint64_t *from, double mean)
{
	double t = -log(1 - uniform(from));
	uint64_t n = 0;

	/* one arrival after the other: a sum of exponential intervals */
	while (t < mean) {
		t -= log(1 - uniform(from));
		n++;
	}
	return n;
}

/* CPU seconds per round of function i: a few are expensive and most are cheap, as in real
 * programs. */
static inline double cost_of(unsigned i)
{
	return 0.004 / (1 + i);
}

#define NURSERY	  4194304.0
#define ALLOC_ONE 1600e3 /* bytes that the first function allocates per round */

/*
 * Function 5 allocates `factor` times as much as usual. A sample stands for one nursery, but for a
 * third of one in the last function, which makes large objects.
 */
static inline void allocate(struct diff_report *r, unsigned rounds, double factor)
{
	struct diff_program *p = &r->programs[0];

	r->n_allocators = 0;
	p->alloc_sampled = p->alloc_samples = 0;
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		struct diff_function *f = &r->allocators[r->n_allocators++];
		double bytes = rounds * ALLOC_ONE / (1 + i) * (i == 5 ? factor : 1);
		double each = i == FUNCTIONS - 1 ? NURSERY / 3 : NURSERY;

		snprintf(f->name, sizeof(f->name), "Mod%u.f%u", i % 5, i);
		snprintf(f->module, sizeof(f->module), "Mod%u", i % 5);
		f->samples = poisson(&alloc_seed, bytes / each);
		f->sum = (uint64_t)((double)f->samples * each);
		p->alloc_samples += f->samples;
		p->alloc_sampled += f->sum;
	}
	p->alloc_bytes = p->alloc_sampled;
	p->alloc_gcs = p->alloc_samples;
	p->large_bytes = p->alloc_bytes / 10;
	p->large_of_bytes = p->alloc_bytes;
}

/*
 * A session of that many rounds, in which function 3 takes `factor` times as long. Each sample
 * stands for one sampling period; samples come in bursts of `burst`.
 */
static inline struct diff_report *session(unsigned rounds, double factor, unsigned burst)
{
	struct diff_report *r = calloc(1, sizeof(*r));
	double seconds = 0;

	assert_non_null(r);
	r->duration_ns = rounds * S / 50;
	r->frequency_hz = HZ;
	r->n_programs = 1;
	strcpy(r->programs[0].comm, "made up");
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		struct diff_function *f = &r->functions[r->n_functions++];
		double cpu = rounds * cost_of(i) * (i == 3 ? factor : 1);

		snprintf(f->name, sizeof(f->name), "Mod%u.f%u", i % 5, i);
		snprintf(f->module, sizeof(f->module), "Mod%u", i % 5);
		f->samples = burst * poisson(&seed, cpu * HZ / burst);
		f->sum = (uint64_t)((double)f->samples / HZ * S);
		seconds += (double)f->samples / HZ;
	}
	allocate(r, rounds, 1);
	r->programs[0].cpu_ns = (uint64_t)(seconds * S);
	r->programs[0].gcs = 4 * rounds;
	r->programs[0].gc_cpu_ns = 4 * rounds * 1000000ULL;
	r->programs[0].gc_pause_ns = 4 * rounds * 1100000ULL;
	strcpy(r->calls[0].function, "fetch");
	strcpy(r->calls[0].caller, "Mod0.f0");
	r->calls[0].safe = true;
	r->calls[0].calls = rounds;
	r->calls[0].cpu_ns = rounds * 20000ULL;
	r->calls[0].p50_ns = 1015808;
	r->n_calls = 1;
	return r;
}

static inline const struct diff_row *find(const struct diff *d, enum diff_section section,
					  const char *name)
{
	for (size_t i = 0; i < d->pairs[0].n_rows; i++)
		if (d->pairs[0].rows[i].section == section &&
		    !strcmp(d->pairs[0].rows[i].name, name))
			return &d->pairs[0].rows[i];
	fail_msg("no row %s", name);
	return NULL;
}

static inline size_t count_changes(const struct diff *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->pairs[0].n_rows; i++)
		n += d->pairs[0].rows[i].verdict != 0;
	return n;
}

static inline int read(const char *json, struct diff_report **ret)
{
	return diff_report__read(json, strlen(json), ret);
}

#endif
