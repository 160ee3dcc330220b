/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lanes: what a process's threads, capabilities and Haskell threads did, made of what intake has
 * seen: slices to draw, and bookings in ledgers, from which all totals come. Lanes grow as the
 * session goes on (lanes__fold); a reading of the ledgers at any moment changes nothing in them.
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
	uint64_t period_ns; /* of the sampler; 0: there is none */
	bool haskell;	    /* lanes of Haskell threads are wanted */
	size_t max_haskell; /* of these, until a cut; 0: the default */
};

/* Of one process; what it refers to must live longer. */
int lanes__new(const struct lanes_opts *opts, struct intake *in, struct seen *seen,
	       struct lanes **ret_lanes);
void lanes__free(struct lanes *l);
/* For the next reading: the longest that the sampler had since the last one. */
void lanes__set_period(struct lanes *l, uint64_t period_ns);

/*
 * Makes of each lane what can be made for good, with at most max_slices in each, and lets go of the
 * records that are needed no more.
 */
int lanes__fold(struct lanes *l, size_t max_slices);
/* Threads that have ended, and what their lanes would show: time that is not idleness. */
size_t lanes__ended(const struct lanes *l, uint64_t *ret_weights);
/*
 * Lets go of at most *left ended threads that weigh no more than `most`; their accounts become
 * one. Counts *left down.
 */
int lanes__drop_ended(struct lanes *l, uint64_t most, size_t *left);

/* Ledgers by enum lane_kind; the owners are numbers that stay for the session. */
struct reading {
	struct ledger *of[LANE_KINDS];
};
/*
 * What the ledgers would hold if the session ended at at_ns, which is no earlier than what has come
 * in. The differences of successive readings add up to the last one, to the nanosecond.
 */
int lanes__read(const struct lanes *l, uint64_t at_ns, struct reading *ret_reading);
void reading__free(struct reading *r);
/*
 * The process's figures since the last cut (picture/figures.h), up to at_ns. `made`: the picture of
 * that time has just been made, and they are those of the picture; else as by a reading. The caller
 * frees.
 */
int lanes__figures(const struct lanes *l, uint64_t at_ns, bool made, struct figures *ret_figures);
void figures__free(struct figures *f);

/* Makes the rest, up to end_ns, and puts all of it into the picture. */
int lanes__finish(struct lanes *l, uint64_t end_ns, size_t max_slices);

/* The same at a cut: threads, capabilities and Haskell threads go on. */
int lanes__window(struct lanes *l, uint64_t end_ns, size_t max_slices);
/* After that: lets go of the threads that have ended by end_ns. */
int lanes__let_go(struct lanes *l, uint64_t end_ns);
/* After intake__cut at end_ns: from here on it is the intake's picture that is made. */
int lanes__cut(struct lanes *l, uint64_t end_ns);

#endif
