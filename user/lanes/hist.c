/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hist: reads the kernel's histogram of call durations (wire_maps.h, WIRE_HIST_*): slot 0 has
 * everything below 2^WIRE_HIST_MIN_LOG2, then there are 8 slots per power of two, and the last has
 * the rest.
 */
#include "hist_priv.h"

#define STEPS	  8
#define LAST_SLOT ((unsigned)WIRE_HIST_SLOTS - 1)

void hist__bounds(unsigned slot, uint64_t *ret_low, uint64_t *ret_high)
{
	uint64_t width;
	unsigned log2;

	if (slot == 0) {
		*ret_low = 0;
		*ret_high = 1ULL << WIRE_HIST_MIN_LOG2;
		return;
	}
	if (slot >= LAST_SLOT) {
		*ret_low = 1ULL << WIRE_HIST_MAX_LOG2;
		*ret_high = UINT64_MAX;
		return;
	}
	log2 = WIRE_HIST_MIN_LOG2 + (slot - 1) / STEPS;
	width = (1ULL << log2) / STEPS;
	*ret_low = (1ULL << log2) + (slot - 1) % STEPS * width;
	*ret_high = *ret_low + width;
}

uint64_t hist__quantile(const uint64_t hist[WIRE_HIST_SLOTS], double q, uint64_t min_ns,
			uint64_t max_ns, double *ret_error)
{
	uint64_t total = 0, rank, seen = 0, low, high, value;
	unsigned slot;

	for (slot = 0; slot < WIRE_HIST_SLOTS; slot++)
		total += hist[slot];
	if (!total)
		return UINT64_MAX;
	/* The smallest value that at least a share q of all values do not exceed. */
	rank = (uint64_t)(q * (double)total);
	if ((double)rank < q * (double)total)
		rank++;
	rank = rank < 1 ? 1 : rank > total ? total : rank;
	for (slot = 0; slot < LAST_SLOT; slot++) {
		seen += hist[slot];
		if (seen >= rank)
			break;
	}
	hist__bounds(slot, &low, &high);
	/* The edge slots have no useful width: min and max bound the error there. */
	if (min_ns > low && min_ns < high)
		low = min_ns;
	if (max_ns < high && max_ns >= low)
		high = max_ns + 1;
	value = low + (high - low) / 2;
	if (slot == LAST_SLOT && high == UINT64_MAX)
		value = low;
	*ret_error = low ? (double)(high - low) / 2.0 / (double)low : 1.0;
	if (slot > 0 && slot < LAST_SLOT)
		*ret_error = 1.0 / (2 * STEPS);
	return value;
}
