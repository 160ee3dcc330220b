/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unsampled: what a thread did on the CPU in a piece without a sample. Most of it follows from what
 * comes after the piece: where the thread went off the CPU, or the call or collection that it
 * entered.
 */
#include "lanes_priv.h"

const struct cover *seg__cover(const struct thread_builder *b, size_t seg)
{
	int32_t i = seg < b->covers.n_segs ? b->covers.segs[seg].cover : -1;

	return i < 0 ? NULL : &b->covers.v[i];
}

/* No event shows which part of a call with a callback was the C code's own: that is left to the
 * samples. */
void finding__set_class(struct finding_out *p, const struct cover *cover)
{
	p->cover = cover;
	p->on_cpu = true;
	p->class = LEDGER_RUN;
	if (cover && cover->gc)
		p->class = LEDGER_GC;
	else if (cover && cover->recorded && !cover->callback && !cover->divided &&
		 p->state == ST_SAFE_CALL_CPU)
		p->class = LEDGER_CALL;
}

static bool ended_call(const struct thread_builder *b, const struct seg *seg)
{
	return b->cursor == seg->start && seg->kind == SEG_CALL_END;
}

static bool was_mutator(const struct thread_builder *b, const struct seg *seg)
{
	if (ended_call(b, seg) || (b->cursor == seg->start && seg->kind == SEG_GC_END))
		return true;
	return b->prev &&
	       (b->prev->where == WIRE_WHERE_HASKELL || b->prev->where == WIRE_WHERE_RESUMING ||
		b->prev->where == WIRE_WHERE_SAFE_CALL);
}

/* Whether the thread was preempted while releasing a capability that is not its own. */
static bool gives_another(const struct thread_builder *b, const struct ev *off)
{
	return off->where == WIRE_WHERE_NO_CAP && (off->flags & EV_RUNNABLE) &&
	       off->left != NO_CAP && b->had != NO_CAP && off->left != b->had;
}

/*
 * Whether the thread has led a collection and was preempted as it woke another thread (see
 * awaited_by in piece.c), or was so before and is again, by the same thread or the next.
 */
static bool gives_others_back(const struct thread_builder *b, const struct seg *seg,
			      const struct ev *off)
{
	bool led = b->cursor == seg->start && seg->kind == SEG_GC_END;
	bool goes_on = b->prev && b->prev->t1 == b->cursor && gives_another(b, b->prev);

	return (led || goes_on) && gives_another(b, off);
}

/* Without a sample or a call, the best evidence is what the thread did as it left the CPU. */
static void by_off(const struct thread_builder *b, const struct seg *seg, const struct ev *off,
		   struct finding_out *p, struct ev *ev)
{
	*ev = *off;
	p->ev = ev;
	p->cap_known = true;
	p->cap = off->left != NO_CAP ? off->left : SOME_CAP;
	p->state = ev__state_on(off, b->l->seen, b->cursor, p->end);
	if (gives_others_back(b, seg, off)) {
		p->state = ST_RTS;
		p->ev = NULL;
		p->cap = b->had;
		return;
	}
	if ((p->state == ST_RTS || p->state == ST_HASKELL || p->state == ST_UNSAFE_CALL_CPU) &&
	    b->prev &&
	    prior__state(b->l->prior, b->prev->where, off->where, p->end - b->cursor, &p->state)) {
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
		/* If it entered C code at all, it did so at the end. */
		p->state = ST_HASKELL;
		ev->c = 0;
		break;
	case WIRE_WHERE_RESUMING:
		if (ended_call(b, seg))
			break;
		p->state = ST_HASKELL;
		ev->c = 0;
		break;
	case WIRE_WHERE_RTS:
	case WIRE_WHERE_NO_CAP:
		/* The Haskell thread ran until it yielded to the scheduler. */
		if (p->state == ST_RTS && was_mutator(b, seg)) {
			p->state = ST_HASKELL;
			p->ev = NULL;
		}
		break;
	default:
		break;
	}
}

/* If nothing of a thread came before a cut, a replay knows what comes after it. */
static enum thread_state by_ahead(const struct thread_builder *b, struct ev *ev)
{
	const struct seen_thread *th = b->th;
	const struct ev *sample = b->sample < th->samples.n ? &th->samples.v[b->sample] : NULL;
	const struct ev *call = NULL;

	for (size_t i = 0; i < th->calls.n && !call; i++)
		if (th->calls.v[i].t0 >= b->cursor)
			call = &th->calls.v[i];
	if (sample && (!call || sample->t0 < call->t0)) {
		*ev = *sample;
		return ev__state_on(ev, b->l->seen, sample->t0, sample->t0);
	}
	if (!call)
		return ST_UNKNOWN;
	/* a safe call is made by Haskell code */
	*ev = *call;
	ev->c = 0;
	return ST_HASKELL;
}

/* As by_off, at the end of the lane, where no off-CPU interval follows. */
static void by_past(const struct thread_builder *b, const struct seg *seg, struct finding_out *p,
		    struct ev *ev)
{
	const struct seen_thread *th = b->th;

	p->ev = NULL;
	if (th->has_end && !(th->at_end.flags & EV_SLEEPS))
		*ev = th->at_end;
	else if (b->sample)
		*ev = th->samples.v[b->sample - 1];
	else if (b->prev)
		*ev = *b->prev;
	else if (th->has_start)
		*ev = th->at_start;
	p->state = ev__state_on(ev, NULL, 0, 0);
	if (p->state == ST_UNKNOWN)
		p->state = ended_call(b, seg) ? ST_HASKELL : by_ahead(b, ev);
	/* The call has ended, and so has the collection, or it would cover this piece. */
	if (p->state == ST_GC_WORK)
		p->state = ST_RTS;
	if (p->state == ST_SAFE_CALL_CPU || (p->state == ST_RTS && was_mutator(b, seg)))
		p->state = ST_HASKELL;
}

static bool is_callback(const struct thread_builder *b, const struct seg *seg, const struct ev *off,
			bool call_next)
{
	if (off)
		return off->where != WIRE_WHERE_SAFE_CALL && off->where != WIRE_WHERE_UNKNOWN;
	if (!call_next)
		return false;
	return ended_call(b, seg) ||
	       (b->prev && b->prev->where == WIRE_WHERE_HASKELL && b->cursor > seg->start);
}

/* Before a safe call or a collection: the Haskell thread ran; otherwise it was back in a call after
 * a callback. */
static void by_next(const struct thread_builder *b, const struct seg *next, struct finding_out *p,
		    struct ev *ev)
{
	const struct cover *begun = seg__cover(b, (size_t)(next - b->covers.segs));
	const struct ev *call = begun && next->kind == SEG_CALL_START ? begun->ev : NULL;
	uint64_t ns = p->end - b->cursor;
	const struct ev *near;

	p->cap_known = true;
	p->cap = b->held;
	if (next->kind != SEG_GC_START && next->kind != SEG_CALL_START) {
		p->state = ST_RTS;
		return;
	}
	p->cap = call && call->left != NO_CAP ? call->left : SOME_CAP;
	p->state = mutator__choose(&b->mutator, b->th, b->sample, b->cursor, ns, &near);
	if (call && p->state == ST_HASKELL) {
		/* A safe call is made by Haskell code, and its stack is the caller's. */
		*ev = *call;
		ev->c = 0;
		p->ev = ev;
	} else if (near) {
		*ev = *near;
		ev->cap = ev->left = NO_CAP; /* those are of that sample's time */
		/* so is the Haskell thread, if another one is known */
		p->tso_guessed = !call || !call->tso;
		if (!p->tso_guessed)
			ev->tso = call->tso;
		else if (!seen__may_run(b->l->seen, ev->tso, b->cursor))
			ev->tso = 0;
		p->ev = ev;
	}
}

int thread__emit_unsampled(struct thread_builder *b, uint64_t end, bool end_exact,
			   const struct ev *off, const struct seg *next)
{
	const struct seg *seg = &b->covers.segs[b->seg];
	const struct cover *cover = seg__cover(b, b->seg);
	bool call_next = next && next->kind == SEG_CALL_START;
	struct finding_out p = {.end = end, .end_exact = end_exact, .sampled = true};
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
	finding__set_class(&p, cover);
	return thread__emit(b, &p);
}
