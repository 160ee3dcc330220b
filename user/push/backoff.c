/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/base.h"
#include "push_priv.h"

uint64_t backoff__ns(unsigned failures, uint32_t random, uint64_t asked_s)
{
	uint64_t ns = BACKOFF_FIRST_NS, asked_most_s = BACKOFF_ASKED_MOST_NS / 1000000000ULL;

	while (failures-- > 1 && ns < BACKOFF_MOST_NS)
		ns *= 2;
	ns = MIN(ns, BACKOFF_MOST_NS);
	ns -= (uint64_t)((unsigned __int128)(ns / 2) * random / UINT32_MAX);
	return MAX(ns, MIN(asked_s, asked_most_s) * 1000000000ULL);
}
