/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * haskell_gaps: what Haskell threads do between two pieces, and after the last one. The reason for
 * being off is known if the thread's memory could be read when another thread was seen in its place
 * (struct wire_tso), by looks into it since (struct wire_tso_waits), or by one at the end;
 * otherwise it is inferred from what the OS thread did meanwhile.
 */
#include "haskell_priv.h"

int haskell__put(struct haskell_builder *b, const struct claim *c, const struct pic_slice *s)
{
	int err = claim__book(b->l, LANE_HASKELL, b->lane->no, c, s);

	if (!s->exact)
		b->lane->sampled_states |= 1U << s->state;
	return err || b->l->reading
		       ? err
		       : slices__put(&b->lane->slices, LANE_HASKELL, s, b->l->max_slices);
}

/*
 * A thread does not stay ready while its capability has nothing to do. Returns the latest time at
 * which it must have run unseen; `end` if the capability was busy until then.
 */
static uint64_t ready_until(const struct haskell_builder *b, uint64_t end)
{
	const struct idle *idle = caps__idle(b->l, b->lane->last_cap);
	uint64_t ready = UINT64_MAX;

	if (idle && *b->cursor < idle->from)
		ready = b->lane->ready_ns;
	if (idle && ready == UINT64_MAX)
		ready = idle__first_long(idle, *b->cursor, end);
	return MIN(ready, end);
}

/* Whether the capability that it ran on before had no work for most of the time up to `end`. */
static bool cap_was_idle(const struct haskell_builder *b, uint64_t end)
{
	const struct idle *idle = caps__idle(b->l, b->lane->last_cap);
	uint64_t before;

	if (!idle)
		return false;
	before = *b->cursor < idle->from ? b->lane->idle_ns : idle__ns(idle, *b->cursor);
	return idle__ns(idle, end) - before >= (end - *b->cursor) / 2;
}

void haskell__keep_idle(const struct lanes *l, struct haskell_lane *lane)
{
	const struct idle *idle = caps__idle(l, lane->last_cap);

	if (!idle)
		return;
	if (lane->cursor >= idle->from) {
		lane->idle_ns = idle__ns(idle, lane->cursor);
		lane->ready_ns = UINT64_MAX;
	}
	if (lane->ready_ns == UINT64_MAX)
		lane->ready_ns = idle__first_long(idle, lane->cursor, UINT64_MAX);
}

/*
 * Being in a safe call may be what its memory showed before the collector moved it. It is true if
 * the call runs Haskell code on its own OS thread, and then goes on.
 */
static bool is_believed(enum haskell_state state, const struct claim *next)
{
	return state != HS_SAFE_CALL || (next && next->state == HS_SAFE_CALL);
}

/* Skips the notes of before the cursor. */
static void skip_notes(struct haskell_builder *b)
{
	while (b->note < b->n_notes && b->notes[b->note].ns < *b->cursor)
		b->note++;
}

/* The i-th note if it is one of up to `end`, or NULL. */
static const struct tso_note *note_at(const struct haskell_builder *b, size_t i, uint64_t end)
{
	const struct tso_note *note = i < b->n_notes ? &b->notes[i] : NULL;

	return note && note->ns <= end ? note : NULL;
}

void haskell__find_left(struct haskell_builder *b, uint64_t end)
{
	struct haskell_lane *lane = b->lane;

	skip_notes(b);
	for (size_t i = b->note; i < b->n_notes && b->notes[i].ns < end; i++) {
		lane->left = HS_UNKNOWN;
		if (!b->notes[i].ended)
			lane->left = (uint8_t)haskell_state__blocked(b->notes[i].why);
		lane->left_ns = b->notes[i].ns;
	}
}

/* What the thread waited for up to `end`, where `next` begins; NULL: it is not seen again. */
static enum haskell_state state_in_gap(struct haskell_builder *b, uint64_t end,
				       const struct claim *next)
{
	enum haskell_state otherwise = next ? (enum haskell_state)next->before : HS_UNKNOWN;
	enum haskell_state state = (enum haskell_state)b->lane->left;
	const struct tso_note *note;

	if (b->lane->ran_unseen || b->lost)
		return HS_UNKNOWN;
	/* unchanged since the cut */
	if (b->lane->waits != HS_UNKNOWN)
		return (enum haskell_state)b->lane->waits;
	/* The first sign of another thread in its place. */
	skip_notes(b);
	note = note_at(b, b->note, end);
	if (note)
		state = haskell_state__blocked(note->why);
	/* out of a call that was too short for a record, it has run on */
	for (size_t i = b->note + 1; !is_believed(state, next); i++) {
		note = note_at(b, i, end);
		if (!note)
			return HS_UNKNOWN;
		state = haskell_state__blocked(note->why);
	}
	if (state != HS_UNKNOWN)
		return state;
	/* otherwise its OS thread had passed the capability on, and may just have waited */
	if (otherwise == HS_BLOCKED_OTHER && !cap_was_idle(b, end))
		return HS_UNKNOWN;
	return otherwise;
}

/*
 * The first collection that ends after `at` in a gap up to `end`. No capability runs Haskell code
 * during a collection, so what samples show on the thread's capability holds for all. How far back
 * sampled ones are known depends only on the gap, not on when lanes are made.
 */
static bool next_gc(const struct haskell_builder *b, uint64_t at, uint64_t end, uint64_t *ret_start,
		    uint64_t *ret_end)
{
	const struct gc_span *gc = seen__gc_at(b->l->seen, at);
	uint64_t since = MAX(at, end - MIN(end, SAMPLED_GCS_NS));
	const struct idle_span *sampled;

	if (gc) {
		*ret_start = gc->start;
		*ret_end = gc__end(gc);
		return true;
	}
	sampled = caps__sampled_gc(b->l, b->lane->last_cap, since);
	if (sampled) {
		*ret_start = MAX(sampled->start, since);
		*ret_end = sampled->end;
	}
	return sampled;
}

int haskell__put_wait(struct haskell_builder *b, uint64_t end, const struct claim *next)
{
	static const struct claim nobody = {.class = LEDGER_CLASSES};
	enum haskell_state state = state_in_gap(b, end, next);
	uint64_t at = *b->cursor, ready = UINT64_MAX;
	int err = 0;

	if (state == HS_RUNNABLE)
		ready = ready_until(b, end);
	/* it has run unseen at an unknown time */
	if (ready == end && b->at_last != HS_UNKNOWN)
		ready = at;
	while (!err && at < end) {
		struct pic_slice s = {
			.start_ns = at, .end_ns = end, .tso = b->lane->tso, .cap = NO_CAP};
		uint64_t gc_start, gc_end;

		if (at >= ready)
			state = b->at_last;
		s.state = (uint8_t)state;
		if (state == HS_RUNNABLE)
			s.end_ns = MIN(end, ready);
		if (state == HS_RUNNABLE && next_gc(b, at, end, &gc_start, &gc_end)) {
			bool collects = gc_start <= at;

			s.state = collects ? HS_GC : HS_RUNNABLE;
			s.end_ns = collects ? MIN(gc_end, end) : MIN(gc_start, s.end_ns);
		}
		at = s.end_ns;
		err = haskell__put(b, &nobody, &s);
	}
	return err;
}

/* ── what it waits for later ─────────────────────────────────────────────────────────────── */

/*
 * When the thread began to wait for what a look found: in the middle between this look and the
 * previous one, as with samples; but one that was ready stays so until its capability has nothing
 * to do, and has become ready since it last had nothing to do. One that is dead by now, and had to
 * wait, may have ended soon after the previous look: nothing is known of the time between.
 */
static uint64_t changed_at(const struct haskell_builder *b, const struct tso_note *look,
			   enum haskell_state before)
{
	const struct idle *idle = caps__idle(b->l, b->lane->last_cap);
	bool is_ready = !look->ended && haskell_state__blocked(look->why) == HS_RUNNABLE;
	uint64_t from = look->since_ns, to = look->ns;
	uint64_t idle_until = idle && is_ready ? idle__last_long(idle, to) : 0;

	/* ready again; until the capability had nothing to do, it was ready as well */
	if (before == HS_RUNNABLE && is_ready)
		return idle_until;
	if (before == HS_RUNNABLE) {
		uint64_t ready = ready_until(b, to);

		if (ready < to)
			return ready;
	} else if (look->ended) {
		to = from;
	}
	from = MAX(from, idle_until);
	return from < to ? from + (to - from) / 2 : to;
}

int haskell__put_looks(struct haskell_builder *b, uint64_t end, const struct claim *next)
{
	int err = 0;

	for (; !err && b->look < b->n_looks && b->looks[b->look].ns <= end; b->look++) {
		const struct tso_note *look = &b->looks[b->look];
		uint64_t at;

		if (look->ns <= *b->cursor)
			continue;
		at = changed_at(b, look, state_in_gap(b, look->ns, next));
		if (at > *b->cursor) {
			haskell__find_left(b, at);
			err = haskell__put_wait(b, at, next);
			*b->cursor = at;
		}
		b->lane->ran_unseen = b->lost = false;
		b->dead = look->ended;
		b->lane->waits = HS_UNKNOWN;
		if (!b->dead)
			b->lane->waits = (uint8_t)haskell_state__blocked(look->why);
	}
	return err;
}

/* The first note of a stop after which the thread goes on, at or after `ns`; NULL: none up to
 * `end`. */
static const struct tso_note *next_stop(const struct haskell_builder *b, uint64_t ns, uint64_t end)
{
	for (size_t i = 0; i < b->n_notes && b->notes[i].ns <= end; i++)
		if (b->notes[i].ns >= ns && !b->notes[i].ended &&
		    b->notes[i].why != WIRE_TSO_UNKNOWN)
			return &b->notes[i];
	return NULL;
}

int haskell__leave_holes(struct haskell_builder *b, uint64_t end)
{
	const struct tso_note *stop;
	int err = 0;

	while (!err) {
		bool before = b->lane->waits == HS_BLOCKED_BLACKHOLE;

		stop = next_stop(b, *b->cursor, end);
		if (stop && !before) {
			before = haskell_state__blocked(stop->why) == HS_BLOCKED_BLACKHOLE;
			stop = next_stop(b, stop->ns + 1, end);
		}
		if (!stop || !before)
			break;
		err = haskell__put_looks(b, stop->ns, NULL);
		if (!err && *b->cursor < stop->ns)
			err = haskell__put_wait(b, stop->ns, NULL);
		*b->cursor = MAX(*b->cursor, stop->ns);
		b->lane->waits = HS_UNKNOWN;
	}
	return err;
}

int haskell__put_gap(void *ctx, uint64_t end, const struct claim *next)
{
	struct haskell_builder *b = ctx;
	int err = haskell__leave_holes(b, end);

	if (!err)
		err = haskell__put_looks(b, end, next);
	if (!err)
		err = haskell__put_wait(b, end, next);
	haskell__find_left(b, end);
	return err;
}

int haskell__put_unknown(struct haskell_builder *b, uint64_t end)
{
	static const struct claim nobody = {.class = LEDGER_CLASSES};
	const struct pic_slice s = {.start_ns = *b->cursor,
				    .end_ns = end,
				    .tso = b->lane->tso,
				    .cap = NO_CAP,
				    .state = HS_UNKNOWN};

	return haskell__put(b, &nobody, &s);
}

/* ── after the last piece ────────────────────────────────────────────────────────────────── */

/* What the thread waits for, by a look into its memory at the end; HS_UNKNOWN: for nothing, or
 * there was no look after since_ns. */
static enum haskell_state looked(const struct haskell_builder *b, uint64_t since_ns, uint64_t end)
{
	uint16_t why = seen__living_why(b->l->seen, b->lane->tso, since_ns, end);
	enum haskell_state state = haskell_state__blocked(why);

	return state != HS_RUNNABLE && is_believed(state, NULL) ? state : HS_UNKNOWN;
}

/* When it was last seen to stop without ending; 0: never. */
static uint64_t stopped_last(const struct haskell_builder *b)
{
	for (size_t i = b->n_notes; i-- > 0;)
		if (!b->notes[i].ended && b->notes[i].why != WIRE_TSO_UNKNOWN)
			return b->notes[i].ns;
	return 0;
}

bool haskell__is_seen_later(const struct haskell_builder *b, uint64_t end)
{
	const struct tso_info *info = seen__tso(b->l->seen, b->lane->tso);

	return b->l->goes_on && info && info->seen_ns > end;
}

/*
 * True if a thread that was seen in a black hole at since_ns may have left it by `end`. A black
 * hole lasts until a value is evaluated, which takes milliseconds as a rule; then the thread runs
 * on, and may wait for something else, unseen.
 */
static bool is_lost(struct haskell_builder *b, uint64_t since_ns, uint64_t end)
{
	enum haskell_state found = looked(b, since_ns, end);
	const struct seen *seen = b->l->seen;

	if (found == HS_BLOCKED_BLACKHOLE || haskell__is_seen_later(b, end))
		return false;
	/* a program that ends is not looked at; it may end as soon as the value is there */
	if (seen->looked_ns < since_ns && (seen->ended || seen->exits_ahead))
		return false;
	/* a replay has what later looks found, which may not have been true yet */
	if (!intake__does_look_ahead(b->l->in))
		b->at_last = found;
	return true;
}

/*
 * Whether the thread threw an exception at another one (BlockedOnMsgThrowTo) when it was last seen,
 * and the program ended without a look. The other one takes the exception within milliseconds as a
 * rule, and a thread that was made to throw it ends then.
 */
static bool threw_last(const struct haskell_builder *b, enum haskell_state state)
{
	const struct seen *seen = b->l->seen;

	return state == HS_BLOCKED_OTHER && b->unsure && (seen->ended || seen->exits_ahead);
}

/* Until when a thread seen in that state at since_ns stays in it, as far as is known. */
static uint64_t waits_until(struct haskell_builder *b, enum haskell_state state, uint64_t since_ns,
			    uint64_t end)
{
	if (state == HS_RUNNABLE)
		b->at_last = looked(b, since_ns, end);
	else if (state == HS_BLOCKED_BLACKHOLE)
		b->lost = is_lost(b, since_ns, end);
	if (b->at_last != HS_UNKNOWN)
		return end;
	b->unsure = b->l->seen->looked_ns < since_ns;
	if (!b->unsure || state != HS_RUNNABLE) {
		uint64_t lived = seen__lives_until(b->l->seen, b->lane->tso, since_ns, end);

		if (threw_last(b, state))
			lived = since_ns;
		end = MAX(*b->cursor, MIN(MAX(lived, stopped_last(b)), end));
	}
	/* a thread that was ready has run again, and may have ended, unseen */
	return state == HS_RUNNABLE ? ready_until(b, end) : end;
}

uint64_t haskell__end_of(struct haskell_builder *b, uint64_t end, uint8_t *ret_waits)
{
	uint64_t last = *b->cursor;
	enum haskell_state found = (enum haskell_state)b->lane->waits;

	*ret_waits = b->lane->waits;
	if (found != HS_UNKNOWN)
		return waits_until(b, found, last, end);
	for (size_t i = 0; i < b->n_notes; i++) {
		const struct tso_note *note = &b->notes[i];

		if (note->ns < last || note->ended || note->why == WIRE_TSO_UNKNOWN)
			continue;
		found = haskell_state__blocked(note->why);
		if (!is_believed(found, NULL))
			continue;
		*ret_waits = (uint8_t)found;
		return waits_until(b, found, note->ns, end);
	}
	found = (enum haskell_state)b->lane->left;
	if (found != HS_UNKNOWN && is_believed(found, NULL) &&
	    (!b->n_notes || b->notes[b->n_notes - 1].ns < last)) {
		*ret_waits = (uint8_t)found;
		return waits_until(b, found, b->lane->left_ns, end);
	}
	/* its memory was not read as it stopped, but was read at the end */
	found = looked(b, last, end);
	*ret_waits = (uint8_t)found;
	return found == HS_UNKNOWN ? last : end;
}
