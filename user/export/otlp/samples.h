/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * samples: what a process's time and samples add up to by stack, thread, state, capability and
 * label: OTLP's samples, each with a value for every type that they are sent in.
 */
#ifndef SAFESCOPED_OTLP_SAMPLES_H
#define SAFESCOPED_OTLP_SAMPLES_H

#include "../lanes.h"
#include "dict.h"

/* One Profile for each of these. Idle time is in none of them. */
enum otlp_type { OTLP_SAMPLES, OTLP_CPU, OTLP_OFF_CPU, OTLP_SAFE_CALL, OTLP_ALLOC, OTLP_TYPES };

#define OTLP_ATTRIBUTES 5

struct otlp_sample {
	int32_t stack;
	int32_t attributes[OTLP_ATTRIBUTES]; /* ascending, without 0; those that are left are 0 */
	int64_t values[OTLP_TYPES];
};

struct otlp_samples {
	struct otlp_sample *v; /* no two have the same stack and attributes */
	size_t n, cap;
};

/* Part of a process, lane by lane. */
struct otlp_part {
	uint32_t target_no;
	size_t lane;	/* that it begins with, by its number in the views; then that of the next */
	bool last;	/* there is no next one */
	uint64_t bytes; /* from which on no lane is begun: of the samples, and of the dictionary */
};

/* The executable has that mapping. */
int otlp_samples__collect(const struct picture *pic, const struct views *views,
			  struct otlp_part *part, struct dict *dict, int32_t mapping,
			  struct otlp_samples *ret_samples);
void otlp_samples__free(struct otlp_samples *samples);

#endif
