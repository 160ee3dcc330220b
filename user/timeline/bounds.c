/* SPDX-License-Identifier: GPL-2.0-or-later */
/* bounds: where a lane begins and ends, and what the records leave open there. */
#include "private.h"

static void take_context(struct ev *ev, const struct ev *from)
{
	ev->where = from->where;
	ev->hs = from->hs;
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
 * It began before the runtime could be looked into, and the thread still sleeps when a snapshot
 * can: in one and the same sleep it does one and the same.
 */
static void fill_early(const struct thread *th, struct ev *off)
{
	const struct ev *snaps[] = {th->has_start ? &th->at_start : NULL,
				    th->has_end ? &th->at_end : NULL};

	for (size_t i = 0; i < ARRAY_SIZE(snaps) && off->where == WIRE_WHERE_NOT_READY; i++)
		if (snaps[i] && snaps[i]->flags & EV_SLEEPS && off->t0 <= snaps[i]->t0 &&
		    snaps[i]->t0 < off->t1 && snaps[i]->where != WIRE_WHERE_UNKNOWN)
			take_context(off, snaps[i]);
}

/* A stay of which the kernel saw nothing takes what a snapshot or its neighbour tells. */
void lane__fill_unknown(struct thread *th)
{
	for (size_t i = 0; i < th->offs.n; i++)
		fill_early(th, &th->offs.v[i]);
	for (size_t i = 0; i < th->offs.n; i++) {
		struct ev *off = &th->offs.v[i];

		if (off->where != WIRE_WHERE_UNKNOWN)
			continue;
		if (i == 0 && th->done)
			take_context(off, &th->done_prev);
		else if (i == 0 && th->has_start)
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

void lane__bounds(const struct target_state *tg, const struct thread *th, uint64_t session_end,
		  uint64_t *ret_start, uint64_t *ret_end)
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
bool lane__last_stay(const struct timeline *tl, const struct thread *th, uint64_t start,
		     uint64_t end, struct ev *ret_ev)
{
	/* A thread on the CPU would have been sampled. */
	uint64_t silence = 5000000000ULL / MAX(tl->opts.frequency_hz, 1);
	uint64_t last = last_evidence(th, start);

	if (th->end_ns)
		return false;
	if (th->has_final && (th->final->off_since_ns || th->final->on_since_ns)) {
		if (!th->final->off_since_ns)
			return false;
		*ret_ev = th->final_off;
		fill_early(th, ret_ev);
		if (ret_ev->where == WIRE_WHERE_UNKNOWN && th->has_end)
			take_context(ret_ev, &th->at_end);
		else if (!ret_ev->hs && !ret_ev->c && th->has_end &&
			 th->at_end.where == ret_ev->where)
			ret_ev->hs = th->at_end.hs;
		return true;
	}
	if (th->has_end && (th->at_end.flags & EV_SLEEPS))
		*ret_ev = th->at_end;
	else if (!th->has_end && th->offs.n && tl->opts.frequency_hz && end > last + silence)
		*ret_ev = th->offs.v[th->offs.n - 1];
	else
		return false;
	ret_ev->t0 = last;
	ret_ev->t1 = UINT64_MAX;
	ret_ev->wake_ns = 0;
	ret_ev->flags &= (uint16_t) ~(EV_RUNNABLE | EV_NEVER_SEEN);
	return true;
}
