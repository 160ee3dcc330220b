/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lane: one thread's time, cut into stretches. Walks along its stays off the CPU; what is between
 * them was on the CPU and is cut at the calls' boundaries, and between those at the midpoints of
 * its samples.
 */
#include "private.h"

struct builder {
	struct timeline *tl;
	struct target_state *tg;
	struct thread *th;
	struct sums *sums;
	struct tl_lane *lane;
	struct cover_list covers;
	struct tl_stretch *v;
	size_t n, cap, max;
	uint64_t cursor;       /* all before it is done */
	size_t seg, sample;    /* next of each */
	const struct ev *prev; /* the stay off the CPU before the cursor */
	bool edge_exact;       /* an event marked the cursor */
	bool start_exact;      /* and the start of the last stretch */
	uint64_t short_cpu_ns; /* safe_call_cpu outside recorded calls */
};

struct piece {
	uint64_t end;
	enum tl_state state;
	const struct ev *ev; /* whose stack; NULL: none */
	uint32_t samples;
	bool sampled; /* the state is known from sampling or context, not from an event */
	bool end_exact;
	bool recorded; /* in a call whose time is not among the short ones' */
};

/* ── putting stretches down ──────────────────────────────────────────────────────────────── */

/* Beyond the budget: halves the number of stretches; of two neighbours the longer gives its face.
 */
static void coarsen(struct builder *b)
{
	size_t kept = 0;

	for (size_t i = 0; i < b->n; i += 2) {
		struct tl_stretch s = b->v[i];

		if (i + 1 < b->n) {
			const struct tl_stretch *next = &b->v[i + 1];
			uint32_t samples = s.samples + next->samples;
			uint64_t start = s.start_ns;

			if (next->end_ns - next->start_ns > s.end_ns - s.start_ns)
				s = *next;
			s.start_ns = start;
			s.end_ns = next->end_ns;
			s.samples = samples;
			s.exact = 0;
		}
		b->v[kept++] = s;
	}
	b->n = kept;
	b->lane->coarse = true;
}

static int append(struct builder *b, const struct piece *p, uint32_t stack, uint16_t cap)
{
	struct tl_stretch *last = b->n ? &b->v[b->n - 1] : NULL;
	bool end_exact = p->end_exact && !p->sampled;
	int err;

	if (last && last->state == p->state && last->stack == stack && last->cap == cap) {
		last->end_ns = p->end;
		last->samples += p->samples;
		b->start_exact = b->start_exact && !p->sampled;
		last->exact = b->start_exact && end_exact;
		return 0;
	}
	if (b->n >= b->max)
		coarsen(b);
	err = TL_RESERVE(b->v, b->cap, b->n + 1, b->max);
	if (err)
		return err;
	b->start_exact = b->edge_exact && !p->sampled;
	b->v[b->n++] = (struct tl_stretch){
		.start_ns = b->cursor,
		.end_ns = p->end,
		.stack = stack,
		.state = (uint8_t)p->state,
		.exact = b->start_exact && end_exact,
		.cap = cap,
		.samples = p->samples,
	};
	return 0;
}

/* What the unsafe call's row and the functions' table get. */
static int account(struct builder *b, const struct piece *p, uint32_t stack, uint64_t ns)
{
	int err = 0;

	if (p->state == ST_UNSAFE_CALL_CPU)
		err = sums__unsafe(b->tl, b->sums, p->ev, ns, 0, p->samples);
	else if (p->state == ST_UNSAFE_CALL_BLOCKED)
		err = sums__unsafe(b->tl, b->sums, p->ev, 0, ns, 0);
	if (!err && state__on_cpu(p->state))
		err = sums__stack(b->sums, stack, ns, p->samples);
	return err;
}

static int emit(struct builder *b, const struct piece *p)
{
	uint64_t ns = p->end > b->cursor ? p->end - b->cursor : 0;
	uint16_t cap = p->ev ? p->ev->cap : TL_NO_CAP;
	uint32_t stack;
	int err;

	if (!ns && !p->samples)
		return 0;
	err = stack__compose(b->tl, b->tg, p->state, p->ev, &stack);
	if (!err)
		err = account(b, p, stack, ns);
	if (err || !ns)
		return err;
	b->lane->states_ns[p->state] += ns;
	if (p->sampled)
		b->lane->sampled_states |= 1U << p->state;
	if (p->state == ST_SAFE_CALL_CPU && !p->recorded)
		b->short_cpu_ns += ns;
	err = append(b, p, stack, cap);
	b->cursor = p->end;
	b->edge_exact = p->end_exact;
	return err;
}

/* ── on the CPU ──────────────────────────────────────────────────────────────────────────── */

static const struct cover *cover_of(const struct builder *b, size_t seg)
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
	if (!copy.hs && copy.site == cover->ev->site)
		copy.hs = cover->ev->hs;
	return copy;
}

static uint64_t midpoint(uint64_t a, uint64_t b)
{
	return a < b ? a + (b - a) / 2 : a;
}

/* The piece up to `end`, which holds the samples up to number `last`. */
static int emit_samples(struct builder *b, uint64_t end, bool end_exact, size_t last,
			const struct cover *cover)
{
	int err = 0;

	for (; !err && b->sample < last; b->sample++) {
		const struct ev *s = &b->th->samples.v[b->sample];
		struct ev ev = with_stack(s, cover);
		bool more = b->sample + 1 < last;
		struct piece p = {.ev = &ev, .samples = 1};

		p.state = ev__state_on(s, gc__overlaps(b->tg, s->t0, s->t0));
		if (p.state == ST_UNKNOWN && b->prev)
			p.state = ev__state_on(b->prev, false);
		if (cover && cover->gc)
			p.state = ST_GC_WORK;
		else if (cover && (!cover->callback || p.state == ST_UNKNOWN))
			p.state = ST_SAFE_CALL_CPU;
		p.recorded = cover && cover->recorded && (p.state == ST_SAFE_CALL_CPU || cover->gc);
		p.sampled = !p.recorded;
		p.end = more ? midpoint(s->t0, s[1].t0) : end;
		p.end = MIN(MAX(p.end, b->cursor), end);
		p.end_exact = !more && end_exact;
		err = emit(b, &p);
	}
	return err;
}

static bool was_mutator(const struct builder *b, const struct seg *seg)
{
	if (b->cursor == seg->start && (seg->kind == SEG_CALL_END || seg->kind == SEG_GC_END))
		return true;
	return b->prev &&
	       (b->prev->where == WIRE_WHERE_HASKELL || b->prev->where == WIRE_WHERE_RESUMING ||
		b->prev->where == WIRE_WHERE_SAFE_CALL);
}

/* No sample, no call: what the thread did just before it left the CPU tells the most. */
static void by_off(const struct builder *b, const struct seg *seg, const struct ev *off,
		   struct piece *p, struct ev *ev)
{
	*ev = *off;
	p->ev = ev;
	p->state = ev__state_on(off, gc__overlaps(b->tg, b->cursor, p->end));
	if ((p->state == ST_RTS || p->state == ST_HASKELL || p->state == ST_UNSAFE_CALL_CPU) &&
	    b->prev &&
	    prior__state(b->tg, b->prev->where, off->where, p->end - b->cursor, &p->state)) {
		if (p->state == ST_HASKELL && off->where == WIRE_WHERE_HASKELL)
			ev->c = 0;
		else
			p->ev = NULL;
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
static void by_past(const struct builder *b, const struct seg *seg, struct piece *p, struct ev *ev)
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

static bool is_callback(const struct builder *b, const struct seg *seg, const struct ev *off,
			bool call_next)
{
	if (off)
		return off->where != WIRE_WHERE_SAFE_CALL && off->where != WIRE_WHERE_UNKNOWN;
	if (!call_next)
		return false;
	return (b->cursor == seg->start && seg->kind == SEG_CALL_END) ||
	       (b->prev && b->prev->where == WIRE_WHERE_HASKELL && b->cursor > seg->start);
}

/* A piece without any sample; `off` is the stay that follows it, `next` the segment. */
static int emit_unsampled(struct builder *b, uint64_t end, bool end_exact, const struct ev *off,
			  const struct seg *next)
{
	const struct seg *seg = &b->covers.segs[b->seg];
	const struct cover *cover = cover_of(b, b->seg);
	bool call_next = next && next->kind == SEG_CALL_START;
	struct piece p = {.end = end, .end_exact = end_exact, .sampled = true};
	struct ev ev = {0};

	if (cover && cover->gc) {
		p.state = ST_GC_WORK;
		p.sampled = false;
	} else if (cover && !(cover->callback && is_callback(b, seg, off, call_next))) {
		p.state = ST_SAFE_CALL_CPU;
		p.recorded = cover->recorded;
		p.sampled = !cover->recorded;
		ev = *cover->ev;
		ev.c = 0;
		ev.cap = TL_NO_CAP;
		p.ev = &ev;
	} else if (call_next) {
		/* A safe call is made by Haskell code, and its stack is the caller's. */
		p.state = ST_HASKELL;
		ev = *b->covers.v[next->cover].ev;
		ev.c = 0;
		p.ev = &ev;
	} else if (next) {
		p.state = ST_RTS; /* about to collect, or back in a call after a callback */
	} else if (off) {
		by_off(b, seg, off, &p, &ev);
	} else {
		by_past(b, seg, &p, &ev);
	}
	return emit(b, &p);
}

/* On the CPU up to `end`; there `off` begins (NULL: the lane ends). */
static int emit_on(struct builder *b, uint64_t end, const struct ev *off)
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

static uint64_t wake_time(const struct builder *b, const struct ev *off, uint64_t end)
{
	uint64_t wake = off->wake_ns;

	/* A new thread is ready from the first; a preempted one never ceased to be. */
	if ((off->flags & EV_RUNNABLE) || ((off->flags & EV_NEVER_SEEN) && b->th->born))
		return b->cursor;
	if (!wake)
		return end;
	return MIN(MAX(wake, b->cursor), end);
}

static int emit_off(struct builder *b, const struct ev *off, uint64_t lane_end)
{
	uint64_t end = MIN(off->t1, lane_end);
	const struct cover *cover;
	struct piece p = {.end_exact = true};
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
	err = emit(b, &p);
	if (err)
		return err;
	p.end = end;
	p.state = ST_PREEMPTED;
	err = emit(b, &p);
	b->prev = off;
	return err;
}

/* ── what the records leave open ─────────────────────────────────────────────────────────── */

static void take_context(struct ev *ev, const struct ev *from)
{
	ev->where = from->where;
	ev->hs = from->hs;
	ev->c = from->c;
	ev->site = from->site;
	ev->code = from->code;
	ev->cap = from->cap;
	ev->syscall = from->syscall;
	ev->flags |= from->flags & (EV_OUTER_RTS | EV_GC_CODE | EV_GC_SYNC);
}

/* A stay of which the kernel saw nothing takes what a snapshot or its neighbour tells. */
static void fill_unknown(struct thread *th)
{
	for (size_t i = 0; i < th->offs.n; i++) {
		struct ev *off = &th->offs.v[i];

		if (off->where != WIRE_WHERE_UNKNOWN)
			continue;
		if (i == 0 && th->has_start)
			take_context(off, &th->at_start);
		else if (i && th->offs.v[i - 1].where != WIRE_WHERE_UNKNOWN)
			take_context(off, &th->offs.v[i - 1]);
	}
	for (size_t i = th->offs.n; i-- > 0;) {
		struct ev *off = &th->offs.v[i];

		if (off->where != WIRE_WHERE_UNKNOWN || (off->flags & EV_RUNNABLE))
			continue;
		if (i + 1 < th->offs.n)
			take_context(off, &th->offs.v[i + 1]);
		else if (th->has_end)
			take_context(off, &th->at_end);
	}
}

static uint64_t last_evidence(const struct thread *th, uint64_t start)
{
	uint64_t t = start;

	if (th->samples.n)
		t = MAX(t, th->samples.v[th->samples.n - 1].t0);
	if (th->offs.n)
		t = MAX(t, th->offs.v[th->offs.n - 1].t1);
	for (size_t i = 0; i < th->calls.n; i++)
		t = MAX(t, th->calls.v[i].t1);
	return t;
}

static uint64_t first_evidence(const struct thread *th, uint64_t otherwise)
{
	uint64_t t = UINT64_MAX;

	if (th->samples.n)
		t = MIN(t, th->samples.v[0].t0);
	if (th->offs.n) {
		const struct ev *off = &th->offs.v[0];

		t = MIN(t, off->t0 ? off->t0 : off->wake_ns ? MIN(off->wake_ns, off->t1) : off->t1);
	}
	if (th->calls.n)
		t = MIN(t, th->calls.v[0].t0);
	return t == UINT64_MAX ? otherwise : t;
}

static void lane_bounds(const struct target_state *tg, const struct thread *th,
			uint64_t session_end, uint64_t *ret_start, uint64_t *ret_end)
{
	uint64_t start = tg->pub.attach_ns, end = session_end;

	if (th->start_ns)
		start = MAX(start, th->start_ns);
	else if (tg->has_snapshot && !th->has_start)
		start = MAX(start, first_evidence(th, start));
	if (th->end_ns)
		end = MIN(end, th->end_ns);
	*ret_start = start;
	*ret_end = MAX(end, start);
}

/* The stay off the CPU that the thread is in when the session ends; false: none is known. */
static bool last_stay(const struct builder *b, uint64_t start, uint64_t end, struct ev *ret_ev)
{
	/* A thread on the CPU would have been sampled. */
	uint64_t silence = 5000000000ULL / MAX(b->tl->opts.frequency_hz, 1);
	struct thread *th = b->th;
	uint64_t last = last_evidence(th, start);

	if (th->end_ns)
		return false;
	if (th->has_final && (th->final->off_since_ns || th->final->on_since_ns)) {
		if (!th->final->off_since_ns)
			return false;
		*ret_ev = th->final_off;
		if (ret_ev->where == WIRE_WHERE_UNKNOWN && th->has_end)
			take_context(ret_ev, &th->at_end);
		else if (!ret_ev->hs && !ret_ev->c && th->has_end &&
			 th->at_end.where == ret_ev->where)
			ret_ev->hs = th->at_end.hs;
		return true;
	}
	if (th->has_end && (th->at_end.flags & EV_SLEEPS))
		*ret_ev = th->at_end;
	else if (!th->has_end && th->offs.n && b->tl->opts.frequency_hz && end > last + silence)
		*ret_ev = th->offs.v[th->offs.n - 1];
	else
		return false;
	ret_ev->t0 = last;
	ret_ev->t1 = UINT64_MAX;
	ret_ev->wake_ns = 0;
	ret_ev->flags &= (uint8_t) ~(EV_RUNNABLE | EV_NEVER_SEEN);
	return true;
}

/* Nothing happened to the thread: it was all the time what the snapshot saw. */
static int emit_snapshot_only(struct builder *b, uint64_t end)
{
	const struct thread *th = b->th;
	struct piece p = {.end = end, .end_exact = true, .state = ST_UNKNOWN};

	p.ev = th->has_start ? &th->at_start : th->has_end ? &th->at_end : NULL;
	if (p.ev)
		p.state = p.ev->flags & EV_SLEEPS ? ev__state_off(p.ev, false)
						  : ev__state_on(p.ev, false);
	p.sampled = state__on_cpu(p.state);
	if (p.sampled)
		b->lane->cpu_ns += end - b->cursor;
	return emit(b, &p);
}

static int walk(struct builder *b, uint64_t end)
{
	struct thread *th = b->th;
	struct ev last;
	bool has_last = last_stay(b, b->cursor, end, &last);
	int err = 0;

	if (!th->samples.n && !th->offs.n && !th->calls.n &&
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
	return err ? err : emit_on(b, end, NULL);
}

/*
 * The kernel knows how long the finished short calls were on the CPU; the totals are put right with
 * it. Only time that was itself estimated is moved.
 */
static void correct_short_calls(struct builder *b)
{
	const struct wire_thread *final = b->th->final;
	uint64_t *ns = b->lane->states_ns, wall, exact, off, move;

	if (!b->th->has_final)
		return;
	b->lane->short_calls = final->short_calls;
	wall = final->short_wall_ns;
	off = MIN(wall, final->short_blocked_ns);
	off += MIN(wall - off, final->short_runnable_ns);
	exact = wall - off;
	if (exact > b->short_cpu_ns) {
		move = MIN(exact - b->short_cpu_ns, ns[ST_HASKELL]);
		ns[ST_HASKELL] -= move;
		ns[ST_SAFE_CALL_CPU] += move;
	} else {
		move = MIN(b->short_cpu_ns - exact, ns[ST_SAFE_CALL_CPU]);
		ns[ST_SAFE_CALL_CPU] -= move;
		ns[ST_HASKELL] += move;
	}
	if (move)
		b->lane->sampled_states |= 1U << ST_HASKELL | 1U << ST_SAFE_CALL_CPU;
}

int lane__build(struct timeline *tl, struct target_state *tg, struct thread *th,
		uint64_t session_end, size_t max_stretches, struct sums *sums, struct tl_lane *lane)
{
	struct builder b = {
		.tl = tl,
		.tg = tg,
		.th = th,
		.sums = sums,
		.lane = lane,
		.max = max_stretches,
		.edge_exact = true,
	};
	int err;

	memset(lane, 0, sizeof(*lane));
	lane->tid = th->tid;
	memcpy(lane->name, th->name, sizeof(lane->name));
	lane_bounds(tg, th, session_end, &lane->start_ns, &lane->end_ns);
	fill_unknown(th);
	err = cover__build(tg, th, lane->start_ns, lane->end_ns, &b.covers);
	if (err)
		return err;
	b.cursor = lane->start_ns;
	err = walk(&b, lane->end_ns);
	cover__free(&b.covers);
	if (err) {
		free(b.v);
		return err;
	}
	correct_short_calls(&b);
	lane->stretches = b.v;
	lane->n_stretches = b.n;
	return 0;
}
