/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * thread: cuts one thread's time into pieces. Walks along its off-CPU intervals; what lies between
 * them was on the CPU and is cut at the calls' boundaries, and between those at the midpoints of
 * samples.
 */
#include "base/search.h"
#include "lanes_priv.h"

/* ── on the CPU ──────────────────────────────────────────────────────────────────────────── */

/* A copy of the event, with the call's stack if the event has none. */
static struct ev with_stack(const struct ev *ev, const struct cover *cover)
{
	struct ev copy = *ev;

	if (ev->where != WIRE_WHERE_SAFE_CALL || !cover || cover->gc)
		return copy;
	if (!copy.site)
		copy.site = cover->ev->site;
	if (!copy.hs && copy.site == cover->ev->site) {
		copy.hs = cover->ev->hs;
		copy.hs_run = cover->ev->hs_run;
	}
	if (!copy.ccs)
		copy.ccs = cover->ev->ccs;
	return copy;
}

static uint64_t midpoint(uint64_t a, uint64_t b)
{
	return a < b ? a + (b - a) / 2 : a;
}

/* Emits the pieces up to `end`, which has the samples before number `last`. */
static int emit_samples(struct thread_builder *b, uint64_t end, bool end_exact, size_t last,
			const struct cover *cover)
{
	int err = 0;

	for (; !err && b->sample < last; b->sample++) {
		const struct ev *s = &b->th->samples.v[b->sample];
		struct ev ev = with_stack(s, cover);
		bool more = b->sample + 1 < last;
		struct finding_out p = {.ev = &ev, .samples = 1};

		p.state = ev__state_on(s, b->l->seen, s->t0, s->t0);
		if (p.state == ST_UNKNOWN && b->prev)
			p.state = ev__state_on(b->prev, NULL, 0, 0);
		if (cover && cover->gc)
			p.state = ST_GC_WORK;
		else if (cover && (!cover->callback || p.state == ST_UNKNOWN))
			p.state = ST_SAFE_CALL_CPU;
		finding__set_class(&p, cover);
		p.sampled = p.class == LEDGER_RUN;
		p.end = more ? midpoint(s->t0, s[1].t0) : end;
		p.end = MIN(MAX(p.end, b->cursor), end);
		p.end_exact = !more && end_exact;
		err = thread__emit(b, &p);
	}
	return err;
}

/* Emits time on the CPU up to `end`, where `off` begins (NULL: the lane ends). */
static int emit_on(struct thread_builder *b, uint64_t end, const struct ev *off)
{
	const struct cover_list *list = &b->covers;
	const struct evs *samples = &b->th->samples;
	int err = 0;

	if (end > b->cursor)
		b->lane->cpu_ns += end - b->cursor;
	while (!err && b->cursor < end) {
		const struct seg *next = NULL;
		uint64_t stop = end;
		bool exact = true;
		size_t last;

		while (b->seg + 1 < list->n_segs && list->segs[b->seg + 1].start <= b->cursor)
			b->seg++;
		if (b->seg + 1 < list->n_segs && list->segs[b->seg + 1].start < end) {
			next = &list->segs[b->seg + 1];
			stop = next->start;
			exact = next->exact;
		}
		last = b->sample;
		while (last < samples->n &&
		       (samples->v[last].t0 < stop || (!next && samples->v[last].t0 == stop)))
			last++;
		if (last > b->sample)
			err = emit_samples(b, stop, exact, last, seg__cover(b, b->seg));
		else
			err = thread__emit_unsampled(b, stop, exact, next ? NULL : off, next);
	}
	return err;
}

/* ── off the CPU ─────────────────────────────────────────────────────────────────────────── */

static bool was_ready(const struct thread_builder *b, const struct ev *off)
{
	return off == b->offs && !off->wake_ns && b->th->has_start &&
	       !(b->th->at_start.flags & EV_SLEEPS);
}

static uint64_t wake_time(const struct thread_builder *b, const struct ev *off, uint64_t end)
{
	uint64_t wake = off->wake_ns;

	/* A preempted thread stays ready, and so does one that the first snapshot found ready and
	 * whose next sign is that it is switched in. A new thread, which is ready from the start,
	 * has an interval with a start. */
	if ((off->flags & EV_RUNNABLE) || ((off->flags & EV_NEVER_SEEN) && was_ready(b, off)))
		return b->cursor;
	if (!wake)
		return end;
	return MIN(MAX(wake, b->cursor), end);
}

/*
 * A thread that gives up its capability for a collection (rts/Capability.c, yieldCapability) looks
 * idle; it is waiting for the end of the collection.
 */
static int emit_given_up(struct thread_builder *b, const struct ev *off, struct finding_out *p)
{
	const struct gc_span *gc;
	struct finding_out wait;

	if (p->state != ST_IDLE || b->lane->off.held == NO_CAP)
		return 0;
	gc = seen__gc_at(b->l->seen, off->t0);
	if (!gc || gc->start > off->t0)
		return 0;
	wait = *p;
	wait.state = ST_GC_WAIT;
	wait.end = MIN(gc__end(gc), p->end);
	return thread__emit(b, &wait);
}

/*
 * The state of an interval. If its end was not seen, only a collection running at its start shows
 * that the thread waits for it: sooner or later one comes anyway.
 */
static enum thread_state state_off(const struct thread_builder *b, const struct ev *off,
				   const struct cover *cover)
{
	uint64_t wake = wake_time(b, off, off->t1 == UINT64_MAX ? b->cursor : off->t1);
	enum thread_state state = ev__state_off(off, b->l->seen, b->cursor, wake);

	return state == ST_UNKNOWN && cover ? ST_SAFE_CALL_BLOCKED : state;
}

static int emit_off(struct thread_builder *b, const struct ev *off, uint64_t lane_end)
{
	uint64_t end = MIN(off->t1, lane_end);
	struct off_start *start = &b->lane->off;
	const struct cover *cover;
	struct finding_out p = {.end_exact = true};
	struct ev ev;
	int err;

	while (b->seg + 1 < b->covers.n_segs && b->covers.segs[b->seg + 1].start <= b->cursor)
		b->seg++;
	cover = seg__cover(b, b->seg);
	ev = with_stack(off, cover);
	p.ev = &ev;
	p.end = wake_time(b, off, end);
	if (b->cursor >= lane_end)
		return 0;
	if (!start->known || start->t0 != off->t0)
		*start = (struct off_start){.t0 = off->t0,
					    .held = b->held,
					    .state = (uint8_t)state_off(b, off, cover),
					    .known = true};
	p.state = (enum thread_state)start->state;
	err = emit_given_up(b, off, &p);
	if (!err)
		err = thread__emit(b, &p);
	if (err)
		return err;
	p.end = end;
	p.state = ST_PREEMPTED;
	err = thread__emit(b, &p);
	b->prev = off;
	return err;
}

/* ── a part of the lane ──────────────────────────────────────────────────────────────────── */

/* Nothing happened to the thread: it stayed as the snapshot found it. */
static int emit_snapshot_only(struct thread_builder *b, uint64_t end)
{
	const struct seen_thread *th = b->th;
	struct finding_out p = {.end = end, .end_exact = true, .state = ST_UNKNOWN};

	p.ev = th->has_start ? &th->at_start : th->has_end ? &th->at_end : NULL;
	if (p.ev)
		p.state = p.ev->flags & EV_SLEEPS ? ev__state_off(p.ev, NULL, 0, 0)
						  : ev__state_on(p.ev, NULL, 0, 0);
	p.sampled = thread__on_cpu(p.state);
	if (p.sampled)
		b->lane->cpu_ns += end - b->cursor;
	return thread__emit(b, &p);
}

/* Whether a thread without a record was on the CPU at the start of the window or is at its end. */
static bool is_known_on(const struct thread_builder *b)
{
	const struct wire_thread *final = b->th->has_final ? b->th->final : NULL;

	return (b->lane->folded && b->th->had_records) ||
	       (b->l->goes_on && final && final->on_since_ns && !final->off_since_ns);
}

static int walk(struct thread_builder *b, uint64_t end, bool last_part)
{
	const struct seen_thread *th = b->th;
	struct ev first, last;
	bool has_last = last_part && bounds__last_off(b, end, &last);
	int err = 0;

	if (b->lane->end_ns == b->lane->start_ns && !th->samples.n && !th->offs.n && !th->calls.n &&
	    (!has_last || !th->has_final || !th->final->off_since_ns) && !is_known_on(b) &&
	    (th->has_start || th->has_end || !th->has_final))
		return emit_snapshot_only(b, end);
	if (bounds__first_off(b, &first))
		err = emit_off(b, &first, end);
	for (size_t i = 0; !err && i < th->offs.n; i++) {
		const struct ev *off = &b->offs[i];

		if (off->t1 <= b->cursor)
			continue;
		err = emit_on(b, MIN(off->t0, end), off);
		if (!err)
			err = emit_off(b, off, end);
	}
	if (!err && has_last) {
		err = emit_on(b, MIN(last.t0, end), &last);
		if (!err)
			err = emit_off(b, &last, end);
	}
	if (!err)
		err = emit_on(b, end, NULL);
	b->prev = NULL;
	return err;
}

/* How long the finished short calls were on the CPU; if unknown, what the slices show. */
static uint64_t short_cpu(const struct thread_lane *lane)
{
	const struct short_calls *shorts = &lane->seen->shorts;
	uint64_t off;

	if (!shorts->known)
		return lane->short_guess_ns;
	off = MIN(shorts->wall_ns, shorts->blocked_ns);
	off += MIN(shorts->wall_ns - off, shorts->runnable_ns);
	return shorts->wall_ns - off;
}

/*
 * True if short_cpu() is right for a part that ends with the session or at a cut. The kernel side's
 * counts of a thread with an entry may come only after the cut; a thread without an entry has none.
 */
static bool counts_shorts(const struct lanes *l, const struct seen_thread *th)
{
	return !l->goes_on || th->shorts.known || th->only_sampled;
}

/* The same, as counted by the kernel side by time t. */
static uint64_t short_cpu_by(const struct seen_thread *th, uint64_t t)
{
	size_t samples = search__first(th->samples.n, i, th->samples.v[i].t0 > t);
	size_t offs = search__first(th->offs.n, k, th->offs.v[k].t1 > t);
	uint64_t ns = samples ? th->samples.v[samples - 1].short_cpu_ns : 0;

	return offs ? MAX(ns, th->offs.v[offs - 1].short_cpu_ns) : ns;
}

static int draw(struct lanes *l, struct thread_lane *lane, const struct thread_builder *b)
{
	int err = 0;

	for (size_t i = 0; !err && i < b->n; i++)
		err = slices__put(&lane->slices, LANE_THREAD, &b->v[i].s, l->max_slices);
	return err;
}

/* Passes the part on to the lane, and to the capabilities and Haskell threads. */
static int take_part(struct lanes *l, struct thread_lane *lane, struct thread_builder *b,
		     uint16_t before, int64_t moved)
{
	int err;

	held__resolve(l->seen, b->v, b->n, before, &lane->held);
	err = caps__claim(l, b->v, b->n);
	if (!err && l->opts.haskell)
		err = haskell__claim(l, lane, b->v, b->n, &b->covers);
	if (!err)
		err = caps__moved(l, b->v, b->n, moved);
	if (!err && b->n)
		lane->last_cap = b->v[b->n - 1].s.cap;
	if (err || l->reading)
		return err;
	err = overlaps__thread(&l->overlaps, l->seen, b->v, b->n);
	return err ? err : draw(l, lane, b);
}

/* Keeps the last off-CPU interval of this part for the next one. */
static void keep_last_off(const struct thread_builder *b, uint64_t end)
{
	size_t n = search__first(b->th->offs.n, i, b->th->offs.v[i].t1 > end);

	if (!b->offs || !n)
		return;
	b->lane->prev = b->offs[n - 1];
	b->lane->has_prev = true;
}

/* How much more of the thread's time so far was in safe calls than the slices show. */
static int64_t unseen_calls(const struct thread_lane *lane)
{
	int64_t ns = (int64_t)(lane->short_booked_ns - lane->short_guess_ns);

	/* calls that call back are divided by samples */
	if (lane->run_samples)
		ns += (int64_t)((unsigned __int128)lane->run_ns * lane->call_samples /
				lane->run_samples) -
		      (int64_t)lane->call_guess_ns;
	return ns;
}

/* Extends what is made of the lane up to `end`. */
static int build_part(struct lanes *l, struct thread_lane *lane, uint64_t end, bool last_part)
{
	struct thread_builder b = {
		.l = l,
		.lane = lane,
		.th = lane->seen,
		.prev = lane->has_prev ? &lane->prev : NULL,
		.edge_exact = !lane->sampled_edge,
		.cursor = lane->end_ns,
		.held = lane->folded ? lane->walk_held : NO_CAP,
		.had = lane->folded ? lane->walk_had : NO_CAP,
		.tso = lane->last_tso,
	};
	int64_t moved = -unseen_calls(lane);
	int err = bounds__offs(lane, &b.offs);

	if (!err)
		err = cover__build(&b, end, last_part);
	if (!err) {
		mutator__learn(&b.mutator, lane->seen, &b.covers);
		err = walk(&b, end, last_part);
	}
	if (!err && last_part && counts_shorts(l, lane->seen))
		err = thread__book_shorts(l, lane, short_cpu(lane));
	else if (!err)
		err = thread__book_shorts(l, lane, short_cpu_by(lane->seen, end));
	moved += unseen_calls(lane);
	if (!err)
		err = take_part(l, lane, &b, lane->last_cap, moved);
	lane->sampled_edge = !b.edge_exact;
	lane->last_tso = b.tso;
	lane->walk_held = b.held;
	lane->walk_had = b.had;
	lane->end_ns = end;
	lane->sign_ns = bounds__last_sign(&b, end);
	keep_last_off(&b, end);
	cover__free(&b.covers);
	free(b.offs);
	free(b.v);
	return err;
}

/* ── the lane as it grows ────────────────────────────────────────────────────────────────── */

static void begin(struct lanes *l, struct thread_lane *lane, uint64_t session_end)
{
	uint64_t end;

	if (lane->begun)
		return;
	lane->begun = true;
	bounds__of(l->seen, lane->seen, session_end, &lane->start_ns, &end);
	lane->end_ns = lane->sign_ns = lane->start_ns;
}

int thread__complete(struct lanes *l, struct thread_lane *lane, uint64_t session_end)
{
	uint64_t start, end;
	int err;

	if (lane->complete)
		return 0;
	begin(l, lane, session_end);
	bounds__of(l->seen, lane->seen, session_end, &start, &end);
	err = build_part(l, lane, MAX(end, lane->end_ns), true);
	lane->folded |= l->goes_on;
	lane->complete = !err && (!l->goes_on || (lane->seen->end_ns && lane->seen->end_ns <= end));
	return err;
}

static bool has_record(const struct seen_thread *th, uint64_t call_start_ns)
{
	size_t i = search__first(th->calls.n, k, th->calls.v[k].t0 >= call_start_ns);

	return i < th->calls.n && th->calls.v[i].t0 == call_start_ns;
}

/*
 * Until when no later input can change anything: the thread's last sign. If that is in a call that
 * may still get a record, or turn out too short for one: the start of the call.
 */
static uint64_t decided(const struct lanes *l, const struct seen_thread *th)
{
	const struct ev *off = th->offs.n ? &th->offs.v[th->offs.n - 1] : NULL;
	const struct ev *sample = th->samples.n ? &th->samples.v[th->samples.n - 1] : NULL;
	const struct ev *last = off;

	if (sample && (!off || sample->t0 > off->t1))
		last = sample;
	if (!last)
		return 0;
	if (last->where == WIRE_WHERE_SAFE_CALL && last->call_start_ns &&
	    last->t1 - MIN(last->call_start_ns, last->t1) < l->seen->call_record_ns &&
	    !has_record(th, last->call_start_ns))
		return last->call_start_ns;
	return last->t1;
}

int thread__fold(struct lanes *l, struct thread_lane *lane)
{
	struct seen_thread *th = lane->seen;
	uint64_t end = th->end_ns ? th->end_ns : l->seen->ended ? l->seen->end_ns : 0;
	int err;

	if (lane->complete)
		return 0;
	if (end) {
		err = thread__complete(l, lane, end);
		if (err)
			return err;
		seen__forget(l->in, th, UINT64_MAX - 1);
		seen__fit(th);
		return 0;
	}
	end = decided(l, th);
	begin(l, lane, end);
	if (end <= lane->end_ns)
		return 0;
	err = build_part(l, lane, end, false);
	if (err)
		return err;
	lane->folded = true;
	seen__forget(l->in, th, end);
	return 0;
}
