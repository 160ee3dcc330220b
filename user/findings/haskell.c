/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * findings: avoidable waits of Haskell threads: for thunks that others evaluate, on MVars and in
 * transactions that put them to sleep and wake them all the time, and for their own OS thread.
 */
#include <inttypes.h>
#include <string.h>

#include "findings_priv.h"

#define BLACKHOLE_PERCENT  2
#define BLACKHOLE_LEAST_NS 10000000
/* A server's threads all sleep on MVars or in STM, which is normal; going to sleep this often is
 * what costs. */
#define SLEEPS_PER_SECOND 5000
/* Threads that sleep less often than this are not counted. */
#define OWN_SLEEPS_PER_SECOND 100

/*
 * The main thread is bound to its OS thread, which has to be woken whenever the main thread runs
 * after another one. At this rate, and with this share of the session's time on the CPU, that
 * costs.
 */
#define SWITCHES_PER_SECOND 1000
#define SWITCHES_PERCENT    2

struct waits {
	uint64_t ns, times, longest_ns;
	size_t threads;
	const struct pic_lane *most; /* the thread that waited longest in all */
};

/* How often the lane was in the state, off the CPU; *longest_ns is raised to the longest
 * interval. */
static uint64_t times_in(const struct pic_lane *lane, unsigned state, uint64_t *longest_ns)
{
	uint64_t times = 0;

	for (size_t i = 0; i < lane->n_rows; i++) {
		const struct pic_row *row = &lane->rows[i];

		if (row->state != state)
			continue;
		times += row->times;
		*longest_ns = MAX(*longest_ns, row->longest_ns);
	}
	return times;
}

/* Adds up the threads that were in the state at least `per_second` times a second. */
static void look_at(const struct finder *f, enum haskell_state state, double per_second,
		    struct waits *w)
{
	memset(w, 0, sizeof(*w));
	for (size_t i = 0; i < f->haskell->n; i++) {
		const struct pic_lane *lane = &f->haskell->v[i];
		uint64_t ns = lane->states_ns[state], longest_ns = 0;
		uint64_t times = times_in(lane, state, &longest_ns);

		if (!ns || (double)times * 1e9 < per_second * (double)f->wall_ns)
			continue;
		w->threads++;
		w->times += times;
		w->longest_ns = MAX(w->longest_ns, longest_ns);
		w->ns += ns;
		if (!w->most || ns > w->most->states_ns[state])
			w->most = lane;
	}
}

/* "Haskell thread 12", "Haskell thread 12 (worker)" */
static const char *thread_name(struct finder *f, const struct pic_lane *lane)
{
	if (*lane->name)
		return finding__text(f, "Haskell thread %" PRIu64 " (%.60s)", lane->tso,
				     lane->name);
	return finding__text(f, "Haskell thread %" PRIu64, lane->tso);
}

static void look_for_black_holes(struct finder *f)
{
	struct waits w;

	look_at(f, HS_BLOCKED_BLACKHOLE, 0, &w);
	if (w.ns < BLACKHOLE_LEAST_NS || !finding__share(w.ns, f->wall_ns, BLACKHOLE_PERCENT))
		return;
	finding__add(f, "blocked_on_black_hole", w.ns, thread_name(f, w.most),
		     "%s waited %s for values that other threads were evaluating (black holes), "
		     "%s, longest %s: evaluate shared values before sharing them",
		     finding__counted(w.threads, "Haskell thread", "Haskell threads").s,
		     human__duration(w.ns).s, finding__counted(w.times, "time", "times").s,
		     human__duration(w.longest_ns).s);
}

static void look_for_sleeps(struct finder *f, enum haskell_state state, const char *kind,
			    const char *what)
{
	struct waits w;

	look_at(f, state, OWN_SLEEPS_PER_SECOND, &w);
	if (!w.most || (double)w.times * 1e9 < (double)SLEEPS_PER_SECOND * (double)f->wall_ns)
		return;
	finding__add(f, kind, w.ns / MAX(w.threads, (size_t)1), thread_name(f, w.most),
		     "%s went to sleep %s %s times a second, for %s each on average",
		     finding__counted(w.threads, "Haskell thread", "Haskell threads").s, what,
		     finding__rate(w.times, f->wall_ns).s,
		     human__duration(w.ns / MAX(w.times, 1)).s);
}

static void look_for_bound(struct finder *f)
{
	for (size_t i = 0; i < f->threads->n; i++) {
		const struct pic_lane *lane = &f->threads->v[i];
		uint64_t n, longest = 0;

		/* what it runs between two switches may be too short for any sample */
		if (lane->tid != f->t->pid || !f->t->threaded ||
		    !finding__share(lane->states_ns[ST_RTS], f->wall_ns, SWITCHES_PERCENT))
			continue;
		n = times_in(lane, ST_IDLE, &longest);
		if ((double)n * 1e9 < (double)SWITCHES_PER_SECOND * (double)f->wall_ns)
			continue;
		finding__add(f, "bound_thread", lane->states_ns[ST_RTS], "main",
			     "The main thread, which is bound to its OS thread, took turns with "
			     "other threads %s times a second: each time one OS thread goes to "
			     "sleep and another one wakes, which cost this thread alone %s of CPU "
			     "time in the runtime; do the work in a forkIO thread",
			     finding__rate(n, f->wall_ns).s,
			     human__duration(lane->states_ns[ST_RTS]).s);
	}
}

void findings__haskell(struct finder *f)
{
	look_for_bound(f);
	look_for_black_holes(f);
	look_for_sleeps(f, HS_BLOCKED_MVAR, "blocked_on_mvar", "on MVars");
	look_for_sleeps(f, HS_BLOCKED_STM, "blocked_in_stm", "in STM");
}
