/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lane: one thread's time, cut into stretches. Walks along its stays off the CPU; what is between
 * them was on the CPU and is cut at the calls' boundaries, and between those at the midpoints of
 * its samples.
 */
#include "lane_priv.h"

/* ── on the CPU ──────────────────────────────────────────────────────────────────────────── */

static const struct cover *cover_of(const struct lane_builder *b, size_t seg)
{
	int32_t i = seg < b->covers.n_segs ? b->covers.segs[seg].cover : -1;

	return i < 0 ? NULL : &b->covers.v[i];
}

/* A copy of what an event said, with the call's own stack where the event has none. */
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

/* Calls without a record are counted by the kernel: their time is taken out of LEDGER_RUN's. */
static void set_class(struct lane_piece *p, const struct cover *cover)
{
	p->cover = cover;
	p->class = LEDGER_RUN;
	if (cover && cover->gc)
		p->class = LEDGER_GC;
	else if (cover && cover->recorded && p->state == ST_SAFE_CALL_CPU)
		p->class = LEDGER_CALL;
}

/* The piece up to `end`, which holds the samples up to number `last`. */
static int emit_samples(struct lane_builder *b, uint64_t end, bool end_exact, size_t last,
			const struct cover *cover)
{
	int err = 0;

	for (; !err && b->sample < last; b->sample++) {
		const struct ev *s = &b->th->samples.v[b->sample];
		struct ev ev = with_stack(s, cover);
		bool more = b->sample + 1 < last;
		struct lane_piece p = {.ev = &ev, .samples = 1};

		p.state = ev__state_on(s, gc__overlaps(b->tg, s->t0, s->t0));
		if (p.state == ST_UNKNOWN && b->prev)
			p.state = ev__state_on(b->prev, false);
		if (cover && cover->gc)
			p.state = ST_GC_WORK;
		else if (cover && (!cover->callback || p.state == ST_UNKNOWN))
			p.state = ST_SAFE_CALL_CPU;
		set_class(&p, cover);
		p.sampled = p.class == LEDGER_RUN;
		p.end = more ? midpoint(s->t0, s[1].t0) : end;
		p.end = MIN(MAX(p.end, b->cursor), end);
		p.end_exact = !more && end_exact;
		err = lane__emit(b, &p);
	}
	return err;
}

static bool was_mutator(const struct lane_builder *b, const struct seg *seg)
{
	if (b->cursor == seg->start && (seg->kind == SEG_CALL_END || seg->kind == SEG_GC_END))
		return true;
	return b->prev &&
	       (b->prev->where == WIRE_WHERE_HASKELL || b->prev->where == WIRE_WHERE_RESUMING ||
		b->prev->where == WIRE_WHERE_SAFE_CALL);
}

/* No sample, no call: what the thread did just before it left the CPU tells the most. */
static void by_off(const struct lane_builder *b, const struct seg *seg, const struct ev *off,
		   struct lane_piece *p, struct ev *ev)
{
	*ev = *off;
	p->ev = ev;
	p->cap_told = true;
	p->cap = off->left != TL_NO_CAP ? off->left : TL_SOME_CAP;
	p->state = ev__state_on(off, gc__overlaps(b->tg, b->cursor, p->end));
	if ((p->state == ST_RTS || p->state == ST_HASKELL || p->state == ST_UNSAFE_CALL_CPU) &&
	    b->prev &&
	    prior__state(b->tg, b->prev->where, off->where, p->end - b->cursor, &p->state)) {
		if (p->state == ST_HASKELL && off->where == WIRE_WHERE_HASKELL)
			ev->c = 0;
		else
			p->ev = NULL;
		if (p->state == ST_RTS && !p->ev)
			p->cap = off->cap;
		return;
	}
	switch (off->where) {
	case WIRE_WHERE_HASKELL:
		/* It went into C code, if at all, at the end. */
		p->state = ST_HASKELL;
		ev->c = 0;
		break;
	case WIRE_WHERE_RESUMING:
		if (b->cursor == seg->start && seg->kind == SEG_CALL_END)
			break;
		p->state = ST_HASKELL;
		ev->c = 0;
		break;
	case WIRE_WHERE_RTS:
	case WIRE_WHERE_NO_CAP:
		/* The Haskell thread ran until it gave way to the scheduler. */
		if (p->state == ST_RTS && was_mutator(b, seg)) {
			p->state = ST_HASKELL;
			p->ev = NULL;
		}
		break;
	default:
		break;
	}
}

/* The same at the lane's end, where no stay off the CPU follows. */
static void by_past(const struct lane_builder *b, const struct seg *seg, struct lane_piece *p,
		    struct ev *ev)
{
	const struct thread *th = b->th;

	p->ev = NULL;
	p->state = ST_UNKNOWN;
	if (th->has_end && !(th->at_end.flags & EV_SLEEPS))
		*ev = th->at_end;
	else if (b->sample)
		*ev = th->samples.v[b->sample - 1];
	else if (b->prev)
		*ev = *b->prev;
	else if (th->has_start)
		*ev = th->at_start;
	else
		return;
	p->state = ev__state_on(ev, false);
	/* A call has ended, and so has a collection, or it would cover this piece. */
	if (p->state == ST_GC_WORK)
		p->state = ST_RTS;
	if (p->state == ST_SAFE_CALL_CPU || (p->state == ST_RTS && was_mutator(b, seg)))
		p->state = ST_HASKELL;
}

static bool is_callback(const struct lane_builder *b, const struct seg *seg, const struct ev *off,
			bool call_next)
{
	if (off)
		return off->where != WIRE_WHERE_SAFE_CALL && off->where != WIRE_WHERE_UNKNOWN;
	if (!call_next)
		return false;
	return (b->cursor == seg->start && seg->kind == SEG_CALL_END) ||
	       (b->prev && b->prev->where == WIRE_WHERE_HASKELL && b->cursor > seg->start);
}

/* Before a safe call or a collection: the Haskell thread ran; or back in a call, after a callback.
 */
static void by_next(const struct lane_builder *b, const struct seg *next, struct lane_piece *p,
		    struct ev *ev)
{
	const struct cover *begun = cover_of(b, (size_t)(next - b->covers.segs));
	const struct ev *call = begun && next->kind == SEG_CALL_START ? begun->ev : NULL;
	uint64_t ns = p->end - b->cursor;
	const struct ev *near;

	p->cap_told = true;
	p->cap = b->held;
	if (next->kind != SEG_GC_START && next->kind != SEG_CALL_START) {
		p->state = ST_RTS;
		return;
	}
	p->cap = call && call->left != TL_NO_CAP ? call->left : TL_SOME_CAP;
	p->state = mutator__choose(&b->mutator, b->tg, b->th, b->sample, b->cursor, ns, &near);
	if (call && p->state == ST_HASKELL) {
		/* A safe call is made by Haskell code, and its stack is the caller's. */
		*ev = *call;
		ev->c = 0;
		p->ev = ev;
	} else if (near) {
		*ev = *near;
		ev->cap = ev->left = TL_NO_CAP; /* that was then */
		p->ev = ev;
	}
}

/* A piece without any sample; `off` is the stay that follows it, `next` the segment. */
static int emit_unsampled(struct lane_builder *b, uint64_t end, bool end_exact,
			  const struct ev *off, const struct seg *next)
{
	const struct seg *seg = &b->covers.segs[b->seg];
	const struct cover *cover = cover_of(b, b->seg);
	bool call_next = next && next->kind == SEG_CALL_START;
	struct lane_piece p = {.end = end, .end_exact = end_exact, .sampled = true};
	struct ev ev = {0};

	if (cover && cover->gc) {
		p.state = ST_GC_WORK;
		p.sampled = false;
	} else if (cover && !(cover->callback && is_callback(b, seg, off, call_next))) {
		p.state = ST_SAFE_CALL_CPU;
		p.sampled = !cover->recorded;
		ev = *cover->ev;
		ev.c = 0;
		p.ev = &ev;
	} else if (next) {
		by_next(b, next, &p, &ev);
	} else if (off) {
		by_off(b, seg, off, &p, &ev);
	} else {
		by_past(b, seg, &p, &ev);
	}
	set_class(&p, cover);
	return lane__emit(b, &p);
}

/* On the CPU up to `end`; there `off` begins (NULL: the lane ends). */
static int emit_on(struct lane_builder *b, uint64_t end, const struct ev *off)
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
			err = emit_samples(b, stop, exact, last, cover_of(b, b->seg));
		else
			err = emit_unsampled(b, stop, exact, next ? NULL : off, next);
	}
	return err;
}

/* ── off the CPU ─────────────────────────────────────────────────────────────────────────── */

static bool was_ready(const struct thread *th, const struct ev *off)
{
	return off == th->offs.v && !off->wake_ns && th->has_start &&
	       !(th->at_start.flags & EV_SLEEPS);
}

static uint64_t wake_time(const struct lane_builder *b, const struct ev *off, uint64_t end)
{
	uint64_t wake = off->wake_ns;

	/* A new thread is ready from the first; a preempted one never ceased to be, and so one that
	 * the first snapshot found ready, whose next sign is that it is switched in. */
	if ((off->flags & EV_RUNNABLE) ||
	    ((off->flags & EV_NEVER_SEEN) && (b->th->born || was_ready(b->th, off))))
		return b->cursor;
	if (!wake)
		return end;
	return MIN(MAX(wake, b->cursor), end);
}

/*
 * A thread that gives its capability up for a collection (rts/Capability.c, yieldCapability) looks
 * like an idle one; it waits for the collection to end.
 */
static int emit_given_up(struct lane_builder *b, const struct ev *off, struct lane_piece *p)
{
	const struct gc_span *gc = gc__at(b->tg, off->t0);
	struct lane_piece wait = *p;

	if (p->state != ST_IDLE || b->held == TL_NO_CAP || !gc || gc->start > off->t0)
		return 0;
	wait.state = ST_GC_WAIT;
	wait.end = MIN(gc->end, p->end);
	return lane__emit(b, &wait);
}

static int emit_off(struct lane_builder *b, const struct ev *off, uint64_t lane_end)
{
	uint64_t end = MIN(off->t1, lane_end);
	const struct cover *cover;
	struct lane_piece p = {.end_exact = true};
	struct ev ev;
	int err;

	while (b->seg + 1 < b->covers.n_segs && b->covers.segs[b->seg + 1].start <= b->cursor)
		b->seg++;
	cover = cover_of(b, b->seg);
	ev = with_stack(off, cover);
	p.ev = &ev;
	p.end = wake_time(b, off, end);
	p.state = ev__state_off(off, gc__overlaps(b->tg, b->cursor, p.end));
	if (p.state == ST_UNKNOWN && cover)
		p.state = ST_SAFE_CALL_BLOCKED;
	err = emit_given_up(b, off, &p);
	if (!err)
		err = lane__emit(b, &p);
	if (err)
		return err;
	p.end = end;
	p.state = ST_PREEMPTED;
	err = lane__emit(b, &p);
	b->prev = off;
	return err;
}

/* ── the whole lane ──────────────────────────────────────────────────────────────────────── */

/* Nothing happened to the thread: it was all the time what the snapshot saw. */
static int emit_snapshot_only(struct lane_builder *b, uint64_t end)
{
	const struct thread *th = b->th;
	struct lane_piece p = {.end = end, .end_exact = true, .state = ST_UNKNOWN};

	p.ev = th->has_start ? &th->at_start : th->has_end ? &th->at_end : NULL;
	if (p.ev)
		p.state = p.ev->flags & EV_SLEEPS ? ev__state_off(p.ev, false)
						  : ev__state_on(p.ev, false);
	p.sampled = state__on_cpu(p.state);
	if (p.sampled)
		b->lane->cpu_ns += end - b->cursor;
	return lane__emit(b, &p);
}

static int walk(struct lane_builder *b, uint64_t end, bool last_part)
{
	struct thread *th = b->th;
	struct ev last;
	bool has_last = last_part && lane__last_stay(b->tl, th, b->cursor, end, &last);
	int err = 0;

	if (!th->done && !th->samples.n && !th->offs.n && !th->calls.n &&
	    (!has_last || !th->has_final || !th->final->off_since_ns) &&
	    (th->has_start || th->has_end || !th->has_final))
		return emit_snapshot_only(b, end);
	for (size_t i = 0; !err && i < th->offs.n; i++) {
		const struct ev *off = &th->offs.v[i];

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

/* How long the finished short calls were on the CPU; what the slices show if nobody knows. */
static uint64_t short_cpu(const struct thread *th)
{
	const struct short_calls *shorts = &th->shorts;
	uint64_t off;

	if (!shorts->known)
		return th->short_guess_ns;
	off = MIN(shorts->wall_ns, shorts->blocked_ns);
	off += MIN(shorts->wall_ns - off, shorts->runnable_ns);
	return shorts->wall_ns - off;
}

/* The part's slices go into the lane, and to the capabilities that they hold. */
static int take_part(struct target_state *tg, struct thread *th, struct lane_builder *b, size_t max)
{
	const struct tl_stretch *last =
		th->lane.n_stretches ? &th->stretches[th->lane.n_stretches - 1] : NULL;
	int err;

	held__resolve(tg, b->v, &b->n, last ? last->cap : TL_NO_CAP, &th->held);
	err = caps__claim(tg, th->tid, b->v, b->n);
	return err ? err : lane__append(th, b->v, b->n, max);
}

/* Adds the part of the lane up to `end` to what is done of it. */
static int build_part(struct timeline *tl, struct target_state *tg, struct thread *th, uint64_t end,
		      size_t max_stretches, bool last_part)
{
	struct lane_builder b = {
		.tl = tl,
		.tg = tg,
		.th = th,
		.lane = &th->lane,
		.prev = th->done ? &th->done_prev : NULL,
		.edge_exact = true,
		.cursor = th->lane.end_ns,
		.held = TL_NO_CAP,
	};
	int err;

	lane__fill_unknown(th);
	err = cover__build(tg, th, b.cursor, end, last_part, &b.covers);
	if (err)
		return err;
	mutator__learn(&b.mutator, tg, th, &b.covers);
	err = walk(&b, end, last_part);
	cover__free(&b.covers);
	if (!err && last_part)
		err = lane__book_shorts(tl, tg, th, short_cpu(th));
	if (!err)
		err = take_part(tg, th, &b, max_stretches);
	if (!err && last_part)
		err = caps__moved(tg, th->tid, b.v, b.n,
				  (int64_t)(th->short_booked_ns - th->short_guess_ns));
	th->lane.end_ns = end;
	free(b.v);
	return err;
}

static void begin(struct target_state *tg, struct thread *th, uint64_t session_end)
{
	uint64_t start, end;

	lane__bounds(tg, th, session_end, &start, &end);
	th->lane.start_ns = th->lane.end_ns = start;
}

/* Leaves out of evs what ended by t. */
static void forget(struct timeline *tl, struct evs *evs, uint64_t t)
{
	size_t kept = 0;

	for (size_t i = 0; i < evs->n; i++)
		if (evs->v[i].t1 > t)
			evs->v[kept++] = evs->v[i];
	tl->n_records -= evs->n - kept;
	evs->n = kept;
}

static void forget_all(struct timeline *tl, struct thread *th, uint64_t t)
{
	forget(tl, &th->samples, t);
	forget(tl, &th->offs, t);
	forget(tl, &th->calls, t);
}

static int complete(struct timeline *tl, struct target_state *tg, struct thread *th,
		    uint64_t session_end, size_t max_stretches)
{
	uint64_t start, end;
	int err;

	if (th->complete)
		return 0;
	if (!th->done)
		begin(tg, th, session_end);
	lane__bounds(tg, th, session_end, &start, &end);
	err = build_part(tl, tg, th, MAX(end, th->lane.end_ns), max_stretches, true);
	th->complete = !err;
	return err;
}

/*
 * Up to the end of the last stay off the CPU everything is known that there is to know, and all of
 * a thread that has ended.
 */
int lane__fold(struct timeline *tl, struct target_state *tg, struct thread *th,
	       size_t max_stretches)
{
	uint64_t end = th->end_ns ? th->end_ns : tg->ended ? tg->end_ns : 0;
	int err;

	if (end && !th->complete) {
		err = complete(tl, tg, th, end, max_stretches);
		if (err)
			return err;
		forget_all(tl, th, UINT64_MAX - 1);
		thread__fit(th);
		return 0;
	}
	if (th->complete || !th->offs.n)
		return 0;
	end = th->offs.v[th->offs.n - 1].t1;
	if (!th->done)
		begin(tg, th, end);
	if (end <= th->lane.end_ns)
		return 0;
	err = build_part(tl, tg, th, end, max_stretches, false);
	if (err)
		return err;
	th->done = true;
	th->done_prev = th->offs.v[th->offs.n - 1];
	forget_all(tl, th, end);
	return 0;
}

int lane__build(struct timeline *tl, struct target_state *tg, struct thread *th,
		uint64_t session_end, size_t max_stretches)
{
	int err = complete(tl, tg, th, session_end, max_stretches);

	if (err)
		return err;
	th->lane.tid = th->tid;
	memcpy(th->lane.name, th->name, sizeof(th->lane.name));
	th->lane.stretches = th->stretches;
	if (th->shorts.known)
		th->lane.short_calls = th->shorts.calls;
	if (th->short_booked_ns != th->short_guess_ns)
		th->lane.sampled_states |= 1U << ST_HASKELL | 1U << ST_SAFE_CALL_CPU;
	return 0;
}
