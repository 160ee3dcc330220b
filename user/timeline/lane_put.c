/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Puts the pieces of a thread's time down: as slices of its lane, and as bookings in the ledger. */
#include <sys/syscall.h>

#include "lane_priv.h"

/* ── slices ──────────────────────────────────────────────────────────────────────────────── */

/* Halves the number of slices; of two neighbours the longer gives its face. */
static void coarsen(struct thread *th)
{
	struct tl_stretch *v = th->stretches;
	size_t kept = 0, n = th->lane.n_stretches;

	for (size_t i = 0; v && i < n; i += 2) {
		struct tl_stretch s = v[i];

		if (i + 1 < n) {
			const struct tl_stretch *next = &v[i + 1];
			uint32_t samples = s.samples + next->samples;
			uint64_t start = s.start_ns;

			if (next->end_ns - next->start_ns > s.end_ns - s.start_ns)
				s = *next;
			s.start_ns = start;
			s.end_ns = next->end_ns;
			s.samples = samples;
			s.exact = 0;
		}
		v[kept++] = s;
	}
	th->lane.n_stretches = kept;
	th->lane.coarse = true;
}

int lane__append(struct thread *th, const struct tl_stretch *v, size_t n, size_t max)
{
	for (size_t i = 0; i < n; i++) {
		size_t have = th->lane.n_stretches;
		struct tl_stretch *last = have ? &th->stretches[have - 1] : NULL;
		int err;

		if (last && last->state == v[i].state && last->stack == v[i].stack &&
		    last->cap == v[i].cap && last->tso == v[i].tso) {
			last->end_ns = v[i].end_ns;
			last->samples += v[i].samples;
			last->exact = last->exact && v[i].exact;
			continue;
		}
		while (th->lane.n_stretches >= max)
			coarsen(th);
		err = TL_RESERVE(th->stretches, th->stretches_cap, th->lane.n_stretches + 1, max);
		if (err)
			return err;
		th->stretches[th->lane.n_stretches++] = v[i];
	}
	return 0;
}

static bool may_join(const struct tl_stretch *last, const struct lane_piece *p, uint32_t stack,
		     uint16_t cap, uint64_t tso)
{
	return last->state == p->state && last->stack == stack && last->class == p->class &&
	       (last->cap == cap || last->cap == TL_SOME_CAP || cap == TL_SOME_CAP) &&
	       (last->tso == tso || !last->tso || !tso);
}

static int add_slice(struct lane_builder *b, const struct lane_piece *p, uint32_t stack,
		     uint16_t cap, uint64_t tso)
{
	struct tl_stretch *last = b->n ? &b->v[b->n - 1] : NULL;
	bool end_exact = p->end_exact && !p->sampled;
	int err;

	if (last && may_join(last, p, stack, cap, tso)) {
		last->end_ns = p->end;
		last->samples += p->samples;
		last->cap = last->cap == TL_SOME_CAP ? cap : last->cap;
		last->tso = last->tso ? last->tso : tso;
		b->start_exact = b->start_exact && !p->sampled;
		last->exact = b->start_exact && end_exact;
		return 0;
	}
	err = TL_RESERVE(b->v, b->cap, b->n + 1, SIZE_MAX / sizeof(*b->v));
	if (err)
		return err;
	b->start_exact = b->edge_exact && !p->sampled;
	b->v[b->n++] = (struct tl_stretch){
		.start_ns = b->cursor,
		.end_ns = p->end,
		.stack = stack,
		.state = (uint8_t)p->state,
		.exact = b->start_exact && end_exact,
		.cap = cap,
		.class = (uint8_t)p->class,
		.samples = p->samples,
		.tso = tso,
	};
	return 0;
}

/* ── the ledger ──────────────────────────────────────────────────────────────────────────── */

static struct ledger_place place_of(const struct thread *th, enum ledger_class class,
				    const struct cover *cover)
{
	return (struct ledger_place){
		.owner = th->owner,
		.class = class,
		.detail = class == LEDGER_CALL && cover->ev->site ? cover->ev->site : 0,
	};
}

/*
 * What the time most likely was, where no sample will stand for it. Short calls have a class of
 * their own, whose time the kernel counts; what the slices show of them is a guess.
 */
static int guess(struct lane_builder *b, const struct lane_piece *p, int64_t ns)
{
	bool in_short = p->state == ST_SAFE_CALL_CPU && p->class == LEDGER_RUN;
	struct ledger_place place = place_of(b->th, in_short ? LEDGER_SHORT : p->class, p->cover);
	uint32_t stack;
	int err;

	if (p->class == LEDGER_CALL && p->cover)
		err = stack__unsampled_call(b->tl, b->tg, p->cover->ev, &stack);
	else
		err = stack__unsampled(b->tl, state__title(p->state), &stack);
	return err ? err : ledger__guess(b->tg->ledger, &place, p->state, stack, ns);
}

static int book_on(struct lane_builder *b, const struct lane_piece *p, uint32_t stack, int64_t ns)
{
	bool in_short = p->state == ST_SAFE_CALL_CPU && p->class == LEDGER_RUN;
	struct ledger_place place = place_of(b->th, p->class, p->cover);
	int err = ledger__time(b->tg->ledger, &place, ns);

	if (!err)
		err = guess(b, p, ns);
	if (p->class == LEDGER_RUN)
		b->th->run_ns += (uint64_t)ns;
	if (in_short) {
		b->th->short_guess_ns += (uint64_t)ns;
		place.class = LEDGER_SHORT;
	}
	if (!err && p->samples)
		err = ledger__sample(b->tg->ledger, &place, p->state, stack, p->samples);
	return err;
}

static int book_off(struct lane_builder *b, const struct lane_piece *p, uint32_t stack, int64_t ns)
{
	int err = ledger__off(b->tg->ledger, b->th->owner, p->state, stack, ns);

	if (p->state == ST_IDLE)
		b->th->idle_ns += (uint64_t)ns;
	return err ? err : off__add(b->tl, b->tg, b->th, p->state, p->ev, (uint64_t)ns);
}

int lane__book_shorts(struct timeline *tl, struct target_state *tg, struct thread *th,
		      uint64_t short_cpu_ns)
{
	struct ledger_place place = place_of(th, LEDGER_SHORT, NULL);
	uint32_t stack;
	uint64_t ns;
	int err;

	if (short_cpu_ns <= th->short_booked_ns)
		return 0;
	/* never more than there is */
	ns = MIN(short_cpu_ns - th->short_booked_ns, th->run_ns);
	th->short_booked_ns += ns;
	th->run_ns -= ns;
	err = ledger__time(tg->ledger, &place, (int64_t)ns);
	/* where most of them were nobody knows */
	if (!err && th->short_booked_ns > th->short_guess_ns)
		err = stack__unsampled(tl, state__title(ST_SAFE_CALL_CPU), &stack);
	if (!err && th->short_booked_ns > th->short_guess_ns)
		err = ledger__guess(tg->ledger, &place, ST_SAFE_CALL_CPU, stack,
				    (int64_t)(MIN(ns, th->short_booked_ns - th->short_guess_ns)));
	place.class = LEDGER_RUN;
	return err ? err : ledger__time(tg->ledger, &place, -(int64_t)ns);
}

/* ── a piece ─────────────────────────────────────────────────────────────────────────────── */

static uint16_t cap_of(struct lane_builder *b, const struct lane_piece *p)
{
	uint16_t cap = held__cap(p->state, p->ev);

	if (p->cap_told && (cap == TL_SOME_CAP || !p->ev))
		cap = p->cap;
	if (cap == TL_SOME_CAP && b->held != TL_NO_CAP)
		cap = b->held;
	b->held = cap;
	return cap;
}

/* A Haskell thread stays on its OS thread until that goes back to the scheduler. */
static uint64_t tso_of(struct lane_builder *b, const struct lane_piece *p)
{
	/* in the runtime, but for the call that it makes */
	bool handover = p->state == ST_RTS_BLOCKED && p->ev && (p->ev->flags & EV_HANDOVER);

	switch (handover ? ST_SAFE_CALL_BLOCKED : p->state) {
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
		return b->tso;
	default:
		b->tso = 0;
		return 0;
	}
}

static bool waits_for_events(uint32_t syscall)
{
	switch (syscall) {
	case SYS_poll:
	case SYS_ppoll:
	case SYS_select:
	case SYS_pselect6:
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
		return true;
	default:
		return false;
	}
}

/* GHC.Event.Manager and TimerManager label their threads so (base, GHC.Event.Thread, since 9.6). */
static bool is_managers_label(const struct target_state *tg, uint64_t tso)
{
	const struct tso_info *info;

	HASH_FIND(hh, tg->tso_infos, &tso, sizeof(tso), info);
	return info && (strncmp(info->label, "IOManager", 9) == 0 ||
			strcmp(info->label, "TimerManager") == 0);
}

/* An event manager that waits for events has nothing to do. A program's own poll() has. */
static bool is_managers_wait(const struct lane_builder *b, const struct ev *ev)
{
	const struct site *site = ev && ev->site ? b->tg->site_v[ev->site - 1] : NULL;

	return ev && waits_for_events(ev->syscall) &&
	       ((site && site->manager) || (ev->tso && is_managers_label(b->tg, ev->tso)));
}

/* By what the thread is, and not by the moment. */
static enum tl_state settled(const struct lane_builder *b, const struct lane_piece *p)
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
	default:
		return p->state;
	}
}

int lane__emit(struct lane_builder *b, const struct lane_piece *piece)
{
	uint64_t ns = piece->end > b->cursor ? piece->end - b->cursor : 0;
	struct lane_piece p = *piece;
	uint32_t stack;
	int err;

	if (!ns && !p.samples)
		return 0;
	p.state = settled(b, &p);
	err = stack__compose(b->tl, b->tg, p.state, p.ev, &stack);
	if (!err)
		err = state__on_cpu(p.state) ? book_on(b, &p, stack, (int64_t)ns)
					     : book_off(b, &p, stack, (int64_t)ns);
	if (err || !ns)
		return err;
	mutator__spent(&b->mutator, p.state, ns);
	if (p.sampled)
		b->lane->sampled_states |= 1U << p.state;
	err = add_slice(b, &p, stack, cap_of(b, &p), tso_of(b, &p));
	b->cursor = p.end;
	b->edge_exact = p.end_exact;
	return err;
}
