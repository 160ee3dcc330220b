/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * carried: safe calls that were open at the last cut. The window before has their part up to its
 * end, but the kernel's counters get a call as a whole when it ends: the earlier windows' part is
 * then subtracted from them, and only for calls that those windows have.
 */
#include "intake_priv.h"

static void add(struct seen *s, struct call_part *part, const struct wire_thread *then,
		const struct wire_open *open)
{
	uint64_t cut = s->pub->attach_ns, woken;
	uint64_t start = MAX(open->start_ns + open->handover_ns, s->joined_ns);

	/* states are read after the cut */
	if (open->start_ns >= cut)
		return;
	part->wall_ns += cut - MIN(start, cut);
	part->blocked_ns += then->blocked_ns - MIN(open->blocked_ns, then->blocked_ns);
	part->runnable_ns += then->runnable_ns - MIN(open->runnable_ns, then->runnable_ns);
	if (!then->off_since_ns || then->off_since_ns >= cut)
		return;
	/* off the CPU at the cut: blocked until it was woken, if that was before the cut */
	woken = then->off_since_ns;
	if (then->off_state)
		woken = MAX(woken, then->wake_ns ? MIN(then->wake_ns, cut) : cut);
	part->blocked_ns += woken - then->off_since_ns;
	part->runnable_ns += cut - woken;
}

/* The record has a call's times as one sum: each part gets its proportional share. */
static void add_share(struct call_part *part, const struct wire_call *rec, uint64_t begin,
		      uint64_t cut)
{
	double share = rec->h.ns > begin
			       ? (double)(cut - MIN(begin, cut)) / (double)(rec->h.ns - begin)
			       : 0;

	part->wall_ns += cut - MIN(begin, cut);
	part->blocked_ns += (uint64_t)(share * (double)rec->blocked_ns);
	part->runnable_ns += (uint64_t)(share * (double)rec->runnable_ns);
}

static uint32_t depth_of(const struct wire_thread *state)
{
	return state ? MIN(state->depth, (uint32_t)WIRE_OPEN_MAX) : 0;
}

void carried__record(const struct intake *in, struct seen *s, struct seen_thread *th,
		     const struct wire_call *rec, struct seen_site *site)
{
	struct call_part *part = &site->before[rec->flags & WIRE_CALL_INTERRUPTIBLE ? 1 : 0];
	uint64_t begin = rec->start_ns + MIN(rec->handover_ns, rec->h.ns - rec->start_ns);
	uint64_t cut = s->pub->attach_ns;

	bool first = (rec->flags & WIRE_CALL_OPEN_AT_START) != 0;

	/* It ended after the counters were read, and after the state, which still has it as open.
	 * In a replay, that is the last state of the session. */
	if (seen__has_open(th->final, rec->start_ns) ||
	    (in->looks_ahead && seen__has_open(th->before, rec->start_ns)))
		return;
	/* a replay has states only for calls that never end, but it knew the record at the cut */
	if (in->looks_ahead || (first ? th->first_call_goes_on : !th->before)) {
		add_share(part, rec, MAX(begin, s->joined_ns), cut);
		return;
	}
	/* a call that had ended when the states were read is in no earlier window */
	for (uint32_t i = 0; i < depth_of(th->before); i++) {
		if (th->before->open[i].start_ns != rec->start_ns || th->carried_over >> i & 1)
			continue;
		add(s, part, th->before, &th->before->open[i]);
		th->carried_over |= 1U << i;
	}
}

/* A call that ended without a record: it was short, or the record was lost. */
static void ended(struct seen *s, struct seen_thread *th, uint32_t i)
{
	const struct wire_open *open = &th->before->open[i];
	struct seen_site *site;

	HASH_FIND(hh, s->sites, &open->site, sizeof(open->site), site);
	if (site && !(th->carried_over >> i & 1))
		add(s, &site->before[open->flags & WIRE_CALL_INTERRUPTIBLE ? 1 : 0], th->before,
		    open);
	th->carried_over |= 1U << i;
}

void carried__state(struct seen *s, struct seen_thread *th, const struct wire_thread *state)
{
	for (uint32_t i = 0; i < depth_of(th->before); i++)
		if (i >= depth_of(state) || state->open[i].start_ns != th->before->open[i].start_ns)
			ended(s, th, i);
}

/* A call that was open when its thread and process ended. */
static void outlasted(struct seen *s, const struct wire_open *open)
{
	uint64_t cut = s->pub->attach_ns;
	uint64_t start = MAX(open->start_ns + open->handover_ns, s->joined_ns);
	struct seen_site *site;

	HASH_FIND(hh, s->sites, &open->site, sizeof(open->site), site);
	if (site)
		site->before[open->flags & WIRE_CALL_INTERRUPTIBLE ? 1 : 0].exit_wall_ns +=
			cut - MIN(start, cut);
}

void carried__exit(struct seen *s, struct seen_thread *th, uint32_t open, bool alone)
{
	/* the counters have no time of abandoned calls to subtract from */
	for (uint32_t i = 0; !alone && i < MIN(open, depth_of(th->before)); i++)
		outlasted(s, &th->before->open[i]);
	for (uint32_t i = open; i < depth_of(th->before); i++)
		ended(s, th, i);
}

void carried__exec(struct seen *s, struct seen_thread *th, uint32_t open)
{
	if (!open)
		return;
	carried__exit(s, th, open, false);
	/* a state read earlier has the calls as open, and now the counters have them */
	if (th->final)
		th->final->depth = 0;
}
