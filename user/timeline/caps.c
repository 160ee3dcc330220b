/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * caps: one lane for each capability. A capability does what the thread that holds it does; when
 * none holds it, it is idle, or stopped for a collection, or disabled. Thread and capability
 * lanes are two views of the same stretches, so that they cannot disagree.
 */
#include "private.h"

#define MAX_OVERLAP 32

struct claim {
	uint64_t start, end;
	const struct tl_stretch *s;
	pid_t tid;
};

struct cap_builder {
	struct timeline *tl;
	const struct target_state *tg;
	struct tl_cap_lane *lane;
	struct tl_cap_stretch *v;
	size_t n, room, max;
	uint64_t cursor;
	uint32_t gc_stack;
	size_t gc, note; /* next of each */
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

/* ── putting stretches down ──────────────────────────────────────────────────────────────── */

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
	b->lane->coarse = true;
}

static int put(struct cap_builder *b, const struct tl_cap_stretch *s)
{
	struct tl_cap_stretch *last = b->n ? &b->v[b->n - 1] : NULL;
	int err;

	b->lane->states_ns[s->state] += s->end_ns - s->start_ns;
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

static int put_claim(struct cap_builder *b, const struct claim *c, uint64_t end)
{
	struct tl_cap_stretch s = {
		.start_ns = b->cursor,
		.end_ns = MIN(end, b->lane->end_ns),
		.tso = c->s->tso,
		.tid = c->tid,
		.stack = c->s->stack,
		.state = (uint8_t)state_of((enum tl_state)c->s->state),
	};

	if (s.end_ns <= s.start_ns)
		return 0;
	s.exact = c->s->exact && s.start_ns == c->start && s.end_ns == c->end;
	s.samples = s.start_ns == c->start ? c->s->samples : 0;
	if (!c->s->exact)
		b->lane->sampled_states |= 1U << s.state;
	return put(b, &s);
}

/* The next place where what an unheld capability is may change, and what it is up to there. */
static uint64_t unheld(struct cap_builder *b, uint64_t end, struct tl_cap_stretch *s)
{
	const struct target_state *tg = b->tg;
	const struct cap_note *note = NULL;
	uint64_t at = b->cursor;

	while (b->gc < tg->n_gcs && tg->gcs[b->gc].end <= at)
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
	if (b->lane->no < 64 && note && note->disabled >> b->lane->no & 1) {
		s->state = CS_DISABLED;
		s->exact = 0;
	}
	return end;
}

/* Nobody holds it up to `end`. */
static int put_gap(struct cap_builder *b, uint64_t end)
{
	int err = 0;

	end = MIN(end, b->lane->end_ns);
	while (!err && b->cursor < end) {
		struct tl_cap_stretch s = {.start_ns = b->cursor};

		s.end_ns = unheld(b, end, &s);
		if (s.state == CS_DISABLED)
			b->lane->sampled_states |= 1U << CS_DISABLED;
		err = put(b, &s);
	}
	return err;
}

/* ── one capability ──────────────────────────────────────────────────────────────────────── */

/*
 * Two threads cannot hold it at once, but where a claim's ends are sampled two may overlap. Who
 * begins later has it: that is where an event or a sample showed it in his hands.
 */
static int walk(struct cap_builder *b, const struct claim *claims, size_t n)
{
	const struct claim *open[MAX_OVERLAP] = {0};
	size_t depth = 0;
	int err = 0;

	for (size_t i = 0; !err && i <= n; i++) {
		uint64_t start = i < n ? claims[i].start : b->lane->end_ns;

		for (; !err && depth && open[depth - 1]->end <= start; depth--)
			err = put_claim(b, open[depth - 1], open[depth - 1]->end);
		if (!err && depth)
			err = put_claim(b, open[depth - 1], start);
		if (!err && start > b->cursor)
			err = put_gap(b, start);
		if (i == n)
			break;
		if (depth == MAX_OVERLAP)
			memmove(open, open + 1, --depth * sizeof(open[0]));
		open[depth++] = &claims[i];
	}
	return err;
}

static int build_one(struct timeline *tl, struct target_state *tg, uint32_t no, uint64_t end,
		     size_t max_stretches, const struct claim *claims, size_t n)
{
	struct tl_cap_lane *lane = &tg->cap_lanes[tg->pub.n_cap_lanes];
	struct cap_builder b = {
		.tl = tl, .tg = tg, .lane = lane, .max = max_stretches, .gc_stack = 0};
	int err = stacks__add(&tl->stacks, &tl->marks[MARK_GC], 1, &b.gc_stack);

	if (err)
		return err;
	lane->no = no;
	lane->start_ns = born(tg, no, n ? claims[0].start : end);
	lane->end_ns = end;
	if (lane->start_ns >= end)
		return 0;
	b.cursor = lane->start_ns;
	err = walk(&b, claims, n);
	lane->stretches = b.v;
	lane->n_stretches = b.n;
	tg->pub.n_cap_lanes++;
	return err;
}

/* ── all of them ─────────────────────────────────────────────────────────────────────────── */

static int by_cap(const void *pa, const void *pb)
{
	const struct claim *a = pa, *b = pb;

	if (a->s->cap != b->s->cap)
		return a->s->cap < b->s->cap ? -1 : 1;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->end != b->end)
		return a->end > b->end ? -1 : 1;
	return (a->tid > b->tid) - (a->tid < b->tid);
}

static int collect(const struct target_state *tg, struct claim **ret_claims, size_t *ret_n)
{
	struct claim *claims;
	size_t n = 0;

	for (size_t i = 0; i < tg->pub.n_lanes; i++)
		for (size_t j = 0; j < tg->lanes[i].n_stretches; j++)
			n += tg->lanes[i].stretches[j].cap < TL_MAX_CAPS;
	claims = calloc(n + 1, sizeof(*claims));
	if (!claims)
		return -ENOMEM;
	n = 0;
	for (size_t i = 0; i < tg->pub.n_lanes; i++) {
		const struct tl_lane *lane = &tg->lanes[i];

		for (size_t j = 0; j < lane->n_stretches; j++) {
			const struct tl_stretch *s = &lane->stretches[j];

			if (s->cap < TL_MAX_CAPS)
				claims[n++] = (struct claim){s->start_ns, s->end_ns, s, lane->tid};
		}
	}
	qsort(claims, n, sizeof(*claims), by_cap);
	*ret_claims = claims;
	*ret_n = n;
	return 0;
}

/*
 * In calls too short for a record the capability was free, and the lane shows their time as the
 * caller's. The threads' sums are put right by what the kernel counted, and so are these.
 */
static void correct_by(struct target_state *tg, const struct thread *th)
{
	uint64_t held[TL_MAX_CAPS] = {0}, sum = 0;
	enum tl_cap_state from = th->moved_ns > 0 ? CS_HASKELL : CS_IDLE;
	enum tl_cap_state to = th->moved_ns > 0 ? CS_IDLE : CS_HASKELL;
	uint64_t move = (uint64_t)(th->moved_ns > 0 ? th->moved_ns : -th->moved_ns);

	if (!move)
		return;
	for (size_t i = 0; i < th->lane.n_stretches; i++) {
		const struct tl_stretch *s = &th->stretches[i];

		if (s->state != ST_HASKELL || s->cap >= TL_MAX_CAPS)
			continue;
		held[s->cap] += s->end_ns - s->start_ns;
		sum += s->end_ns - s->start_ns;
	}
	for (size_t i = 0; sum && i < tg->pub.n_cap_lanes; i++) {
		struct tl_cap_lane *lane = &tg->cap_lanes[i];
		uint64_t part = (uint64_t)((double)move * ((double)held[lane->no] / (double)sum));

		part = MIN(part, lane->states_ns[from]);
		lane->states_ns[from] -= part;
		lane->states_ns[to] += part;
		if (part)
			lane->sampled_states |= 1U << from | 1U << to;
	}
}

static bool any_coarse(const struct target_state *tg)
{
	for (size_t i = 0; i < tg->pub.n_lanes; i++)
		if (tg->lanes[i].coarse)
			return true;
	return false;
}

/*
 * Collections are mostly shorter than what is around them: threads' stretches that were merged have
 * swallowed them. But they are known by themselves, and pause each capability.
 */
static void correct_gc(struct target_state *tg, struct tl_cap_lane *lane)
{
	uint64_t paused = 0, missing;

	for (size_t i = 0; i < tg->n_gcs; i++) {
		uint64_t from = MAX(tg->gcs[i].work, lane->start_ns),
			 to = MIN(tg->gcs[i].end, lane->end_ns);

		paused += tg->gcs[i].work && to > from ? to - from : 0;
	}
	missing = paused > lane->states_ns[CS_GC] ? paused - lane->states_ns[CS_GC] : 0;
	missing = MIN(missing, lane->states_ns[CS_HASKELL]);
	if (!missing)
		return;
	lane->states_ns[CS_HASKELL] -= missing;
	lane->states_ns[CS_GC] += missing;
	lane->sampled_states |= 1U << CS_HASKELL | 1U << CS_GC;
	lane->coarse = true;
}

int caps__build(struct timeline *tl, struct target_state *tg, uint64_t end, size_t max_stretches)
{
	uint32_t n_caps = tg->pub.capabilities;
	struct claim *claims;
	size_t n, from = 0;
	int err = collect(tg, &claims, &n);

	if (err)
		return err;
	if (n)
		n_caps = MAX(n_caps, claims[n - 1].s->cap + 1U);
	n_caps = MIN(n_caps, (uint32_t)TL_MAX_CAPS);
	tg->cap_lanes = calloc(n_caps + 1, sizeof(*tg->cap_lanes));
	if (!tg->cap_lanes)
		err = -ENOMEM;
	for (uint32_t no = 0; !err && no < n_caps; no++) {
		size_t to = from;

		while (to < n && claims[to].s->cap == no)
			to++;
		err = build_one(tl, tg, no, end, max_stretches, claims + from, to - from);
		from = to;
	}
	free(claims);
	tg->pub.cap_lanes = tg->cap_lanes;
	for (const struct thread *th = tg->thread_list; !err && th; th = th->next)
		correct_by(tg, th);
	if (err || !any_coarse(tg))
		return err;
	for (size_t i = 0; i < tg->pub.n_cap_lanes; i++)
		correct_gc(tg, &tg->cap_lanes[i]);
	return 0;
}

void caps__free(struct target_state *tg)
{
	for (size_t i = 0; tg->cap_lanes && i < tg->pub.n_cap_lanes; i++)
		free((void *)tg->cap_lanes[i].stretches);
	free(tg->cap_lanes);
	free(tg->cap_notes);
}
