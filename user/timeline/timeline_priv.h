/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What timeline.c and window.c share. */
#ifndef SAFESCOPED_TIMELINE_PRIV_H
#define SAFESCOPED_TIMELINE_PRIV_H

#include "join/join.h"
#include "timeline.h"

#define MIN_LANE_SLICES 256

/* A process known to the intake. */
struct target {
	struct seen *seen;
	uint32_t no; /* seen->no, by which processes forgotten meanwhile are recognised */
	struct lanes *lanes;
	struct log_build *log; /* NULL: none */
	bool figures_final;    /* no more inputs will come, and its figures were given */
};

struct timeline {
	struct timeline_opts opts;
	struct picture *pic;
	struct intake *in;
	struct target *v; /* in the order of the intake, as of the last timeline__look() */
	size_t n, cap;
	struct log_build *alone;     /* for a process that is known only by its log; NULL: none */
	struct picture *half;	     /* of a cut that failed: there may be pointers into it */
	timeline_figures_fn figures; /* NULL: none requested */
	void *figures_ctx;
	int spoilt;		 /* first error of making lanes before the end; 0: none */
	size_t left;		 /* records left by the last timeline__fold_at() */
	uint64_t period_ns;	 /* of the sampler; 0: no sampler */
	uint64_t next_period_ns; /* … from the next window on; 0: unchanged */
	bool finished;
};

/* Updates v: the intake may have new targets, which come last, and may have forgotten others. */
int timeline__look(struct timeline *tl);
void timeline__free_target(struct target *t);
int timeline__new_lanes(const struct timeline *tl, struct seen *seen, struct lanes **ret_lanes);
/* Number of slices for each lane. */
size_t timeline__lane_budget(const struct timeline *tl);
/* Calls the callback of timeline__set_figures(), if there is one. */
int timeline__give_figures(const struct timeline *tl, const struct lanes *lanes, uint64_t at_ns,
			   bool closed);
/* Initialises the session of a picture that starts at start_ns. -ENOMEM. */
int timeline__set_session(const struct timeline *tl, struct picture *pic, const char *version,
			  const char *mode, uint64_t start_ns);
void timeline__use_period(struct timeline *tl, uint64_t period_ns);

/* ── window.c ────────────────────────────────────────────────────────────────────────────── */

/* A callback for the intake: finishes the target as at the end, keeps its sums, and removes it. */
int timeline__retire(void *ctx, struct seen *seen);

#endif
