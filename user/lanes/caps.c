/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * caps: the lanes of capabilities. One that no thread holds is idle, stopped for a collection, or
 * disabled. Threads' pieces claim capabilities as they are made, before any are merged, so that a
 * capability's account has all of them.
 */
#include "lanes_priv.h"

#define MAX_MOVED ((size_t)1 << 24)

/* This much of a thread's LEDGER_RUN time on a capability was in short calls, and is idle. */
struct moved {
	pid_t tid;
	uint32_t cap;
	int64_t ns;
};

struct cap_lane {
	struct slices slices;
	uint64_t start_ns, cursor;
	uint64_t idle_ns, run_ns; /* booked so far; run_ns: in the threads' class LEDGER_RUN */
	uint64_t late_ns;	  /* the longest time that was known too late for the slices */
	uint32_t sampled_states;
	uint32_t no, gc_stack;
	size_t gc, note; /* index of the next one */
	struct holding holding;
	struct idle idle, gcs; /* for the lanes of Haskell threads; gcs: see caps__sampled_gc() */
	uint8_t overlap;       /* see overlaps__cap */
	uint64_t preempted_run_ns;
	bool runs; /* its last state, preemption aside, was Haskell code or an unsafe call */
	bool begun;
};

struct caps {
	struct cap_lane *v; /* by number */
	size_t n, cap;
	struct claims claims; /* not put yet */
	struct moved *moved;
	size_t n_moved, moved_cap;
};

struct cap_builder {
	struct lanes *l;
	struct cap_lane *lane;
	uint64_t *cursor;
};

int caps__new(struct caps **ret_caps)
{
	*ret_caps = calloc(1, sizeof(**ret_caps));
	return *ret_caps ? 0 : -ENOMEM;
}

void caps__free(struct caps *caps)
{
	if (!caps)
		return;
	for (size_t i = 0; i < caps->n; i++) {
		slices__free(&caps->v[i].slices);
		idle__free(&caps->v[i].idle);
		idle__free(&caps->v[i].gcs);
	}
	free(caps->v);
	claims__free(&caps->claims);
	free(caps->moved);
	free(caps);
}

int caps__copy(const struct caps *caps, struct caps **ret_copy)
{
	struct caps *copy;
	int err = caps__new(&copy);

	if (err)
		return err;
	err = ARRAY_RESERVE(copy->v, copy->cap, caps->n, MAX_CAPS);
	if (!err)
		err = claims__copy(&caps->claims, &copy->claims);
	if (!err)
		err = ARRAY_RESERVE(copy->moved, copy->moved_cap, caps->n_moved, MAX_MOVED);
	if (!err && caps->n_moved) {
		memcpy(copy->moved, caps->moved, caps->n_moved * sizeof(*copy->moved));
		copy->n_moved = caps->n_moved;
	}
	for (size_t i = 0; !err && i < caps->n; i++) {
		struct cap_lane *lane = &copy->v[copy->n++];

		*lane = caps->v[i];
		lane->slices = (struct slices){0};
		lane->idle = lane->gcs = (struct idle){0};
		err = idle__copy(&caps->v[i].idle, &lane->idle);
		if (!err)
			err = idle__copy(&caps->v[i].gcs, &lane->gcs);
	}
	if (err)
		caps__free(copy);
	else
		*ret_copy = copy;
	return err;
}

/* When it was created; the session's start for those that existed before. */
static uint64_t born(const struct seen *s, uint32_t no, uint64_t first_claim)
{
	uint64_t attach = s->pub->attach_ns, made = first_claim;

	if (!s->n_cap_notes || s->cap_notes[0].n > no || no < s->caps_at_attach)
		return attach;
	for (size_t i = 0; i < s->n_cap_notes; i++) {
		if (s->cap_notes[i].n > no) {
			made = MIN(made, s->cap_notes[i].ns);
			break;
		}
	}
	return MAX(made, attach);
}

/* ── putting it down ─────────────────────────────────────────────────────────────────────── */

/* The time from which no probe sees collections; UINT64_MAX: they are seen. */
static uint64_t unseen_from(const struct seen_gcs *gcs)
{
	if (gcs->off_ns)
		return gcs->off_ns;
	return gcs->known || gcs->has_probes ? UINT64_MAX : 0;
}

/* Keeps what the lanes of Haskell threads need: `c` is in force, and what is ready waits for it. */
static int keep(const struct lanes *l, struct cap_lane *lane, const struct claim *c,
		const struct pic_slice *s)
{
	uint64_t from = MAX(s->start_ns, unseen_from(&l->seen->gcs));

	if (s->state == CS_IDLE)
		return c->weak ? 0 : idle__add(&lane->idle, s->start_ns, s->end_ns);
	return s->state == CS_GC && from < s->end_ns ? idle__add(&lane->gcs, from, s->end_ns) : 0;
}

static int put(struct cap_builder *b, const struct claim *c, const struct pic_slice *s)
{
	struct cap_lane *lane = b->lane;
	struct lanes *l = b->l;
	int err = claim__book(l, LANE_CAPABILITY, lane->no, c, s);

	if (c->class == LEDGER_RUN)
		lane->run_ns += s->end_ns - s->start_ns;
	if (!err && l->opts.haskell)
		err = keep(l, lane, c, s);
	if (err || l->reading)
		return err;
	if (s->state == CS_PREEMPTED && lane->runs)
		lane->preempted_run_ns += s->end_ns - s->start_ns;
	else
		lane->runs = s->state == CS_HASKELL || s->state == CS_UNSAFE_CALL;
	err = holds__see(&l->holds, &l->seen->gcs, &lane->holding, s);
	if (!err)
		err = overlaps__cap(&l->overlaps, &lane->overlap, s);
	return err ? err : slices__put(&lane->slices, LANE_CAPABILITY, s, l->max_slices);
}

static enum cap_state state_of(enum thread_state state)
{
	switch (state) {
	case ST_HASKELL:
	case ST_HASKELL_BLOCKED:
		return CS_HASKELL;
	case ST_UNSAFE_CALL_CPU:
	case ST_UNSAFE_CALL_BLOCKED:
		return CS_UNSAFE_CALL;
	case ST_GC_WORK:
	case ST_GC_WAIT:
		return CS_GC;
	case ST_PREEMPTED:
		return CS_PREEMPTED;
	default:
		return CS_RTS;
	}
}

/* Finds the state of a capability that nobody holds, and the end of that state, at most `end`. */
static void unheld(struct cap_builder *b, uint64_t end, struct pic_slice *ret)
{
	const struct seen *s = b->l->seen;
	struct cap_lane *lane = b->lane;
	const struct cap_note *note = NULL;
	uint64_t at = ret->start_ns;

	while (lane->gc < s->gcs.n && gc__end(&s->gcs.v[lane->gc]) <= at)
		lane->gc++;
	while (lane->note + 1 < s->n_cap_notes && s->cap_notes[lane->note + 1].ns <= at)
		lane->note++;
	if (lane->note + 1 < s->n_cap_notes)
		end = MIN(end, s->cap_notes[lane->note + 1].ns);
	if (lane->note < s->n_cap_notes && s->cap_notes[lane->note].ns <= at)
		note = &s->cap_notes[lane->note];
	ret->end_ns = end;
	ret->exact = 1;
	ret->state = CS_IDLE;
	if (lane->gc < s->gcs.n && s->gcs.v[lane->gc].start <= at) {
		ret->state = CS_GC;
		ret->stack = lane->gc_stack;
		ret->end_ns = MIN(end, gc__end(&s->gcs.v[lane->gc]));
		return;
	}
	if (lane->gc < s->gcs.n)
		ret->end_ns = MIN(end, s->gcs.v[lane->gc].start);
	if (lane->no < 64 && note && note->disabled >> lane->no & 1) {
		ret->state = CS_DISABLED;
		ret->exact = 0;
	}
}

/* Puts the time up to `end` in which nobody holds it; `weak`: it could run if a thread had a CPU;
 * NULL: it could not. */
static int put_unheld(struct cap_builder *b, uint64_t end, const struct claim *weak)
{
	static const struct claim nobody = {.class = LEDGER_CLASSES};
	uint64_t at = *b->cursor;
	int err = 0;

	while (!err && at < end) {
		struct pic_slice s = {.start_ns = at, .cap = (uint16_t)b->lane->no};
		const struct claim *c = &nobody;

		unheld(b, end, &s);
		if (s.state == CS_IDLE && weak) {
			s = claim__slice(weak, at, s.end_ns);
			c = weak;
			b->lane->runs = false;
		}
		if (s.state == CS_DISABLED)
			b->lane->sampled_states |= 1U << CS_DISABLED;
		if (s.state == CS_IDLE)
			b->lane->idle_ns += s.end_ns - s.start_ns;
		at = s.end_ns;
		err = put(b, c, &s);
	}
	return err;
}

static int put_gap(void *ctx, uint64_t end, const struct claim *next)
{
	(void)next;
	return put_unheld(ctx, end, NULL);
}

static int put_claim(void *ctx, const struct claim *c, uint64_t end)
{
	struct cap_builder *b = ctx;
	struct pic_slice s = claim__slice(c, *b->cursor, end);

	if (c->weak)
		return put_unheld(b, end, c);
	if (!c->s.exact)
		b->lane->sampled_states |= 1U << s.state;
	return put(b, c, &s);
}

/* ── one capability ──────────────────────────────────────────────────────────────────────── */

/*
 * Books what becomes known only after its time was put: a thread that was then taken to sleep had
 * run for a while before, or waited for a CPU. The capability was taken to be idle, and is drawn
 * so.
 */
static int book_late(struct cap_builder *b, const struct claim *c)
{
	struct cap_lane *lane = b->lane;
	struct pic_slice s = c->s;
	uint64_t ns;
	int err;

	s.start_ns = MAX(s.start_ns, lane->start_ns);
	s.end_ns = MIN(s.end_ns, lane->cursor);
	if (s.end_ns <= s.start_ns)
		return 0;
	ns = MIN(s.end_ns - s.start_ns, lane->idle_ns);
	s.end_ns = s.start_ns + ns;
	s.state = c->state;
	lane->idle_ns -= ns;
	lane->late_ns = MAX(lane->late_ns, ns);
	err = claim__book(b->l, LANE_CAPABILITY, lane->no, c, &s);
	return err ? err
		   : ledger__off(b->l->ledger[LANE_CAPABILITY], lane->no, CS_IDLE, 0, -(int64_t)ns);
}

static int begin(struct lanes *l, uint32_t no, uint64_t first_claim)
{
	struct caps *caps = l->caps;
	struct cap_lane *lane;
	uint32_t mark = picture__mark(l->pic, MARK_GC);
	int err = ARRAY_RESERVE(caps->v, caps->cap, no + 1, MAX_CAPS);

	if (err)
		return err;
	while (caps->n <= no)
		caps->v[caps->n++] = (struct cap_lane){0};
	lane = &caps->v[no];
	if (lane->begun)
		return 0;
	lane->begun = true;
	lane->no = no;
	lane->start_ns = lane->cursor = born(l->seen, no, first_claim);
	return picture__add_stack(l->pic, &mark, 1, &lane->gc_stack);
}

int caps__cut(struct lanes *l, uint64_t end_ns)
{
	uint32_t mark = picture__mark(l->pic, MARK_GC);
	int err = 0;

	for (size_t i = 0; !err && i < l->caps->n; i++) {
		struct cap_lane *lane = &l->caps->v[i];

		slices__free(&lane->slices);
		/* a window that was not made, or only in part, is not made up for */
		lane->start_ns = lane->cursor = MAX(lane->cursor, end_ns);
		lane->idle_ns = lane->run_ns = lane->late_ns = lane->preempted_run_ns = 0;
		lane->sampled_states = 0;
		lane->gc = lane->note = 0;
		holding__cut(&lane->holding, l->seen->cut_gcs);
		err = picture__add_stack(l->pic, &mark, 1, &lane->gc_stack);
	}
	return err;
}

static int advance_one(struct lanes *l, uint32_t no, struct claim *v, size_t n, uint64_t until)
{
	int err = begin(l, no, n ? v[0].s.start_ns : until);
	struct cap_builder b = {.l = l};
	struct claim_walk walk = {.put = put_claim, .gap = put_gap, .to_the_end = true, .ctx = &b};

	if (err)
		return err;
	b.lane = &l->caps->v[no];
	b.cursor = &walk.cursor;
	walk.cursor = b.lane->cursor;
	for (size_t i = 0; !err && i < n && v[i].s.start_ns < walk.cursor; i++) {
		err = book_late(&b, &v[i]);
		/* it may go on */
		v[i].s.start_ns = walk.cursor;
		v[i].s.samples = 0;
	}
	if (!err && walk.cursor < until)
		err = claims__walk(&walk, v, n, until);
	b.lane->cursor = walk.cursor;
	return err;
}

/* ── all of them ─────────────────────────────────────────────────────────────────────────── */

/* Without -threaded nothing else can use the capability during a safe call: it is idle, and what is
 * ready stays so. */
static bool keeps_others_waiting(const struct lanes *l, const struct piece *p)
{
	return !l->seen->pub->threaded && p->s.tso && p->s.cap == NO_CAP && p->s.state != ST_IDLE;
}

int caps__claim(struct lanes *l, const struct piece *v, size_t n)
{
	int err = 0;

	for (size_t i = 0; !err && i < n; i++) {
		enum thread_state state = (enum thread_state)v[i].s.state;
		struct claim c = {.s = v[i].s, .state = (uint8_t)state_of(state)};

		if (v[i].s.cap == NO_CAP && v[i].awaited != NO_CAP) {
			c.s.cap = v[i].awaited;
			c.weak = true;
		} else if (keeps_others_waiting(l, &v[i])) {
			c = (struct claim){.s = {.start_ns = v[i].s.start_ns,
						 .end_ns = v[i].s.end_ns,
						 .exact = 1},
					   .class = LEDGER_CLASSES,
					   .state = CS_IDLE,
					   .weak = true};
			err = claims__add(&l->caps->claims, &c);
			continue;
		}
		if (c.s.cap >= MAX_CAPS)
			continue;
		c.class = thread__on_cpu(state) ? v[i].class : LEDGER_CLASSES;
		err = claims__add(&l->caps->claims, &c);
	}
	return err;
}

static int by_cap(const void *pa, const void *pb)
{
	const struct claim *a = pa, *b = pb;

	return CMP(a->s.cap, b->s.cap) ?: claims__by_start(a, b);
}

/* Moves short calls, in which the capability was free, by at most what there is so far. */
static int book_moved(struct lanes *l, struct cap_lane *lane, struct moved *m)
{
	const struct ledger_place place = {
		.owner = lane->no, .detail = (uint32_t)m->tid, .class = LEDGER_RUN};
	int64_t ns = MIN(m->ns, (int64_t)lane->run_ns);
	int err;

	ns = MAX(ns, -(int64_t)lane->idle_ns);
	m->ns -= ns;
	if (!ns)
		return 0;
	lane->run_ns -= (uint64_t)ns;
	lane->idle_ns += (uint64_t)ns;
	lane->sampled_states |= 1U << CS_HASKELL | 1U << CS_IDLE;
	err = ledger__time(l->ledger[LANE_CAPABILITY], &place, -ns);
	return err ? err : ledger__off(l->ledger[LANE_CAPABILITY], lane->no, CS_IDLE, 0, ns);
}

static size_t end_of_cap(const struct claims *claims, size_t from, uint32_t no)
{
	while (from < claims->n && claims->v[from].s.cap == no)
		from++;
	return from;
}

int caps__advance(struct lanes *l, uint64_t until)
{
	struct caps *caps = l->caps;
	struct claims *claims = &caps->claims;
	uint32_t n_caps = MAX(l->seen->pub->capabilities, (uint32_t)caps->n);
	size_t from = 0, kept = 0;
	int err = 0;

	array__sort(claims->v, claims->n, sizeof(*claims->v), by_cap);
	if (claims->n)
		n_caps = MAX(n_caps, claims->v[claims->n - 1].s.cap + 1U);
	for (uint32_t no = 0; !err && no < MIN(n_caps, (uint32_t)MAX_CAPS); no++) {
		size_t to = end_of_cap(claims, from, no), n = to - from;

		err = advance_one(l, no, n ? &claims->v[from] : NULL, n, until);
		claims__keep_rest(claims, &kept, from, to, until);
		from = to;
	}
	claims__keep_only(claims, kept);
	kept = 0;
	for (size_t i = 0; !err && i < caps->n_moved; i++) {
		struct moved *m = &caps->moved[i];

		if (m->cap < caps->n)
			err = book_moved(l, &caps->v[m->cap], m);
		if (m->ns)
			caps->moved[kept++] = *m;
	}
	caps->n_moved = kept;
	return err;
}

int caps__moved(struct lanes *l, const struct piece *v, size_t n, int64_t ns)
{
	struct caps *caps = l->caps;
	uint64_t held[MAX_CAPS] = {0}, sum = 0;
	int err = 0;

	for (size_t i = 0; ns && i < n; i++) {
		if (v[i].class != LEDGER_RUN || !thread__on_cpu(v[i].s.state) ||
		    v[i].s.cap >= MAX_CAPS)
			continue;
		held[v[i].s.cap] += v[i].s.end_ns - v[i].s.start_ns;
		sum += v[i].s.end_ns - v[i].s.start_ns;
	}
	for (uint32_t no = 0; !err && sum && no < MAX_CAPS; no++) {
		struct moved m = {v[0].s.tid, no, (int64_t)((__int128)ns * held[no] / sum)};

		if (!m.ns)
			continue;
		err = ARRAY_RESERVE(caps->moved, caps->moved_cap, caps->n_moved + 1, MAX_MOVED);
		if (!err)
			caps->moved[caps->n_moved++] = m;
	}
	return err;
}

/* ── the picture ─────────────────────────────────────────────────────────────────────────── */

static int fill(struct lanes *l, struct cap_lane *lane, struct ledger_account *account,
		uint64_t end, struct pic_lane *ret)
{
	int err;

	*ret = (struct pic_lane){
		.kind = LANE_CAPABILITY,
		.cap = lane->no,
		.name = "",
		.start_ns = lane->start_ns,
		.end_ns = MAX(end, lane->cursor),
		.sampled_states = lane->sampled_states,
		.preempted_run_ns = lane->preempted_run_ns,
	};
	err = slices__give(&lane->slices, l->pic, ret);
	ret->merged_ns = MAX(ret->merged_ns, lane->late_ns);
	return err ? err : lane__take_account(l, account, ret);
}

const struct idle *caps__idle(const struct lanes *l, uint32_t cap)
{
	return cap < l->caps->n ? &l->caps->v[cap].idle : NULL;
}

const struct idle_span *caps__sampled_gc(const struct lanes *l, uint32_t cap, uint64_t at)
{
	return cap < l->caps->n ? idle__next(&l->caps->v[cap].gcs, at) : NULL;
}

void caps__forget_idle(struct lanes *l, uint64_t until)
{
	for (size_t i = 0; i < l->caps->n; i++) {
		idle__forget(&l->caps->v[i].idle, until);
		idle__forget(&l->caps->v[i].gcs, until - MIN(until, SAMPLED_GCS_NS));
	}
}

int caps__fill(struct lanes *l, uint64_t end)
{
	struct caps *caps = l->caps;
	struct pic_lanes *pub = &l->seen->pub->lanes[LANE_CAPABILITY];
	struct pic_lane *lanes = picture__alloc(l->pic, caps->n, sizeof(*lanes));
	struct ledger_account *accounts;
	int err = lanes ? ledger__accounts(l->ledger[LANE_CAPABILITY], (uint32_t)caps->n, &accounts)
			: -ENOMEM;

	if (err)
		return err;
	pub->v = lanes;
	for (size_t i = 0; !err && i < caps->n; i++)
		if (caps->v[i].start_ns < end)
			err = fill(l, &caps->v[i], &accounts[i], end, &lanes[pub->n++]);
	ledger_accounts__free(accounts, (uint32_t)caps->n);
	return err;
}
