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

/*
 * As much of a process as there is room for, one sample at least. A lane may be divided, too:
 * whatever is of the same stack and attributes in several parts adds up.
 */
struct otlp_part {
	uint32_t target_no;
	/* What it begins with, then what the next one begins with: the lane's number in the views,
	 * and how many of its parts come before. */
	size_t lane, part;
	bool last;	/* there is no next one */
	uint64_t bytes; /* of the samples and the dictionary, from which on nothing is added */
};

/* The executable has that mapping. */
int otlp_samples__collect(const struct picture *pic, const struct views *views,
			  struct otlp_part *part, struct dict *dict, int32_t mapping,
			  struct otlp_samples *ret_samples);
void otlp_samples__free(struct otlp_samples *samples);

#endif
