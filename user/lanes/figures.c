/* SPDX-License-Identifier: GPL-2.0-or-later */
/* figures: the sums of a process since the last cut, from its picture or without one. */
#include "picture/figures.h"

#include "hist_priv.h"
#include "lanes_priv.h"

/* ── time by state ───────────────────────────────────────────────────────────────────────── */

static void add_lanes(const struct pic_lanes *lanes, unsigned n_states, uint64_t *states_ns)
{
	for (size_t i = 0; i < lanes->n; i++)
		for (unsigned k = 0; k < n_states; k++)
			states_ns[k] += lanes->v[i].states_ns[k];
}

static int add_accounts(const struct ledger *ledger, uint32_t n_owners, unsigned n_states,
			uint64_t *states_ns)
{
	struct ledger_account *accounts;
	int err = ledger__accounts(ledger, n_owners, &accounts);

	if (err)
		return err;
	for (uint32_t i = 0; i < n_owners; i++)
		for (size_t k = 0; k < accounts[i].n; k++)
			if (accounts[i].rows[k].state < n_states)
				states_ns[accounts[i].rows[k].state] += accounts[i].rows[k].ns;
	ledger_accounts__free(accounts, n_owners);
	return 0;
}

/* As if the lanes ended now. */
static int read_states(const struct lanes *l, uint64_t at_ns, struct figures *f)
{
	struct reading reading = {0};
	int err = lanes__read(l, at_ns, &reading);

	if (!err)
		err = add_accounts(reading.of[LANE_THREAD], l->seen->n_numbers + 1, ST_MAX,
				   f->thread_ns);
	if (!err)
		err = add_accounts(reading.of[LANE_CAPABILITY], MAX_CAPS, CS_MAX, f->cap_ns);
	reading__free(&reading);
	return err;
}

/* ── collections ─────────────────────────────────────────────────────────────────────────── */

static void add_gc_off(const struct lanes *l, uint64_t end_ns, struct figures *f)
{
	const struct seen_gcs *gcs = &l->seen->gcs;
	uint64_t since = MAX(gcs->off_ns, l->seen->pub->attach_ns);

	f->gc_off = gcs->came_off;
	f->gc_off_ns = gcs->off_ns ? end_ns - MIN(since, end_ns) : 0;
}

static void add_gcs(const struct seen *s, uint64_t at_ns, struct figures *f)
{
	f->gc_counted = s->gcs.has_probes;
	f->gc_missed = s->gcs.missed;
	/* as pic_target__gcs_missed() */
	if (s->pub->calls_missed && s->gcs.before_known)
		f->gc_missed += s->gcs.before;
	for (size_t i = 0; i < s->gcs.n; i++) {
		const struct gc_span *gc = &s->gcs.v[i];
		uint64_t start = MAX(gc->start, s->joined_ns), work = MAX(gc->work, start);
		struct figures_gc *sum = &f->gc_unknown;

		/* one that is running, or ended after a cut, belongs to a later part */
		if (!gc->end || gc->end > at_ns)
			continue;
		if (gc->generation >= 0)
			sum = &f->gc[MIN(gc->generation, FIGURES_GENERATIONS - 1)];
		sum->count++;
		sum->pause_ns += gc->end - MIN(work, gc->end);
		sum->sync_ns += gc->synced ? work - start : 0;
	}
}

/* ── safe calls ──────────────────────────────────────────────────────────────────────────── */

static unsigned hist_entry(unsigned slot)
{
	unsigned entry = 0;
	uint64_t low, high;

	hist__bounds(slot, &low, &high);
	while (entry < FIGURES_HIST_BOUNDS &&
	       high > 1ULL << (FIGURES_HIST_FIRST_LOG2 + entry * FIGURES_HIST_LOG2_STEP))
		entry++;
	return entry;
}

/* Returns false if no call has ended at the site, and no earlier one has waited since. */
static bool fill_site(const struct seen *s, const struct seen_counters *counters,
		      struct figures_site *ret)
{
	const struct wire_site *now = &counters->value, *base = &counters->base;
	const struct seen_site *site = seen__site_at(s, counters->key.site);
	bool called = false;

	*ret = (struct figures_site){
		.addr = counters->key.site,
		.interruptible = counters->key.flags & WIRE_CALL_INTERRUPTIBLE,
		.function = site ? site->function_name : "",
		.caller = site ? site->caller_name : "",
		.place = site ? site->place : "",
		.wall_ns = now->wall_ns - MIN(base->wall_ns, now->wall_ns),
		.cap_wait_ns = now->cap_wait_ns - MIN(base->cap_wait_ns, now->cap_wait_ns),
	};
	for (unsigned i = 0; i < WIRE_HIST_SLOTS; i++) {
		uint64_t n = seen_counters__hist(counters, i);

		if (n)
			ret->hist[hist_entry(i)] += n;
		called |= n != 0;
	}
	return called || ret->cap_wait_ns;
}

static int add_sites(const struct seen *s, uint64_t at_ns, struct figures *f)
{
	struct seen_counters *counters, *next;

	/* at a cut, such counters stay for the next part */
	if (!seen__counters_are_of(s, at_ns))
		return 0;
	f->sites = calloc(HASH_COUNT(s->counters) + 1, sizeof(*f->sites));
	if (!f->sites)
		return -ENOMEM;
	HASH_ITER (hh, s->counters, counters, next)
		f->n_sites += fill_site(s, counters, &f->sites[f->n_sites]);
	return 0;
}

/* ── allocation ──────────────────────────────────────────────────────────────────────────── */

/* Adds the readings that the lanes have not taken yet. */
static void add_allocated(const struct lanes *l, uint64_t at_ns, struct figures *f)
{
	const struct seen_allocs *allocs = &l->seen->allocs;

	f->allocated_bytes = l->allocated.sums.bytes;
	f->live_known = allocs->known;
	f->live_bytes = allocs->live;
	f->held_bytes = allocs->held;
	f->haskell_threads = allocs->threads;
	for (size_t i = 0; i < allocs->n_readings; i++)
		if (allocs->readings[i].ns <= at_ns)
			f->allocated_bytes += allocs->readings[i].bytes;
}

/* ── all of it ───────────────────────────────────────────────────────────────────────────── */

static int fill(const struct lanes *l, uint64_t at_ns, bool made, struct figures *ret)
{
	const struct seen *s = l->seen;
	int err = 0;

	ret->no = s->no;
	ret->target = s->pub;
	ret->ended = s->ended;
	ret->ended_ns = s->ended ? s->end_ns : 0;
	if (made) {
		add_lanes(&s->pub->lanes[LANE_THREAD], ST_MAX, ret->thread_ns);
		add_lanes(&s->pub->lanes[LANE_CAPABILITY], CS_MAX, ret->cap_ns);
	} else {
		err = read_states(l, at_ns, ret);
	}
	add_gcs(s, at_ns, ret);
	add_gc_off(l, made ? l->end_ns : seen__end(s, at_ns), ret);
	add_allocated(l, at_ns, ret);
	ret->queued_known = s->queued.n > 0;
	if (ret->queued_known)
		ret->queued = s->queued.v[s->queued.n - 1].value;
	return err ? err : add_sites(s, at_ns, ret);
}

int lanes__figures(const struct lanes *l, uint64_t at_ns, bool made, struct figures *ret_figures)
{
	struct figures f = {0};
	int err = fill(l, at_ns, made, &f);

	if (err)
		figures__free(&f);
	else
		*ret_figures = f;
	return err;
}

void figures__free(struct figures *f)
{
	free(f->sites);
	*f = (struct figures){0};
}
