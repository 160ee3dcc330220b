/* SPDX-License-Identifier: GPL-2.0-or-later */
/* piece: puts a thread's time as pieces of its lane and as bookings in the ledger. */
#include <sys/syscall.h>

#include "lanes_priv.h"

/* ── pieces ──────────────────────────────────────────────────────────────────────────────── */

static bool may_join(const struct piece *last, const struct finding_out *p, uint32_t stack,
		     uint16_t cap, uint16_t awaited, uint64_t tso)
{
	return last->s.state == p->state && last->s.stack == stack && last->class == p->class &&
	       (last->s.cap == cap || last->s.cap == SOME_CAP || cap == SOME_CAP) &&
	       last->awaited == awaited && (last->s.tso == tso || !last->s.tso || !tso);
}

static bool in_program(const struct finding_out *p)
{
	const struct ev *ev = p->ev;

	if (p->state == ST_PREEMPTED)
		return ev && ev->where == WIRE_WHERE_HASKELL && ev->code != CODE_GC &&
		       !(ev->flags & EV_GC_CODE);
	return p->state == ST_HASKELL_BLOCKED || p->state == ST_UNSAFE_CALL_BLOCKED;
}

static int add_piece(struct thread_builder *b, const struct finding_out *p, uint32_t stack,
		     uint16_t cap, uint16_t awaited, uint64_t tso)
{
	struct piece *last = b->n ? &b->v[b->n - 1] : NULL;
	bool end_exact = p->end_exact && !p->sampled;
	int err;

	if (last && may_join(last, p, stack, cap, awaited, tso)) {
		last->s.end_ns = p->end;
		last->s.samples += p->samples;
		last->s.cap = last->s.cap == SOME_CAP ? cap : last->s.cap;
		last->s.tso = last->s.tso ? last->s.tso : tso;
		last->in_program &= in_program(p);
		last->tso_guessed &= p->tso_guessed;
		b->start_exact = b->start_exact && !p->sampled;
		last->s.exact = b->start_exact && end_exact;
		return 0;
	}
	err = ARRAY_RESERVE(b->v, b->cap, b->n + 1, SIZE_MAX / sizeof(*b->v));
	if (err)
		return err;
	b->start_exact = b->edge_exact && !p->sampled;
	b->v[b->n++] = (struct piece){
		.s = {.start_ns = b->cursor,
		      .end_ns = p->end,
		      .tso = tso,
		      .tid = b->th->tid,
		      .stack = stack,
		      .samples = p->samples,
		      .cap = cap,
		      .state = (uint8_t)p->state,
		      .exact = b->start_exact && end_exact},
		.class = (uint8_t)p->class,
		.in_program = in_program(p),
		.tso_guessed = p->tso_guessed,
		.awaited = awaited,
	};
	return 0;
}

/* ── the ledger ──────────────────────────────────────────────────────────────────────────── */

static struct ledger_place place_of(const struct seen_thread *th, enum ledger_class class,
				    const struct cover *cover)
{
	return (struct ledger_place){
		.owner = th->no,
		.class = class,
		.detail = class == LEDGER_CALL && cover->ev->site ? cover->ev->site : 0,
	};
}

/*
 * Short calls have a class of their own, whose time the kernel side counts. Calls made while the
 * probes were off are not in that count, and stay with what else the thread did. So do a call
 * with a record that called back, short ones from where calls call back, and calls that began
 * before the session.
 */
static bool in_short(const struct finding_out *p)
{
	if (p->ev && p->ev->where == WIRE_WHERE_SAFE_CALL && !p->ev->call_start_ns && !p->cover)
		return false;
	return p->state == ST_SAFE_CALL_CPU && p->class == LEDGER_RUN &&
	       !(p->cover && (p->cover->recorded || p->cover->apart)) &&
	       !(p->ev && (p->ev->flags & EV_CALLS_UNKNOWN));
}

/*
 * Books the time, and what it most likely was, in case no sample will stand for it. What the slices
 * show of short calls is a guess.
 */
static int book_time(struct thread_builder *b, const struct finding_out *p,
		     const struct ledger_place *place, int64_t ns)
{
	struct ledger *ledger = b->l->ledger[LANE_THREAD];
	struct ledger_place shorts;
	uint32_t stack;
	int err;

	if (p->state == ST_SAFE_CALL_CPU && p->cover && p->cover->recorded)
		err = stack__unsampled_call(b->l->in, b->l->seen, p->cover->ev, &stack);
	else
		err = lane__unsampled(b->l, LANE_THREAD, p->state, &stack);
	if (err)
		return err;
	if (!in_short(p))
		return ledger__guessed_time(ledger, place, p->state, stack, ns);
	err = ledger__time(ledger, place, ns);
	shorts = place_of(b->th, LEDGER_SHORT, p->cover);
	return err ? err : ledger__guess(ledger, &shorts, p->state, stack, ns);
}

/* How much of start…end lies between a collection's request and its start. */
static uint64_t in_sync(const struct seen *seen, uint64_t start, uint64_t end)
{
	const struct gc_span *gc = seen__gc_at(seen, start);
	uint64_t ns = 0;

	for (; gc && gc < seen->gcs.v + seen->gcs.n && gc->start < end; gc++) {
		uint64_t from = MAX(start, gc->start), to = gc->work ? MIN(gc->work, end) : end;

		ns += to > from ? to - from : 0;
	}
	return ns;
}

/* Books time in collections before they began once more, in an account of its own. */
static int book_sync(struct thread_builder *b, const struct finding_out *p, uint32_t stack,
		     uint64_t ns)
{
	const struct ledger_place place = {.class = LEDGER_RUN};
	uint64_t sync = in_sync(b->l->seen, b->cursor, p->end);
	int err = ledger__guessed_time(b->l->gc_sync, &place, p->state, stack, (int64_t)sync);

	return err || !p->samples || sync <= ns / 2
		       ? err
		       : ledger__sample(b->l->gc_sync, &place, p->state, stack, p->samples);
}

static void count_run(struct thread_lane *lane, const struct finding_out *p, uint64_t ns)
{
	lane->run_samples += p->samples;
	if (p->state != ST_SAFE_CALL_CPU)
		return;
	lane->call_samples += p->samples;
	lane->call_guess_ns += ns;
}

static int book_on(struct thread_builder *b, const struct finding_out *p, uint32_t stack,
		   int64_t ns)
{
	struct ledger_place place = place_of(b->th, p->class, p->cover);
	int err = book_time(b, p, &place, ns);

	if (p->class == LEDGER_RUN)
		b->lane->run_ns += (uint64_t)ns;
	if (in_short(p)) {
		b->lane->short_guess_ns += (uint64_t)ns;
		place.class = LEDGER_SHORT;
	}
	if (place.class == LEDGER_RUN)
		count_run(b->lane, p, (uint64_t)ns);
	if (!err && p->samples)
		err = ledger__sample(b->l->ledger[LANE_THREAD], &place, p->state, stack,
				     p->samples);
	if (!err && p->state == ST_GC_WORK && !b->l->reading)
		err = book_sync(b, p, stack, (uint64_t)ns);
	return err;
}

static int book_off(struct thread_builder *b, const struct finding_out *p, uint32_t stack,
		    int64_t ns)
{
	int err = ledger__off(b->l->ledger[LANE_THREAD], b->th->no, p->state, stack, ns);

	if (p->state == ST_IDLE)
		b->lane->idle_ns += (uint64_t)ns;
	return err ? err : off__book(b->l, b->lane, p->state, p->ev, (uint64_t)ns);
}

int thread__book_shorts(struct lanes *l, struct thread_lane *lane, uint64_t short_cpu_ns)
{
	struct ledger *ledger = l->ledger[LANE_THREAD];
	struct ledger_place place = place_of(lane->seen, LEDGER_SHORT, NULL);
	uint64_t ns, unseen;
	uint32_t stack;
	int err;

	if (short_cpu_ns <= lane->short_booked_ns)
		return 0;
	/* never more than there is */
	ns = MIN(short_cpu_ns - lane->short_booked_ns, lane->run_ns);
	lane->short_booked_ns += ns;
	lane->run_ns -= ns;
	err = ledger__time(ledger, &place, (int64_t)ns);
	/* the slices do not show where these calls were */
	unseen = lane->short_booked_ns > lane->short_guess_ns
			 ? MIN(ns, lane->short_booked_ns - lane->short_guess_ns)
			 : 0;
	if (!err && unseen)
		err = lane__unsampled(l, LANE_THREAD, ST_SAFE_CALL_CPU, &stack);
	if (!err && unseen)
		err = ledger__guess(ledger, &place, ST_SAFE_CALL_CPU, stack, (int64_t)unseen);
	place.class = LEDGER_RUN;
	return err ? err : ledger__time(ledger, &place, -(int64_t)ns);
}

/* ── all of it ───────────────────────────────────────────────────────────────────────────── */

static uint16_t cap_of(struct thread_builder *b, const struct finding_out *p)
{
	uint16_t cap = held__cap(p->state, p->ev);

	if (p->cap_known && (cap == SOME_CAP || !p->ev))
		cap = p->cap;
	if (cap == SOME_CAP && b->held != NO_CAP)
		cap = b->held;
	b->held = cap;
	return cap;
}

/*
 * The capability awaited by a thread that is runnable without a CPU and without a capability, if
 * nobody else holds it. A thread that was woken is to take the one that its Task is for
 * (rts/Capability.c, giveCapabilityToTask). One that was preempted has given up that one
 * (yieldCapability); or it leads a collection, releases the others' one after the other
 * (rts/Schedule.c, releaseAllCapabilities), and still has its own.
 */
static uint16_t awaited_by(struct thread_builder *b, const struct finding_out *p, uint16_t cap)
{
	bool woken = p->ev && !(p->ev->flags & EV_RUNNABLE);
	const struct gc_span *gc;

	if (cap < MAX_CAPS)
		b->had = cap;
	if (cap != NO_CAP || p->state != ST_PREEMPTED || !p->ev || p->ev->left == NO_CAP)
		return NO_CAP;
	if (p->ev->where != WIRE_WHERE_NO_CAP && !(p->ev->where == WIRE_WHERE_RESUMING && woken))
		return NO_CAP;
	/* a collection's leader takes the others' capabilities for it */
	gc = seen__gc_at(b->l->seen, b->cursor);
	if (gc && gc->start <= b->cursor && gc->tid == b->th->tid)
		return NO_CAP;
	if (woken || b->had == NO_CAP)
		b->had = p->ev->left;
	return b->had;
}

/* Haskell code within a call is that of a callback, and not of the thread that made the call. */
static bool is_callers(const struct finding_out *p, uint64_t tso)
{
	return p->cover && !p->cover->gc && p->state != ST_SAFE_CALL_CPU &&
	       p->cover->ev->tso == tso;
}

/* A Haskell thread stays on its OS thread until the OS thread returns to the scheduler. */
static uint64_t tso_of(struct thread_builder *b, const struct finding_out *p)
{
	/* in the runtime, but on behalf of the call that it makes */
	bool handover = p->state == ST_RTS_BLOCKED && p->ev && (p->ev->flags & EV_HANDOVER);
	/* an event manager is in its call, while its OS thread counts as idle */
	bool managed = p->state == ST_IDLE && p->ev && p->ev->where == WIRE_WHERE_SAFE_CALL;
	bool without = p->state == ST_PREEMPTED && p->ev && p->ev->where == WIRE_WHERE_NO_CAP;

	switch (handover || managed ? ST_SAFE_CALL_BLOCKED : without ? ST_RTS : p->state) {
	case ST_HASKELL:
	case ST_UNSAFE_CALL_CPU:
	case ST_SAFE_CALL_CPU:
	case ST_HASKELL_BLOCKED:
	case ST_UNSAFE_CALL_BLOCKED:
	case ST_SAFE_CALL_BLOCKED:
	case ST_CAP_WAIT:
	case ST_PREEMPTED:
		if (p->ev && p->ev->tso)
			b->tso = p->ev->tso;
		if (is_callers(p, b->tso))
			b->tso = 0;
		return b->tso;
	default:
		b->tso = 0;
		return 0;
	}
}

/* Labels that GHC.Event.Manager and TimerManager give (base, GHC.Event.Thread, since 9.6). */
static bool is_managers_label(const struct seen *seen, uint64_t tso)
{
	const struct tso_info *info = seen__tso(seen, tso);

	return info && (strncmp(info->label, "IOManager", 9) == 0 ||
			strcmp(info->label, "TimerManager") == 0);
}

/* An event manager that waits for events has nothing to do. A program's own poll() does. */
static bool is_managers_wait(const struct thread_builder *b, const struct ev *ev)
{
	const struct seen_site *site = ev ? seen__site(b->l->seen, ev->site) : NULL;

	return ev && seen__waits_for_events(ev->syscall) &&
	       ((ev->flags & EV_MANAGER) || (site && site->manager) ||
		(ev->tso && is_managers_label(b->l->seen, ev->tso)));
}

/*
 * Without -threaded the scheduler itself waits if no Haskell thread can run: for files and timers
 * (rts/posix/Select.c, Poll.c), or in pause() for a signal that has a handler (rts/posix/Signals.c,
 * awaitUserSignals). Nothing else in the runtime sleeps in these calls.
 */
static bool is_schedulers_wait(const struct thread_builder *b, const struct ev *ev)
{
	return ev && !b->l->seen->pub->threaded && ev->where == WIRE_WHERE_RTS &&
	       (seen__waits_for_events(ev->syscall) || ev->syscall == SYS_pause);
}

/* Corrects the state by what the thread is, rather than by what it does at the moment. */
static enum thread_state settled(const struct thread_builder *b, const struct finding_out *p)
{
	switch (p->state) {
	case ST_FOREIGN_CPU:
		return b->th->collects ? ST_GC_WORK : p->state;
	case ST_FOREIGN_BLOCKED:
		/* rts/posix/ticker: the thread of the runtime's timer, which waits for the next
		 * tick */
		if (strcmp(b->th->name, "ghc_ticker") == 0)
			return ST_IDLE;
		return b->th->collects ? ST_GC_WAIT : p->state;
	case ST_SAFE_CALL_BLOCKED:
		return is_managers_wait(b, p->ev) ? ST_IDLE : p->state;
	case ST_RTS_BLOCKED:
		return is_schedulers_wait(b, p->ev) ? ST_IDLE : p->state;
	default:
		return p->state;
	}
}

static int book(struct thread_builder *b, const struct finding_out *p, uint32_t stack, int64_t ns)
{
	if (thread__on_cpu(p->state))
		return book_on(b, p, stack, ns);
	/* no class: the class's samples would then stand for time in states that are known */
	if (p->on_cpu)
		return ledger__on(b->l->ledger[LANE_THREAD], b->th->no, p->state, stack, ns);
	return book_off(b, p, stack, ns);
}

/* Has everything that stack__compose() looks at. */
static struct composed_key key_of(enum thread_state state, const struct ev *ev)
{
	struct composed_key key = {.state = (uint8_t)state, .has = 1};

	if (ev)
		key = (struct composed_key){.hs = ev->hs,
					    .c = ev->c,
					    .site = ev->site,
					    .ccs = ev->ccs,
					    .hs_run = ev->hs_run,
					    .flags = ev->flags,
					    .where = ev->where,
					    .code = ev->code,
					    .state = (uint8_t)state,
					    .has = 2};
	return key;
}

static int compose(struct thread_builder *b, const struct finding_out *p, uint32_t *ret_stack)
{
	struct composed_key key = key_of(p->state, p->ev);
	uint32_t mix =
		(key.hs ^ key.c << 3 ^ key.site << 6 ^ (uint32_t)key.state << 9) * 0x9e3779b1U;
	struct composed *kept = &b->composed[mix >> 16 & (COMPOSED_KEPT - 1)];
	int err;

	if (memcmp(&kept->key, &key, sizeof(key)) != 0) {
		err = stack__compose(b->l->in, b->l->seen, p->state, p->ev, &kept->stack);
		if (err) {
			kept->key.has = 0;
			return err;
		}
		kept->key = key;
	}
	*ret_stack = kept->stack;
	return 0;
}

/* Notes time waited for a capability after a site's calls. Time without a CPU has another state. */
static int note_cap_wait(struct lanes *l, const struct finding_out *p, uint64_t ns)
{
	int err;

	if (p->state != ST_CAP_WAIT || !p->ev || !seen__site(l->seen, p->ev->site) || l->reading)
		return 0;
	err = ARRAY_RESERVE(l->cap_waits, l->cap_waits_cap, p->ev->site, l->seen->n_sites);
	if (err)
		return err;
	while (l->n_cap_waits < p->ev->site)
		l->cap_waits[l->n_cap_waits++] = 0;
	l->cap_waits[p->ev->site - 1] += ns;
	return 0;
}

int thread__emit(struct thread_builder *b, const struct finding_out *found)
{
	uint64_t ns = found->end > b->cursor ? found->end - b->cursor : 0;
	struct finding_out p = *found;
	uint32_t stack;
	uint16_t cap;
	int err;

	if (!ns && !p.samples)
		return 0;
	p.state = settled(b, &p);
	/* a scheduler's thread is the program's own, not a manager's */
	if (p.state == ST_IDLE && found->state != ST_IDLE && found->state != ST_RTS_BLOCKED)
		b->lane->managed_ns += ns;
	err = compose(b, &p, &stack);
	if (!err)
		err = book(b, &p, stack, (int64_t)ns);
	if (!err)
		err = note_cap_wait(b->l, &p, ns);
	if (err || !ns)
		return err;
	mutator__spent(&b->mutator, p.state, ns);
	if (p.sampled)
		b->lane->sampled_states |= 1U << p.state;
	cap = cap_of(b, &p);
	err = add_piece(b, &p, stack, cap, awaited_by(b, &p, cap), tso_of(b, &p));
	b->cursor = p.end;
	b->edge_exact = p.end_exact;
	return err;
}
