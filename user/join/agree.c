/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * agree: the share of events on which log and records agree, among those that both should have.
 * Events at the edges of what both saw are left out, since one of the two may have missed them.
 */
#include "base/search.h"
#include "join_priv.h"

#define EDGE_NS	    2000000 /* left out at both ends of what both saw */
#define BOUNDARY_NS 50000   /* a sample this close to a switch of threads may belong to either */

struct share {
	uint64_t same, all;
};

static double value(const struct share *s)
{
	return s->all ? (double)s->same / (double)s->all : -1;
}

/* ours - offset; 0 for times before the log's clock began */
static uint64_t log_time(const struct log_build *b, uint64_t ns)
{
	int64_t t = (int64_t)ns - b->in.offset_ns;

	return t > 0 ? (uint64_t)t : 0;
}

static bool inside(const struct log_build *b, uint64_t start_ns, uint64_t end_ns)
{
	return start_ns >= MAX(b->from_ns, b->in.observed_ns) + EDGE_NS &&
	       end_ns + EDGE_NS <= b->to_ns;
}

/* ── safe calls ──────────────────────────────────────────────────────────────────────────── */

/* The log of a program that runs on continues after the session. */
static bool is_observed(const struct join *j, const struct el_match_call *call)
{
	uint64_t start = elog__time(j->b, call->start);

	return start >= j->b->in.observed_ns && start < j->end_ns;
}

/* For the whole session, if the log reaches its end: how often suspendThread was called. */
static void compare_counts(const struct join *j, struct share *calls)
{
	uint64_t ours = 0, open = 0, theirs = 0, differ, one_by_one;
	const struct pic_target *pub = j->b->pub;

	if (j->b->to_ns < j->end_ns || pub->probes_paused_ns || j->calls_until != UINT64_MAX ||
	    j->n_unwritten)
		return;
	for (size_t i = 0; i < j->n_calls; i++)
		theirs += is_observed(j, &j->calls[i]);
	for (size_t i = 0; i < pub->n_calls; i++) {
		const struct pic_call *c = &pub->calls[i];

		ours += c->calls;
		open += c->open_at_start + c->open_at_end + c->abandoned;
	}
	differ = ours > theirs ? ours - theirs : theirs - ours;
	differ = differ > open ? differ - open : 0;
	/* Includes the calls that were compared one by one. */
	one_by_one = calls->all - calls->same;
	calls->all = MAX(MAX(ours, theirs), calls->all);
	calls->same = calls->all - MIN(MAX(differ, one_by_one), calls->all);
}

/*
 * suspendThread's entry comes before STOP_THREAD, and resumeThread's entry between that and
 * RUN_THREAD, however long the thread is off its CPU between any two of them.
 */
static const struct el_match_call *call_of(const struct join *j, const struct pic_flow *f)
{
	uint64_t tolerance = NEAR_NS + j->b->in.offset_error_ns;
	uint64_t start = log_time(j->b, f->start_ns), end = log_time(j->b, f->end_ns);
	size_t from = join__first_call(j, f->tso, start > tolerance ? start - tolerance : 0);
	size_t n = join__first_call(j, f->tso, end + tolerance + 1) - from;
	/* a thread's calls do not overlap: they end in the order in which they begin */
	size_t i = search__first(n, k, j->calls[from + k].end + tolerance >= end);

	return i < n ? &j->calls[from + i] : NULL;
}

/* Whether the call never returned as far as the log shows: at a program's end, resumeThread is
 * entered and not left. */
static bool stays_in_call(const struct join *j, const struct pic_flow *f)
{
	uint64_t tolerance = NEAR_NS + j->b->in.offset_error_ns;
	uint64_t start = log_time(j->b, f->start_ns), end = log_time(j->b, f->end_ns);
	const struct el_thread *t = NULL;

	if (j->b->in.sched && f->tso <= UINT32_MAX)
		t = el_sched__find_thread(j->b->in.sched, (uint32_t)f->tso);
	return t && t->state == HS_SAFE_CALL && t->since + tolerance >= start &&
	       t->since <= end + tolerance;
}

/* Whether the log may lack what happened on the capability. UINT32_MAX: it is unknown which one. */
static bool unwritten(const struct join *j, uint32_t cap)
{
	return cap == UINT32_MAX ? j->n_unwritten : !join__has_cap(j, cap);
}

static void compare_calls(const struct join *j, struct share *calls, struct share *caps)
{
	const struct log_build *b = j->b;

	for (size_t i = 0; i < j->b->pub->n_flows; i++) {
		const struct pic_flow *f = &j->b->pub->flows[i];
		const struct el_match_call *c;

		/* Calls in the log beyond the model's limit are not known one by one. */
		if (!f->tso || !inside(b, f->start_ns, f->end_ns) ||
		    log_time(b, f->end_ns) > j->calls_until)
			continue;
		c = call_of(j, f);
		if (!c && (unwritten(j, f->cap_from) || unwritten(j, f->cap_to)))
			continue;
		calls->all++;
		if (!c) {
			calls->same += stays_in_call(j, f);
			continue;
		}
		calls->same++;
		if (f->cap_from == UINT32_MAX)
			continue;
		caps->all++;
		caps->same += c->cap == f->cap_from;
	}
}

/* ── which thread ran on a capability ────────────────────────────────────────────────────── */

static const struct pic_slice *slice_at(const struct slices *lane, uint64_t at)
{
	size_t i = search__first(lane->n, k, lane->v[k].end_ns > at);

	return i < lane->n && lane->v[i].start_ns <= at ? &lane->v[i] : NULL;
}

static void compare_sample(const struct join *j, const struct ev *ev, struct share *caps)
{
	const struct el_cap *cap;
	const struct pic_slice *s;
	uint64_t at = log_time(j->b, ev->t0);

	if (ev->where != WIRE_WHERE_HASKELL || !ev->tso || ev->cap == NO_CAP ||
	    !inside(j->b, ev->t0, ev->t0) || !join__has_cap(j, ev->cap))
		return;
	cap = elog__cap(j->b, ev->cap);
	if (!cap || cap->lane->merged_ns)
		return;
	s = slice_at(cap->lane, at);
	/* The log's thread changes slightly before or after rCurrentTSO does. */
	if (s && (at - s->start_ns < BOUNDARY_NS || s->end_ns - at < BOUNDARY_NS))
		return;
	caps->all++;
	caps->same += s && s->state == CS_HASKELL && s->tso == ev->tso;
}

static void compare_caps(const struct join *j, struct share *caps)
{
	if (!j->b->in.sched)
		return;
	for (const struct seen_thread *th = j->seen->thread_list; th; th = th->next)
		for (size_t i = 0; i < th->samples.n; i++)
			compare_sample(j, &th->samples.v[i], caps);
}

/* ── ticks ───────────────────────────────────────────────────────────────────────────────── */

static bool same_centre(const struct join *j, const struct tick_note *ours,
			const struct el_match_tick *theirs)
{
	const struct seen_ccs *ccs = ccs__at(j->seen, ours->ccs);
	const struct cc_key *key = ccs && ccs->centre ? &ccs->centre->key : NULL;
	struct cctree *tree = el_profile__tree(j->b->in.profile);
	struct cost_centre cc;
	uint32_t at;

	if (!key)
		return false;
	if (theirs->centre == EL_MATCH_MAIN)
		return !strcmp(key->label, "MAIN");
	if (cctree__cc_by_id(tree, theirs->centre, &at))
		return false;
	cc = cctree__cc(tree, at);
	return !strcmp(cc.label, key->label) && !strcmp(cc.module, key->module);
}

/* The time in our records of the next tick on the same capability. */
static uint64_t next_tick(const struct seen *seen, size_t i)
{
	uint16_t cap = seen->ticks[i].cap;

	for (i++; i < seen->n_ticks; i++)
		if (seen->ticks[i].cap == cap)
			return seen->ticks[i].ns;
	return UINT64_MAX / 2;
}

/*
 * Compares the ticks of one capability; both lists are in time order. One thread makes all ticks:
 * it hits the probe, writes the events, and reaches the next probe after that, however long it was
 * off its CPU.
 */
static void compare_cap_ticks(const struct join *j, uint16_t cap, struct share *ticks,
			      struct share *centres)
{
	const struct el_match_tick *theirs = el_match__ticks(j->b->in.match);
	size_t n = el_match__info(j->b->in.match).n_ticks, k = 0;
	uint64_t same = 0, ours = 0, others = 0;
	uint64_t tolerance = NEAR_NS + j->b->in.offset_error_ns;

	for (size_t i = 0; i < n; i++)
		others += theirs[i].cap == cap && inside(j->b, elog__time(j->b, theirs[i].time),
							 elog__time(j->b, theirs[i].time));
	for (size_t i = 0; i < j->seen->n_ticks; i++) {
		const struct tick_note *note = &j->seen->ticks[i];

		if (note->cap != cap || !inside(j->b, note->ns, note->ns))
			continue;
		ours++;
		while (k < n && (theirs[k].cap != cap ||
				 theirs[k].time + tolerance < log_time(j->b, note->ns)))
			k++;
		if (k == n || theirs[k].time > log_time(j->b, next_tick(j->seen, i)) + tolerance)
			continue;
		same++;
		centres->all++;
		centres->same += same_centre(j, note, &theirs[k]);
		k++;
	}
	ticks->same += same;
	ticks->all += MAX(ours, others);
}

static void compare_ticks(const struct join *j, struct share *ticks, struct share *centres)
{
	if (!j->b->in.profile || !j->seen->n_ticks || !el_profile__info(j->b->in.profile).samples)
		return;
	for (size_t i = 0; i < j->b->pub->lanes[LANE_CAPABILITY].n; i++)
		compare_cap_ticks(j, (uint16_t)j->b->pub->lanes[LANE_CAPABILITY].v[i].cap, ticks,
				  centres);
}

/* ── all of it ───────────────────────────────────────────────────────────────────────────── */

int join__agree(struct join *j)
{
	struct pic_eventlog *e = &j->b->pub->eventlog;
	struct share calls = {0}, caps = {0}, ticks = {0}, centres = {0};

	if (!j->b->in.match || e->offset_error_ns == UINT64_MAX)
		return 0;
	if (j->b->in.stats->by_id[EL_RUN_THREAD]) {
		compare_calls(j, &calls, &caps);
		compare_counts(j, &calls);
		compare_caps(j, &caps);
	}
	compare_ticks(j, &ticks, &centres);
	e->agreement_safe_calls = value(&calls);
	e->agreement_caps = value(&caps);
	e->agreement_ticks = value(&ticks);
	e->tick_centres_differ = centres.all ? 1 - value(&centres) : -1;
	return 0;
}
