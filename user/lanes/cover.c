/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cover: when a thread was in which safe call, or collected. Calls come from their records, from
 * the calls open at either end of the session, and, for calls too short for a record, from samples
 * and off-CPU intervals that name the call.
 */
#include "base/search.h"
#include "lanes_priv.h"

void cover__free(struct cover_list *list)
{
	free(list->v);
	free(list->segs);
	free(list->open);
	memset(list, 0, sizeof(*list));
}

static int add(struct cover_list *list, const struct cover *cover)
{
	int err;

	if (cover->end <= cover->start)
		return 0;
	err = ARRAY_RESERVE(list->v, list->cap, list->n + 1, SIZE_MAX / sizeof(*cover));
	if (!err)
		list->v[list->n++] = *cover;
	return err;
}

static int add_recorded(const struct seen_thread *th, uint64_t start, uint64_t end,
			struct cover_list *list)
{
	int err = 0;

	for (size_t i = 0; !err && i < th->calls.n; i++) {
		const struct ev *ev = &th->calls.v[i];
		struct cover cover = {
			.start = MAX(ev->t0, start),
			.end = MIN(ev->t1, end),
			.ev = ev,
			.recorded = true,
			.end_exact = true,
		};

		err = add(list, &cover);
	}
	return err;
}

static int add_gcs(const struct seen *seen, const struct seen_thread *th, uint64_t start,
		   uint64_t end, struct cover_list *list)
{
	const struct gc_span *gc = seen__gc_at(seen, start);
	const struct gc_span *last = gc ? &seen->gcs.v[seen->gcs.n] : NULL;
	int err = 0;

	for (; !err && gc < last && gc->start < end; gc++) {
		struct cover cover = {
			.start = MAX(gc->start, start),
			.end = MIN(gc__end(gc), end),
			.gc = true,
			.recorded = true,
			.end_exact = true,
		};

		if (gc->tid == th->tid)
			err = add(list, &cover);
	}
	return err;
}

/* Calls that did not return before the end. The stack, if any, belongs to the innermost one. */
static int add_open(const struct seen *seen, const struct seen_thread *th, uint64_t start,
		    uint64_t end, struct cover_list *list)
{
	uint32_t n = th->has_final && !th->end_ns ? th->final->depth : 0;
	int err = 0;

	if (!n)
		return 0;
	list->open = calloc(n, sizeof(*list->open));
	if (!list->open)
		return -ENOMEM;
	for (uint32_t i = 0; !err && i < n; i++) {
		const struct wire_open *open = &th->final->open[i];
		struct ev *ev = &list->open[i];
		const struct seen_site *site = seen__site_at(seen, open->site);
		struct cover cover = {
			.start = MAX(open->start_ns, start),
			.end = end,
			.ev = ev,
			.recorded = true,
			.end_exact = true,
		};

		*ev = (struct ev){.t0 = open->start_ns, .t1 = end, .where = WIRE_WHERE_SAFE_CALL};
		ev->call_start_ns = open->start_ns;
		ev->call_flags = (uint8_t)open->flags;
		ev->cap = NO_CAP;
		ev->left = open->cap_no < MAX_CAPS ? (uint16_t)open->cap_no : NO_CAP;
		if (i + 1 == n && th->final_off.where == WIRE_WHERE_SAFE_CALL)
			ev->tso = th->final_off.tso;
		ev->site = site ? site->index + 1 : 0;
		if (i + 1 == n && th->final_off.where == WIRE_WHERE_SAFE_CALL)
			ev__take_haskell(ev, &th->final_off);
		if (i + 1 == n && !ev->hs && th->has_end &&
		    th->at_end.where == WIRE_WHERE_SAFE_CALL)
			ev__take_haskell(ev, &th->at_end);
		err = add(list, &cover);
	}
	return err;
}

/* ── calls without a record ──────────────────────────────────────────────────────────────── */

static int by_start(const void *pa, const void *pb)
{
	const struct cover *a = pa, *b = pb;

	return CMP(a->start, b->start) ?: CMP(b->end, a->end);
}

static void sort_covers(struct cover_list *list)
{
	array__sort(list->v, list->n, sizeof(*list->v), by_start);
}

/* The first of v[0…n) that starts after t. */
static size_t first_after(const struct cover *v, size_t n, uint64_t t)
{
	return search__first(n, i, v[i].start > t);
}

struct evidence {
	const struct seen_thread *th;
	const struct ev *offs; /* its off-CPU intervals */
	size_t sample, off;
};

static const struct ev *next_evidence(struct evidence *it)
{
	const struct seen_thread *th = it->th;
	const struct ev *s = it->sample < th->samples.n ? &th->samples.v[it->sample] : NULL;
	const struct ev *o = it->off < th->offs.n ? &it->offs[it->off] : NULL;

	if (s && (!o || s->t0 < o->t0)) {
		it->sample++;
		return s;
	}
	if (o)
		it->off++;
	return o;
}

/*
 * Guesses the end of a call that was last seen at `seen`, while `next` shows something else: it
 * ended in between, and did not last as long as a call with a record.
 */
static uint64_t guess_end(const struct seen *s, uint64_t call_start, uint64_t seen, uint64_t next)
{
	uint64_t guess = seen, limit = call_start + s->call_record_ns;

	if (next > seen)
		guess += (next - seen) / 2;
	if (s->call_record_ns && guess > limit)
		guess = MAX(seen, limit);
	return guess;
}

struct guess {
	const struct ev *ev; /* first evidence; NULL: none open */
	uint64_t start, seen;
};

static int end_guess(const struct seen *seen, struct guess *guess, uint64_t next,
		     uint64_t lane_start, size_t n_known, struct cover_list *list)
{
	struct cover cover = {.ev = guess->ev};
	size_t after;

	if (!guess->ev)
		return 0;
	guess->ev = NULL;
	after = first_after(list->v, n_known, guess->seen);
	if (after < n_known)
		next = MIN(next, list->v[after].start);
	/* it lasts long enough for a record, which comes when it ends */
	cover.recorded = seen->call_record_ns &&
			 guess->seen - MIN(guess->start, guess->seen) >= seen->call_record_ns;
	cover.start = MAX(guess->start, lane_start);
	cover.end = guess_end(seen, guess->start, guess->seen, next);
	return add(list, &cover);
}

static bool is_known(const struct cover *v, size_t n, uint64_t call_start, uint64_t lane_start)
{
	uint64_t start = MAX(call_start, lane_start);
	size_t i = first_after(v, n, start);

	while (i-- > 0 && v[i].start == start)
		if (!v[i].gc)
			return true;
	return false;
}

static int add_guessed(const struct seen *seen, struct evidence it, uint64_t start, uint64_t end,
		       struct cover_list *list)
{
	struct guess guess = {0};
	size_t n_known = list->n;
	const struct ev *ev;
	int err = 0;

	sort_covers(list);
	while (!err && (ev = next_evidence(&it))) {
		bool in_call = ev->where == WIRE_WHERE_SAFE_CALL && ev->call_start_ns;
		uint64_t known = MAX(ev->t0, start);

		if (in_call && guess.ev && ev->call_start_ns == guess.start) {
			guess.seen = MAX(guess.seen, MIN(ev->t1, end));
			continue;
		}
		if (ev->call_start_ns > guess.seen)
			known = ev->call_start_ns;
		err = end_guess(seen, &guess, known, start, n_known, list);
		if (err || !in_call || is_known(list->v, n_known, ev->call_start_ns, start))
			continue;
		guess.ev = ev;
		guess.start = ev->call_start_ns;
		guess.seen = MIN(MAX(ev->t1, start), end);
	}
	return err ? err : end_guess(seen, &guess, end, start, n_known, list);
}

/* ── segments ────────────────────────────────────────────────────────────────────────────── */

static int add_seg(struct cover_list *list, uint64_t start, int32_t cover, enum seg_kind kind,
		   bool exact)
{
	int err = ARRAY_RESERVE(list->segs, list->segs_cap, list->n_segs + 1,
				SIZE_MAX / sizeof(*list->segs));

	if (!err)
		list->segs[list->n_segs++] =
			(struct seg){.start = start, .cover = cover, .kind = kind, .exact = exact};
	return err;
}

static int pop_until(struct cover_list *list, int32_t *stack, size_t *depth, uint64_t t)
{
	int err = 0;

	while (!err && *depth && list->v[stack[*depth - 1]].end <= t) {
		const struct cover *top = &list->v[stack[--*depth]];

		err = add_seg(list, top->end, *depth ? stack[*depth - 1] : -1,
			      top->gc ? SEG_GC_END : SEG_CALL_END, top->end_exact);
	}
	return err;
}

static int make_segs(struct cover_list *list, uint64_t start)
{
	int32_t stack[MAX_NESTED];
	size_t depth = 0;
	int err;

	sort_covers(list);
	err = add_seg(list, start, -1, SEG_BEGIN, true);
	for (size_t i = 0; !err && i < list->n && i < INT32_MAX; i++) {
		struct cover *c = &list->v[i];

		err = pop_until(list, stack, &depth, c->start);
		if (err || depth == MAX_NESTED)
			continue;
		/* Calls are nested; an end that was only guessed may violate that. */
		if (depth && c->end > list->v[stack[depth - 1]].end) {
			c->end = list->v[stack[depth - 1]].end;
			c->end_exact = list->v[stack[depth - 1]].end_exact;
		}
		if (depth && !c->gc)
			list->v[stack[depth - 1]].callback = true;
		stack[depth++] = (int32_t)i;
		err = add_seg(list, c->start, (int32_t)i, c->gc ? SEG_GC_START : SEG_CALL_START,
			      true);
	}
	return err ? err : pop_until(list, stack, &depth, UINT64_MAX);
}

static void mark_callback(struct cover_list *list, size_t *seg, uint64_t t)
{
	while (*seg + 1 < list->n_segs && list->segs[*seg + 1].start <= t)
		++*seg;
	if (list->segs[*seg].cover >= 0 && list->segs[*seg].start <= t)
		list->v[list->segs[*seg].cover].callback = true;
}

/*
 * The kernel side notes callbacks, by their InCall, but not in older captures. Haskell code within
 * a call is one, too. So is the return from a call, since the return from this call itself does not
 * lie within it. A thread still in suspendThread holds its capability, too, but runs the RTS's
 * code; a callback that waits for a capability has none, and no suspended thread.
 */
static void mark_callbacks(const struct seen_thread *th, const struct ev *offs,
			   struct cover_list *list)
{
	size_t seg = 0;

	for (size_t i = 0; i < th->samples.n; i++) {
		const struct ev *s = &th->samples.v[i];

		if (s->flags & EV_CALLED_BACK ||
		    (s->where == WIRE_WHERE_HASKELL && s->code == CODE_HASKELL) ||
		    s->where == WIRE_WHERE_RESUMING)
			mark_callback(list, &seg, s->t0);
	}
	seg = 0;
	for (size_t i = 0; i < th->offs.n; i++) {
		const struct ev *off = &offs[i];

		if (off->flags & EV_CALLED_BACK ||
		    (off->where == WIRE_WHERE_HASKELL && off->code == CODE_HASKELL) ||
		    off->where == WIRE_WHERE_RESUMING || off->where == WIRE_WHERE_NO_CAP)
			mark_callback(list, &seg, off->t0);
	}
}

/* Marks what the kernel side, and other calls from the same sites, show of callbacks. */
static void mark_sites(const struct seen *seen, struct cover_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		struct cover *c = &list->v[i];
		const struct seen_site *site = c->gc ? NULL : seen__site(seen, c->ev->site);

		if (!c->gc && c->ev->call_flags & WIRE_CALL_CALLED_BACK)
			c->callback = true;
		c->divided = site && site->called_back;
		c->apart |= site && site->shorts_apart;
	}
}

/* 0: not known. */
static bool is_same(uint64_t a, uint64_t b)
{
	return !a || !b || a == b;
}

/*
 * Whether the event is in the call of the snapshot at the attach, or in a callback of it: the
 * kernel side did not see the start of the innermost call. `again`: after something else, it is the
 * same call only if neither its Haskell thread nor its site is another one.
 */
static bool in_first_call(const struct seen_thread *th, const struct ev *ev, bool again)
{
	if (ev->call_start_ns || ev->flags & EV_CALLS_UNKNOWN)
		return false;
	if (ev->flags & EV_CALLED_BACK)
		return true;
	if (ev->where != WIRE_WHERE_SAFE_CALL)
		return false;
	return !again ||
	       (is_same(ev->tso, th->at_start.tso) && is_same(ev->site, th->at_start.site));
}

/*
 * A thread that slept in a call has not left it without a context switch: either it has had none,
 * or it is asleep in that call again, or in a callback of it. `goes_on`: at a cut, and at the end
 * of an unfinished capture, where there is no snapshot of where the threads are.
 */
static bool sleeps_in_first_call(const struct seen_thread *th, bool goes_on)
{
	const struct wire_thread *final = th->has_final ? th->final : NULL;

	if (final && (final->on_since_ns || final->off_since_ns))
		return final->off_since_ns && in_first_call(th, &th->final_off, true);
	return goes_on && !th->had_records && !th->samples.n && !th->offs.n && !th->calls.n &&
	       (th->at_start.flags & EV_SLEEPS);
}

/* Whether the call of this event, which ends at `end`, is open at `t`. */
static bool is_open_at(const struct ev *ev, uint64_t end, uint64_t t)
{
	return ev->call_start_ns <= t && end > t;
}

/*
 * The snapshot at the attach found the thread in a call without a record. When it ends it has one,
 * however short it is, unless the record is lost: as long as nothing else is seen, it goes on.
 */
static int add_at_start(const struct thread_builder *b, struct evidence it, uint64_t end,
			bool last_part, struct cover_list *list)
{
	struct thread_lane *lane = b->lane;
	const struct seen_thread *th = lane->seen;
	uint64_t start = b->cursor;
	struct cover cover = {.start = start, .ev = &th->at_start, .apart = true};
	const struct ev *ev, *other = NULL;
	bool was_seen = lane->in_first_call, lost = false;
	uint64_t last = start;

	lane->in_first_call = false;
	if (!th->has_start || th->at_start.where != WIRE_WHERE_SAFE_CALL || th->start_ns ||
	    (lane->folded && !was_seen))
		return 0;
	/* others may be in callbacks of this one */
	for (size_t i = 0; i < list->n; i++)
		if (!list->v[i].gc && is_open_at(list->v[i].ev, list->v[i].end, th->at_start.t0))
			return 0;
	/* beyond `end`, too */
	for (size_t i = 0; i < th->calls.n; i++)
		if (is_open_at(&th->calls.v[i], th->calls.v[i].t1, th->at_start.t0))
			return 0;
	while ((ev = next_evidence(&it)) != NULL) {
		/* it may have ended, and others like it, while the probes were off */
		lost |= (ev->flags & EV_CALLS_UNKNOWN) != 0;
		if (!lost && in_first_call(th, ev, other)) {
			last = MAX(last, MIN(ev->t1, end));
			was_seen = true;
			other = NULL;
		} else if (!other && ev->where != WIRE_WHERE_UNKNOWN &&
			   ev->where != WIRE_WHERE_NOT_READY) {
			other = ev;
		}
	}
	/* or since the last record */
	lost |= th->has_final && !th->final->epoch;
	if (last_part && !th->end_ns && sleeps_in_first_call(th, thread__goes_on(b->l, th))) {
		was_seen = true;
		other = NULL;
	}
	lane->in_first_call = was_seen && !other && !lost;
	cover.end = lane->in_first_call
			    ? end
			    : guess_end(b->l->seen, start, last, other ? MIN(other->t0, end) : end);
	cover.recorded = cover.end_exact = lane->in_first_call;
	return add(list, &cover);
}

int cover__build(struct thread_builder *b, uint64_t end, bool last_part)
{
	const struct evidence it = {.th = b->th, .offs = b->offs};
	const struct seen *seen = b->l->seen;
	const struct seen_thread *th = b->th;
	struct cover_list *list = &b->covers;
	uint64_t start = b->cursor;
	int err;

	memset(list, 0, sizeof(*list));
	err = add_recorded(th, start, end, list);
	if (!err && last_part)
		err = add_open(seen, th, start, end, list);
	if (!err)
		err = add_gcs(seen, th, start, end, list);
	if (!err)
		err = add_guessed(seen, it, start, end, list);
	if (!err)
		err = add_at_start(b, it, end, last_part, list);
	if (!err)
		err = make_segs(list, start);
	if (err) {
		cover__free(list);
		return err;
	}
	mark_callbacks(th, b->offs, list);
	mark_sites(seen, list);
	return 0;
}
