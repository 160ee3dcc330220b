/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * totals: what all OS threads of a process add up to, the same in all formats, and what of it
 * nothing is known of.
 */
#ifndef SAFESCOPED_EXPORT_TOTALS_H
#define SAFESCOPED_EXPORT_TOTALS_H

#include "export_priv.h"

#define TOTALS_UNKNOWN 16

struct totals {
	uint64_t cpu_ns;
	uint64_t wall_ns;	    /* cpu_ns, and all off the CPU that was no idleness */
	uint64_t without_sample_ns; /* of cpu_ns: no sample stands for it */
	uint64_t housekeeping_ns;   /* wall time of the housekeeping threads, idleness too */
	/* Time whose stack has a frame that stands for missing knowledge; by name. */
	struct totals_unknown {
		const char *frame; /* "[no stack]" */
		uint64_t cpu_ns, off_cpu_ns;
	} unknown[TOTALS_UNKNOWN];
	size_t n_unknown;
};

/* CPU time of its OS threads, as far as it is known: processes come in its order. */
uint64_t totals__cpu_ns(const struct pic_target *target);
/* The numbers of all processes of a picture in that order; freed by the caller. -ENOMEM. */
int totals__order(const struct picture *pic, uint32_t **ret_numbers);

struct totals totals__of(const struct picture *pic, const struct pic_target *target);

#endif
