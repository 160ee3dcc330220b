/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gcs: collections, from the probes on their stages. A collection asks the capabilities to stop
 * (stat_startGCSync), works once all have stopped (stat_startGC), and ends (stat_endGC).
 */
#include <sys/syscall.h>

#include "base/search.h"
#include "intake_priv.h"

/* How far past a probe's address, and how long after its time, a thread can be while still in the
 * trap. */
#define GC_PROBE_BYTES 16
#define GC_PROBE_NS    200000
/* From there to the runtime's own reading of the clocks (stat_startGC, stat_endGC), one of which is
 * a system call. */
#define GC_CLOCK_NS 30000

/* ── records ─────────────────────────────────────────────────────────────────────────────── */

/* -ENOENT: there is no room for more, which is treated as if the probes had come off. */
static int add(struct seen *s, const struct gc_span *span)
{
	int err = ARRAY_RESERVE(s->gcs.v, s->gcs.cap, s->gcs.n + 1, SEEN_MAX_GCS);

	if (err == -E2BIG) {
		s->gcs.full = true;
		s->gcs.off_ns = span->start;
		return -ENOENT;
	}
	if (err) {
		s->left_out++;
		return err;
	}
	s->gcs.v[s->gcs.n++] = *span;
	return 0;
}

static int begin(struct seen *s, const struct wire_gc *rec)
{
	struct gc_span *last = s->gcs.n ? &s->gcs.v[s->gcs.n - 1] : NULL;
	struct gc_span span = {.start = rec->h.ns,
			       .tid = (pid_t)rec->h.tid,
			       .number = UINT64_MAX,
			       .generation = -1};

	if (rec->point == WIRE_GC_SYNC)
		span.synced = true;
	else
		span.work = rec->h.ns;
	if (last && !last->end) {
		if (span.work && last->synced && !last->work && last->tid == span.tid) {
			last->work = span.work;
			return 0;
		}
		s->gcs.n--; /* its end was lost: its length is unknown */
	}
	return add(s, &span);
}

/*
 * Adds a collection of which only the end was seen: its start was lost, or the start probe is off
 * because collections are frequent. The runtime's own notes have the start. -ENOENT: they do not.
 */
static int by_end(struct seen *s, const struct wire_gc *rec)
{
	struct gc_span *last = s->gcs.n ? &s->gcs.v[s->gcs.n - 1] : NULL;
	struct gc_span span = {.start = rec->start_ns,
			       .work = rec->start_ns,
			       .late = true,
			       .tid = (pid_t)rec->h.tid,
			       .number = UINT64_MAX,
			       .generation = -1};
	uint64_t before;

	if (last && !last->end)
		s->gcs.n--;
	last = s->gcs.n ? &s->gcs.v[s->gcs.n - 1] : NULL;
	before = s->gcs.ended_ns; /* v may not have it any more, after a cut */
	if (!rec->start_ns || rec->start_ns < before || rec->start_ns > rec->h.ns)
		return -ENOENT;
	if (rec->sync_ns >= MAX(before, 1) && rec->sync_ns <= rec->start_ns) {
		span.start = rec->sync_ns;
		span.synced = true;
	}
	/* the thread was switched out as this one began, not as the previous one ended */
	if (last && last->end > span.start)
		last->end = before;
	return add(s, &span);
}

/* Makes sure that the collection whose end this is has a start. -ENOENT: the start is unknown. */
static int working(struct seen *s, const struct wire_gc *rec)
{
	struct gc_span *last = s->gcs.n ? &s->gcs.v[s->gcs.n - 1] : NULL;

	if (!last || last->end || !last->work)
		return by_end(s, rec);
	if (rec->start_ns >= last->start && rec->start_ns <= rec->h.ns)
		last->work = rec->start_ns;
	return 0;
}

int gcs__ahead(struct seen *s, const struct wire_gc *rec)
{
	const struct gc_span *last = s->gcs.n ? &s->gcs.v[s->gcs.n - 1] : NULL;
	int err;

	if (s->gcs.full || (last && (rec->h.ns < last->start || rec->h.ns < last->end)))
		return 0;
	err = working(s, rec);
	s->gcs.known |= !err;
	if (!err)
		s->gcs.v[s->gcs.n - 1].ends = true;
	return err == -ENOMEM ? -ENOMEM : 0;
}

/*
 * Counts collections that the runtime has counted but whose ends were not seen. Ends that came
 * without a number, before the location of the runtime's count was known, are part of that count.
 * Returns false if this end has no number, too. The count has 32 bits.
 */
static bool count_missed(struct seen_gcs *gcs, uint64_t finished, uint64_t ns)
{
	uint64_t seen = gcs->counted + gcs->uncounted;
	uint64_t unseen = finished > seen ? finished - seen : 0;

	if (finished > UINT32_MAX)
		return false;
	if (gcs->counted) {
		gcs->missed += unseen;
	} else {
		gcs->before = unseen;
		gcs->first_counted_ns = ns;
	}
	gcs->before_known = true;
	gcs->counted = finished + 1;
	gcs->uncounted = 0;
	gcs->counted_ns = ns;
	return true;
}

static int take_end(struct seen *s, const struct wire_gc *rec)
{
	struct seen_gcs *gcs = &s->gcs;
	bool counted = count_missed(gcs, rec->number, rec->h.ns);
	int err = gcs->full ? 0 : working(s, rec);
	struct gc_span *last;

	if (err == -ENOENT && !gcs->ended_ns) {
		/* a collection that began before the attach is not part of the session, unless the
		 * process started in it; without a number, the next end shows that */
		gcs->before += counted;
		return 0;
	}
	if (err && err != -ENOENT)
		return err;
	gcs->uncounted += !counted;
	gcs->missed += err != 0;
	if (err || gcs->full)
		return 0;
	last = &gcs->v[gcs->n - 1];
	last->end = gcs->ended_ns = rec->h.ns;
	/* GHC has a handful of generations; a larger value is corrupt. */
	if (rec->generation < 256)
		last->generation = (int32_t)rec->generation;
	if (rec->number != WIRE_GC_NO_NUMBER)
		last->number = rec->number + 1;
	return 0;
}

int gcs__record(struct seen *s, const struct wire_gc *rec)
{
	struct gc_span *last = s->gcs.n ? &s->gcs.v[s->gcs.n - 1] : NULL;
	int err;

	if (rec->point == WIRE_GC_OFF) {
		s->gcs.came_off = true;
		if (s->gcs.full)
			return 0;
		/* the last one's end will never be reported */
		s->gcs.n -= last && !last->end;
		s->gcs.off_ns = rec->h.ns;
		return 0;
	}
	if (rec->point != WIRE_GC_SYNC && rec->point != WIRE_GC_START && rec->point != WIRE_GC_END)
		return -EBADMSG;
	if (last && (rec->h.ns < last->start || rec->h.ns < last->end || rec->h.ns < last->work))
		return -EBADMSG;
	s->gcs.known = true;
	if (rec->n_caps && rec->n_caps < MAX_CAPS && s->n_cap_notes) {
		err = notes__caps(s, rec->h.ns, rec->n_caps,
				  s->cap_notes[s->n_cap_notes - 1].disabled);
		if (err)
			return err;
	}
	if (rec->point == WIRE_GC_END)
		return take_end(s, rec);
	if (s->gcs.full)
		return 0;
	err = begin(s, rec);
	return err == -ENOENT ? 0 : err;
}

/*
 * A thread is more likely to be preempted in a trap into the kernel than elsewhere, so the probes
 * themselves cause the leader to be switched out at a collection's edge. The collection has not
 * begun then, or is not over yet, by the runtime's own clock, which is read when the leader goes
 * on.
 */
void gcs__off(struct seen *s, const struct wire_off *rec)
{
	struct gc_span *last = s->gcs.n ? &s->gcs.v[s->gcs.n - 1] : NULL;
	uint64_t *edge, addr, after;

	if (!last || !last->work || rec->prev_state || last->tid != (pid_t)rec->h.tid)
		return;
	edge = last->end ? &last->end : &last->work;
	addr = last->end ? s->gcs.end_addr : s->gcs.start_addr;
	if (!addr || rec->out_ns < *edge)
		return;
	after = rec->out_ns - *edge;
	if ((after < GC_CLOCK_NS && rec->syscall == SYS_clock_gettime) ||
	    (after < GC_PROBE_NS && rec->ip >= addr && rec->ip - addr < GC_PROBE_BYTES))
		*edge = rec->h.ns;
}

/*
 * The leader runs no Haskell code until its collection is over, and its records arrive in the order
 * in which it made them. If it runs Haskell code later than the collection began, the end was lost,
 * and the collection's length is unknown.
 */
void gcs__runs(struct seen *s, pid_t tid, const struct ev *ev)
{
	const struct gc_span *last = s->gcs.n ? &s->gcs.v[s->gcs.n - 1] : NULL;

	if (!last || last->end || last->tid != tid || ev->t0 <= MAX(last->start, last->work))
		return;
	if (ev->where == WIRE_WHERE_HASKELL && ev->code == CODE_HASKELL)
		s->gcs.n--;
}

/* ── questions ───────────────────────────────────────────────────────────────────────────── */

const struct gc_span *seen__gc_at(const struct seen *s, uint64_t t)
{
	size_t i = search__first(s->gcs.n, k, gc__end(&s->gcs.v[k]) > t);

	return i < s->gcs.n ? &s->gcs.v[i] : NULL;
}

bool seen__in_gc(const struct seen *s, uint64_t start, uint64_t end)
{
	const struct gc_span *gc = seen__gc_at(s, start);

	return gc && gc->start <= end;
}
