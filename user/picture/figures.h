/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * figures: the quantities of a process that only ever grow, as plain numbers without stacks. Each
 * set covers one part of the session, and the figures of all parts add up to those of the session.
 * Metrics are made from them, and they are cheap enough to compute every few seconds
 * (timeline__figures).
 */
#ifndef SAFESCOPED_PICTURE_FIGURES_H
#define SAFESCOPED_PICTURE_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "picture.h"

/* Collections are counted by the oldest generation they collected. GHC has two unless -G asks for
 * more; the last entry is for that generation and all above. */
#define FIGURES_GENERATIONS 4

/*
 * A histogram of the durations of safe calls: entry i counts those below 2^(FIGURES_HIST_FIRST_LOG2
 * + i * FIGURES_HIST_LOG2_STEP) ns (1 µs, 4 µs, … 17.2 s) that are not in an earlier entry; the
 * last one counts the rest. All bounds are also bounds of the kernel's finer histogram
 * (wire_maps.h), so the counts are exact.
 */
#define FIGURES_HIST_FIRST_LOG2 10
#define FIGURES_HIST_LOG2_STEP	2
#define FIGURES_HIST_BOUNDS	13
#define FIGURES_HIST		(FIGURES_HIST_BOUNDS + 1)

/* Finished safe calls from one place. A call is counted in the part in which it ends. */
struct figures_site {
	uint64_t addr; /* identifies the site, with `interruptible`, for the process's life */
	bool interruptible;
	const char *function, *caller, *place; /* as in struct pic_call; owned by the picture */
	uint64_t wall_ns, cap_wait_ns;
	uint64_t hist[FIGURES_HIST]; /* adds up to the number of calls */
};

/* Finished collections of one generation. Each is counted with its whole length in the part in
 * which it ends. */
struct figures_gc {
	uint64_t count, pause_ns, sync_ns;
};

struct figures {
	bool ended;	   /* the process has ended */
	uint64_t ended_ns; /* when, by the session's clock; 0: it is still running */
	uint32_t no;	   /* the process's number, unique in the session */
	/* the process; valid as long as the current picture */
	const struct pic_target *target;
	uint64_t thread_ns[ST_MAX]; /* of all OS threads together */
	uint64_t cap_ns[CS_MAX];    /* of all capabilities together */
	struct figures_gc gc[FIGURES_GENERATIONS];
	struct figures_gc gc_unknown; /* whose generation is not known */
	bool gc_counted; /* there are probes on them: if none was seen, there was none */
	/* collections that were not seen, by the runtime's own count, as the probes were off for a
	 * while, or not there yet */
	uint64_t gc_missed;
	/* for how long in this part collections were not counted, as the probes were off or there
	 * were too many */
	uint64_t gc_off_ns;
	bool gc_off; /* the probes are off for good: nothing further is known of the heap */
	struct figures_site *sites; /* unordered */
	size_t n_sites;
	/* Haskell threads in run queues at the last tick that saw them; queued_known is false if
	 * none has yet */
	uint64_t queued;
	bool queued_known;
	uint64_t allocated_bytes; /* as of the last collection's end; 0: not known */
	/* after the last collection whose end was seen, in any part; live_known is false if there
	 * is none */
	uint64_t live_bytes;
	bool live_known;
	uint64_t held_bytes;	  /* memory held from the system at that time; 0: not known */
	uint32_t haskell_threads; /* after the last major collection; 0: not known */
};

#endif
