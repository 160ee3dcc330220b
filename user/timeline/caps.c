/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * caps: one lane for each capability. A capability does what the thread that holds it does; when
 * none holds it, it is idle, or stopped for a collection, or disabled. Threads' lanes are its
 * claims: they are taken as they are made, before any are merged, so that its sums have all.
 */
#include "private.h"

#define MAX_OVERLAP 32
#define MAX_CLAIMS  ((size_t)1 << 26)

/* A thread holds a capability. */
struct claim {
	uint64_t start, end, tso;
	pid_t tid;
	uint32_t stack, samples;
	uint16_t cap;
	uint8_t state; /* enum tl_state */
	uint8_t class; /* enum ledger_class */
	bool exact;
};

/* Of a thread's time in Haskell code on a capability so much was in short calls, and is idle. */
struct moved {
	pid_t tid;
	uint32_t cap;
	int64_t ns;
};

struct cap_builder {
	struct timeline *tl;
	struct target_state *tg;
	struct tl_cap_lane lane;
	struct tl_cap_stretch *v;
	size_t n, room, max;
	uint64_t cursor;
	uint64_t idle_ns, haskell_ns; /* booked so far; of the latter what ran */
	uint32_t gc_stack;
	size_t gc, note; /* next of each */
	bool begun;
};

struct caps {
	struct cap_builder *v; /* by number */
	size_t n, cap;
	struct claim *claims; /* that reach beyond done_ns */
	size_t n_claims, claims_cap;
	struct moved *moved; /* not booked yet */
	size_t n_moved, moved_cap;
};

/* ── how many there are ──────────────────────────────────────────────────────────────────── */

int caps__note(struct target_state *tg, uint64_t ns, uint32_t n, uint64_t disabled)
{
	struct cap_note *last = tg->n_cap_notes ? &tg->cap_notes[tg->n_cap_notes - 1] : NULL;
	int err;

	if (last && ((last->n == n && last->disabled == disabled) || ns < last->ns))
		return 0;
	err = TL_RESERVE(tg->cap_notes, tg->cap_notes_cap, tg->n_cap_notes + 1, TL_MAX_NOTES);
	if (err) {
		tg->left_out++;
		return err == -E2BIG ? -ENOSPC : err;
	}
	tg->cap_notes[tg->n_cap_notes++] =
		(struct cap_note){.ns = ns, .disabled = disabled, .n = n};
	return 0;
}

/* When it was made; the session's begin for those that were there before. */
static uint64_t born(const struct target_state *tg, uint32_t no, uint64_t first_claim)
{
	uint64_t attach = tg->pub.attach_ns, made = first_claim;

	if (!tg->n_cap_notes || tg->cap_notes[0].n > no || no < tg->caps_at_attach)
		return attach;
	for (size_t i = 0; i < tg->n_cap_notes; i++) {
		if (tg->cap_notes[i].n > no) {
			made = MIN(made, tg->cap_notes[i].ns);
			break;
		}
	}
	return MAX(made, attach);
}

/* ── putting slices down ─────────────────────────────────────────────────────────────────── */

static void coarsen(struct cap_builder *b)
{
	size_t kept = 0;

	for (size_t i = 0; b->v && i < b->n; i += 2) {
		struct tl_cap_stretch s = b->v[i];

		if (i + 1 < b->n) {
			const struct tl_cap_stretch *next = &b->v[i + 1];
			uint32_t samples = s.samples + next->samples;
			uint64_t start = s.start_ns;

			if (next->end_ns - next->start_ns > s.end_ns - s.start_ns)
				s = *next;
			s.start_ns = start;
			s.end_ns = next->end_ns;
			s.samples = samples;
			s.exact = 0;
		}
		b->v[kept++] = s;
	}
	b->n = kept;
	b->lane.coarse = true;
}

/* The classes of each thread that holds it, so that both divide the same time by the same samples.
 */
static struct ledger_place place_of(const struct cap_builder *b, pid_t tid, uint8_t class)
{
	return (struct ledger_place){
		.owner = b->lane.no, .detail = (uint32_t)tid, .class = (enum ledger_class) class};
}

/* Time of a capability; class: of time on the CPU, LEDGER_CLASSES for any other. */
static int book(struct cap_builder *b, const struct tl_cap_stretch *s, uint8_t class)
{
	struct ledger_place place = place_of(b, s->tid, class);
	int64_t ns = (int64_t)(s->end_ns - s->start_ns);
	uint32_t unsampled;
	int err;

	if (s->state == CS_HASKELL && class == LEDGER_RUN)
		b->haskell_ns += (uint64_t)ns;
	if (class == LEDGER_CLASSES)
		return ledger__off(b->tg->cap_ledger, b->lane.no, s->state, s->stack, ns);
	err = ledger__time(b->tg->cap_ledger, &place, ns);
	if (!err && s->samples)
		err = ledger__sample(b->tg->cap_ledger, &place, s->state, s->stack, s->samples);
	if (!err)
		err = stack__unsampled(b->tl, cap_state__title((enum tl_cap_state)s->state),
				       &unsampled);
	return err ? err : ledger__guess(b->tg->cap_ledger, &place, s->state, unsampled, ns);
}

static int put(struct cap_builder *b, const struct tl_cap_stretch *s, uint8_t class)
{
	struct tl_cap_stretch *last = b->n ? &b->v[b->n - 1] : NULL;
	int err = book(b, s, class);

	if (err)
		return err;
	b->cursor = s->end_ns;
	if (last && last->state == s->state && last->stack == s->stack && last->tso == s->tso &&
	    last->tid == s->tid) {
		last->end_ns = s->end_ns;
		last->samples += s->samples;
		last->exact = last->exact && s->exact;
		return 0;
	}
	while (b->n >= b->max)
		coarsen(b);
	err = TL_RESERVE(b->v, b->room, b->n + 1, b->max);
	if (!err)
		b->v[b->n++] = *s;
	return err;
}

static enum tl_cap_state state_of(enum tl_state state)
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

static uint8_t class_of(const struct claim *c)
{
	return state__on_cpu((enum tl_state)c->state) ? c->class : LEDGER_CLASSES;
}

static int put_claim(struct cap_builder *b, const struct claim *c, uint64_t end)
{
	struct tl_cap_stretch s = {
		.start_ns = b->cursor,
		.end_ns = end,
		.tso = c->tso,
		.tid = c->tid,
		.stack = c->stack,
		.state = (uint8_t)state_of((enum tl_state)c->state),
	};

	if (s.end_ns <= s.start_ns)
		return 0;
	s.exact = c->exact && s.start_ns == c->start && s.end_ns == c->end;
	s.samples = s.start_ns == c->start ? c->samples : 0;
	if (!c->exact)
		b->lane.sampled_states |= 1U << s.state;
	return put(b, &s, class_of(c));
}

/* The next place where what an unheld capability is may change, and what it is up to there. */
static uint64_t unheld(struct cap_builder *b, uint64_t end, struct tl_cap_stretch *s)
{
	const struct target_state *tg = b->tg;
	const struct cap_note *note = NULL;
	uint64_t at = b->cursor;

	while (b->gc < tg->n_gcs && tg->gcs[b->gc].end && tg->gcs[b->gc].end <= at)
		b->gc++;
	while (b->note + 1 < tg->n_cap_notes && tg->cap_notes[b->note + 1].ns <= at)
		b->note++;
	if (b->note + 1 < tg->n_cap_notes)
		end = MIN(end, tg->cap_notes[b->note + 1].ns);
	if (b->note < tg->n_cap_notes && tg->cap_notes[b->note].ns <= at)
		note = &tg->cap_notes[b->note];
	if (b->gc < tg->n_gcs && tg->gcs[b->gc].start <= at) {
		s->state = CS_GC;
		s->stack = b->gc_stack;
		s->exact = 1;
		return MIN(end, tg->gcs[b->gc].end);
	}
	if (b->gc < tg->n_gcs)
		end = MIN(end, tg->gcs[b->gc].start);
	s->stack = 0;
	s->state = CS_IDLE;
	s->exact = 1;
	if (b->lane.no < 64 && note && note->disabled >> b->lane.no & 1) {
		s->state = CS_DISABLED;
		s->exact = 0;
	}
	return end;
}

/* Nobody holds it up to `end`. */
static int put_gap(struct cap_builder *b, uint64_t end)
{
	int err = 0;

	while (!err && b->cursor < end) {
		struct tl_cap_stretch s = {.start_ns = b->cursor};

		s.end_ns = unheld(b, end, &s);
		if (s.state == CS_DISABLED)
			b->lane.sampled_states |= 1U << CS_DISABLED;
		if (s.state == CS_IDLE)
			b->idle_ns += s.end_ns - s.start_ns;
		err = put(b, &s, LEDGER_CLASSES);
	}
	return err;
}

/* ── one capability ──────────────────────────────────────────────────────────────────────── */

/*
 * Up to `until`. Two threads cannot hold it at once, but where a claim's ends are sampled two may
 * overlap. Who begins later has it: that is where an event or a sample showed it in his hands.
 */
static int walk(struct cap_builder *b, const struct claim *claims, size_t n, uint64_t until)
{
	const struct claim *open[MAX_OVERLAP] = {0};
	size_t depth = 0;
	int err = 0;

	for (size_t i = 0; !err && i <= n; i++) {
		uint64_t start = i < n ? MIN(claims[i].start, until) : until;

		for (; !err && depth && open[depth - 1]->end <= start; depth--)
			err = put_claim(b, open[depth - 1], open[depth - 1]->end);
		if (!err && depth)
			err = put_claim(b, open[depth - 1], start);
		if (!err && start > b->cursor)
			err = put_gap(b, start);
		if (i == n || start == until)
			break;
		if (depth == MAX_OVERLAP)
			memmove(open, open + 1, --depth * sizeof(open[0]));
		open[depth++] = &claims[i];
	}
	while (!err && depth) {
		depth--;
		err = put_claim(b, open[depth], MIN(open[depth]->end, until));
	}
	return err ? err : put_gap(b, until);
}

/*
 * What is known only now of time that is done already: a thread that slept then had run for a
 * while before. The capability was taken for idle.
 */
static int book_late(struct cap_builder *b, const struct claim *c)
{
	struct tl_cap_stretch s = {
		.start_ns = MAX(c->start, b->lane.start_ns),
		.end_ns = MIN(c->end, b->cursor),
		.tid = c->tid,
		.stack = c->stack,
		.samples = c->samples,
		.state = (uint8_t)state_of((enum tl_state)c->state),
	};
	int err;

	if (s.end_ns <= s.start_ns)
		return 0;
	s.end_ns = MIN(s.end_ns, s.start_ns + b->idle_ns);
	b->idle_ns -= s.end_ns - s.start_ns;
	b->lane.coarse = true; /* its slices do not show it */
	err = book(b, &s, class_of(c));
	return err ? err
		   : ledger__off(b->tg->cap_ledger, b->lane.no, CS_IDLE, 0,
				 -(int64_t)(s.end_ns - s.start_ns));
}

static int begin(struct timeline *tl, struct target_state *tg, uint32_t no, uint64_t first_claim)
{
	struct caps *caps = tg->caps;
	struct cap_builder *b;
	int err = TL_RESERVE(caps->v, caps->cap, no + 1, TL_MAX_CAPS);

	if (err)
		return err;
	while (caps->n <= no)
		caps->v[caps->n++] = (struct cap_builder){.tl = tl, .tg = tg};
	b = &caps->v[no];
	if (b->begun)
		return 0;
	b->begun = true;
	b->lane.no = no;
	b->lane.start_ns = b->cursor = born(tg, no, first_claim);
	return stacks__add(&tl->stacks, &tl->marks[MARK_GC], 1, &b->gc_stack);
}

/* ── all of them ─────────────────────────────────────────────────────────────────────────── */

static int by_cap(const void *pa, const void *pb)
{
	const struct claim *a = pa, *b = pb;

	if (a->cap != b->cap)
		return a->cap < b->cap ? -1 : 1;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->end != b->end)
		return a->end > b->end ? -1 : 1;
	return (a->tid > b->tid) - (a->tid < b->tid);
}

int caps__new(struct caps **ret_caps)
{
	*ret_caps = calloc(1, sizeof(**ret_caps));
	return *ret_caps ? 0 : -ENOMEM;
}

int caps__claim(struct target_state *tg, pid_t tid, const struct tl_stretch *v, size_t n)
{
	struct caps *caps = tg->caps;
	int err = 0;

	for (size_t i = 0; !err && i < n; i++) {
		if (v[i].cap >= TL_MAX_CAPS)
			continue;
		err = TL_RESERVE(caps->claims, caps->claims_cap, caps->n_claims + 1, MAX_CLAIMS);
		if (!err)
			caps->claims[caps->n_claims++] = (struct claim){
				.start = v[i].start_ns,
				.end = v[i].end_ns,
				.tso = v[i].tso,
				.tid = tid,
				.stack = v[i].stack,
				.samples = v[i].samples,
				.cap = v[i].cap,
				.state = v[i].state,
				.class = v[i].class,
				.exact = v[i].exact,
			};
	}
	return err;
}

/* Of a capability's claims what lies beyond `until` is for later. */
static void keep_rest(struct caps *caps, size_t *kept, size_t from, size_t to, uint64_t until)
{
	for (size_t i = from; i < to; i++) {
		struct claim c = caps->claims[i];

		if (c.end <= until)
			continue;
		if (c.start < until) {
			c.start = until;
			c.samples = 0;
		}
		caps->claims[(*kept)++] = c;
	}
}

/* Short calls, in which the capability was free: never more than what there is. */
static int book_moved(struct cap_builder *b, const struct moved *m)
{
	struct ledger_place place = place_of(b, m->tid, LEDGER_RUN);
	int64_t ns = MIN(m->ns, (int64_t)b->haskell_ns);
	int err;

	ns = MAX(ns, -(int64_t)b->idle_ns);
	if (!ns)
		return 0;
	b->haskell_ns -= (uint64_t)ns;
	b->idle_ns += (uint64_t)ns;
	b->lane.sampled_states |= 1U << CS_HASKELL | 1U << CS_IDLE;
	err = ledger__time(b->tg->cap_ledger, &place, -ns);
	return err ? err : ledger__off(b->tg->cap_ledger, b->lane.no, CS_IDLE, 0, ns);
}

static int advance_one(struct timeline *tl, struct target_state *tg, uint32_t no, size_t from,
		       size_t to, uint64_t until, size_t max_stretches)
{
	struct claim *claims = tg->caps->claims;
	struct cap_builder *b;
	int err = begin(tl, tg, no, from < to ? claims[from].start : until);

	if (err)
		return err;
	b = &tg->caps->v[no];
	b->max = max_stretches;
	for (size_t i = from; !err && i < to && claims[i].start < b->cursor; i++) {
		err = book_late(b, &claims[i]);
		/* it may go on */
		claims[i].start = b->cursor;
		claims[i].samples = 0;
	}
	if (!err && b->cursor < until)
		err = walk(b, claims ? &claims[from] : NULL, to - from, until);
	return err;
}

int caps__advance(struct timeline *tl, struct target_state *tg, uint64_t until,
		  size_t max_stretches)
{
	struct caps *caps = tg->caps;
	uint32_t n_caps = tg->pub.capabilities;
	size_t from = 0, kept = 0;
	int err = 0;

	/* one that is still open has no end yet */
	if (tg->n_gcs && !tg->gcs[tg->n_gcs - 1].end)
		until = MIN(until, tg->gcs[tg->n_gcs - 1].start);
	if (caps->n_claims)
		qsort(caps->claims, caps->n_claims, sizeof(*caps->claims), by_cap);
	if (caps->n_claims)
		n_caps = MAX(n_caps, caps->claims[caps->n_claims - 1].cap + 1U);
	n_caps = MIN(MAX(n_caps, (uint32_t)caps->n), (uint32_t)TL_MAX_CAPS);
	for (uint32_t no = 0; !err && no < n_caps; no++) {
		size_t to = from;

		while (to < caps->n_claims && caps->claims[to].cap == no)
			to++;
		err = advance_one(tl, tg, no, from, to, until, max_stretches);
		keep_rest(caps, &kept, from, to, until);
		from = to;
	}
	caps->n_claims = kept;
	for (size_t i = 0; !err && i < caps->n_moved; i++)
		if (caps->moved[i].cap < caps->n)
			err = book_moved(&caps->v[caps->moved[i].cap], &caps->moved[i]);
	caps->n_moved = 0;
	return err;
}

int caps__moved(struct target_state *tg, pid_t tid, const struct tl_stretch *v, size_t n,
		int64_t ns)
{
	struct caps *caps = tg->caps;
	uint64_t held[TL_MAX_CAPS] = {0}, sum = 0;
	int err = 0;

	if (!ns)
		return 0;
	for (size_t i = 0; i < n; i++) {
		if (v[i].state != ST_HASKELL || v[i].cap >= TL_MAX_CAPS)
			continue;
		held[v[i].cap] += v[i].end_ns - v[i].start_ns;
		sum += v[i].end_ns - v[i].start_ns;
	}
	for (uint32_t no = 0; !err && sum && no < TL_MAX_CAPS; no++) {
		struct moved m = {tid, no, (int64_t)((__int128)ns * held[no] / sum)};

		if (!m.ns)
			continue;
		err = TL_RESERVE(caps->moved, caps->moved_cap, caps->n_moved + 1, MAX_CLAIMS);
		if (!err)
			caps->moved[caps->n_moved++] = m;
	}
	return err;
}

int caps__build(struct timeline *tl, struct target_state *tg, uint64_t end, size_t max_stretches)
{
	struct caps *caps = tg->caps;
	int err = caps__advance(tl, tg, end, max_stretches);

	if (!err)
		err = ledger__accounts(tg->cap_ledger, (uint32_t)caps->n, &tg->cap_accounts);
	if (err)
		return err;
	tg->n_cap_accounts = (uint32_t)caps->n;
	tg->cap_lanes = calloc(caps->n + 1, sizeof(*tg->cap_lanes));
	if (!tg->cap_lanes)
		return -ENOMEM;
	tg->pub.cap_lanes = tg->cap_lanes;
	for (size_t i = 0; i < caps->n; i++) {
		struct cap_builder *b = &caps->v[i];
		const struct ledger_account *a = &tg->cap_accounts[i];

		if (b->lane.start_ns >= end)
			continue;
		b->lane.end_ns = MAX(end, b->cursor);
		b->lane.stretches = b->v;
		b->lane.n_stretches = b->n;
		b->v = NULL;
		b->lane.rows = a->rows;
		b->lane.n_rows = a->n;
		for (size_t k = 0; k < a->n; k++)
			b->lane.states_ns[a->rows[k].state] += a->rows[k].ns;
		tg->cap_lanes[tg->pub.n_cap_lanes++] = b->lane;
	}
	return 0;
}

void caps__free(struct target_state *tg)
{
	for (size_t i = 0; tg->cap_lanes && i < tg->pub.n_cap_lanes; i++)
		free((void *)tg->cap_lanes[i].stretches);
	for (size_t i = 0; tg->caps && i < tg->caps->n; i++)
		free(tg->caps->v[i].v);
	if (tg->caps) {
		free(tg->caps->v);
		free(tg->caps->claims);
		free(tg->caps->moved);
	}
	free(tg->caps);
	free(tg->cap_lanes);
	free(tg->cap_notes);
}
