/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * totals: what all OS threads of a process add up to, the same in all formats, and how much of it
 * nothing is known about.
 */
#ifndef SAFESCOPED_EXPORT_TOTALS_H
#define SAFESCOPED_EXPORT_TOTALS_H

#include "export_priv.h"

#define TOTALS_UNKNOWN 16

struct totals {
	uint64_t cpu_ns;
	uint64_t wall_ns;	    /* cpu_ns plus time off the CPU that was not idle */
	uint64_t without_sample_ns; /* the part of cpu_ns not covered by any sample */
	uint64_t housekeeping_ns;   /* wall time of the housekeeping threads, including idle time */
	/* Time whose stack has a frame that marks missing knowledge; sorted by name. */
	struct totals_unknown {
		const char *frame; /* "[no stack]" */
		uint64_t cpu_ns, off_cpu_ns;
	} unknown[TOTALS_UNKNOWN];
	size_t n_unknown;
};

/* The numbers of all processes of a picture, by the CPU time of their OS threads as far as known,
 * the busiest first; freed by the caller. -ENOMEM. */
int totals__order(const struct picture *pic, uint32_t **ret_numbers);

struct totals totals__of(const struct picture *pic, const struct pic_target *target);

#endif
