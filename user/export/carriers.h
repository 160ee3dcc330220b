/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * carriers: which capability and Haskell thread a lane's time belongs to. The account's rows have
 * neither; the slices do. What a row has is divided as the slices of its state and stack are.
 */
#ifndef SAFESCOPED_EXPORT_CARRIERS_H
#define SAFESCOPED_EXPORT_CARRIERS_H

#include "lanes.h"

/* What the slices of one state and stack add up to on one capability and for one Haskell thread. */
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

/* Of a lane. -ENOMEM, -E2BIG. The caller frees. */
int carriers__of(const struct pic_lane *lane, struct carriers *ret_carriers);
void carriers__free(struct carriers *carriers);
/* Of each view; of none but threads there are any. -ENOMEM, -E2BIG. */
int carriers__of_threads(const struct views *views, struct carriers **ret_carriers);
void carriers__free_all(struct carriers *carriers, size_t n);
/* Those of a state and stack, by capability and Haskell thread. NULL and *ret_n = 0: none. */
const struct carrier *carriers__find(const struct carriers *carriers, unsigned state,
				     uint32_t stack, size_t *ret_n);
/*
 * `whole` times `done` of `all`, without overflow; 0 where `all` is. Differences of two of these
 * are parts that add up to the whole.
 */
uint64_t carriers__upto(uint64_t whole, uint64_t done, uint64_t all);

/* A row on its way through its carriers. */
struct division {
	const struct carrier *next;
	size_t left;
	struct division_sums {
		uint64_t before, upto, all; /* of the carriers before this one, up to it, of all */
	} ns, samples;
};

struct division carriers__divide(const struct carrier *carriers, size_t n);
/* The next carrier; NULL: there are no more. */
const struct carrier *division__next(struct division *d);
/* What this carrier has of the row's time, or of what goes by that, and of its samples. What all of
 * them have adds up to the whole. */
uint64_t division__time(const struct division *d, uint64_t whole);
uint64_t division__samples(const struct division *d, uint64_t whole);

#endif
