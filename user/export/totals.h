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

struct totals totals__of(const struct picture *pic, const struct pic_target *target);

#endif
