/* SPDX-License-Identifier: GPL-2.0-or-later */
/* findings: garbage collection that takes much of the CPU time, and its threads spinning without
 * work. */
#include <string.h>

#include "findings_priv.h"

/* A third of the CPU time is more than a generational collector needs with enough memory. */
#define GC_CPU_PERCENT	33
#define GC_WALL_PERCENT 5

/* Collections this frequent and short are the youngest generation's: their number follows from the
 * size of the allocation area. */
#define MANY_PER_SECOND 20
#define SHORT_PAUSE_NS	20000000
/* A capability's allocation area of the size that would be advised (-A64m). */
#define LARGE_NURSERY (UINT64_C(64) << 20)
/* Percent of the CPU time, and of the collector's samples, before collections begin: if it is less,
 * figures with and without it agree. */
#define SYNC_PERCENT 1
/* Longer pauses are noticeable to whoever waits for an answer. */
#define LONG_PAUSE_NS 100000000

/* Shares of the collector's CPU time, and of the session. */
#define SPIN_PERCENT	  25
#define SPIN_WALL_PERCENT 2
/* Fewer samples are too few for a share. */
#define SPIN_LEAST_SAMPLES 20

/* ── the share ───────────────────────────────────────────────────────────────────────────── */

/* Collections of the youngest generation, and of all others. */
struct kinds {
	uint64_t minor, minor_ns, major, major_ns, longest_major_ns;
};

static struct kinds count_kinds(const struct pic_target *t)
{
	struct kinds k = {0};

	for (size_t i = 0; i < t->n_gcs; i++) {
		uint64_t ns = t->gcs[i].end_ns - t->gcs[i].start_ns;

		if (t->gcs[i].generation < 0)
			return (struct kinds){0};
		if (!t->gcs[i].generation) {
			k.minor++;
			k.minor_ns += ns;
			continue;
		}
		k.major++;
		k.major_ns += ns;
		k.longest_major_ns = MAX(k.longest_major_ns, ns);
	}
	return k;
}

static bool many_and_short(uint64_t n, uint64_t ns, uint64_t wall_ns)
{
	return n && (double)n * 1e9 >= (double)MANY_PER_SECOND * (double)wall_ns &&
	       ns / n <= SHORT_PAUSE_NS;
}

/* True if, as far as is known, collections occur because allocation areas that are not large yet
 * are used up. */
static bool nursery_helps(const struct pic_target *t)
{
	const struct pic_alloc *alloc = &t->alloc;
	uint64_t others = alloc->reasons[GC_REASON_FORCED] + alloc->reasons[GC_REASON_IDLE] +
			  alloc->reasons[GC_REASON_OTHER];

	return others <= alloc->collections / 2 &&
	       t->heap.nursery_bytes / MAX(t->capabilities, 1U) < LARGE_NURSERY;
}

/* A larger factor makes those collections rarer that are due to the heap's growth. */
static const char *major_hint(struct finder *f)
{
	const char *fewer;

	switch (finding__majors_reason(&f->t->heap)) {
	case GC_REASON_FORCED:
		fewer = "fewer calls of performGC or performMajorGC, which caused most of them";
		break;
	case GC_REASON_IDLE:
		fewer = "fewer of them while the program is idle, when most of them ran";
		break;
	default:
		fewer = finding__text(f, "fewer of them by %s", finding__rts(f, "-F4"));
	}
	return finding__text(f,
			     "; most of it in major collections, which copy all live data: less "
			     "live data, or %s",
			     fewer);
}

/* A larger allocation area means fewer collections of the youngest generation, and does not shorten
 * others: the advice is about the kind that takes the time. */
static const char *hint(struct finder *f, const struct pic_gc *gc, const struct kinds *k)
{
	bool known = k->minor || k->major, minor = !known || k->minor_ns >= k->major_ns;
	uint64_t n = known ? k->minor : gc->count, ns = known ? k->minor_ns : gc->pause_ns;
	uint64_t longest = known ? k->longest_major_ns : gc->max_pause_ns;

	if (!gc->known || !gc->count || gc->inferred)
		return "";
	if (minor && many_and_short(n, ns, f->wall_ns) && nursery_helps(f->t))
		return finding__text(
			f, "; many and short: a larger allocation area means fewer of them: %s",
			finding__rts(f, "-A64m"));
	if (longest >= LONG_PAUSE_NS)
		return finding__text(f, "; long pauses: less live data, compact regions, or %s",
				     finding__rts(f, "--nonmoving-gc"));
	return known && !minor ? major_hint(f) : "";
}

/* ": 7 442 of the youngest generation averaging 4.08 ms, 55 major ones averaging 4.46 ms, …" */
static const char *pauses(struct finder *f, const struct pic_gc *gc, const struct kinds *k)
{
	const char *longest = finding__text(f, "longest %s", human__duration(gc->max_pause_ns).s);

	if (!gc->known || !gc->count || gc->inferred)
		return "";
	if (!k->minor || !k->major)
		return finding__text(f, ": %s%s averaging %s, %s",
				     finding__counted(gc->count, "collection", "collections").s,
				     k->minor	? " of the youngest generation"
				     : k->major ? ", all of them major,"
						: "",
				     human__duration(gc->pause_ns / gc->count).s, longest);
	return finding__text(f, ": %s of the youngest generation averaging %s, %s averaging %s, %s",
			     finding__counted(k->minor, "collection", "collections").s,
			     human__duration(k->minor_ns / k->minor).s,
			     finding__counted(k->major, "major one", "major ones").s,
			     human__duration(k->major_ns / k->major).s, longest);
}

/* ", or 62 % (4.25 s) including the wait for capabilities before collections began": the figure
 * that other tables show for garbage collection; "" if it is the same. */
static const char *with_sync(struct finder *f, uint64_t work_ns, uint64_t sync_ns)
{
	uint64_t all_ns = work_ns + sync_ns;

	if (!sync_ns || !finding__share(sync_ns, f->cpu_ns, SYNC_PERCENT))
		return "";
	return finding__text(
		f, ", or %.0f %% (%s) including the wait for capabilities before collections began",
		human__percent(all_ns, f->cpu_ns), human__duration(all_ns).s);
}

static void look_for_share(struct finder *f, uint64_t work_ns, uint64_t sync_ns)
{
	const struct pic_gc *gc = &f->t->gc;
	const struct kinds kinds = count_kinds(f->t);

	if (!finding__share(work_ns, f->cpu_ns, GC_CPU_PERCENT) ||
	    !finding__share(work_ns, f->wall_ns, GC_WALL_PERCENT))
		return;
	finding__add(f, "gc_share", work_ns, "",
		     "Garbage collection took %s%.0f %% of the program's CPU time (%s)%s%s%s",
		     gc->inferred ? "up to " : "", human__percent(work_ns, f->cpu_ns),
		     human__duration(work_ns).s, with_sync(f, work_ns, sync_ns),
		     pauses(f, gc, &kinds), hint(f, gc, &kinds));
}

/* For a log alone, which has no CPU times. */
static void look_for_pauses(struct finder *f)
{
	const struct pic_gc *gc = &f->t->gc;
	const struct kinds kinds = count_kinds(f->t);
	uint64_t busy, work = finding__cap_ns(f, CS_GC, &busy);

	if (!gc->known || gc->inferred || !finding__share(work, busy, GC_CPU_PERCENT) ||
	    !finding__share(gc->pause_ns, f->wall_ns, GC_WALL_PERCENT))
		return;
	finding__add(f, "gc_share", gc->pause_ns, "",
		     "Garbage collection took %.0f %% of the time in which capabilities were busy, "
		     "and paused the program for %s%s%s",
		     human__percent(work, busy), human__duration(gc->pause_ns).s,
		     pauses(f, gc, &kinds), hint(f, gc, &kinds));
}

/* ── spinning ────────────────────────────────────────────────────────────────────────────── */

/*
 * The functions that threads of a parallel collection run while they have nothing to scavenge:
 * rts/sm/GC.c (gcWorkerThread, any_work, waitForGcThreads), rts/SpinLock.c, rts/posix/OSThreads.c.
 */
static const char *const spinning[] = {
	"sched_yield",	       "__sched_yield",
	"yieldThread",	       "any_work",
	"gcWorkerThread",      "scavenge_until_all_done",
	"waitForGcThreads",    "wakeup_gc_threads",
	"shutdown_gc_threads", "acquire_spin_lock_slow_path",
};

/*
 * What the collector did on the CPU, without the time before a collection begins, in which the
 * requesting thread waits for the other capabilities; that time is the fault of whoever holds them.
 */
struct spin {
	uint64_t work_ns, ns;
	uint64_t samples, all_samples;
	uint64_t sync_ns, sync_samples;		/* in that time before collections */
	uint64_t by_name[ARRAY_SIZE(spinning)]; /* `samples` by function */
};

static uint64_t less(uint64_t a, uint64_t b)
{
	return a - MIN(a, b);
}

static void add_rows(const struct finder *f, const struct pic_row *rows, size_t n,
		     struct spin *spin)
{
	for (size_t i = 0; i < n; i++) {
		const struct pic_row *row = &rows[i];
		const struct pic_frame *leaf;

		if (row->state != ST_GC_WORK)
			continue;
		spin->work_ns += row->ns;
		spin->all_samples += row->samples;
		leaf = picture__frame(f->pic, finding__leaf(f->pic, row->stack, true));
		for (size_t k = 0; leaf && k < ARRAY_SIZE(spinning); k++)
			if (!strcmp(leaf->name, spinning[k])) {
				spin->samples += row->samples;
				spin->by_name[k] += row->samples;
			}
	}
}

static struct spin measure(const struct finder *f)
{
	struct spin spin = {0}, sync = {0};

	for (size_t i = 0; i < f->threads->n; i++)
		add_rows(f, f->threads->v[i].rows, f->threads->v[i].n_rows, &spin);
	add_rows(f, f->t->gc.sync_rows, f->t->gc.n_sync_rows, &sync);
	spin.sync_ns = MIN(spin.work_ns, sync.work_ns);
	spin.sync_samples = MIN(spin.all_samples, sync.all_samples);
	spin.work_ns = less(spin.work_ns, sync.work_ns);
	spin.samples = less(spin.samples, sync.samples);
	spin.all_samples = less(spin.all_samples, sync.all_samples);
	for (size_t i = 0; i < ARRAY_SIZE(spinning); i++)
		spin.by_name[i] = less(spin.by_name[i], sync.by_name[i]);
	if (spin.all_samples)
		spin.ns = human__whole((double)spin.work_ns * (double)spin.samples /
				       (double)spin.all_samples);
	return spin;
}

static void look_for_spin(struct finder *f, const struct spin *spin)
{
	const char *sync = "";
	size_t most = 0;

	if (spin->samples < SPIN_LEAST_SAMPLES ||
	    !finding__share(spin->samples, spin->all_samples, SPIN_PERCENT) ||
	    !finding__share(spin->ns, f->wall_ns, SPIN_WALL_PERCENT))
		return;
	for (size_t i = 1; i < ARRAY_SIZE(spinning); i++)
		most = spin->by_name[i] > spin->by_name[most] ? i : most;
	if (finding__share(spin->sync_samples, spin->all_samples, SYNC_PERCENT))
		sync = finding__text(f, " (and %s more before collections began)",
				     human__count(spin->sync_samples).s);
	finding__add(f, "gc_spin", spin->ns, spinning[most],
		     "Threads of the parallel collector spun without work for about %s: %s of %s "
		     "in garbage collection%s, most in %s; a single collector thread (or fewer "
		     "threads: -qn) leaves that CPU time to the program: %s",
		     human__duration(spin->ns).s, human__count(spin->samples).s,
		     finding__counted(spin->all_samples, "sample", "samples").s, sync,
		     spinning[most], finding__rts(f, "-qg"));
}

void findings__gc(struct finder *f)
{
	struct spin spin = measure(f);
	uint64_t work = spin.work_ns;

	if (!f->threads->n) {
		look_for_pauses(f);
		return;
	}
	if (f->t->gc.inferred) {
		/* nothing distinguishes the collector from the rest of the runtime */
		for (size_t i = 0; i < f->threads->n; i++)
			work += f->threads->v[i].states_ns[ST_RTS];
		/* at most one thread for each capability collects during a pause */
		work = MIN(work, f->t->gc.pause_ns * MAX(f->t->capabilities, 1U));
	}
	look_for_share(f, work, spin.sync_ns);
	look_for_spin(f, &spin);
}
