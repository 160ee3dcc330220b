/* SPDX-License-Identifier: GPL-2.0-or-later */
/* findings: garbage collection that takes much of the CPU, and its threads that spin without
 * work. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "findings_priv.h"

/* A third of the CPU time is more than a generational collector needs with room enough. */
#define GC_CPU_PERCENT	33
#define GC_WALL_PERCENT 5

/* Collections that come this often and are this short are the youngest generation's: their number
 * follows from the size of the allocation area. */
#define MANY_PER_SECOND 20
#define SHORT_PAUSE_NS	20000000
/* Longer ones are felt by whoever waits for an answer. */
#define LONG_PAUSE_NS 100000000

/* Of the collector's CPU time, and of the session. */
#define SPIN_PERCENT	  25
#define SPIN_WALL_PERCENT 2
/* Fewer samples than this give no share. */
#define SPIN_LEAST_SAMPLES 20

/* ── the share ───────────────────────────────────────────────────────────────────────────── */

static const char *hint(const struct pic_gc *gc, uint64_t wall_ns)
{
	if (!gc->known || !gc->count || gc->inferred)
		return "";
	if ((double)gc->count * 1e9 >= (double)MANY_PER_SECOND * (double)wall_ns &&
	    gc->pause_ns / gc->count <= SHORT_PAUSE_NS)
		return "; many and short: a larger allocation area (+RTS -A64m) makes fewer of "
		       "them";
	if (gc->max_pause_ns >= LONG_PAUSE_NS)
		return "; long pauses: less live data, compact regions, or +RTS --nonmoving-gc";
	return "";
}

static void look_for_share(struct finder *f, uint64_t work_ns)
{
	const struct pic_gc *gc = &f->t->gc;
	char pauses[256] = "";

	if (!finding__share(work_ns, f->cpu_ns, GC_CPU_PERCENT) ||
	    !finding__share(work_ns, f->wall_ns, GC_WALL_PERCENT))
		return;
	if (gc->known && gc->count && !gc->inferred)
		snprintf(pauses, sizeof(pauses), ": %s of %s on average, longest %s",
			 finding__counted(gc->count, "collection", "collections").s,
			 human__duration(gc->pause_ns / gc->count).s,
			 human__duration(gc->max_pause_ns).s);
	finding__add(f, "gc_share", work_ns, "",
		     "Garbage collection took %s%.0f %% of the program's CPU time (%s)%s%s",
		     gc->inferred ? "up to " : "", human__percent(work_ns, f->cpu_ns),
		     human__duration(work_ns).s, pauses, hint(gc, f->wall_ns));
}

/* ── spinning ────────────────────────────────────────────────────────────────────────────── */

/* Where threads of a parallel collection are when they have nothing to scavenge: rts/sm/GC.c
 * (gcWorkerThread, any_work, waitForGcThreads), rts/SpinLock.c, rts/posix/OSThreads.c. */
static bool spins(const struct pic_frame *leaf)
{
	static const char *const names[] = {
		"sched_yield",	       "__sched_yield",
		"yieldThread",	       "any_work",
		"gcWorkerThread",      "scavenge_until_all_done",
		"waitForGcThreads",    "wakeup_gc_threads",
		"shutdown_gc_threads", "acquire_spin_lock_slow_path",
	};

	for (size_t i = 0; leaf && i < ARRAY_SIZE(names); i++)
		if (!strcmp(leaf->name, names[i]))
			return true;
	return false;
}

/* The time in garbage collection on the CPU: all, and before the collection's start, where whoever
 * asked for it waits for the other capabilities; that is the fault of whoever holds them. */
struct spin {
	uint64_t work_ns, waiting_ns;
	uint64_t ns, samples, all_samples;
	/* of those names, the one with most samples */
	const char *most;
	uint64_t most_samples;
};

static void look_at_lane(const struct finder *f, const struct pic_lane *lane, struct spin *spin)
{
	size_t at = 0;

	spin->work_ns += lane->states_ns[ST_GC_WORK];
	for (size_t i = 0; i < lane->n_slices; i++) {
		const struct pic_slice *s = &lane->slices[i];
		uint64_t ns = s->end_ns - s->start_ns, waiting;
		const struct pic_frame *leaf;

		if (s->state != ST_GC_WORK)
			continue;
		waiting = finding__in_sync(f->t, &at, s->start_ns, s->end_ns);
		spin->waiting_ns += waiting;
		if (!s->samples || waiting > ns / 2)
			continue;
		leaf = picture__frame(f->pic, finding__leaf(f->pic, s->stack, true));
		spin->all_samples += s->samples;
		if (!spins(leaf))
			continue;
		spin->samples += s->samples;
		if (s->samples > spin->most_samples) {
			spin->most = leaf->name;
			spin->most_samples = s->samples;
		}
	}
}

static void look_for_spin(struct finder *f, const struct spin *spin)
{
	if (spin->samples < SPIN_LEAST_SAMPLES ||
	    !finding__share(spin->samples, spin->all_samples, SPIN_PERCENT) ||
	    !finding__share(spin->ns, f->wall_ns, SPIN_WALL_PERCENT))
		return;
	finding__add(f, "gc_spin", spin->ns, spin->most,
		     "Threads of the parallel collector spun without work for about %s: %" PRIu64
		     " of %s in garbage collection, most in %s; +RTS -qg or fewer threads (-qn) "
		     "leave that CPU time to the program",
		     human__duration(spin->ns).s, spin->samples,
		     finding__counted(spin->all_samples, "sample", "samples").s, spin->most);
}

void findings__gc(struct finder *f)
{
	struct spin spin = {0};
	uint64_t work;

	for (size_t i = 0; i < f->threads->n; i++)
		look_at_lane(f, &f->threads->v[i], &spin);
	work = spin.work_ns - MIN(spin.work_ns, spin.waiting_ns);
	if (spin.all_samples)
		spin.ns =
			(uint64_t)((double)work * (double)spin.samples / (double)spin.all_samples);
	if (f->t->gc.inferred) {
		/* nothing sets the collector apart from the rest of the runtime */
		for (size_t i = 0; i < f->threads->n; i++)
			work += f->threads->v[i].states_ns[ST_RTS];
		work = MIN(work, f->t->gc.pause_ns);
	}
	look_for_share(f, work);
	look_for_spin(f, &spin);
}
