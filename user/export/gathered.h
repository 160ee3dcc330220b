/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gathered: what pprof's samples, locations and mappings are made of, gathered once for all
 * processes of a picture, so that a file for each of them costs no more than one for all. Part of
 * the export room.
 */
#ifndef SAFESCOPED_EXPORT_GATHERED_H
#define SAFESCOPED_EXPORT_GATHERED_H

#include "binaries.h"
#include "carriers.h"
#include "sums.h"

struct pprof_source {
	const struct picture *pic;
	struct views views;
	struct sums sums;	   /* by lane and state */
	struct carriers *carriers; /* of each view; of none but threads there are any */
	struct binaries binaries;
	uint32_t *map;	 /* of a picture's frame: its location, from 0 */
	uint32_t *frame; /* of a location: the first frame that it is of */
	uint32_t n;	 /* locations */
	/* the sums by process: order[first[p]] to order[first[p + 1] - 1] are those of p */
	uint32_t *order;
	size_t *first;
	/* in which round a location and a binary were last met */
	uint32_t *met_location, *met_binary, round;
};

uint32_t pprof_source__target(const struct pprof_source *source, const struct sum *sum);

struct numbers {
	uint32_t *v;
	size_t n, cap;
};

/* Those of a process's samples, ascending: the locations, and the binaries that these are in. */
int pprof_source__used(struct pprof_source *source, uint32_t target, struct numbers *ret_locations,
		       struct numbers *ret_binaries);

#endif
