/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * log_haskell: lanes of Haskell threads from a log. The log decides when a thread ran and what it
 * waited for. A thread that the records know, too, keeps its own slices where they agree with the
 * log, for the stack with which it ran, and its unsafe calls.
 */
#include <stdio.h>

#include "base/search.h"
#include "join_priv.h"

#define LANES_MAX 4096 /* lanes that the log adds, for the threads that ran longest */

/* State while a lane is drawn. */
struct drawing {
	struct log_build *b;
	const struct el_thread *log;
	const struct pic_lane *own; /* the records' lane; without slices if they do not have it */
	const uint32_t *stacks;	    /* by state, where nothing else is known */
	bool exact;		    /* the log has all boundaries: no slice was merged */
	size_t at;		    /* the first own slice that may extend into what comes next */
	size_t counted;		    /* the samples of own slices before this one are put */
	struct slices slices;
	size_t max;
};

static int state_stack(struct log_build *b, enum haskell_state state, uint32_t *ret_stack)
{
	char name[64];
	uint32_t frame;
	int err;

	snprintf(name, sizeof(name), "[%s]", state__title(LANE_HASKELL, state));
	err = picture__add_text(b->pic, TF_STATE, name, &frame);
	return err ? err : picture__add_stack(b->pic, &frame, 1, ret_stack);
}

/* ── slices ──────────────────────────────────────────────────────────────────────────────── */

/* Whether an own slice agrees with the log and shows more; merged slices of the log show little. */
static bool stays(const struct drawing *d, const struct pic_slice *own, enum haskell_state state)
{
	if (own->state == HS_UNKNOWN || !d->exact)
		return own->state != HS_UNKNOWN;
	return own->stack &&
	       (own->state == state || (own->state == HS_UNSAFE_CALL && state == HS_RUNNING));
}

/* Replaces the log's *s by own slice number d->at. `whole`: *s is the whole slice of the log. */
static void take_own(struct drawing *d, bool whole, struct pic_slice *s)
{
	const struct pic_slice *own = &d->own->slices[d->at];
	struct pic_slice taken = *own;

	taken.start_ns = s->start_ns;
	taken.end_ns = s->end_ns;
	taken.exact = s->exact && (whole || own->exact);
	if (!own->stack)
		taken.stack = d->stacks[own->state];
	if (d->counted > d->at)
		taken.samples = 0;
	d->counted = d->at + 1;
	*s = taken;
}

/* Puts [start, end) as the log has it; NULL: the log has nothing there. */
static int put(struct drawing *d, uint64_t start, uint64_t end, const struct pic_slice *p)
{
	enum haskell_state state = p ? p->state : HS_UNKNOWN;
	const struct pic_lane *own = d->own;
	const uint64_t begin = start;
	int err = 0;

	while (!err && start < end) {
		bool late = false;
		struct pic_slice s = {
			.start_ns = start,
			.end_ns = end,
			.tso = d->log->tid,
			.stack = d->stacks[state],
			.cap = p ? p->cap : NO_CAP,
			.state = (uint8_t)state,
			.exact = p && d->exact,
		};

		while (d->at < own->n_slices && own->slices[d->at].end_ns <= start)
			d->at++;
		if (d->at < own->n_slices && own->slices[d->at].start_ns > start) {
			s.end_ns = MIN(end, own->slices[d->at].start_ns);
		} else if (d->at < own->n_slices) {
			s.end_ns = MIN(end, own->slices[d->at].end_ns);
			if (stays(d, &own->slices[d->at], state))
				take_own(d, start == begin && s.end_ns == end, &s);
			else
				late = start > begin && s.end_ns - start < NEAR_NS;
		}
		/* both saw the same event: the probe comes slightly before the log */
		if (late)
			d->slices.v[d->slices.n - 1].end_ns = s.end_ns;
		else
			err = slices__put(&d->slices, LANE_HASKELL, &s, d->max);
		start = s.end_ns;
	}
	return err;
}

/* Draws the lane from start to end without gaps. */
static int draw(struct drawing *d, struct pic_lane *lane)
{
	const struct slices *log = d->log->lane;
	uint64_t at = lane->start_ns;
	int err = 0;

	for (size_t i = 0; log && i < log->n && !err; i++) {
		uint64_t start = MAX(elog__time(d->b, log->v[i].start_ns), at);
		uint64_t end = MIN(elog__time(d->b, log->v[i].end_ns), lane->end_ns);

		if (end <= start)
			continue;
		err = put(d, at, start, NULL);
		if (!err)
			err = put(d, start, end, &log->v[i]);
		at = end;
	}
	if (!err)
		err = put(d, at, lane->end_ns, NULL);
	return err ? err : slices__give(&d->slices, d->b->pic, lane);
}

/* ── sums ────────────────────────────────────────────────────────────────────────────────── */

/* Sums by the log's slices if they are complete, else by its sums, which may begin earlier. */
static void sum_up(const struct drawing *d, struct pic_lane *lane)
{
	const uint64_t span = lane->end_ns - lane->start_ns;
	uint64_t *ns = lane->states_ns, sum = 0, run = 0, given = 0;

	memset(ns, 0, sizeof(lane->states_ns));
	for (size_t i = 0; d->exact && i < d->log->lane->n; i++) {
		const struct pic_slice *p = &d->log->lane->v[i];
		uint64_t start = elog__time(d->b, p->start_ns), end = elog__time(d->b, p->end_ns);

		if (elog__clip(d->b, &start, &end))
			ns[p->state] += end - start;
	}
	if (!d->exact)
		memcpy(ns, d->log->state_ns, sizeof(d->log->state_ns));
	for (unsigned s = 0; s < HS_MAX; s++)
		sum += ns[s];
	for (unsigned s = 0; s < HS_MAX && sum > span; s++) {
		run += ns[s];
		ns[s] = (uint64_t)((unsigned __int128)span * run / sum) - given;
		given += ns[s];
	}
	/* if the log contradicts itself */
	if (sum < span)
		ns[HS_UNKNOWN] += span - sum;
}

/* Sets how often and how long it was in each state, from the log if that has the whole lane. */
static void count_times(const struct drawing *d, struct pic_lane *lane)
{
	struct pic_row *rows = (struct pic_row *)lane->rows; /* may be changed */
	uint64_t times[HS_MAX] = {0}, longest[HS_MAX] = {0};

	for (size_t i = 0; d->exact && i < d->log->lane->n; i++) {
		const struct pic_slice *p = &d->log->lane->v[i];
		uint64_t start = elog__time(d->b, p->start_ns), end = elog__time(d->b, p->end_ns);

		if (!elog__clip(d->b, &start, &end))
			continue;
		times[p->state]++;
		longest[p->state] = MAX(longest[p->state], end - start);
	}
	for (size_t i = 0; d->exact && i < lane->n_rows; i++) {
		unsigned state = rows[i].state;

		rows[i].times = rows[i].on_cpu ? 0 : times[state];
		rows[i].longest_ns = rows[i].on_cpu ? 0 : longest[state];
		times[state] = longest[state] = 0;
	}
}

/* Unsafe calls are part of running time; only the records distinguish them. */
static void split_running(const struct pic_lane *own, struct pic_lane *lane)
{
	const uint64_t unsafe = own->states_ns[HS_UNSAFE_CALL];
	uint64_t *ns = lane->states_ns;

	lane->sampled_states = 0;
	if (!unsafe)
		return;
	ns[HS_UNSAFE_CALL] = (uint64_t)((unsigned __int128)ns[HS_RUNNING] * unsafe /
					(own->states_ns[HS_RUNNING] + unsafe));
	ns[HS_RUNNING] -= ns[HS_UNSAFE_CALL];
	lane->sampled_states = own->sampled_states & (1U << HS_RUNNING | 1U << HS_UNSAFE_CALL);
}

/* ── lanes ───────────────────────────────────────────────────────────────────────────────── */

/* Beyond a number of threads at once, the model keeps only sums. */
static int report_sums_only(struct log_build *b, const struct pic_lane *lanes, size_t n)
{
	size_t sums_only = 0;

	for (size_t i = 0; i < n; i++) {
		const struct el_thread *t = NULL;

		if (lanes[i].tso <= UINT32_MAX && lanes[i].end_ns > lanes[i].start_ns)
			t = el_sched__find_thread(b->in.sched, (uint32_t)lanes[i].tso);
		sums_only += t && !t->lane;
	}
	if (!sums_only)
		return 0;
	return picture__add_missing(b->pic, b->pub,
				    "when %zu Haskell threads ran and waited: after the first %zu "
				    "threads, only the eventlog's sums are kept%s",
				    sums_only, el_sched__info(b->in.sched).n_lanes,
				    b->seen ? "" : "; --from and --to show a part");
}

/* `lane` is the records' own, or empty. */
static int fill_lane(struct log_build *b, const struct el_thread *t, const uint32_t *stacks,
		     struct pic_lane *lane)
{
	const struct pic_lane own = *lane;
	struct pic_row *rows = (struct pic_row *)own.rows; /* may be changed */
	size_t n = t->lane ? t->lane->n : 0;
	struct drawing d = {
		.b = b,
		.log = t,
		.own = &own,
		.stacks = stacks,
		.exact = n && !t->lane->merged_ns,
		.max = 2 * (n + own.n_slices) + 2,
	};
	int err;

	lane->kind = LANE_HASKELL;
	lane->tso = t->tid;
	lane->threads = 1;
	if (t->label || !lane->name)
		lane->name = picture__string(b->pic, t->label);
	lane->start_ns = elog__time(b, t->start);
	lane->end_ns = elog__time(b, t->end);
	if (!elog__clip(b, &lane->start_ns, &lane->end_ns))
		lane->end_ns = lane->start_ns;
	if (t->lane)
		lane->merged_ns = MAX(lane->merged_ns, t->lane->merged_ns);
	sum_up(&d, lane);
	split_running(&own, lane);
	for (size_t i = 0; i < own.n_rows; i++)
		if (!rows[i].stack)
			rows[i].stack = stacks[rows[i].state];
	err = elog__fit_rows(b, rows, own.n_rows, stacks, lane);
	if (!err)
		count_times(&d, lane);
	if (!err && (n || own.n_slices))
		err = draw(&d, lane);
	slices__free(&d.slices);
	return err;
}

static int by_running(const void *pa, const void *pb)
{
	const struct el_thread *a = *(const struct el_thread *const *)pa;
	const struct el_thread *b = *(const struct el_thread *const *)pb;

	if (a->state_ns[HS_RUNNING] != b->state_ns[HS_RUNNING])
		return a->state_ns[HS_RUNNING] < b->state_ns[HS_RUNNING] ? 1 : -1;
	return (a->tid > b->tid) - (a->tid < b->tid);
}

static int by_tso(const void *pa, const void *pb)
{
	const struct pic_lane *a = pa, *b = pb;

	return (a->tso > b->tso) - (a->tso < b->tso);
}

static int lane_by_running(const void *pa, const void *pb)
{
	const struct pic_lane *a = pa, *b = pb;
	uint64_t ra = a->states_ns[HS_RUNNING], rb = b->states_ns[HS_RUNNING];

	if (ra != rb)
		return ra < rb ? 1 : -1;
	return by_tso(pa, pb);
}

/* Finds the threads that only the log knows; own lanes are sorted by thread. */
static size_t find_added(const struct log_build *b, const struct pic_lanes *own,
			 const struct el_thread **ret_threads)
{
	size_t all = el_sched__info(b->in.sched).n_threads, n = 0;

	for (size_t i = 0; i < all; i++) {
		const struct el_thread *t = el_sched__thread(b->in.sched, i);
		size_t at = search__first(own->n, k, own->v[k].tso >= t->tid);

		if ((at == own->n || own->v[at].tso != t->tid) &&
		    elog__time(b, t->start) < b->to_ns && elog__time(b, t->end) >= b->from_ns)
			ret_threads[n++] = t;
	}
	qsort(ret_threads, n, sizeof(struct el_thread *), by_running);
	return n;
}

/* NULL: the log has no time of the thread. */
static const struct el_thread *find_logged(const struct log_build *b, const struct pic_lane *own)
{
	const struct el_thread *t = NULL;
	uint64_t start, end;

	if (own->tso <= UINT32_MAX)
		t = el_sched__find_thread(b->in.sched, (uint32_t)own->tso);
	start = t ? elog__time(b, t->start) : 0;
	end = t ? elog__time(b, t->end) : 0;
	return elog__clip(b, &start, &end) ? t : NULL;
}

static int fill_lanes(struct log_build *b, const struct el_thread *const *added, size_t n,
		      const struct pic_lanes *own)
{
	struct pic_lane *lanes = picture__alloc(b->pic, n + own->n, sizeof(*lanes));
	uint32_t stacks[LANE_STATES] = {0};
	int err = lanes ? 0 : -ENOMEM;

	for (unsigned s = 0; s < HS_MAX && !err; s++)
		err = state_stack(b, (enum haskell_state)s, &stacks[s]);
	for (size_t i = 0; i < n && !err; i++)
		err = fill_lane(b, added[i], stacks, &lanes[i]);
	for (size_t i = 0; i < own->n && !err; i++) {
		const struct el_thread *t = find_logged(b, &own->v[i]);

		lanes[n + i] = own->v[i];
		if (t)
			err = fill_lane(b, t, stacks, &lanes[n + i]);
	}
	if (err)
		return err;
	qsort(lanes, n + own->n, sizeof(*lanes), lane_by_running);
	b->pub->lanes[LANE_HASKELL] = (struct pic_lanes){.v = lanes, .n = n + own->n};
	return report_sums_only(b, lanes, n + own->n);
}

int elog__haskell(struct log_build *b)
{
	const struct pic_lanes own = b->pub->lanes[LANE_HASKELL];
	size_t all = b->in.sched ? el_sched__info(b->in.sched).n_threads : 0, n, given_up;
	const struct el_thread **added;
	int err = 0;

	if (!b->opts.haskell || !all)
		return 0;
	added = calloc(all, sizeof(*added));
	if (!added)
		return -ENOMEM;
	if (own.n)
		qsort((void *)own.v, own.n, sizeof(*own.v), by_tso);
	n = find_added(b, &own, added);
	given_up = el_sched__info(b->in.sched).n_given_up;
	if (n > LANES_MAX)
		err = picture__add_missing(
			b->pic, b->pub,
			"%zu Haskell threads: only the %u that ran longest have lanes",
			n + given_up, LANES_MAX);
	if (!err)
		err = fill_lanes(b, added, MIN(n, (size_t)LANES_MAX), &own);
	free(added);
	return err;
}
