/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lanes: what a process's threads, capabilities and Haskell threads did, derived from what the
 * intake has seen: slices to draw, and bookings in ledgers, which all totals come from. Lanes grow
 * as the session goes on (lanes__fold); reading the ledgers never changes them.
 */
#ifndef SAFESCOPED_LANES_H
#define SAFESCOPED_LANES_H

#include <stddef.h>
#include <stdint.h>

#include "picture/picture.h"

struct figures;
struct intake;
struct ledger;
struct lanes;
struct seen;

struct lanes_opts {
	uint64_t period_ns; /* of the sampler; 0: no sampler */
	bool haskell;	    /* make lanes of Haskell threads */
	size_t max_haskell; /* the most lanes of Haskell threads up to a cut; 0: the default */
};

/* The lanes of one process. `in` and `seen` must outlive them. */
int lanes__new(const struct lanes_opts *opts, struct intake *in, struct seen *seen,
	       struct lanes **ret_lanes);
void lanes__free(struct lanes *l);
/* Sets the period for the next reading: the longest that the sampler has had since the last one. */
void lanes__set_period(struct lanes *l, uint64_t period_ns);

/*
 * Makes the parts of lanes that are final, with at most max_slices slices per lane, and releases
 * the records that are not needed any more.
 */
int lanes__fold(struct lanes *l, size_t max_slices);
/* Returns the number of threads that have ended; ret_weights (may be NULL) gets the time of each
 * that is not idle, which is what its lane would show. */
size_t lanes__ended(const struct lanes *l, uint64_t *ret_weights);
/*
 * Drops at most *left ended threads whose weight is at most `most`, and merges their accounts into
 * one. Decrements *left for each.
 */
int lanes__drop_ended(struct lanes *l, uint64_t most, size_t *left);

/* Ledgers by enum lane_kind; their owners are numbers that are stable for the session. */
struct reading {
	struct ledger *of[LANE_KINDS];
};
/*
 * What the ledgers would hold if the session ended at at_ns, which must not be earlier than any
 * input. The differences of successive readings add up to the last one, to the nanosecond.
 */
int lanes__read(const struct lanes *l, uint64_t at_ns, struct reading *ret_reading);
void reading__free(struct reading *r);
/*
 * The process's figures since the last cut (picture/figures.h), up to at_ns. `made`: the picture of
 * that time has just been made, and the figures are taken from it; otherwise they are as by a
 * reading. Free with figures__free.
 */
int lanes__figures(const struct lanes *l, uint64_t at_ns, bool made, struct figures *ret_figures);
void figures__free(struct figures *f);

/* Makes the rest, up to end_ns, and puts everything into the picture. */
int lanes__finish(struct lanes *l, uint64_t end_ns, size_t max_slices);

/* As lanes__finish at a cut: threads, capabilities and Haskell threads go on. */
int lanes__window(struct lanes *l, uint64_t end_ns, size_t max_slices);
/* Call after lanes__window: drops the threads that have ended by end_ns. */
int lanes__let_go(struct lanes *l, uint64_t end_ns);
/* Call after intake__cut at end_ns: from here on, the lanes go into the intake's new picture. */
int lanes__cut(struct lanes *l, uint64_t end_ns);

#endif
