/* SPDX-License-Identifier: GPL-2.0-or-later */
/* bounds: where a thread's lane begins and ends, and what the records leave open there. */
#include "base/search.h"
#include "lanes_priv.h"

void ev__take_haskell(struct ev *ev, const struct ev *from)
{
	ev->hs = from->hs;
	ev->hs_run = from->hs_run;
	if (from->ccs)
		ev->ccs = from->ccs;
}

static void take_context(struct ev *ev, const struct ev *from)
{
	ev->where = from->where;
	ev__take_haskell(ev, from);
	ev->c = from->c;
	ev->site = from->site;
	ev->code = from->code;
	ev->cap = from->cap;
	ev->left = from->left;
	ev->tso = from->tso;
	ev->syscall = from->syscall;
	ev->flags |= from->flags & (EV_OUTER_RTS | EV_GC_CODE | EV_GC_SYNC);
}

/*
 * The interval began before the runtime could be read, and the thread is still asleep when a
 * snapshot reads it: the whole sleep gets the snapshot's context.
 */
static void fill_early(const struct seen_thread *th, struct ev *off)
{
	const struct ev *snaps[] = {th->has_start ? &th->at_start : NULL,
				    th->has_end ? &th->at_end : NULL};

	for (size_t i = 0; i < ARRAY_SIZE(snaps) && off->where == WIRE_WHERE_NOT_READY; i++)
		if (snaps[i] && snaps[i]->flags & EV_SLEEPS && off->t0 <= snaps[i]->t0 &&
		    snaps[i]->t0 < off->t1 && snaps[i]->where != WIRE_WHERE_UNKNOWN)
			take_context(off, snaps[i]);
}

/* The kernel side saw nothing of the interval. */
static bool is_unknown(const struct ev *off)
{
	return off->where == WIRE_WHERE_UNKNOWN;
}

/* The same, and a neighbouring interval may show what it was. */
static bool may_be_filled(const struct ev *off)
{
	return is_unknown(off) && !(off->flags & EV_NO_ENTRY);
}

static void fill_unknown(const struct thread_lane *lane, struct ev *offs, size_t n)
{
	const struct seen_thread *th = lane->seen;
	const struct ev *context = lane->has_prev  ? &lane->prev
				   : th->has_start ? &th->at_start
						   : NULL;

	for (size_t i = 0; i < n; i++) {
		if (may_be_filled(&offs[i]) && context)
			take_context(&offs[i], context);
		context = is_unknown(&offs[i]) ? NULL : &offs[i];
	}
	context = th->has_end ? &th->at_end : NULL;
	for (size_t i = n; i-- > 0;) {
		if (may_be_filled(&offs[i]) && !(offs[i].flags & EV_RUNNABLE) && context)
			take_context(&offs[i], context);
		context = &offs[i];
	}
}

int bounds__offs(const struct thread_lane *lane, struct ev **ret_offs)
{
	const struct evs *seen = &lane->seen->offs;
	struct ev *offs = malloc((seen->n + 1) * sizeof(*offs));

	if (!offs)
		return -ENOMEM;
	if (seen->n)
		memcpy(offs, seen->v, seen->n * sizeof(*offs));
	for (size_t i = 0; i < seen->n; i++)
		fill_early(lane->seen, &offs[i]);
	fill_unknown(lane, offs, seen->n);
	*ret_offs = offs;
	return 0;
}

uint64_t bounds__last_sign(const struct thread_builder *b, uint64_t end)
{
	const struct seen_thread *th = b->th;
	size_t samples = search__first(th->samples.n, i, th->samples.v[i].t0 > end);
	size_t offs = search__first(th->offs.n, i, th->offs.v[i].t1 > end);
	uint64_t t = b->lane->sign_ns;

	if (samples)
		t = MAX(t, th->samples.v[samples - 1].t0);
	if (offs)
		t = MAX(t, th->offs.v[offs - 1].t1);
	for (size_t i = 0; i < th->calls.n; i++)
		if (th->calls.v[i].t1 <= end)
			t = MAX(t, th->calls.v[i].t1);
	return t;
}

/* Whether records of the thread after `end` are known, as they may be at a cut. */
static bool has_more(const struct seen_thread *th, uint64_t end)
{
	for (size_t i = 0; i < th->calls.n; i++)
		if (th->calls.v[i].t1 > end)
			return true;
	return th->end_ns || th->ahead_ns > end ||
	       (th->samples.n && th->samples.v[th->samples.n - 1].t0 > end) ||
	       (th->offs.n && th->offs.v[th->offs.n - 1].t1 > end);
}

/*
 * Whether the thread left the CPU after its last record although no record shows it: on the CPU it
 * would have been sampled. A cut does not end the silence.
 */
static bool is_silent(const struct thread_builder *b, uint64_t end, uint64_t last)
{
	uint64_t silence = INTAKE_SILENCE * b->l->opts.period_ns;

	if (b->l->goes_on)
		end = MAX(end, b->l->seen->ahead_ns);
	return silence && end > last + silence;
}

static uint64_t first_evidence(const struct seen_thread *th, uint64_t otherwise)
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
	/* at a cut the thread may have just begun, and its records are still to come */
	if (t == UINT64_MAX && th->has_final)
		t = th->final->off_since_ns ? th->final->off_since_ns : th->final->on_since_ns;
	return t == UINT64_MAX ? otherwise : t;
}

void bounds__of(const struct seen *seen, const struct seen_thread *th, uint64_t session_end,
		uint64_t *ret_start, uint64_t *ret_end)
{
	uint64_t start = seen->pub->attach_ns, end = session_end;

	if (th->start_ns)
		start = MAX(start, th->start_ns);
	else if (seen->has_snapshot && !th->has_start)
		start = MAX(start, first_evidence(th, start));
	if (th->end_ns)
		end = MIN(end, th->end_ns);
	*ret_start = start;
	*ret_end = MAX(end, start);
}

/* Takes the context from before: nothing later is known of an interval that crosses a cut. */
static void take_earlier(const struct thread_builder *b, struct ev *ev)
{
	const struct seen_thread *th = b->th;
	const struct ev *context = th->offs.n	       ? &b->offs[th->offs.n - 1]
				   : b->lane->has_prev ? &b->lane->prev
				   : th->has_start     ? &th->at_start
						       : NULL;

	if (context && !is_unknown(context))
		take_context(ev, context);
}

/* Makes one interval of this off-CPU state, of which no wake-up was seen. */
static void make_sleep(struct ev *ev, uint64_t t0, uint64_t t1)
{
	ev->t0 = t0;
	ev->t1 = t1;
	ev->wake_ns = 0;
	ev->flags &= (uint16_t) ~(EV_RUNNABLE | EV_NEVER_SEEN);
}

bool bounds__last_off(const struct thread_builder *b, uint64_t end, struct ev *ret_ev)
{
	const struct seen_thread *th = b->th;
	const struct ev *last_off = th->offs.n ? &b->offs[th->offs.n - 1] : b->prev;
	const struct ev unseen = {.syscall = WIRE_NO_SYSCALL, .cap = NO_CAP, .left = NO_CAP};
	uint64_t last = bounds__last_sign(b, end);
	bool seen_on;

	/* if the thread is known to go on beyond `end`, there is a record */
	if (th->end_ns || (th->offs.n && b->offs[th->offs.n - 1].t1 > end))
		return false;
	if (th->has_final && th->final->off_since_ns) {
		*ret_ev = th->final_off;
		fill_early(th, ret_ev);
		if (ret_ev->where == WIRE_WHERE_UNKNOWN && th->has_end)
			take_context(ret_ev, &th->at_end);
		else if (is_unknown(ret_ev) && b->l->goes_on)
			take_earlier(b, ret_ev);
		else if (!ret_ev->hs && !ret_ev->c && th->has_end &&
			 th->at_end.where == ret_ev->where)
			ev__take_haskell(ret_ev, &th->at_end);
		return true;
	}
	/* a switch-out may be missing: then the snapshot finds it asleep, and it was not sampled */
	seen_on = th->has_final && th->final->on_since_ns;
	if (seen_on && !is_silent(b, end, last))
		return false;
	if (th->has_end && (th->at_end.flags & EV_SLEEPS))
		*ret_ev = th->at_end;
	else if (seen_on || th->has_end || (!last_off && !th->only_sampled) || has_more(th, end) ||
		 !is_silent(b, end, last))
		return false;
	else
		*ret_ev = th->only_sampled ? unseen : *last_off;
	if (th->only_sampled && !th->has_end)
		last += b->l->opts.period_ns / 2;
	make_sleep(ret_ev, last, UINT64_MAX);
	return true;
}

/* The first record by which the thread was awake; UINT64_MAX: none. */
static uint64_t first_sign(const struct thread_builder *b)
{
	const struct seen_thread *th = b->th;
	uint64_t half = b->l->opts.period_ns / 2, t = UINT64_MAX;

	if (th->samples.n)
		t = th->samples.v[0].t0 - MIN(th->samples.v[0].t0, half);
	if (th->offs.n)
		t = MIN(t, b->offs[0].t0);
	for (size_t i = 0; i < th->calls.n; i++) {
		const struct ev *call = &th->calls.v[i];

		/* it may have slept in a call that was open already */
		t = MIN(t, call->t0 > th->at_start.t0 ? call->t0 : call->t1);
	}
	return t;
}

bool bounds__first_off(const struct thread_builder *b, struct ev *ret_ev)
{
	const struct seen_thread *th = b->th;
	uint64_t silence = INTAKE_SILENCE * b->l->opts.period_ns, sign;

	if (b->lane->folded || b->lane->end_ns != b->lane->start_ns || !th->has_start ||
	    !(th->at_start.flags & EV_SLEEPS))
		return false;
	sign = first_sign(b);
	if (!silence || sign == UINT64_MAX || sign <= MAX(b->cursor, th->at_start.t0) + silence)
		return false;
	*ret_ev = th->at_start;
	make_sleep(ret_ev, b->cursor, sign);
	return true;
}
