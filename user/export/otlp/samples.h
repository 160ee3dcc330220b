/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * samples: a process's time and samples added up by stack, thread, state, capability and label:
 * OTLP's samples, each with a value for every type that is sent.
 */
#ifndef SAFESCOPED_OTLP_SAMPLES_H
#define SAFESCOPED_OTLP_SAMPLES_H

#include "../lanes.h"
#include "dict.h"

/* One Profile for each. Idle time is in none of them. */
enum otlp_type { OTLP_SAMPLES, OTLP_CPU, OTLP_OFF_CPU, OTLP_SAFE_CALL, OTLP_ALLOC, OTLP_TYPES };

#define OTLP_ATTRIBUTES 5

struct otlp_sample {
	int32_t stack;
	int32_t attributes[OTLP_ATTRIBUTES]; /* ascending, without 0; unused ones are 0 */
	int64_t values[OTLP_TYPES];
};

struct otlp_samples {
	struct otlp_sample *v; /* no two have the same stack and attributes */
	size_t n, cap;
};

/*
 * As much of a process as there is room for, at least one sample. A lane may be divided as well:
 * samples with the same stack and attributes in several parts add up.
 */
struct otlp_part {
	uint32_t target_no;
	/* Where this part begins, and after the call, where the next one begins: the lane's number
	 * in the views, and the number of its parts before that. */
	size_t lane, part;
	bool last;	/* there is no further part */
	uint64_t bytes; /* the size of samples and dictionary at which nothing more is added */
};

int otlp_samples__collect(const struct picture *pic, const struct views *views,
			  struct otlp_part *part, struct dict *dict,
			  struct otlp_samples *ret_samples);
void otlp_samples__free(struct otlp_samples *samples);

#endif
