/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * carriers: which capability and Haskell thread a lane's time belongs to. Only the slices record
 * that, not the account's rows, so a row's values are divided in proportion to the slices of its
 * state and stack.
 */
#ifndef SAFESCOPED_EXPORT_CARRIERS_H
#define SAFESCOPED_EXPORT_CARRIERS_H

#include "lanes.h"

/* The sum of the slices of one state and stack on one capability and for one Haskell thread. */
struct carrier {
	uint64_t ns, samples;
	uint64_t tso; /* 0: none, or not known */
	uint32_t stack;
	uint16_t cap; /* NO_CAP: none, or not known */
	uint8_t state;
};

struct carriers {
	struct carrier *v;
	size_t n, room;
};

/* Computes the carriers of a lane, which the caller frees. -ENOMEM, -E2BIG. */
int carriers__of(const struct pic_lane *lane, struct carriers *ret_carriers);
void carriers__free(struct carriers *carriers);
/* Computes the carriers of each view; only those of OS threads have any. -ENOMEM, -E2BIG. */
int carriers__of_threads(const struct views *views, struct carriers **ret_carriers);
void carriers__free_all(struct carriers *carriers, size_t n);
/* Finds the carriers of a state and stack, sorted by capability and Haskell thread. NULL and *ret_n
 * = 0: none. */
const struct carrier *carriers__find(const struct carriers *carriers, unsigned state,
				     uint32_t stack, size_t *ret_n);
/*
 * whole * done / all, without overflow; 0 if `all` is 0. Differences between successive values are
 * parts that add up to the whole.
 */
uint64_t carriers__upto(uint64_t whole, uint64_t done, uint64_t all);

/* Divides a row's values among its carriers, one after the other. */
struct division {
	const struct carrier *next;
	size_t left;
	struct division_sums {
		uint64_t before, upto, all; /* sums over the carriers before this one, up to and
					       including it, and all */
	} ns, samples;
};

struct division carriers__divide(const struct carrier *carriers, size_t n);
/* Returns the next carrier; NULL: there are no more. */
const struct carrier *division__next(struct division *d);
/* This carrier's part of the row's time (or a value proportional to it) and of its samples. The
 * parts of all carriers add up to the whole. */
uint64_t division__time(const struct division *d, uint64_t whole);
uint64_t division__samples(const struct division *d, uint64_t whole);

#endif
