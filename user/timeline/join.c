/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * join: a process that the kernel's records tell of, and its eventlog. The clocks are brought
 * together first; then what both tell is compared, and where only the log tells something, it goes
 * into the picture: which Haskell thread ran when, labels, marks, windows, heap curves, and what
 * kept Haskell threads waiting.
 */
#include <stdio.h>

#include "log_priv.h"

/* Of the session, that a log must reach for its Haskell threads' lanes to stand for it. */
#define NEAR_THE_END_NS 20000000ULL

static int by_thread(const void *pa, const void *pb)
{
	const struct el_match_call *a = pa, *b = pb;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return (a->start > b->start) - (a->start < b->start);
}

static int sort_calls(struct join *j)
{
	size_t n = j->b->in.match ? el_match__info(j->b->in.match).n_calls : 0;

	j->calls = calloc(n + 1, sizeof(*j->calls));
	if (!j->calls)
		return -ENOMEM;
	if (n)
		memcpy(j->calls, el_match__calls(j->b->in.match), n * sizeof(*j->calls));
	j->n_calls = n;
	j->calls_until = UINT64_MAX;
	if (n && el_match__info(j->b->in.match).calls > n)
		j->calls_until = j->calls[n - 1].end;
	qsort(j->calls, n, sizeof(*j->calls), by_thread);
	return 0;
}

size_t join__first_call(const struct join *j, uint64_t tso, uint64_t at_ns)
{
	size_t low = 0, high = j->n_calls;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct el_match_call *c = &j->calls[mid];

		if (c->thread < tso || (c->thread == tso && c->start < at_ns))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* ── what the log alone tells ────────────────────────────────────────────────────────────── */

/* The records' own curves, and the log's behind them. */
static int add_counters(struct join *j)
{
	const struct tl_counter *own = j->tg->pub.counters;
	size_t n_own = j->tg->pub.n_counters, n_log;
	struct tl_counter *all;
	int err;

	j->tg->pub.n_counters = 0;
	err = elog__counters(j->tl, j->tg, j->b);
	n_log = j->tg->pub.n_counters;
	if (err || !n_log) {
		j->tg->pub.counters = own;
		j->tg->pub.n_counters = n_own;
		return err;
	}
	all = elog__alloc(j->b, n_own + n_log, sizeof(*all));
	if (!all)
		return -ENOMEM;
	if (n_own)
		memcpy(all, own, n_own * sizeof(*all));
	memcpy(all + n_own, j->tg->pub.counters, n_log * sizeof(*all));
	j->tg->pub.counters = all;
	j->tg->pub.n_counters = n_own + n_log;
	return 0;
}

/* Lanes by the log where it reaches the end: it knows why each thread waited. Else its labels. */
static int add_threads(struct join *j)
{
	struct target_state *tg = j->tg;

	if (!tg->log->in.sched)
		return 0;
	if (j->tl->opts.haskell_lanes && j->b->to_ns + NEAR_THE_END_NS >= j->end_ns)
		return elog__tsos(j->tl, tg, j->b);
	for (size_t i = 0; i < tg->n_tso_lanes; i++) {
		struct tl_tso_lane *lane = &tg->tso_lanes[i];
		const struct el_thread *t = NULL;

		if (lane->tso <= UINT32_MAX)
			t = el_sched__find_thread(tg->log->in.sched, (uint32_t)lane->tso);
		if (t && t->label && !lane->label[0])
			lane->label = tl__string(j->tl, t->label);
	}
	return 0;
}

/* Where no probe told of collections. */
static int add_gcs(struct join *j)
{
	struct tl_target *pub = &j->tg->pub;
	int err;

	if (pub->gc.known && !pub->gc.inferred)
		return 0;
	err = elog__gcs(j->tg, j->b);
	if (err || !pub->n_gcs)
		return err;
	pub->gc.count = 0;
	pub->gc.pause_ns = pub->gc.max_pause_ns = 0;
	for (size_t i = 0; i < pub->n_gcs; i++) {
		uint64_t pause = pub->gcs[i].end_ns - pub->gcs[i].start_ns;

		pub->gc.count++;
		pub->gc.pause_ns += pause;
		pub->gc.max_pause_ns = MAX(pub->gc.max_pause_ns, pause);
	}
	pub->gc.known = true;
	pub->gc.inferred = false;
	return 0;
}

/* Where no tick and no sample told of cost centres. */
static int add_centres(struct join *j)
{
	struct tl_target *pub = &j->tg->pub;
	const struct tl_function *functions = pub->functions;
	size_t n_functions = pub->n_functions;
	int err;

	if (pub->n_cost_centres || !j->b->in.profile || !el_profile__info(j->b->in.profile).samples)
		return 0;
	err = elog__centres(j->tl, j->tg, j->b);
	pub->functions = functions;
	pub->n_functions = n_functions;
	return err;
}

/* ── all of it ───────────────────────────────────────────────────────────────────────────── */

static int tell(struct join *j)
{
	const struct tl_eventlog *e = &j->tg->pub.eventlog;
	const struct eventlog_stats *stats = j->b->in.stats;
	double lag = j->end_ns > e->reaches_ns ? (double)(j->end_ns - e->reaches_ns) / 1e9 : 0;
	int err = 0;

	if (lag > 0.1 && !stats->ended)
		err = elog__missing(j->tl, j->tg,
				    "the last %.1f s of the session in the eventlog: GHC writes a "
				    "buffer when it is full; from 9.2 on "
				    "+RTS --eventlog-flush-interval=SECONDS writes more often",
				    lag);
	if (!err && e->offset_error_ns == UINT64_MAX)
		err = elog__missing(j->tl, j->tg,
				    "events that both the eventlog and the kernel saw: the log's "
				    "times are placed by its wall clock alone");
	return err;
}

static int join(struct join *j)
{
	struct log_build *b = j->b;
	int err = sort_calls(j);

	if (!err)
		err = join__clock(j);
	if (err)
		return err;
	elog__fill(j->tl, j->tg, b);
	if (b->in.profile)
		j->tg->pub.eventlog.cost_centres = cctree__n_ccs(el_profile__tree(b->in.profile));
	b->from_ns = j->tg->pub.attach_ns;
	b->to_ns = MIN(j->tg->pub.eventlog.reaches_ns, j->end_ns);
	if (b->to_ns > b->from_ns) {
		err = join__agree(j);
		if (!err)
			err = join__caps(j);
		if (!err)
			err = add_threads(j);
		if (!err)
			err = add_gcs(j);
		if (!err)
			err = add_centres(j);
		if (!err)
			err = elog__marks(j->tl, j->tg, b);
		if (!err)
			err = elog__windows(j->tl, j->tg, b);
		if (!err)
			err = add_counters(j);
	}
	return err ? err : tell(j);
}

int join__make(struct timeline *tl, struct target_state *tg, uint64_t end_ns)
{
	struct join j = {.tl = tl, .tg = tg, .b = tg->log, .end_ns = end_ns};
	int err;

	if (!tg->log || !tg->log->in.stats || !tg->log->in.stats->header)
		return 0;
	err = join(&j);
	free(j.calls);
	return err;
}
