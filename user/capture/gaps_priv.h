/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gaps: the time for which a damaged capture has no records of a thread. A thread runs from one
 * off-CPU interval to the next: without the records of a block it would seem to have run all the
 * time. As nothing is known of that time, it becomes an off-CPU interval of which nothing else is
 * known, as on the kernel side when the ring is full (lost.bpf.h). It begins with the thread's last
 * record before the block: an interval is recorded at its end, so one that ends in the block may
 * begin anywhere after that.
 */
#ifndef SAFESCOPED_CAPTURE_GAPS_PRIV_H
#define SAFESCOPED_CAPTURE_GAPS_PRIV_H

#include <stdint.h>
#include <sys/types.h>

#include "wire.h"

#define MAX_TIME (UINT64_C(1) << 62) /* of an input; later ones are not valid */

struct gap_thread;
struct intake_input;

struct gaps {
	uint64_t start_ns; /* of the session */
	uint64_t blocks;   /* lost so far */
	uint64_t n;	   /* places at which blocks are missing, so far */
	struct gap_thread *threads;
};

void gaps__free(struct gaps *gaps);
/* Call before the inputs of a block are taken; `blocks`: how many were lost before it. */
void gaps__lost(struct gaps *gaps, uint64_t blocks);
/*
 * Call before a record is taken, whose header is complete and whose time is valid. 1: a gap ends
 * before it, and *ret_off, a WIRE_OFF, must be taken first; 0: none does; -ENOMEM.
 */
int gaps__record(struct gaps *gaps, const struct intake_input *input, struct wire_off *ret_off);
/* The same before what the thread was doing at the end is taken. */
int gaps__state(struct gaps *gaps, pid_t tid, const struct wire_thread *thread,
		struct wire_off *ret_off);

#endif
