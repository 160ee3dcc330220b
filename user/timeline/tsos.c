/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tsos: Haskell threads' lanes. Where one runs, and in which call, is what the OS thread's lane
 * says of it. Between two such stretches it is off: why, is known where its memory could be read
 * when another one was seen in its place (struct wire_tso), else from what the OS thread did
 * meanwhile.
 */
#include "private.h"

#define MAX_OVERLAP 8
/* A capability takes up what is ready in less. */
#define READY_IDLE_NS 1000000
/* Stretches back in which the capability that it ran on is looked for. */
#define LAST_CAP_LOOKS 64
/* What an OS thread does while its Haskell thread waits for the next turn. */
#define SCHEDULER_STATES                                                                           \
	(1U << ST_RTS | 1U << ST_GC_WORK | 1U << ST_GC_WAIT | 1U << ST_PREEMPTED | 1U << ST_HASKELL)

struct tso_claim {
	uint64_t tso, start, end;
	const struct tl_stretch *s;
	pid_t tid;
	uint8_t before; /* enum tl_tso_state: what it was before, as far as its OS thread tells */
	uint8_t state;
};

struct tso_builder {
	struct timeline *tl;
	const struct target_state *tg;
	struct tl_tso_lane *lane;
	struct tl_tso_stretch *v;
	size_t n, room, max;
	const struct tso_note *notes; /* of this one, in time order */
	size_t n_notes, note;
	uint64_t cursor;
};

/* ── records ─────────────────────────────────────────────────────────────────────────────── */

static int note(struct timeline *tl, struct target_state *tg, const struct tso_note *note)
{
	int err = TL_RESERVE(tg->tso_notes, tg->tso_notes_cap, tg->n_tso_notes + 1,
			     tl->opts.max_records);

	if (err) {
		tg->left_out++;
		return err == -E2BIG ? -ENOSPC : err;
	}
	tg->tso_notes[tg->n_tso_notes++] = *note;
	return 0;
}

int tsos__record(struct timeline *tl, struct target_state *tg, const struct wire_tso *rec)
{
	struct tso_info *info;
	char label[sizeof(rec->label) + 1] = {0};
	int err = 0;

	if (!tl->opts.haskell_lanes)
		return 0;
	if (rec->left_id)
		err = note(tl, tg,
			   &(struct tso_note){.tso = rec->left_id,
					      .ns = rec->h.ns,
					      .why = rec->left_why,
					      .ended = rec->left_what_next == 3 ||
						       rec->left_what_next == 4});
	if (err || !rec->id)
		return err;
	memcpy(label, rec->label, sizeof(rec->label));
	HASH_FIND(hh, tg->tso_infos, &rec->id, sizeof(rec->id), info);
	if (!info) {
		if (HASH_COUNT(tg->tso_infos) >= TL_MAX_TSOS)
			return 0;
		info = calloc(1, sizeof(*info));
		if (!info)
			return -ENOMEM;
		info->id = rec->id;
		info->label = "";
		HASH_ADD(hh, tg->tso_infos, id, sizeof(info->id), info);
		if (!info->hh.tbl) {
			free(info);
			return -ENOMEM;
		}
	}
	info->bound |= rec->bound == 1;
	if (label[0])
		info->label = tl__string(tl, label);
	return 0;
}

void tsos__free(struct target_state *tg)
{
	struct tso_info *info, *next;

	HASH_ITER (hh, tg->tso_infos, info, next) {
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the analyzer loses track of uthash */
		HASH_DEL(tg->tso_infos, info);
		free(info);
	}
	for (size_t i = 0; i < tg->n_tso_lanes; i++)
		free((void *)tg->tso_lanes[i].stretches);
	free(tg->tso_lanes);
	free(tg->tso_notes);
}

/* ── states ──────────────────────────────────────────────────────────────────────────────── */

/* why_blocked, rts/include/rts/Constants.h, 8.10 to 9.14. */
static enum tl_tso_state blocked_state(uint16_t why)
{
	switch (why) {
	case 0:	 /* NotBlocked */
	case 13: /* ThreadMigrating */
		return HS_RUNNABLE;
	case 1:	 /* BlockedOnMVar */
	case 14: /* BlockedOnMVarRead */
		return HS_BLOCKED_MVAR;
	case 2:
		return HS_BLOCKED_BLACKHOLE;
	case 3:
	case 4:
	case 15:
		return HS_BLOCKED_IO;
	case 5:
		return HS_BLOCKED_DELAY;
	case 6:
		return HS_BLOCKED_STM;
	case 10: /* BlockedOnCCall, …_Interruptible */
	case 11:
		return HS_SAFE_CALL;
	case WIRE_TSO_UNKNOWN:
		return HS_UNKNOWN;
	default:
		return HS_BLOCKED_OTHER;
	}
}

static enum tl_tso_state state_of(const struct tl_stretch *s, const struct tl_stretch *before)
{
	switch ((enum tl_state)s->state) {
	case ST_UNSAFE_CALL_CPU:
	case ST_UNSAFE_CALL_BLOCKED:
		return HS_UNSAFE_CALL;
	case ST_SAFE_CALL_CPU:
	case ST_SAFE_CALL_BLOCKED:
	case ST_RTS_BLOCKED: /* of a call's hand-over: no other one has a Haskell thread */
		return HS_SAFE_CALL;
	case ST_CAP_WAIT:
		return HS_RUNNABLE;
	case ST_PREEMPTED:
		/* Its OS thread is; it itself is where it was. */
		if (s->cap < TL_MAX_CAPS)
			return before && before->state == ST_UNSAFE_CALL_CPU ? HS_UNSAFE_CALL
									     : HS_RUNNING;
		return before && before->state == ST_CAP_WAIT ? HS_RUNNABLE : HS_SAFE_CALL;
	default:
		return HS_RUNNING;
	}
}

/* ── putting stretches down ──────────────────────────────────────────────────────────────── */

static void coarsen(struct tso_builder *b)
{
	size_t kept = 0;

	for (size_t i = 0; b->v && i < b->n; i += 2) {
		struct tl_tso_stretch s = b->v[i];

		if (i + 1 < b->n) {
			const struct tl_tso_stretch *next = &b->v[i + 1];
			uint64_t start = s.start_ns;

			if (next->end_ns - next->start_ns > s.end_ns - s.start_ns)
				s = *next;
			s.start_ns = start;
			s.end_ns = next->end_ns;
			s.exact = 0;
		}
		b->v[kept++] = s;
	}
	b->n = kept;
	b->lane->coarse = true;
}

static int book(struct tso_builder *b, const struct tl_tso_stretch *s)
{
	uint32_t owner = (uint32_t)(b->lane - b->tg->tso_lanes);
	int64_t ns = (int64_t)(s->end_ns - s->start_ns);

	b->lane->states_ns[s->state] += (uint64_t)ns;
	return s->state == HS_RUNNING
		       ? ledger__on(b->tg->tso_ledger, owner, s->state, s->stack, ns)
		       : ledger__off(b->tg->tso_ledger, owner, s->state, s->stack, ns);
}

static int put(struct tso_builder *b, const struct tl_tso_stretch *s)
{
	struct tl_tso_stretch *last = b->n ? &b->v[b->n - 1] : NULL;
	int err;

	err = book(b, s);
	if (err)
		return err;
	if (!s->exact)
		b->lane->sampled_states |= 1U << s->state;
	b->cursor = s->end_ns;
	if (last && last->state == s->state && last->stack == s->stack && last->cap == s->cap &&
	    last->tid == s->tid) {
		last->end_ns = s->end_ns;
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

static int put_claim(struct tso_builder *b, const struct tso_claim *c, uint64_t end)
{
	struct tl_tso_stretch s = {
		.start_ns = b->cursor,
		.end_ns = MIN(end, b->lane->end_ns),
		.stack = c->s->stack,
		.cap = c->s->cap < TL_MAX_CAPS ? c->s->cap : UINT32_MAX,
		.tid = c->tid,
		.state = c->state,
	};

	if (s.end_ns <= s.start_ns)
		return 0;
	s.exact = c->s->exact && s.start_ns == c->start && s.end_ns == c->end;
	return put(b, &s);
}

/* The lane of a capability, and its first stretch that ends after t; NULL: none. */
static const struct tl_cap_lane *cap_at(const struct target_state *tg, uint32_t cap, uint64_t t,
					size_t *ret_at)
{
	const struct tl_cap_lane *lane = NULL;
	size_t low = 0, high;

	for (size_t i = 0; i < tg->pub.n_cap_lanes && !lane; i++)
		if (tg->cap_lanes[i].no == cap)
			lane = &tg->cap_lanes[i];
	high = lane ? lane->n_stretches : 0;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (lane->stretches[mid].end_ns > t)
			high = mid;
		else
			low = mid + 1;
	}
	*ret_at = low;
	return lane;
}

/*
 * One that is ready does not stay so while its capability has nothing to do: from when on, at the
 * latest, it had run unseen; `end` if the capability was busy so long.
 */
static uint64_t ready_until(const struct target_state *tg, uint32_t cap, uint64_t from,
			    uint64_t end)
{
	size_t at;
	const struct tl_cap_lane *lane = cap_at(tg, cap, from, &at);

	for (; lane && at < lane->n_stretches && lane->stretches[at].start_ns < end; at++) {
		const struct tl_cap_stretch *s = &lane->stretches[at];
		uint64_t start = MAX(s->start_ns, from);

		if (s->state == CS_IDLE && MIN(s->end_ns, end) - start >= READY_IDLE_NS)
			return start;
	}
	return end;
}

/* That it ran on last; UINT32_MAX: not known. */
static uint32_t last_cap(const struct tso_builder *b)
{
	for (size_t i = b->n; i-- > 0 && b->n - i <= LAST_CAP_LOOKS;)
		if (b->v[i].cap != UINT32_MAX)
			return b->v[i].cap;
	return UINT32_MAX;
}

/* The capability that it ran on before had no work for most of the time up to `end`. */
static bool cap_was_idle(const struct tso_builder *b, uint64_t end)
{
	uint64_t idle = 0;
	size_t low;
	const struct tl_cap_lane *lane = cap_at(b->tg, last_cap(b), b->cursor, &low);

	for (; lane && low < lane->n_stretches && lane->stretches[low].start_ns < end; low++)
		if (lane->stretches[low].state == CS_IDLE)
			idle += MIN(lane->stretches[low].end_ns, end) -
				MAX(lane->stretches[low].start_ns, b->cursor);
	return idle >= (end - b->cursor) / 2;
}

/* It is nowhere to be seen up to `end`. */
static int put_gap(struct tso_builder *b, uint64_t end, enum tl_tso_state otherwise)
{
	enum tl_tso_state state = otherwise;
	uint64_t ready = UINT64_MAX;
	int err = 0;

	/* else its OS thread had passed the capability on, and it may just have waited */
	if (state == HS_BLOCKED_OTHER && !cap_was_idle(b, end))
		state = HS_UNKNOWN;

	while (b->note < b->n_notes && b->notes[b->note].ns < b->cursor)
		b->note++;
	/* The first sign of another one in its place. */
	if (b->note < b->n_notes && b->notes[b->note].ns <= end &&
	    b->notes[b->note].why != WIRE_TSO_UNKNOWN)
		state = blocked_state(b->notes[b->note].why);
	if (state == HS_RUNNABLE)
		ready = ready_until(b->tg, last_cap(b), b->cursor, end);
	while (!err && b->cursor < end) {
		const struct gc_span *gc = gc__at(b->tg, b->cursor);
		struct tl_tso_stretch s = {.start_ns = b->cursor, .end_ns = end, .cap = UINT32_MAX};

		if (b->cursor >= ready)
			state = HS_UNKNOWN;
		s.state = (uint8_t)state;
		if (state == HS_RUNNABLE)
			s.end_ns = MIN(end, ready);
		if (gc && gc->start <= b->cursor && state == HS_RUNNABLE) {
			s.state = HS_GC;
			s.end_ns = MIN(gc->end, end);
		} else if (gc && state == HS_RUNNABLE) {
			s.end_ns = MIN(gc->start, s.end_ns);
		}
		err = put(b, &s);
	}
	return err;
}

static int walk(struct tso_builder *b, const struct tso_claim *claims, size_t n)
{
	const struct tso_claim *open[MAX_OVERLAP] = {0};
	size_t depth = 0;
	int err = 0;

	for (size_t i = 0; !err && i <= n; i++) {
		uint64_t start = i < n ? claims[i].start : b->lane->end_ns;

		for (; !err && depth && open[depth - 1]->end <= start; depth--)
			err = put_claim(b, open[depth - 1], open[depth - 1]->end);
		if (!err && depth)
			err = put_claim(b, open[depth - 1], start);
		if (!err && start > b->cursor)
			err = put_gap(b, start,
				      i < n ? (enum tl_tso_state)claims[i].before : HS_UNKNOWN);
		if (i == n)
			break;
		if (depth == MAX_OVERLAP)
			memmove(open, open + 1, --depth * sizeof(open[0]));
		open[depth++] = &claims[i];
	}
	return err;
}

/* ── one thread ──────────────────────────────────────────────────────────────────────────── */

/* Where its lane ends: where it did, or with the session if what it waits for is known. */
static uint64_t end_of(const struct tso_builder *b, uint64_t last, uint32_t cap, uint64_t end)
{
	for (size_t i = 0; i < b->n_notes; i++) {
		const struct tso_note *note = &b->notes[i];

		if (note->ns < last || note->ended || note->why == WIRE_TSO_UNKNOWN)
			continue;
		/* one that was ready has run again, and ended maybe, where nobody saw it */
		return blocked_state(note->why) == HS_RUNNABLE ? ready_until(b->tg, cap, last, end)
							       : end;
	}
	return last;
}

static int build_one(struct timeline *tl, struct target_state *tg, uint64_t end,
		     size_t max_stretches, const struct tso_claim *claims, size_t n,
		     const struct tso_note *notes, size_t n_notes)
{
	struct tl_tso_lane *lane = &tg->tso_lanes[tg->n_tso_lanes];
	struct tso_builder b = {.tl = tl,
				.tg = tg,
				.lane = lane,
				.max = max_stretches,
				.notes = notes,
				.n_notes = n_notes,
				.cursor = claims[0].start};
	struct tso_info *info;
	uint32_t cap = UINT32_MAX;
	uint64_t last = 0;
	int err;

	for (size_t i = 0; i < n; i++) {
		if (claims[i].end <= last)
			continue;
		last = claims[i].end;
		if (claims[i].s->cap < TL_MAX_CAPS)
			cap = claims[i].s->cap;
	}
	HASH_FIND(hh, tg->tso_infos, &claims[0].tso, sizeof(claims[0].tso), info);
	lane->tso = claims[0].tso;
	lane->label = info ? info->label : "";
	lane->bound = info && info->bound;
	lane->start_ns = claims[0].start;
	lane->end_ns = end_of(&b, last, cap, end);
	err = walk(&b, claims, n);
	lane->stretches = b.v;
	lane->n_stretches = b.n;
	tg->n_tso_lanes++;
	return err;
}

/* ── all of them ─────────────────────────────────────────────────────────────────────────── */

static int by_tso(const void *pa, const void *pb)
{
	const struct tso_claim *a = pa, *b = pb;

	if (a->tso != b->tso)
		return a->tso < b->tso ? -1 : 1;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->end != b->end)
		return a->end > b->end ? -1 : 1;
	return (a->tid > b->tid) - (a->tid < b->tid);
}

static int by_note(const void *pa, const void *pb)
{
	const struct tso_note *a = pa, *b = pb;

	if (a->tso != b->tso)
		return a->tso < b->tso ? -1 : 1;
	return (a->ns > b->ns) - (a->ns < b->ns);
}

/* `claims` may be NULL: then they are only counted. */
static size_t claims_of(const struct tl_lane *lane, struct tso_claim *claims)
{
	const struct tl_stretch *before = NULL;
	enum tl_tso_state gap = HS_UNKNOWN;
	uint64_t last = 0;
	size_t n = 0;

	for (size_t i = 0; i < lane->n_stretches; i++) {
		const struct tl_stretch *s = &lane->stretches[i];

		if (!s->tso) {
			/* An OS thread without work has no Haskell thread that could run. */
			if (s->state == ST_IDLE)
				gap = HS_BLOCKED_OTHER;
			else if (!(1U << s->state & SCHEDULER_STATES) && gap == HS_RUNNABLE)
				gap = HS_UNKNOWN;
			continue;
		}
		if (claims)
			claims[n] = (struct tso_claim){
				.tso = s->tso,
				.start = s->start_ns,
				.end = s->end_ns,
				.s = s,
				.tid = lane->tid,
				.before = (uint8_t)(s->tso == last ? gap : HS_UNKNOWN),
				.state = (uint8_t)state_of(s, before),
			};
		n++;
		last = s->tso;
		gap = HS_RUNNABLE;
		before = s;
	}
	return n;
}

static int collect(const struct target_state *tg, struct tso_claim **ret_claims, size_t *ret_n)
{
	struct tso_claim *claims;
	size_t n = 0;

	for (size_t i = 0; i < tg->pub.n_lanes; i++)
		n += claims_of(&tg->lanes[i], NULL);
	claims = calloc(n + 1, sizeof(*claims));
	if (!claims)
		return -ENOMEM;
	n = 0;
	for (size_t i = 0; i < tg->pub.n_lanes; i++)
		n += claims_of(&tg->lanes[i], claims + n);
	qsort(claims, n, sizeof(*claims), by_tso);
	*ret_claims = claims;
	*ret_n = n;
	return 0;
}

static int by_running(const void *pa, const void *pb)
{
	const struct tl_tso_lane *a = pa, *b = pb;
	uint64_t ra = a->states_ns[HS_RUNNING], rb = b->states_ns[HS_RUNNING];

	if (ra != rb)
		return ra < rb ? 1 : -1;
	return (a->tso > b->tso) - (a->tso < b->tso);
}

static size_t count(const struct tso_claim *claims, size_t n)
{
	size_t distinct = 0;

	for (size_t i = 0; i < n; i++)
		distinct += !i || claims[i].tso != claims[i - 1].tso;
	return distinct;
}

int tsos__fill(struct target_state *tg, struct tl_tso_lane *lanes, size_t n)
{
	int err = ledger__accounts(tg->tso_ledger, (uint32_t)n, &tg->tso_accounts);

	if (err)
		return err;
	tg->n_tso_accounts = (uint32_t)n;
	for (size_t i = 0; i < n; i++) {
		lanes[i].rows = tg->tso_accounts[i].rows;
		lanes[i].n_rows = tg->tso_accounts[i].n;
	}
	return 0;
}

int tsos__build(struct timeline *tl, struct target_state *tg, uint64_t end, size_t max_stretches)
{
	struct tso_claim *claims;
	size_t n, from = 0, note = 0;
	int err;

	if (!tl->opts.haskell_lanes)
		return 0;
	err = collect(tg, &claims, &n);
	if (err)
		return err;
	if (tg->n_tso_notes)
		qsort(tg->tso_notes, tg->n_tso_notes, sizeof(*tg->tso_notes), by_note);
	tg->tso_lanes = calloc(count(claims, n) + 1, sizeof(*tg->tso_lanes));
	if (!tg->tso_lanes)
		err = -ENOMEM;
	while (!err && from < n) {
		size_t to = from, last;

		while (to < n && claims[to].tso == claims[from].tso)
			to++;
		while (note < tg->n_tso_notes && tg->tso_notes[note].tso < claims[from].tso)
			note++;
		for (last = note;
		     last < tg->n_tso_notes && tg->tso_notes[last].tso == claims[from].tso;)
			last++;
		err = build_one(tl, tg, end, max_stretches, claims + from, to - from,
				tg->tso_notes + note, last - note);
		from = to;
	}
	free(claims);
	if (!err)
		err = tsos__fill(tg, tg->tso_lanes, tg->n_tso_lanes);
	if (tg->tso_lanes && tg->n_tso_lanes)
		qsort(tg->tso_lanes, tg->n_tso_lanes, sizeof(*tg->tso_lanes), by_running);
	tg->pub.tso_lanes = tg->tso_lanes;
	tg->pub.n_tso_lanes = tg->n_tso_lanes;
	return err;
}
