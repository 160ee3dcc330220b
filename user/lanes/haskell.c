/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * haskell: the lanes of Haskell threads. The pieces of OS threads show where one runs, and in which
 * call. Between two pieces it is off (haskell_gaps.c).
 */
#include "base/search.h"
#include "haskell_priv.h"

#define MAX_LANES (1U << 20)
/* The most lanes carried into the next window: some threads wait for ever, and the end of some is
 * never seen. */
#define MAX_CARRIED (1U << 16)
/* What an OS thread may do while its Haskell thread waits for its next turn. */
#define SCHEDULER_STATES                                                                           \
	(1U << ST_RTS | 1U << ST_GC_WORK | 1U << ST_GC_WAIT | 1U << ST_PREEMPTED | 1U << ST_HASKELL)

struct haskell {
	struct haskell_lane *hash, **v;
	size_t n, cap, max;
	uint64_t left_out_ns; /* time of threads without room for a lane, since the last cut */
	struct claims claims; /* not put yet */
	/* while lanes advance, what was seen: stops, then looks, each by thread and time */
	struct tso_note *notes;
	size_t n_notes, n_stops;
};

int haskell__new(size_t max, struct haskell **ret_haskell)
{
	struct haskell *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->max = max ? max : MAX_LANES;
	*ret_haskell = h;
	return 0;
}

void haskell__free(struct haskell *h)
{
	if (!h)
		return;
	HASH_CLEAR(hh, h->hash);
	for (size_t i = 0; i < h->n; i++) {
		slices__free(&h->v[i]->slices);
		free(h->v[i]);
	}
	free(h->v);
	free(h->notes);
	claims__free(&h->claims);
	free(h);
}

/* -E2BIG: there are too many. */
static int get_lane(struct haskell *h, uint64_t tso, uint64_t start_ns,
		    struct haskell_lane **ret_lane)
{
	struct haskell_lane *lane;
	int err;

	HASH_FIND(hh, h->hash, &tso, sizeof(tso), lane);
	if (lane) {
		*ret_lane = lane;
		return 0;
	}
	err = ARRAY_RESERVE(h->v, h->cap, h->n + 1, h->max);
	if (err)
		return err;
	lane = calloc(1, sizeof(*lane));
	if (!lane)
		return -ENOMEM;
	lane->tso = tso;
	lane->no = (uint32_t)h->n;
	lane->last_cap = UINT32_MAX;
	lane->waits = lane->left = HS_UNKNOWN;
	lane->start_ns = lane->cursor = start_ns;
	err = HASH_INSERT(h->hash, tso, sizeof(lane->tso), lane);
	if (err)
		return err;
	h->v[h->n++] = lane;
	*ret_lane = lane;
	return 0;
}

/* Copies without the slices. */
int haskell__copy(const struct haskell *h, struct haskell **ret_copy)
{
	struct haskell *copy;
	int err = haskell__new(h->max, &copy);

	if (err)
		return err;
	err = claims__copy(&h->claims, &copy->claims);
	for (size_t i = 0; !err && i < h->n; i++) {
		struct haskell_lane *lane;

		err = get_lane(copy, h->v[i]->tso, h->v[i]->start_ns, &lane);
		if (err)
			break;
		lane->cursor = h->v[i]->cursor;
		lane->waits = h->v[i]->waits;
		lane->left = h->v[i]->left;
		lane->left_ns = h->v[i]->left_ns;
		lane->unsure = h->v[i]->unsure;
		lane->ran_unseen = h->v[i]->ran_unseen;
		lane->last_cap = h->v[i]->last_cap;
		lane->idle_ns = h->v[i]->idle_ns;
		lane->ready_ns = h->v[i]->ready_ns;
	}
	if (err)
		haskell__free(copy);
	else
		*ret_copy = copy;
	return err;
}

/* ── claims ──────────────────────────────────────────────────────────────────────────────── */

static int claim(struct lanes *l, struct thread_lane *lane, const struct piece *p)
{
	enum thread_state before = lane->tso ? (enum thread_state)lane->tso_state : ST_MAX;
	struct claim c = {
		.s = p->s,
		.class = LEDGER_CLASSES,
		.before = p->s.tso == lane->tso ? lane->tso_gap : HS_UNKNOWN,
		.state = (uint8_t)haskell_state__of(&p->s, before),
		.tso_guessed = p->tso_guessed,
	};

	if (p->s.state == ST_HASKELL || p->s.state == ST_UNSAFE_CALL_CPU)
		c.class = p->class;
	lane->tso = p->s.tso;
	lane->tso_state = p->s.state;
	lane->tso_gap = HS_RUNNABLE;
	return claims__add(&l->haskell->claims, &c);
}

/*
 * A thread whose call has called back is in that call as long as it lasts, whatever its OS thread
 * does for other Haskell threads meanwhile; what is seen of the thread itself comes first.
 */
static int claim_call(struct lanes *l, const struct thread_lane *lane, const struct cover *call)
{
	struct ev ev = *call->ev;
	struct claim c = {
		.s = {.start_ns = call->start,
		      .end_ns = call->end,
		      .tso = ev.tso,
		      .tid = lane->seen->tid,
		      .cap = NO_CAP,
		      .state = ST_SAFE_CALL_CPU,
		      .exact = call->end_exact},
		.class = LEDGER_CLASSES,
		.before = ev.tso == lane->tso ? lane->tso_gap : HS_UNKNOWN,
		.state = HS_SAFE_CALL,
	};
	int err;

	ev.c = 0;
	err = stack__compose(l->in, l->seen, ST_SAFE_CALL_CPU, &ev, &c.s.stack);
	return err ? err : claims__add(&l->haskell->claims, &c);
}

int haskell__claim(struct lanes *l, struct thread_lane *lane, const struct piece *v, size_t n,
		   const struct cover_list *covers)
{
	size_t next = 0;
	int err = 0;

	for (size_t i = 0; !err && i < n; i++) {
		for (; !err && next < covers->n && covers->v[next].start <= v[i].s.start_ns; next++)
			if (!covers->v[next].gc && covers->v[next].callback &&
			    covers->v[next].ev->tso)
				err = claim_call(l, lane, &covers->v[next]);
		if (err)
			break;
		if (v[i].s.tso)
			err = claim(l, lane, &v[i]);
		else if (v[i].s.state == ST_IDLE)
			/* An OS thread without work has no Haskell thread that could run. */
			lane->tso_gap = HS_BLOCKED_OTHER;
		else if (!(1U << v[i].s.state & SCHEDULER_STATES) && lane->tso_gap == HS_RUNNABLE)
			lane->tso_gap = HS_UNKNOWN;
	}
	return err;
}

/* ── putting it down ─────────────────────────────────────────────────────────────────────── */

static int put_claim(void *ctx, const struct claim *c, uint64_t end)
{
	struct haskell_builder *b = ctx;
	struct pic_slice s = claim__slice(c, *b->cursor, end);

	s.cap = s.cap < MAX_CAPS ? s.cap : NO_CAP;
	if (s.cap != NO_CAP)
		b->lane->last_cap = s.cap;
	b->lane->waits = HS_UNKNOWN;
	b->lane->ran_unseen = false;
	if (!c->is_rest && !c->tso_guessed && c->s.start_ns >= *b->cursor)
		b->lane->left = HS_UNKNOWN;
	haskell__find_left(b, end);
	return haskell__put(b, c, &s);
}

/* ── one thread ──────────────────────────────────────────────────────────────────────────── */

/* The thread's notes among n. */
static const struct tso_note *notes_of(const struct tso_note *v, size_t n, uint64_t tso,
				       size_t *ret_n)
{
	size_t from = search__first(n, i, v[i].tso >= tso);
	size_t to = search__first(n, k, v[k].tso > tso);

	*ret_n = to - from;
	return v + from;
}

/* Puts what follows the thread's last piece. */
static int go_on(struct haskell_builder *b, uint64_t until)
{
	struct haskell_lane *lane = b->lane;
	int err = haskell__leave_holes(b, until);
	uint64_t end;
	uint8_t waits;

	if (!err)
		err = haskell__put_looks(b, until, NULL);
	if (err || b->dead)
		return err;
	end = haskell__end_of(b, until, &waits);
	lane->waits = waits;
	lane->unsure = b->unsure && end < until && waits != HS_RUNNABLE;
	/* the next look shows it */
	b->lost = b->lost && !lane->unsure;
	err = end > *b->cursor ? haskell__put_wait(b, end, NULL) : 0;
	*b->cursor = MAX(*b->cursor, end);
	if ((end < until && !lane->unsure) || b->at_last != HS_UNKNOWN || b->lost)
		lane->waits = (uint8_t)b->at_last;
	lane->ran_unseen |= b->lost && b->at_last == HS_UNKNOWN;
	if (err || *b->cursor >= until || !haskell__is_seen_later(b, until))
		return err;
	/* without the cut, the time up to its next piece would be a gap in its lane */
	lane->ran_unseen |= waits == HS_RUNNABLE;
	lane->waits = HS_UNKNOWN;
	lane->unsure = false;
	err = haskell__put_unknown(b, until);
	*b->cursor = until;
	return err;
}

static int advance_one(struct lanes *l, struct haskell_lane *lane, const struct claim *v, size_t n,
		       uint64_t until, bool last)
{
	const struct haskell *h = l->haskell;
	struct haskell_builder b = {.l = l, .lane = lane, .at_last = HS_UNKNOWN};
	struct claim_walk walk = {
		.cursor = lane->cursor, .put = put_claim, .gap = haskell__put_gap, .ctx = &b};
	int err;

	b.cursor = &walk.cursor;
	b.notes = notes_of(h->notes, h->n_stops, lane->tso, &b.n_notes);
	b.looks = notes_of(h->notes + h->n_stops, h->n_notes - h->n_stops, lane->tso, &b.n_looks);
	err = claims__walk(&walk, v, n, until);
	if (!err && last)
		err = go_on(&b, until);
	lane->cursor = walk.cursor;
	return err;
}

/* ── all of them ─────────────────────────────────────────────────────────────────────────── */

static int by_tso(const void *pa, const void *pb)
{
	const struct claim *a = pa, *b = pb;

	return CMP(a->s.tso, b->s.tso) ?: claims__by_start(a, b);
}

static int by_note(const void *pa, const void *pb)
{
	const struct tso_note *a = pa, *b = pb;

	return CMP(a->is_look, b->is_look) ?: CMP(a->tso, b->tso) ?: CMP(a->ns, b->ns);
}

static int sort_notes(struct haskell *h, const struct seen *s)
{
	free(h->notes);
	h->n_notes = 0;
	h->notes = malloc((s->n_tso_notes + 1) * sizeof(*h->notes));
	if (!h->notes)
		return -ENOMEM;
	if (s->n_tso_notes)
		memcpy(h->notes, s->tso_notes, s->n_tso_notes * sizeof(*h->notes));
	h->n_notes = s->n_tso_notes;
	qsort(h->notes, h->n_notes, sizeof(*h->notes), by_note);
	h->n_stops = search__first(h->n_notes, i, h->notes[i].is_look);
	return 0;
}

/* Whether the note is not in the past of its thread's lane. */
static bool is_needed(void *ctx, const struct tso_note *note)
{
	const struct haskell *h = ctx;
	const struct haskell_lane *lane;

	HASH_FIND(hh, h->hash, &note->tso, sizeof(note->tso), lane);
	return !lane || note->ns >= lane->cursor;
}

static bool is_later(void *ctx, const struct tso_note *note)
{
	const uint64_t *at_ns = ctx;

	return note->ns > *at_ns;
}

static bool has_lane(void *ctx, uint64_t tso)
{
	const struct haskell *h = ctx;
	const struct haskell_lane *lane;

	HASH_FIND(hh, h->hash, &tso, sizeof(tso), lane);
	return lane != NULL;
}

/* How much of the time up to `until` one thread's claims cover; they are sorted by start. */
static uint64_t claimed_ns(const struct claim *v, size_t n, uint64_t until)
{
	uint64_t ns = 0, at = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t end = MIN(v[i].s.end_ns, until), start = MAX(v[i].s.start_ns, at);

		ns += end > start ? end - start : 0;
		at = MAX(at, end);
	}
	return ns;
}

/* Advances one thread's lane up to `until` by its claims, which are sorted by start. */
static int advance_claimed(struct lanes *l, const struct claim *v, size_t n, uint64_t until)
{
	struct haskell *h = l->haskell;
	struct haskell_lane *lane;
	int err = get_lane(h, v->s.tso, v->s.start_ns, &lane);

	if (err == -E2BIG) {
		h->left_out_ns += claimed_ns(v, n, until);
		return 0;
	}
	return err ? err : advance_one(l, lane, v, n, until, false);
}

int haskell__advance(struct lanes *l, uint64_t until, bool last)
{
	struct haskell *h = l->haskell;
	struct claims *claims = &h->claims;
	size_t kept = 0, to;
	int err = sort_notes(h, l->seen);

	array__sort(claims->v, claims->n, sizeof(*claims->v), by_tso);
	for (size_t from = 0; !err && from < claims->n; from = to) {
		const struct claim *v = &claims->v[from];

		for (to = from; to < claims->n && claims->v[to].s.tso == v->s.tso;)
			to++;
		if (v->s.start_ns < until)
			err = advance_claimed(l, v, to - from, until);
		claims__keep_rest(claims, &kept, from, to, until);
	}
	claims__keep_only(claims, kept);
	for (size_t i = 0; !err && last && i < h->n; i++)
		err = advance_one(l, h->v[i], NULL, 0, until, true);
	if (err || l->reading)
		return err;
	for (size_t i = 0; i < h->n; i++)
		haskell__keep_idle(l, h->v[i]);
	caps__forget_idle(l, until);
	seen__forget_tso_notes(l->seen, is_needed, h);
	return 0;
}

void haskell__cut(struct lanes *l, uint64_t at_ns)
{
	struct haskell *h = l->haskell;
	size_t kept = 0, left = 0;

	/* if a window was not made, there may be some left */
	claims__keep_rest(&h->claims, &left, 0, h->claims.n, at_ns);
	claims__keep_only(&h->claims, left);
	for (size_t i = 0; i < h->n; i++) {
		struct haskell_lane *lane = h->v[i];

		slices__free(&lane->slices);
		if (lane->unsure)
			lane->cursor = at_ns;
		lane->unsure = false;
		if (lane->cursor >= at_ns && kept < MAX_CARRIED) {
			lane->no = (uint32_t)kept;
			lane->start_ns = lane->cursor;
			lane->sampled_states = 0;
			h->v[kept++] = lane;
			continue;
		}
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): all of v are in there */
		HASH_DEL(h->hash, lane);
		free(lane);
	}
	h->n = kept;
	h->left_out_ns = 0;
	seen__forget_tso_notes(l->seen, is_later, &at_ns);
	seen__forget_tsos(l->seen, at_ns, has_lane, h);
}

static int by_running(const void *pa, const void *pb)
{
	const struct pic_lane *a = pa, *b = pb;
	uint64_t ra = a->states_ns[HS_RUNNING], rb = b->states_ns[HS_RUNNING];

	return CMP(rb, ra) ?: CMP(a->tso, b->tso);
}

static int fill(struct lanes *l, struct haskell_lane *lane, struct ledger_account *account,
		struct pic_lane *ret)
{
	const struct tso_info *info = seen__tso(l->seen, lane->tso);
	int err;

	*ret = (struct pic_lane){
		.kind = LANE_HASKELL,
		.tso = lane->tso,
		.name = info ? info->label : "",
		.bound = info && info->bound,
		.start_ns = lane->start_ns,
		.end_ns = lane->cursor,
		.sampled_states = lane->sampled_states,
	};
	err = slices__give(&lane->slices, l->pic, ret);
	return err ? err : lane__take_account(l, account, ret);
}

int haskell__fill(struct lanes *l)
{
	struct haskell *h = l->haskell;
	struct pic_lanes *pub = &l->seen->pub->lanes[LANE_HASKELL];
	struct pic_lane *lanes = picture__alloc(l->pic, h->n, sizeof(*lanes));
	struct ledger_account *accounts;
	size_t n = 0;
	int err = lanes ? ledger__accounts(l->ledger[LANE_HASKELL], (uint32_t)h->n, &accounts)
			: -ENOMEM;

	if (err)
		return err;
	for (size_t i = 0; !err && i < h->n; i++)
		/* a thread that waited at the last cut, and was not seen since, has no time */
		if (h->v[i]->cursor > h->v[i]->start_ns)
			err = fill(l, h->v[i], &accounts[i], &lanes[n++]);
	ledger_accounts__free(accounts, (uint32_t)h->n);
	qsort(lanes, n, sizeof(*lanes), by_running);
	pub->v = lanes;
	pub->n = n;
	if (!err && h->left_out_ns)
		err = lanes__lack(l,
				  "the lanes of Haskell threads that ran, or were in calls, for "
				  "%.3f s in all: there were more than %zu of them; their samples "
				  "and calls are in the tables",
				  (double)h->left_out_ns / 1e9, h->max);
	return err;
}
