/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * join: a process known by the kernel's records, and its eventlog. The clocks are matched first;
 * then what both have is compared, and what only the log has is added to the picture: which Haskell
 * thread ran when, labels, marks, windows, heap curves, and what kept Haskell threads waiting.
 */
#include <stdio.h>

#include "join_priv.h"

/* How close to the session's end a log must come for its lanes of Haskell threads to be used. */
#define NEAR_THE_END_NS 20000000ULL
/* The most capabilities that are listed one by one. */
#define UNWRITTEN_NAMED 8

static int by_thread(const void *pa, const void *pb)
{
	const struct el_match_call *a = pa, *b = pb;

	return CMP(a->thread, b->thread) ?: CMP(a->start, b->start);
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

/* ── what the log alone has ──────────────────────────────────────────────────────────────── */

/* Adds the log's curves after the records' own. */
static int add_counters(struct join *j)
{
	struct pic_target *pub = j->b->pub;
	const struct pic_counter *own = pub->counters;
	size_t n_own = pub->n_counters, n_log;
	struct pic_counter *all;
	int err;

	pub->n_counters = 0;
	err = elog__counters(j->b);
	n_log = pub->n_counters;
	all = err ? NULL : picture__alloc(j->b->pic, n_own + n_log, sizeof(*all));
	if (!all)
		return err ? err : -ENOMEM;
	if (n_own)
		memcpy(all, own, n_own * sizeof(*all));
	if (n_log)
		memcpy(all + n_own, pub->counters, n_log * sizeof(*all));
	pub->counters = all;
	pub->n_counters = n_own + n_log;
	return 0;
}

/* Uses the log's lanes if all of it reaches the end, since it has the reason of each wait.
 * Otherwise takes only labels. */
static int add_threads(struct join *j)
{
	const struct el_sched *sched = j->b->in.sched;
	struct pic_lanes *own = &j->b->pub->lanes[LANE_HASKELL];

	if (!sched)
		return 0;
	if (j->b->to_ns + NEAR_THE_END_NS >= j->end_ns && !j->n_unwritten)
		return elog__haskell(j->b);
	for (size_t i = 0; i < own->n; i++) {
		struct pic_lane *lane = (struct pic_lane *)&own->v[i];
		const struct el_thread *t = NULL;

		if (lane->tso <= UINT32_MAX)
			t = el_sched__find_thread(sched, (uint32_t)lane->tso);
		if (t && t->label && !lane->name[0])
			lane->name = picture__string(j->b->pic, t->label);
	}
	return 0;
}

/*
 * Finds what the log's collections waited for from the capabilities' slices; merged slices do not
 * show it.
 */
static int find_holds(struct join *j)
{
	struct pic_target *pub = j->b->pub;
	struct pic_gc_event *events = (struct pic_gc_event *)pub->gcs; /* may be changed */
	const struct pic_lanes *caps = &pub->lanes[LANE_CAPABILITY];
	struct seen_gcs gcs = {.v = calloc(pub->n_gcs, sizeof(*gcs.v)), .n = pub->n_gcs};
	struct holds holds = {0};
	bool merged = false;
	int err = gcs.v ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < gcs.n; i++) {
		uint64_t work = events[i].start_ns, sync = events[i].sync_ns;

		gcs.v[i] = (struct gc_span){.start = work - (sync < work ? sync : 0),
					    .work = work,
					    .end = events[i].end_ns,
					    .synced = sync < work};
	}
	for (size_t c = 0; c < caps->n; c++)
		merged |= caps->v[c].merged_ns != 0;
	for (size_t c = 0; !merged && c < caps->n; c++) {
		struct holding holding = {0};

		for (size_t i = 0; !err && i < caps->v[c].n_slices; i++)
			err = holds__see(&holds, &gcs, &holding, &caps->v[c].slices[i]);
	}
	for (size_t i = 0; !err && i < gcs.n; i++)
		holds__fill(&holds, i, &events[i]);
	if (!err && !merged)
		err = holds__fill_unsafe(&holds, &gcs, j->b->pic, pub);
	free(holds.v);
	free(gcs.v);
	return err;
}

/* Whether the log has all collections of the session. If it has none, GHC may not have written
 * these events, as with +RTS -l-g. */
static bool has_all_gcs(const struct join *j)
{
	const struct log_build *b = j->b;
	struct el_sched_info info = el_sched__info(b->in.sched);
	/* with 1, the models begin with the log */
	bool begins = b->in.from_ns <= 1 || elog__time(b, b->in.from_ns) <= b->from_ns;
	/* its times are only as accurate as the match */
	uint64_t near = b->in.offset_error_ns == UINT64_MAX ? 0 : b->in.offset_error_ns;
	bool ends = b->in.stats->ended || b->to_ns + near >= j->end_ns;

	return begins && ends && info.gcs && info.n_gcs == info.gcs;
}

/* Beyond the model's limit only the first collections are kept; later ones are unknown. */
static int report_gcs(struct log_build *b)
{
	struct el_sched_info info = el_sched__info(b->in.sched);

	if (info.n_gcs == info.gcs)
		return 0;
	return picture__add_missing(
		b->pic, b->pub, "%llu of %llu collections in the eventlog: too many to keep",
		(unsigned long long)(info.gcs - info.n_gcs), (unsigned long long)info.gcs);
}

static void sum_gcs(struct pic_target *pub)
{
	pub->gc.count = pub->n_gcs;
	pub->gc.pause_ns = pub->gc.max_pause_ns = 0;
	for (size_t i = 0; i < pub->n_gcs; i++) {
		uint64_t pause = pub->gcs[i].end_ns - pub->gcs[i].start_ns;

		pub->gc.pause_ns += pause;
		pub->gc.max_pause_ns = MAX(pub->gc.max_pause_ns, pause);
	}
	pub->gc.known = true;
	pub->gc.inferred = false;
	pub->gc.logged = true;
}

/* Adds the log's collections if no probe saw all of them. A log that lacks some shows those that it
 * has, and the sums stay bounds. */
static int add_gcs(struct join *j)
{
	struct pic_target *pub = j->b->pub;
	bool all;
	int err;

	if (!j->b->in.sched || j->n_unwritten || (pub->gc.known && !pub->gc.inferred))
		return 0;
	all = has_all_gcs(j);
	err = report_gcs(j->b);
	/* what the probes saw before they came off is not mixed with parts of the rest */
	if (err || (!all && pub->n_gcs))
		return err;
	err = elog__gcs(j->b);
	if (err || !pub->n_gcs)
		return err;
	if (all)
		sum_gcs(pub);
	return find_holds(j);
}

/* Adds cost centres if no tick and no sample has any. */
static int add_centres(struct join *j)
{
	struct pic_target *pub = j->b->pub;
	const struct pic_function *functions = pub->functions;
	size_t n_functions = pub->n_functions;
	int err;

	if (pub->n_cost_centres || !j->b->in.profile || !el_profile__info(j->b->in.profile).samples)
		return 0;
	err = elog__centres(j->b);
	pub->functions = functions;
	pub->n_functions = n_functions;
	return err;
}

/* ── all of it ───────────────────────────────────────────────────────────────────────────── */

static void count_unwritten(struct join *j)
{
	for (uint32_t cap = 0; cap < MIN(j->b->pub->capabilities, (uint32_t)EL_CAPS_MAX); cap++)
		j->n_unwritten += !join__has_cap(j, cap);
}

static int report_unwritten(struct join *j)
{
	size_t size, named = 0, len = 0;
	char list[128];

	for (uint32_t cap = 0; named < MIN(j->n_unwritten, (uint32_t)UNWRITTEN_NAMED); cap++) {
		if (join__has_cap(j, cap))
			continue;
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%u", named ? ", " : "",
					cap);
		named++;
	}
	size = sizeof(list) - len;
	if (named < j->n_unwritten)
		snprintf(list + len, size, " and %zu more", j->n_unwritten - named);
	return picture__add_missing(
		j->b->pic, j->b->pub,
		"the %s %s in the eventlog: not written; GHC writes a buffer only when it is full; "
		"since 9.2, +RTS --eventlog-flush-interval=SECONDS writes more often",
		j->n_unwritten == 1 ? "buffer of capability" : "buffers of capabilities", list);
}

/* The log's times mean nothing, or all of it is older than the session. */
static int report_unplaced(struct log_build *b)
{
	return picture__add_missing(
		b->pic, b->pub, "the eventlog: %s" LOG_CLOCKS_DIFFER,
		b->in.early ? "by its wall clock, everything in it is from before the session: GHC "
			      "writes a buffer only when it is full, or "
			    : "");
}

static int report_missing(struct join *j)
{
	struct log_build *b = j->b;
	const struct pic_eventlog *e = &b->pub->eventlog;
	double lag = j->end_ns > e->reaches_ns ? (double)(j->end_ns - e->reaches_ns) / 1e9 : 0;
	int err = 0;

	if (b->in.early && e->offset_error_ns == UINT64_MAX)
		return report_unplaced(b);
	if (j->n_unwritten)
		err = report_unwritten(j);
	if (!err && lag > 0.1 && !b->in.stats->ended)
		err = picture__add_missing(b->pic, b->pub,
					   "the last %.1f s of the session in the eventlog: GHC "
					   "writes a buffer only when it is full; since 9.2, +RTS "
					   "--eventlog-flush-interval=SECONDS writes more often",
					   lag);
	if (!err && e->offset_error_ns == UINT64_MAX)
		err = picture__add_missing(b->pic, b->pub,
					   "events that both the eventlog and the kernel saw: the "
					   "log's times are aligned only by its wall clock");
	return err;
}

static int add_all(struct join *j)
{
	struct log_build *b = j->b;
	int err = join__agree(j);

	if (!err)
		err = join__caps(j);
	if (!err)
		err = add_threads(j);
	if (!err)
		err = add_gcs(j);
	if (!err)
		err = add_centres(j);
	if (!err)
		err = elog__marks(b);
	if (!err)
		err = elog__windows(b);
	return err ? err : add_counters(j);
}

int log_build__join(struct log_build *b, uint64_t end_ns)
{
	struct join j = {.b = b, .seen = b->seen};
	int err;

	if (!b->in.stats || !b->in.stats->header) {
		b->pub->eventlog.known = false;
		return 0;
	}
	j.end_ns = end_ns;
	count_unwritten(&j);
	err = sort_calls(&j);
	if (!err)
		err = join__clock(&j);
	if (!err && b->in.unsure && b->in.offset_error_ns == UINT64_MAX) {
		b->pub->eventlog.known = false;
		free(j.calls);
		return report_unplaced(b);
	}
	if (!err) {
		elog__fill(b);
		if (b->in.profile)
			b->pub->eventlog.cost_centres =
				cctree__n_ccs(el_profile__tree(b->in.profile));
		b->from_ns = b->pub->attach_ns;
		b->to_ns = MIN(b->pub->eventlog.reaches_ns, j.end_ns);
		if (b->to_ns > b->from_ns)
			err = add_all(&j);
	}
	if (!err)
		err = report_missing(&j);
	free(j.calls);
	return err;
}
