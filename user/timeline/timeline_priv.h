/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What timeline.c and window.c share. */
#ifndef SAFESCOPED_TIMELINE_PRIV_H
#define SAFESCOPED_TIMELINE_PRIV_H

#include "join/join.h"
#include "timeline.h"

#define MIN_LANE_SLICES 256

/* A process that the intake has. */
struct target {
	struct seen *seen;
	uint32_t no; /* seen->no: what was forgotten since is known by it */
	struct lanes *lanes;
	struct log_build *log; /* NULL: none */
	bool figures_final;    /* nothing comes any more, and its figures were given */
};

struct timeline {
	struct timeline_opts opts;
	struct picture *pic;
	struct intake *in;
	struct target *v; /* as the intake had them when it was looked at last */
	size_t n, cap;
	struct log_build *alone;     /* of the process that is known by its log alone; NULL: none */
	struct picture *half;	     /* of a cut that failed: there may be pointers into it */
	timeline_figures_fn figures; /* NULL: nobody wants them */
	void *figures_ctx;
	int spoilt;	    /* why lanes could not be made of records in between; 0: they could */
	size_t left;	    /* records, by timeline__fold_at() */
	uint64_t period_ns; /* of the sampler; 0: there is none */
	uint64_t next_period_ns; /* … from the next window on; 0: as now */
	bool finished;
};

/* The intake may have new targets, which come last, and may have forgotten others. */
int timeline__look(struct timeline *tl);
void timeline__free_target(struct target *t);
int timeline__new_lanes(const struct timeline *tl, struct seen *seen, struct lanes **ret_lanes);
/* Slices for each lane. */
size_t timeline__lane_budget(const struct timeline *tl);
/* By timeline__set_figures(); nothing where nobody wants them. */
int timeline__give_figures(const struct timeline *tl, const struct lanes *lanes, uint64_t at_ns,
			   bool closed);
/* Of a picture that begins at start_ns. -ENOMEM. */
int timeline__set_session(const struct timeline *tl, struct picture *pic, const char *version,
			  const char *mode, uint64_t start_ns);
void timeline__use_period(struct timeline *tl, uint64_t period_ns);

/* ── window.c ────────────────────────────────────────────────────────────────────────────── */

/* Of the intake: the target is made as at the end, its sums are taken, and it goes. */
int timeline__retire(void *ctx, struct seen *seen);

#endif
