/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lanes: their life cycle: growing, being read, and going into the picture. */
#include "ledger/sums.h"
#include "lanes_priv.h"
#include "picture/lost.h"

/* Even at 1 Hz, a thread on the CPU has a sample within that time. */
#define ASLEEP_NS 2000000000ULL

/* ── life ────────────────────────────────────────────────────────────────────────────────── */

static void free_books(struct lanes *l)
{
	for (unsigned k = 0; k < LANE_KINDS; k++) {
		ledger__free(l->ledger[k]);
		l->ledger[k] = NULL;
	}
	ledger__free(l->gc_sync);
	l->gc_sync = NULL;
	ledger__free(l->allocated.ledger);
	heap_curve__free(&l->allocated.heap);
	alloc_spans__free(&l->allocated.spans);
	free(l->allocated.by_centre.v);
	l->allocated = (struct allocated){0};
}

static int new_books(struct lanes *l)
{
	const struct ledger_opts books = {.period_ns = l->opts.period_ns,
					  .full_stack = picture__full_stack(l->pic)};
	int err = 0;

	for (unsigned k = 0; !err && k < LANE_KINDS; k++)
		err = ledger__new(&books, &l->ledger[k]);
	if (!err)
		err = ledger__new(&books, &l->gc_sync);
	return err ? err : ledger__new(&books, &l->allocated.ledger);
}

int lanes__new(const struct lanes_opts *opts, struct intake *in, struct seen *seen,
	       struct lanes **ret_lanes)
{
	struct lanes *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->opts = *opts;
	l->in = in;
	l->pic = intake__picture(in);
	l->seen = seen;
	err = new_books(l);
	l->prior = calloc(1, sizeof(*l->prior));
	if (!err)
		err = l->prior ? caps__new(&l->caps) : -ENOMEM;
	if (!err)
		err = haskell__new(opts->max_haskell, &l->haskell);
	if (err)
		lanes__free(l);
	else
		*ret_lanes = l;
	return err;
}

void lanes__set_period(struct lanes *l, uint64_t period_ns)
{
	l->opts.period_ns = period_ns;
	for (unsigned k = 0; k < LANE_KINDS; k++)
		ledger__set_period(l->ledger[k], period_ns);
	ledger__set_period(l->gc_sync, period_ns);
}

void lanes__free(struct lanes *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->n_threads; i++)
		slices__free(&l->threads[i].slices);
	free(l->threads);
	free_books(l);
	free(l->holds.v);
	overlaps__free(&l->overlaps);
	free(l->cap_waits);
	free(l->prior);
	caps__free(l->caps);
	haskell__free(l->haskell);
	free(l);
}

/* Makes a lane for each thread. */
static int take_threads(struct lanes *l)
{
	int err =
		ARRAY_RESERVE(l->threads, l->threads_cap, l->seen->n_numbers, SEEN_MAX_THREADS + 1);

	if (err)
		return err;
	while (l->n_threads < l->seen->n_numbers)
		l->threads[l->n_threads++] = (struct thread_lane){0};
	for (struct seen_thread *th = l->seen->thread_list; th; th = th->next) {
		struct thread_lane *lane = &l->threads[th->no];

		if (lane->seen)
			continue;
		*lane = (struct thread_lane){
			.seen = th, .held = NO_CAP, .last_cap = NO_CAP, .tso_gap = HS_UNKNOWN};
	}
	return 0;
}

static int prepare(struct lanes *l)
{
	int err = take_threads(l);

	for (struct seen_thread *th = l->seen->thread_list; !err && th; th = th->next) {
		seen__sort(th);
		prior__learn(l, th);
	}
	return err;
}

/* ── growing ─────────────────────────────────────────────────────────────────────────────── */

/*
 * Whether what the thread did since its lane's end may still decide who held what. A thread without
 * a record has not been seen since it left the CPU; one that has only calls, and had no sample for
 * this long, sleeps in the last of them or after it. Otherwise others' claims would wait for it,
 * for hours if it waits for a client.
 */
static bool is_awaited(const struct thread_lane *lane, uint64_t latest)
{
	const struct seen_thread *th = lane->seen;

	if (!th)
		return false;
	if (th->samples.n || th->offs.n)
		return true;
	return th->calls.n && latest - MIN(lane->end_ns, latest) < ASLEEP_NS;
}

/* Until when it is known who held what: awaited threads go on where their lanes end. */
static uint64_t known_until(const struct lanes *l)
{
	const struct seen_gcs *gcs = &l->seen->gcs;
	uint64_t until, latest = 0;

	for (size_t i = 0; i < l->n_threads; i++)
		if (l->threads[i].seen)
			latest = MAX(latest, l->threads[i].end_ns);
	until = latest;
	for (size_t i = 0; i < l->n_threads; i++) {
		const struct thread_lane *lane = &l->threads[i];

		if (is_awaited(lane, latest))
			until = MIN(until, lane->begun ? lane->end_ns : l->seen->pub->attach_ns);
	}
	/* a collection that is still running has no end yet */
	if (gcs->n && !gcs->v[gcs->n - 1].end)
		until = MIN(until, gcs->v[gcs->n - 1].start);
	return until;
}

/* Advances the lanes that follow from the threads'. `last`: nothing comes after `until`. */
static int advance(struct lanes *l, uint64_t until, bool last)
{
	int err = caps__advance(l, until);

	if (!err && l->opts.haskell)
		err = haskell__advance(l, until, last);
	if (!err && !l->reading)
		err = overlaps__advance(&l->overlaps, l->seen, until, last || l->seen->ended);
	return err;
}

int lanes__fold(struct lanes *l, size_t max_slices)
{
	uint64_t until;
	int err = ccs__resolve(l->in, l->seen);

	l->max_slices = max_slices;
	if (!err)
		err = prepare(l);
	for (struct seen_thread *th = l->seen->thread_list; !err && th; th = th->next)
		err = thread__fold(l, &l->threads[th->no]);
	if (!err)
		err = allocated__take(l, UINT64_MAX);
	until = known_until(l);
	return err ? err : advance(l, until, false);
}

static int complete(struct lanes *l, uint64_t end_ns)
{
	int err = prepare(l);

	for (struct seen_thread *th = l->seen->thread_list; !err && th; th = th->next)
		err = thread__complete(l, &l->threads[th->no], end_ns);
	return err ? err : advance(l, end_ns, true);
}

/* ── reading ─────────────────────────────────────────────────────────────────────────────── */

static int copy_threads(const struct lanes *l, struct lanes *copy)
{
	int err =
		ARRAY_RESERVE(copy->threads, copy->threads_cap, l->n_threads, SEEN_MAX_THREADS + 1);

	for (size_t i = 0; !err && i < l->n_threads; i++) {
		copy->threads[i] = l->threads[i];
		copy->threads[i].slices = (struct slices){0};
	}
	copy->n_threads = err ? 0 : l->n_threads;
	return err;
}

static int copy_of(const struct lanes *l, struct lanes **ret_copy)
{
	struct lanes *copy = calloc(1, sizeof(*copy));
	int err;

	if (!copy)
		return -ENOMEM;
	copy->opts = l->opts;
	copy->in = l->in;
	copy->pic = l->pic;
	copy->seen = l->seen;
	copy->reading = true;
	err = copy_threads(l, copy);
	for (unsigned k = 0; !err && k < LANE_KINDS; k++)
		err = ledger__copy(l->ledger[k], &copy->ledger[k]);
	copy->prior = malloc(sizeof(*copy->prior));
	if (!err && !copy->prior)
		err = -ENOMEM;
	if (!err)
		err = caps__copy(l->caps, &copy->caps);
	if (!err)
		err = haskell__copy(l->haskell, &copy->haskell);
	if (err) {
		lanes__free(copy);
		return err;
	}
	*copy->prior = *l->prior;
	*ret_copy = copy;
	return 0;
}

int lanes__read(const struct lanes *l, uint64_t at_ns, struct reading *ret_reading)
{
	struct lanes *copy = NULL;
	int err = copy_of(l, &copy);

	if (err)
		return err;
	err = complete(copy, seen__end(l->seen, at_ns));
	for (unsigned k = 0; !err && k < LANE_KINDS; k++) {
		ret_reading->of[k] = copy->ledger[k];
		copy->ledger[k] = NULL;
	}
	lanes__free(copy);
	return err;
}

void reading__free(struct reading *r)
{
	for (unsigned k = 0; k < LANE_KINDS; k++) {
		ledger__free(r->of[k]);
		r->of[k] = NULL;
	}
}

/* ── threads that have ended ─────────────────────────────────────────────────────────────── */

static uint64_t weight(const struct thread_lane *lane)
{
	const struct seen_thread *th = lane->seen;
	uint64_t wall = th->end_ns > th->start_ns ? th->end_ns - th->start_ns : 0;

	return wall > lane->idle_ns ? wall - lane->idle_ns : 0;
}

static bool has_ended(const struct lanes *l, const struct thread_lane *lane)
{
	return lane->seen && (lane->seen->end_ns || l->seen->ended);
}

size_t lanes__ended(const struct lanes *l, uint64_t *ret_weights)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n_threads; i++) {
		if (!has_ended(l, &l->threads[i]))
			continue;
		if (ret_weights)
			ret_weights[n] = weight(&l->threads[i]);
		n++;
	}
	return n;
}

struct dropping {
	struct lanes *l;
	uint64_t most;
	size_t *left;
	uint32_t *to; /* by number: the account that the thread's account is merged into */
};

static int drops(void *ctx, struct seen_thread *th)
{
	struct dropping *d = ctx;
	struct thread_lane *lane = &d->l->threads[th->no];
	int err;

	if (!*d->left || !has_ended(d->l, lane) || weight(lane) > d->most)
		return 0;
	err = thread__complete(d->l, lane, th->end_ns ? th->end_ns : d->l->seen->end_ns);
	if (err)
		return err;
	d->to[th->no] = 0;
	d->l->dropped++;
	d->l->dropped_ns += weight(lane);
	--*d->left;
	slices__free(&lane->slices);
	lane->seen = NULL;
	return 1;
}

int lanes__drop_ended(struct lanes *l, uint64_t most, size_t *left)
{
	struct dropping d = {.l = l, .most = most, .left = left};
	int err;

	if (!l->n_threads)
		return 0;
	d.to = malloc(l->n_threads * sizeof(*d.to));
	if (!d.to)
		return -ENOMEM;
	memset(d.to, 0xff, l->n_threads * sizeof(*d.to));
	err = seen__drop_threads(l->in, l->seen, drops, &d);
	if (!err)
		err = ledger__merge_owners(l->ledger[LANE_THREAD], d.to, (uint32_t)l->n_threads);
	free(d.to);
	return err;
}

/* ── the picture ─────────────────────────────────────────────────────────────────────────── */

/* The main thread's name was never read if an exec, which changes it, comes first; but it is the
 * process's name, too. */
static const char *name_of(const struct lanes *l, const struct seen_thread *th)
{
	const struct pic_target *target = l->seen->pub;

	return !*th->name && th->tid == target->pid && target->comm ? target->comm : th->name;
}

static int fill_thread(struct lanes *l, struct thread_lane *lane, struct ledger_account *account,
		       struct pic_lane *ret)
{
	const struct short_calls *shorts = &lane->seen->shorts;
	uint64_t before = lane->seen->shorts_before.calls;
	int err;

	*ret = (struct pic_lane){
		.kind = LANE_THREAD,
		.tid = lane->seen->tid,
		.name = picture__string(l->pic, name_of(l, lane->seen)),
		.threads = 1,
		.start_ns = lane->start_ns,
		.end_ns = lane->end_ns,
		.cpu_ns = lane->cpu_ns,
		.sampled_states = lane->sampled_states,
		.short_calls = shorts->known ? shorts->calls - MIN(before, shorts->calls) : 0,
	};
	if (lane->short_booked_ns != lane->short_guess_ns)
		ret->sampled_states |= 1U << ST_HASKELL | 1U << ST_SAFE_CALL_CPU;
	err = slices__give(&lane->slices, l->pic, ret);
	if (!err)
		err = off__fill(l, account, ret);
	if (!err)
		err = lane__take_account(l, account, ret);
	lane__judge(ret, lane->managed_ns);
	return err;
}

/* All threads that have ended and have no lane of their own. */
static int fill_dropped(struct lanes *l, struct ledger_account *account, struct pic_lane *ret)
{
	uint64_t start = l->seen->pub->attach_ns;
	int err;

	*ret = (struct pic_lane){
		.kind = LANE_THREAD,
		.name = "[ended threads]",
		.threads = l->dropped,
		.start_ns = start,
		.end_ns = start + account->on_ns + account->off_ns,
		.cpu_ns = account->on_ns,
	};
	err = off__fill(l, account, ret);
	if (!err)
		err = lane__take_account(l, account, ret);
	lane__judge(ret, 0);
	return err ? err
		   : lanes__lack(l,
				 "the lanes of %llu threads that ended, %.3f s in all: there were "
				 "too many, and other threads did more; their samples and calls "
				 "are in the tables",
				 (unsigned long long)l->dropped, (double)l->dropped_ns / 1e9);
}

static int by_weight(const void *pa, const void *pb)
{
	const struct pic_lane *a = pa, *b = pb;
	uint64_t wa = a->end_ns - a->start_ns - a->states_ns[ST_IDLE];
	uint64_t wb = b->end_ns - b->start_ns - b->states_ns[ST_IDLE];

	if (a->housekeeping != b->housekeeping)
		return a->housekeeping ? 1 : -1;
	return CMP(wb, wa) ?: CMP(a->tid, b->tid) ?: CMP(a->start_ns, b->start_ns);
}

static int fill_threads(struct lanes *l)
{
	struct pic_lanes *pub = &l->seen->pub->lanes[LANE_THREAD];
	struct pic_lane *lanes = picture__alloc(l->pic, l->n_threads + 1, sizeof(*lanes));
	struct ledger_account *accounts;
	int err = lanes ? ledger__accounts(l->ledger[LANE_THREAD], (uint32_t)l->n_threads + 1,
					   &accounts)
			: -ENOMEM;

	if (err)
		return err;
	pub->v = lanes;
	if (l->dropped)
		err = fill_dropped(l, &accounts[0], &lanes[pub->n++]);
	for (size_t i = 0; !err && i < l->n_threads; i++)
		if (l->threads[i].seen && l->threads[i].slices.n)
			err = fill_thread(l, &l->threads[i], &accounts[i], &lanes[pub->n++]);
	ledger_accounts__free(accounts, (uint32_t)l->n_threads + 1);
	qsort(lanes, pub->n, sizeof(*lanes), by_weight);
	return err;
}

static int report_left_out(struct lanes *l)
{
	uint64_t n = 0;

	for (unsigned k = 0; k < LANE_KINDS; k++)
		n += ledger__left_out(l->ledger[k]);
	n += ledger__left_out(l->allocated.ledger);
	return n ? lanes__lack(l,
			       "the stacks of %llu piece%s of time: there were too many "
			       "different ones; the sums are right",
			       (unsigned long long)n, n == 1 ? "" : "s")
		 : 0;
}

static int report_early(struct lanes *l)
{
	uint64_t n = l->seen->pub->quality.early;

	return n ? lanes__lack(l,
			       "the stacks of %llu sample%s of Haskell code, taken before "
			       "its runtime could be read",
			       (unsigned long long)n, n == 1 ? "" : "s")
		 : 0;
}

static int make(struct lanes *l, uint64_t end_ns, size_t max_slices)
{
	struct seen *s = l->seen;
	uint64_t allocated_by = l->goes_on ? end_ns : UINT64_MAX;
	int err;

	l->end_ns = end_ns;
	l->max_slices = max_slices;
	err = complete(l, end_ns);
	s->pub->overlaps = l->overlaps.sums;
	if (!err)
		err = fill_threads(l);
	if (!err)
		err = caps__fill(l, end_ns);
	if (!err && l->opts.haskell)
		err = haskell__fill(l);
	if (!err)
		err = flow__fill(l);
	if (!err)
		err = calls__fill(l, end_ns);
	if (!err)
		err = gcs__fill(l);
	if (!err)
		err = allocated__take(l, allocated_by);
	if (!err)
		err = allocated__fill(l, allocated_by);
	if (!err)
		err = functions__fill(l->pic, s->pub);
	if (!err)
		err = centres__fill(l->pic, s, &l->allocated.by_centre);
	if (!err)
		err = report_left_out(l);
	if (!err)
		err = report_early(l);
	if (!err && s->left_out)
		picture__set_lost(l->pic, s->pub, PIC_LOST_BEYOND_LIMIT, s->left_out);
	picture__mark_paused(l->pic, s->pub, s->ended ? s->end_ns : UINT64_MAX);
	return err;
}

int lanes__finish(struct lanes *l, uint64_t end_ns, size_t max_slices)
{
	return make(l, seen__end(l->seen, end_ns), max_slices);
}

/* ── cuts ────────────────────────────────────────────────────────────────────────────────── */

int lanes__window(struct lanes *l, uint64_t end_ns, size_t max_slices)
{
	int err;

	l->goes_on = true;
	err = make(l, seen__end(l->seen, end_ns), max_slices);
	l->goes_on = false;
	return err;
}

/* A thread is kept this long after its exit: it is still switched out, and such records do not mean
 * a new thread. */
#define GONE_NS 1000000000ULL

static int has_passed(void *ctx, struct seen_thread *th)
{
	struct lanes *l = ctx;
	struct thread_lane *lane = th->no < l->n_threads ? &l->threads[th->no] : NULL;

	if (!th->end_ns || th->end_ns + GONE_NS > l->end_ns)
		return 0;
	if (lane && lane->seen == th) {
		slices__free(&lane->slices);
		lane->seen = NULL;
	}
	return 1;
}

int lanes__let_go(struct lanes *l, uint64_t end_ns)
{
	l->end_ns = end_ns;
	return seen__drop_threads(l->in, l->seen, has_passed, l);
}

static int cut_thread(struct lanes *l, struct thread_lane *lane, uint64_t end_ns)
{
	slices__free(&lane->slices);
	lane->end_ns = MAX(lane->end_ns, end_ns);
	lane->start_ns = lane->end_ns;
	lane->cpu_ns = lane->run_ns = lane->idle_ns = lane->managed_ns = 0;
	lane->run_samples = lane->call_samples = lane->call_guess_ns = 0;
	lane->sampled_states = 0;
	lane->in_first_call = lane->in_first_call && !lane->complete;
	lane->began_in_first_call = lane->in_first_call;
	lane->seen->first_call_goes_on = lane->in_first_call;
	return seen__renumber(l->in, &lane->prev);
}

int lanes__cut(struct lanes *l, uint64_t end_ns)
{
	const struct heap_curve *heap = &l->allocated.heap;
	bool collected = heap->heap.known || heap->collected_before;
	uint64_t ticked = heap->ticked;
	int err;

	l->pic = intake__picture(l->in);
	free_books(l);
	memset(l->unsampled, 0, sizeof(l->unsampled));
	l->dropped = l->dropped_ns = 0;
	err = new_books(l);
	l->allocated.heap.collected_before = collected;
	/* these belong to the next collection, in whichever window it comes */
	l->allocated.heap.ticked = ticked;
	for (size_t i = 0; !err && i < l->n_threads; i++)
		if (l->threads[i].seen)
			err = cut_thread(l, &l->threads[i], end_ns);
	holds__cut(&l->holds, l->seen->cut_gcs);
	overlaps__cut(&l->overlaps, l->seen, end_ns);
	l->n_cap_waits = 0;
	haskell__cut(l, end_ns);
	return err ? err : caps__cut(l, end_ns);
}
