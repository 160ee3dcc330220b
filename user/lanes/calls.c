/* SPDX-License-Identifier: GPL-2.0-or-later */
/* calls: the safe calls of a target, one row per call site, from the kernel's counters. */
#include "hist_priv.h"
#include "lanes_priv.h"

/* Per site, by whether its calls are interruptible. */
struct open_calls {
	uint64_t at_start[2], at_end[2], wall_ns[2];
};

struct call_counter {
	const struct lanes *l;
	struct open_calls *open; /* by site */
	uint64_t end;
};

/* ── calls open at either end ────────────────────────────────────────────────────────────── */

static void count_open_at_end(struct call_counter *c, const struct seen_thread *th)
{
	for (uint32_t i = 0; i < th->final->depth; i++) {
		const struct wire_open *open = &th->final->open[i];
		int flag = open->flags & WIRE_CALL_INTERRUPTIBLE;
		uint64_t start =
			MAX(open->start_ns + open->handover_ns, c->l->seen->pub->attach_ns);
		const struct seen_site *site = seen__site_at(c->l->seen, open->site);

		/* the state is read after the cut */
		if (!site || open->start_ns >= c->end)
			continue;
		c->open[site->index].at_end[flag]++;
		c->open[site->index].wall_ns[flag] += c->end > start ? c->end - start : 0;
	}
}

/* The snapshot does not show whether a call is interruptible; the site's counters do. */
static int flag_of(const struct call_counter *c, const struct seen_site *site)
{
	return seen__counters(c->l->seen, site->addr, true) ? 1 : 0;
}

/* The site of the call that the snapshot at the attach found; NULL: it has no row. */
static const struct seen_site *first_site(const struct call_counter *c,
					  const struct seen_thread *th)
{
	if (!th->has_start || th->at_start.where != WIRE_WHERE_SAFE_CALL)
		return NULL;
	return seen__site(c->l->seen, th->at_start.site) ?: seen__site_at(c->l->seen, 0);
}

/* A call that was open at the attach, and until the end of the thread or the session. */
static void count_never_left(struct call_counter *c, const struct seen_thread *th, uint64_t end)
{
	const struct seen_site *site = first_site(c, th);
	uint64_t attach = c->l->seen->pub->attach_ns;

	if (site && end > attach)
		c->open[site->index].wall_ns[flag_of(c, site)] += end - attach;
}

/*
 * Whether the call found by the snapshot at the attach began before the probes, which come on
 * somewhat before the snapshot. If so, it has its own record when it ends; later calls were seen to
 * begin by the kernel side.
 */
static bool was_before(const struct call_counter *c, const struct thread_lane *lane)
{
	const struct seen_thread *th = lane->seen;
	const struct seen_site *site = first_site(c, th);

	if (!site)
		return false;
	/* its probes were set before its first instruction */
	if (!c->l->seen->pub->attach_took_ns)
		return false;
	if (th->ended_before_call || th->began_same_call)
		return th->ended_before_call;
	/* nothing shows whether others came from the same site */
	if (!site->addr)
		return lane->in_first_call;
	for (uint32_t i = 0; th->has_final && i < MIN(th->final->depth, (uint32_t)WIRE_OPEN_MAX);
	     i++)
		if (th->final->open[i].site == site->addr)
			return false;
	return true;
}

/*
 * Whether the snapshot at the end found the thread in a call that the kernel side does not know.
 * The kernel side has seen all calls that began since the probes were set, unless they were off
 * while the thread ran.
 */
static bool is_open_at_end(const struct seen_thread *th)
{
	bool known = th->has_final && th->final->epoch;

	return th->has_end && th->at_end.where == WIRE_WHERE_SAFE_CALL && !known && th->at_end.site;
}

static void count_unseen_begin(struct call_counter *c, const struct thread_lane *lane)
{
	const struct seen_thread *th = lane->seen;
	const struct seen_site *site = seen__site(c->l->seen, th->at_end.site);
	int flag;

	if (!site)
		return;
	flag = flag_of(c, site);

	c->open[site->index].at_end[flag]++;
	/* Without any event since the attach it is still the same call. */
	if (!th->has_final && th->has_start && th->at_start.site == th->at_end.site &&
	    !lane->folded && !th->offs.n && !th->calls.n)
		count_never_left(c, th, c->end);
	else if (th->has_final && th->final->off_since_ns &&
		 th->final_off.where == WIRE_WHERE_SAFE_CALL && c->end > th->final->off_since_ns)
		/* the thread has slept in the call at least since then */
		c->open[site->index].wall_ns[flag] +=
			c->end - MAX(th->final->off_since_ns, c->l->seen->pub->attach_ns);
}

/* count_open_before counts it, without using its record */
static bool is_first_call(const struct thread_lane *lane, const struct ev *ev)
{
	return lane->began_in_first_call && ev->call_flags & WIRE_CALL_OPEN_AT_START;
}

/* Calls that already have a record, but were open at the last cut or at the end of the window,
 * unless the counters of that time include them as a whole. */
static void count_recorded(struct call_counter *c, const struct thread_lane *lane)
{
	const struct seen_thread *th = lane->seen;
	uint64_t begin = c->l->seen->pub->attach_ns;
	bool counted = seen__counters_are_of(c->l->seen, c->end);

	for (size_t i = 0; i < th->calls.n; i++) {
		const struct ev *ev = &th->calls.v[i];
		int flag = ev->call_flags & WIRE_CALL_INTERRUPTIBLE ? 1 : 0;
		struct open_calls *open = ev->site ? &c->open[ev->site - 1] : NULL;

		if (!open || ev->t1 <= begin)
			continue;
		if (c->l->seen->was_cut && ev->t0 < begin && !seen__has_open(th->before, ev->t0) &&
		    !is_first_call(lane, ev) && !seen__is_counted(c->l->seen, ev, true))
			open->at_start[flag]++;
		/* a call that ended after its thread's state was read is counted by the state */
		if (!c->l->goes_on || ev->t0 >= c->end || ev->t1 <= c->end ||
		    seen__has_open(th->final, ev->t0) ||
		    (counted && seen__is_counted(c->l->seen, ev, false)))
			continue;
		open->at_end[flag]++;
		open->wall_ns[flag] += c->end - MIN(MAX(ev->wake_ns, begin), c->end);
	}
}

/* Counts the call of the snapshot at the attach; count_never_left books its time. */
static void count_first_call(struct call_counter *c, const struct seen_thread *th, bool at_end)
{
	const struct seen_site *site = first_site(c, th);
	struct open_calls *open = site ? &c->open[site->index] : NULL;

	if (open)
		(at_end ? open->at_end : open->at_start)[flag_of(c, site)]++;
}

/* The calls of a thread that were open at the last cut. */
static void count_open_before(struct call_counter *c, const struct thread_lane *lane)
{
	const struct seen_thread *th = lane->seen;

	if (lane->began_in_first_call)
		count_first_call(c, th, false);
	for (uint32_t i = 0; th->before && i < th->before->depth; i++) {
		const struct wire_open *open = &th->before->open[i];
		const struct seen_site *site = seen__site_at(c->l->seen, open->site);

		if (site && open->start_ns < c->l->seen->pub->attach_ns)
			c->open[site->index]
				.at_start[open->flags & WIRE_CALL_INTERRUPTIBLE ? 1 : 0]++;
	}
}

static void count_open(struct call_counter *c)
{
	for (size_t i = 0; i < c->l->n_threads; i++) {
		const struct thread_lane *lane = &c->l->threads[i];
		const struct seen_thread *th = lane->seen;

		if (!th)
			continue;
		if (c->l->seen->was_cut)
			count_open_before(c, lane);
		else if (was_before(c, lane))
			count_first_call(c, th, false);
		count_recorded(c, lane);
		if (lane->in_first_call)
			count_never_left(c, th, th->end_ns ? MIN(th->end_ns, c->end) : c->end);
		if (th->end_ns)
			continue;
		if (lane->in_first_call)
			count_first_call(c, th, true);
		if (th->has_final && th->final->depth)
			count_open_at_end(c, th);
		else if (!lane->in_first_call && is_open_at_end(th))
			count_unseen_begin(c, lane);
	}
}

/* ── rows ────────────────────────────────────────────────────────────────────────────────── */

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a - MIN(a, b);
}

/*
 * The kernel's sums since the last cut, without the parts of calls before it. The minimum and
 * maximum are of all calls ever; if there were earlier calls, they are narrowed to what the
 * histogram shows. ret_hist gets the histogram.
 */
static struct wire_site since_cut(const struct seen_counters *entry, const struct call_part *before,
				  uint64_t ret_hist[WIRE_HIST_SLOTS])
{
	const struct wire_site *base = &entry->base;
	struct wire_site v = entry->value;
	unsigned first = WIRE_HIST_SLOTS, last = 0;
	uint64_t low, high, unused;

	v.calls = minus(v.calls, base->calls);
	v.wall_ns = minus(minus(v.wall_ns, base->wall_ns), before->wall_ns);
	v.handover_ns = minus(v.handover_ns, base->handover_ns);
	v.blocked_ns = minus(minus(v.blocked_ns, base->blocked_ns), before->blocked_ns);
	v.runnable_ns = minus(minus(v.runnable_ns, base->runnable_ns), before->runnable_ns);
	v.cap_wait_ns = minus(v.cap_wait_ns, base->cap_wait_ns);
	v.abandoned = minus(v.abandoned, base->abandoned);
	v.open_at_exit = minus(v.open_at_exit, base->open_at_exit);
	v.exit_wall_ns = minus(minus(v.exit_wall_ns, base->exit_wall_ns), before->exit_wall_ns);
	for (unsigned i = 0; i < WIRE_HIST_SLOTS; i++) {
		ret_hist[i] = seen_counters__hist(entry, i);
		if (!ret_hist[i])
			continue;
		first = MIN(first, i);
		last = i;
	}
	if (!base->calls || first == WIRE_HIST_SLOTS)
		return v;
	hist__bounds(first, &low, &unused);
	hist__bounds(last, &unused, &high);
	if (v.min_ns == base->min_ns)
		v.min_ns = MAX(v.min_ns, low);
	if (v.max_ns == base->max_ns)
		v.max_ns = MIN(v.max_ns, high);
	return v;
}

static void fill_counters(struct pic_call *call, const struct wire_site *v,
			  const uint64_t hist[WIRE_HIST_SLOTS])
{
	uint64_t off = MIN(v->wall_ns, v->blocked_ns);
	double e50 = 0, e99 = 0;

	off += MIN(v->wall_ns - off, v->runnable_ns);
	call->calls = v->calls;
	call->wall_ns = v->wall_ns;
	call->handover_ns = v->handover_ns;
	call->blocked_ns = v->blocked_ns;
	call->cpu_ns = v->wall_ns - off;
	call->cap_wait_ns = v->cap_wait_ns;
	call->abandoned = v->abandoned;
	if (!v->calls)
		return;
	call->min_ns = v->min_ns;
	call->max_ns = v->max_ns;
	call->p50_ns = hist__quantile(hist, 0.50, v->min_ns, v->max_ns, &e50);
	call->p99_ns = hist__quantile(hist, 0.99, v->min_ns, v->max_ns, &e99);
	call->quantile_error = MAX(e50, e99);
}

/* Returns false if there was no call. */
static bool fill_row(const struct call_counter *c, const struct seen_site *site, int flag,
		     struct pic_call *call)
{
	const struct seen_counters *entry = seen__counters(c->l->seen, site->addr, flag);
	const struct open_calls *open = &c->open[site->index];
	uint64_t hist[WIRE_HIST_SLOTS] = {0};
	struct wire_site v = {0};

	/* what was counted later is in a later window */
	if (c->l->goes_on && !seen__counters_are_of(c->l->seen, c->end))
		entry = NULL;
	if (entry)
		v = since_cut(entry, &site->before[flag], hist);
	/* a site known from an earlier window may have no calls in this one, not even the rest of a
	 * wait for a capability */
	if (entry && c->l->seen->was_cut && !v.calls && !v.abandoned && !v.open_at_exit &&
	    !v.cap_wait_ns)
		entry = NULL;
	if (!entry && !open->at_start[flag] && !open->at_end[flag])
		return false;
	*call = (struct pic_call){
		.function = site->function_name,
		.library = site->library,
		.caller = site->caller_name,
		.caller_approximate = site->caller_approximate,
		.site = site->place,
		.interruptible = flag,
		.min_ns = UINT64_MAX,
		.p50_ns = UINT64_MAX,
		.p99_ns = UINT64_MAX,
		.max_ns = UINT64_MAX,
		.open_at_start = open->at_start[flag],
		.open_at_end = open->at_end[flag] + v.open_at_exit,
		.open_wall_ns = open->wall_ns[flag] + v.exit_wall_ns,
		.exact = true,
		.observed_share = 1.0,
		.called_back = site->called_back,
	};
	if (entry)
		fill_counters(call, &v, hist);
	if (site->index < c->l->n_cap_waits)
		call->cap_only_ns = MIN(c->l->cap_waits[site->index], call->cap_wait_ns);
	return true;
}

static int by_wall(const void *pa, const void *pb)
{
	const struct pic_call *a = pa, *b = pb;

	return CMP(b->wall_ns, a->wall_ns)
		       ?: CMP(b->open_wall_ns, a->open_wall_ns)
		       ?: strcmp(a->function, b->function)
		       ?: strcmp(a->site, b->site);
}

int calls__fill(struct lanes *l, uint64_t session_end)
{
	const struct seen *seen = l->seen;
	struct call_counter c = {.l = l, .end = session_end};
	struct pic_call *calls = picture__alloc(l->pic, 2 * seen->n_sites, sizeof(*calls));
	size_t n = 0;

	c.open = calloc(seen->n_sites + 1, sizeof(*c.open));
	if (!calls || !c.open) {
		free(c.open);
		return -ENOMEM;
	}
	count_open(&c);
	for (size_t i = 0; i < seen->n_sites; i++)
		for (int flag = 0; flag < 2; flag++)
			n += fill_row(&c, seen->site_v[i], flag, &calls[n]);
	free(c.open);
	qsort(calls, n, sizeof(*calls), by_wall);
	seen->pub->calls = calls;
	seen->pub->n_calls = n;
	return 0;
}
