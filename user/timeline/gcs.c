/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gcs: collections, from the probes on their ends; and whom they waited for. A collection asks the
 * capabilities to stop (stat_startGCSync), works once all have (stat_startGC), and ends
 * (stat_endGC). A thread in an unsafe call does not hear of it before it returns.
 */
#include <sys/syscall.h>

#include "private.h"

/* How far a thread can be behind a probe's instruction, and how long behind its time, at the trap.
 */
#define GC_PROBE_BYTES 16
#define GC_PROBE_NS    200000
/* From there to the runtime's own looks at the clocks (stat_startGC, stat_endGC), of which one is a
 * system call. */
#define GC_CLOCK_NS 30000

/* ── records ─────────────────────────────────────────────────────────────────────────────── */

/* -ENOENT: there is no room for more, and from here on it is as if the probes had come off. */
static int add(struct target_state *tg, const struct gc_span *span)
{
	int err = TL_RESERVE(tg->gcs, tg->gcs_cap, tg->n_gcs + 1, TL_MAX_GCS);

	if (err == -E2BIG) {
		tg->gcs_full = true;
		tg->gc_off_ns = span->start;
		return -ENOENT;
	}
	if (err) {
		tg->left_out++;
		return err;
	}
	tg->gcs[tg->n_gcs++] = *span;
	return 0;
}

static int begin(struct target_state *tg, const struct wire_gc *rec)
{
	struct gc_span *last = tg->n_gcs ? &tg->gcs[tg->n_gcs - 1] : NULL;
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
		tg->n_gcs--; /* its end was lost: nothing is known of its length */
	}
	return add(tg, &span);
}

/*
 * A collection of which only the end was seen: its start was lost, or the probe on that is off
 * where they are many. The runtime's own notes tell of it. -ENOENT: they do not.
 */
static int by_end(struct target_state *tg, const struct wire_gc *rec)
{
	struct gc_span *last = tg->n_gcs ? &tg->gcs[tg->n_gcs - 1] : NULL;
	struct gc_span span = {.start = rec->start_ns,
			       .work = rec->start_ns,
			       .tid = (pid_t)rec->h.tid,
			       .number = UINT64_MAX,
			       .generation = -1};
	uint64_t before;

	if (last && !last->end)
		tg->n_gcs--;
	last = tg->n_gcs ? &tg->gcs[tg->n_gcs - 1] : NULL;
	before = last ? tg->gc_ended_ns : 0;
	if (!rec->start_ns || rec->start_ns < before || rec->start_ns > rec->h.ns)
		return -ENOENT;
	if (rec->sync_ns >= MAX(before, 1) && rec->sync_ns <= rec->start_ns) {
		span.start = rec->sync_ns;
		span.synced = true;
	}
	/* the thread was switched out as this one began, not as the one before ended */
	if (last && last->end > span.start)
		last->end = before;
	return add(tg, &span);
}

int gcs__record(struct target_state *tg, const struct wire_gc *rec)
{
	struct gc_span *last = tg->n_gcs ? &tg->gcs[tg->n_gcs - 1] : NULL;

	if (rec->point == WIRE_GC_OFF && tg->gcs_full)
		return 0;
	if (rec->point == WIRE_GC_OFF) {
		/* the last one's end will never be told */
		tg->n_gcs -= last && !last->end;
		tg->gc_off_ns = rec->h.ns;
		return 0;
	}
	if (rec->point != WIRE_GC_SYNC && rec->point != WIRE_GC_START && rec->point != WIRE_GC_END)
		return -EBADMSG;
	if (last && (rec->h.ns < last->start || rec->h.ns < last->end || rec->h.ns < last->work))
		return -EBADMSG;
	tg->pub.gc.known = true;
	if (rec->n_caps && rec->n_caps < TL_MAX_CAPS && tg->n_cap_notes) {
		int err = caps__note(tg, rec->h.ns, rec->n_caps,
				     tg->cap_notes[tg->n_cap_notes - 1].disabled);

		if (err)
			return err;
	}
	if (tg->gcs_full)
		return 0;
	if (rec->point != WIRE_GC_END) {
		int err = begin(tg, rec);

		return err == -ENOENT ? 0 : err;
	}
	if (last && !last->end && last->work) {
		if (rec->start_ns >= last->start && rec->start_ns <= rec->h.ns)
			last->work = rec->start_ns;
	} else {
		int err = by_end(tg, rec);

		if (err)
			return err == -ENOENT ? 0 : err;
		last = &tg->gcs[tg->n_gcs - 1];
	}
	last->end = tg->gc_ended_ns = rec->h.ns;
	/* GHC has a handful of generations; the count is that of those before. */
	if (rec->generation < 256)
		last->generation = (int32_t)rec->generation;
	if (rec->number != WIRE_GC_NO_NUMBER)
		last->number = rec->number + 1;
	return 0;
}

/*
 * A trap into the kernel is where a thread is preempted rather than anywhere else, so the probes
 * themselves bring it about that the leader is switched out at a collection's edge. It has not
 * begun then, or is not over yet: what the runtime's own clock will say when it goes on.
 */
void gcs__stay(struct target_state *tg, const struct wire_off *rec)
{
	struct gc_span *last = tg->n_gcs ? &tg->gcs[tg->n_gcs - 1] : NULL;
	uint64_t *edge, addr, after;

	if (!last || !last->work || rec->prev_state || last->tid != (pid_t)rec->h.tid)
		return;
	edge = last->end ? &last->end : &last->work;
	addr = last->end ? tg->gc_end_addr : tg->gc_start_addr;
	if (!addr || rec->out_ns < *edge)
		return;
	after = rec->out_ns - *edge;
	if ((after < GC_CLOCK_NS && rec->syscall == SYS_clock_gettime) ||
	    (after < GC_PROBE_NS && rec->ip >= addr && rec->ip - addr < GC_PROBE_BYTES))
		*edge = rec->h.ns;
}

bool gc__overlaps(const struct target_state *tg, uint64_t start, uint64_t end)
{
	const struct gc_span *gc = gc__at(tg, start);

	return gc && gc->start <= end;
}

/* The first collection that ends after t: they are in order and disjoint. */
const struct gc_span *gc__at(const struct target_state *tg, uint64_t t)
{
	size_t low = 0, high = tg->n_gcs;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		/* Only the last can still be open. */
		if (!tg->gcs[mid].end || tg->gcs[mid].end > t)
			high = mid;
		else
			low = mid + 1;
	}
	return low < tg->n_gcs ? &tg->gcs[low] : NULL;
}

/* ── the picture ─────────────────────────────────────────────────────────────────────────── */

void gcs__close(struct target_state *tg)
{
	struct tl_gc *gc = &tg->pub.gc;

	for (size_t i = 0; i < tg->n_gcs; i++) {
		uint64_t pause;

		if (!tg->gcs[i].end) {
			/* Still collecting: the time counts for the lanes, not as a pause. */
			tg->gcs[i].end = UINT64_MAX;
			continue;
		}
		pause = tg->gcs[i].end - tg->gcs[i].work;
		gc->count++;
		gc->pause_ns += pause;
		gc->max_pause_ns = MAX(gc->max_pause_ns, pause);
	}
}

/* What a capability did while a collection waited for it. */
struct stopping {
	uint64_t busy_until; /* 0: it did nothing */
	uint64_t unsafe_ns;
	uint64_t longest_ns;
	uint32_t stack; /* of the longest stretch in an unsafe call */
};

static struct stopping look(const struct tl_cap_lane *lane, size_t *at, const struct gc_span *gc)
{
	struct stopping s = {0};
	bool unsafe = false;

	while (*at < lane->n_stretches && lane->stretches[*at].end_ns <= gc->start)
		++*at;
	for (size_t i = *at; i < lane->n_stretches && lane->stretches[i].start_ns < gc->work; i++) {
		const struct tl_cap_stretch *c = &lane->stretches[i];
		uint64_t from = MAX(c->start_ns, gc->start), to = MIN(c->end_ns, gc->work);

		/* preempted in an unsafe call is still in it */
		unsafe = c->state == CS_UNSAFE_CALL || (unsafe && c->state == CS_PREEMPTED);
		if (c->tid == gc->tid || c->state == CS_GC || c->state == CS_IDLE ||
		    c->state == CS_DISABLED || c->state == CS_UNKNOWN)
			continue;
		s.busy_until = to;
		s.unsafe_ns += unsafe ? to - from : 0;
		if (c->state == CS_UNSAFE_CALL && to - from > s.longest_ns) {
			s.longest_ns = to - from;
			s.stack = c->stack;
		}
	}
	return s;
}

/*
 * The collection waited until its last capability stopped. The time that that one was in an unsafe
 * call meanwhile was waited for the call.
 */
static int held_up(struct timeline *tl, struct target_state *tg)
{
	size_t n = tg->pub.n_cap_lanes, *at = calloc(n + 1, sizeof(*at));
	if (!at)
		return -ENOMEM;
	for (size_t i = 0; i < tg->n_gcs; i++) {
		const struct gc_span *gc = &tg->gcs[i];
		struct stopping last = {0};

		if (!gc->synced || !gc->work)
			continue;
		for (size_t c = 0; c < n; c++) {
			struct stopping s = look(&tg->cap_lanes[c], &at[c], gc);

			if (s.busy_until > last.busy_until)
				last = s;
		}
		if (last.longest_ns)
			sums__held_up(tl, &tg->sums, last.stack, last.unsafe_ns);
	}
	free(at);
	return 0;
}

int gcs__build(struct timeline *tl, struct target_state *tg)
{
	static const char full[] = "no exact GC pauses: there were more than a million "
				   "collections; a shorter session has room for all of them";

	for (size_t i = 0; i < tg->pub.n_lanes; i++)
		tg->pub.gc.wait_ns += tg->lanes[i].states_ns[ST_GC_WAIT];
	if (!tg->pub.gc.known)
		return tg->has_gc_probes && !tg->gc_off_ns ? 0 : gc_infer__build(tg);
	tg->gc_events = calloc(tg->n_gcs + 1, sizeof(*tg->gc_events));
	if (!tg->gc_events)
		return -ENOMEM;
	tg->pub.gcs = tg->gc_events;
	if (tg->gcs_full) {
		int err = input__add_missing(tl, tg->pub.pid, full);

		if (err)
			return err;
	}
	if (tg->gc_off_ns) {
		/* of some, all is known; of the others, only the bound */
		int err = gc_infer__build(tg);

		if (err)
			return err;
	}
	for (size_t i = 0; i < tg->n_gcs; i++) {
		const struct gc_span *gc = &tg->gcs[i];

		tg->sums.gc_sync_known |= gc->synced;
		if (gc->end == UINT64_MAX)
			continue;
		tg->gc_events[tg->pub.n_gcs++] = (struct tl_gc_event){
			.start_ns = gc->work,
			.end_ns = gc->end,
			.sync_ns = gc->synced ? gc->work - gc->start : UINT64_MAX,
			.number = gc->number,
			.generation = gc->generation,
			.tid = gc->tid,
		};
	}
	return held_up(tl, tg);
}
