/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The histogram of call durations: 8 steps per power of two (wire_maps.h, WIRE_HIST_*). */
#ifndef SAFESCOPED_HIST_BPF_H
#define SAFESCOPED_HIST_BPF_H

#include "wire.h"
#include "mem.bpf.h"

/* Index of the highest set bit; 0 for 0. BPF has no clz instruction. */
SS_INLINE u32 hist_log2(u64 v)
{
	u32 r = 0;

	if (v >> 32) {
		v >>= 32;
		r += 32;
	}
	if (v >> 16) {
		v >>= 16;
		r += 16;
	}
	if (v >> 8) {
		v >>= 8;
		r += 8;
	}
	if (v >> 4) {
		v >>= 4;
		r += 4;
	}
	if (v >> 2) {
		v >>= 2;
		r += 2;
	}
	if (v >> 1)
		r += 1;
	return r;
}

/*
 * Slot of a duration: 0 for everything below 2^WIRE_HIST_MIN_LOG2, then 8 per power of two, the
 * last for everything from 2^WIRE_HIST_MAX_LOG2 on.
 */
SS_INLINE u32 hist_slot(u64 ns)
{
	u32 log2, slot;

	if (ns < (1ULL << WIRE_HIST_MIN_LOG2))
		return 0;
	log2 = ss_opaque(hist_log2(ns), ns);
	if (log2 >= WIRE_HIST_MAX_LOG2)
		return WIRE_HIST_SLOTS - 1;
	slot = 1 + (log2 - WIRE_HIST_MIN_LOG2) * 8 + ((u32)(ns >> (log2 - 3)) & 7);
	return ss_opaque(slot < WIRE_HIST_SLOTS ? slot : WIRE_HIST_SLOTS - 1, ns);
}

#endif
