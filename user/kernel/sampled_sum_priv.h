/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sampled_sum: a sum that only grows and is measured for a part of the time. Each measured part
 * stands for the time from its start to the start of the next one, so that what one interval cost
 * does not change what was reported of those before it, and the total does not fall.
 */
#ifndef SAFESCOPED_SAMPLED_SUM_PRIV_H
#define SAFESCOPED_SAMPLED_SUM_PRIV_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: nothing has been measured. */
struct sampled_sum {
	bool measuring;
	uint64_t mark_ns; /* start or end of the last part; 0: there was none */
	double mark;	  /* the total at that time */
	double rate;	  /* per ns, in the last part that has ended */
	uint64_t value;	  /* what was measured, at the start of a part */
};

/* A part begins, in which `value` is what has been measured in all parts. */
void sampled_sum__begin(struct sampled_sum *s, uint64_t now_ns, uint64_t value);
void sampled_sum__end(struct sampled_sum *s, uint64_t now_ns, uint64_t value);

/*
 * The total at `at_ns`, which may lie before `now_ns`, the time at which `value` was measured.
 * Within a part that is not over `value` is needed; otherwise it is ignored. False: nothing has
 * been measured.
 */
bool sampled_sum__at(const struct sampled_sum *s, uint64_t at_ns, uint64_t now_ns, uint64_t value,
		     uint64_t *ret_total);

#endif
