/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hist: reads the kernel's histogram of call durations (wire_maps.h, WIRE_HIST_…). */
#ifndef SAFESCOPED_LANES_HIST_PRIV_H
#define SAFESCOPED_LANES_HIST_PRIV_H

#include <stdint.h>

#include "wire.h"

/* Bounds of a slot: from *ret_low (included) to *ret_high (not included; UINT64_MAX for the last).
 */
void hist__bounds(unsigned slot, uint64_t *ret_low, uint64_t *ret_high);
/*
 * The q-quantile (0 < q <= 1): the middle of its slot, clamped to min…max. *ret_error is a bound on
 * its relative error: 1/16 in the regular slots. UINT64_MAX if the histogram is empty.
 */
uint64_t hist__quantile(const uint64_t hist[WIRE_HIST_SLOTS], double q, uint64_t min_ns,
			uint64_t max_ns, double *ret_error);

#endif
