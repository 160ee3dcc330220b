/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * figures: what of a process is only ever added to, as plain numbers without stacks: of a part of
 * the session, so that the figures of all parts add up to those of the session. What metrics are
 * made of, and cheap enough to be made every few seconds (timeline__figures).
 */
#ifndef SAFESCOPED_PICTURE_FIGURES_H
#define SAFESCOPED_PICTURE_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "picture.h"

/* Collections by the oldest generation that they collected: GHC has two unless it is asked for
 * others (-G), the last entry is for that one and all above. */
#define FIGURES_GENERATIONS 4

/*
 * Durations of safe calls: entry i has those below 2^(FIGURES_HIST_FIRST_LOG2 + i *
 * FIGURES_HIST_LOG2_STEP) ns (1 µs, 4 µs, … 17.2 s) and not below the one before; the last has the
 * rest. The bounds are bounds of the kernel's finer histogram (wire.h), so that nothing is guessed.
 */
#define FIGURES_HIST_FIRST_LOG2 10
#define FIGURES_HIST_LOG2_STEP	2
#define FIGURES_HIST_BOUNDS	13
#define FIGURES_HIST		(FIGURES_HIST_BOUNDS + 1)

/* Safe calls that ended, from one place. A call that goes on is in the part in which it ends. */
struct figures_site {
	uint64_t addr; /* with `interruptible`: which one it is, for the process's life */
	bool interruptible;
	const char *function, *caller, *place; /* as in struct pic_call; the picture's */
	uint64_t wall_ns, cap_wait_ns;
	uint64_t hist[FIGURES_HIST]; /* their sum is how many there were */
};

/* Collections that ended, by generation. As the sites: each is in one part, with its whole length.
 */
struct figures_gc {
	uint64_t count, pause_ns, sync_ns;
};

struct figures {
	bool ended;	   /* the process has */
	uint64_t ended_ns; /* when, by the session's clock; 0: it goes on */
	uint32_t no;	   /* of the process: no other one of the session has it */
	/* who it is; lives as long as the picture of the time */
	const struct pic_target *target;
	uint64_t thread_ns[ST_MAX]; /* of all OS threads together */
	uint64_t cap_ns[CS_MAX];    /* of all capabilities together */
	struct figures_gc gc[FIGURES_GENERATIONS];
	struct figures_gc gc_unknown; /* of no known generation */
	/* for how long, of the part, they were not counted: the probes were off, or they too many
	 */
	uint64_t gc_off_ns;
	bool gc_off; /* the probes are, for good: nothing more is known of the heap */
	struct figures_site *sites; /* in no order */
	size_t n_sites;
	/* Haskell threads in run queues at the last tick that saw them; false: none did yet */
	uint64_t queued;
	bool queued_known;
	uint64_t allocated_bytes; /* by collections' ends; 0 where the runtime's count is not known
				   */
	/* after the last collection that was seen to end, in any part; false: there is none */
	uint64_t live_bytes;
	bool live_known;
	uint64_t held_bytes;	  /* from the system, by then; 0: not known */
	uint32_t haskell_threads; /* after the last major collection; 0: not known */
};

#endif
