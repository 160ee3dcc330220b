/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gathered: the data for pprof's samples, locations and mappings, gathered once for all processes
 * of a picture, so that writing a file for each process costs no more than one for all. Part of the
 * export room.
 */
#ifndef SAFESCOPED_EXPORT_GATHERED_H
#define SAFESCOPED_EXPORT_GATHERED_H

#include "binaries.h"
#include "carriers.h"
#include "sums.h"

struct pprof_source {
	const struct picture *pic;
	struct views views;
	struct sums sums;	   /* by lane and state (SUMS_BY_STATE) */
	struct carriers *carriers; /* of each view; empty except for OS threads */
	struct binaries binaries;
	uint32_t *map;	 /* maps a picture's frame to its location, from 0 */
	uint32_t *frame; /* maps a location to its first frame */
	uint32_t n;	 /* the number of locations */
	/* the sums by process: order[first[p]] to order[first[p + 1] - 1] are p's */
	uint32_t *order;
	size_t *first;
	/* the round in which a location or a binary was last met */
	uint32_t *met_location, *met_binary, round;
	uint32_t *id; /* of a location that was met in the last round, in the file: from 1 */
};

uint32_t pprof_source__target(const struct pprof_source *source, const struct sum *sum);

struct numbers {
	uint32_t *v;
	size_t n, cap;
};

#define EVERY_TARGET UINT32_MAX

/* The sums of one process, or of all: the index'th of *ret_n. */
const struct sum *pprof_source__sum(const struct pprof_source *source, uint32_t target,
				    size_t index);
size_t pprof_source__n_sums(const struct pprof_source *source, uint32_t target);

/*
 * The locations in the samples of one process, or of all, and the binaries that these are in, both
 * ascending; the executable of each process with samples is one of them even if no location is in
 * it, since readers name a profile after it. Sets `id`. The caller frees the arrays.
 */
int pprof_source__used(struct pprof_source *source, uint32_t target, struct numbers *ret_locations,
		       struct numbers *ret_binaries);

#endif
