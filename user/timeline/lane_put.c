/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Puts the pieces of a thread's time down: as stretches of its lane, and in all sums. */
#include "lane_priv.h"

/* Beyond the budget: halves the number of stretches; of two neighbours the longer gives its face.
 */
static void coarsen(struct lane_builder *b)
{
	size_t kept = 0;

	for (size_t i = 0; b->v && i < b->n; i += 2) {
		struct tl_stretch s = b->v[i];

		if (i + 1 < b->n) {
			const struct tl_stretch *next = &b->v[i + 1];
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

static bool may_join(const struct tl_stretch *last, const struct lane_piece *p, uint32_t stack,
		     uint16_t cap, uint64_t tso)
{
	return last->state == p->state && last->stack == stack &&
	       (last->cap == cap || last->cap == TL_SOME_CAP || cap == TL_SOME_CAP) &&
	       (last->tso == tso || !last->tso || !tso);
}

static int append(struct lane_builder *b, const struct lane_piece *p, uint32_t stack, uint16_t cap,
		  uint64_t tso)
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
	while (b->n >= b->max)
		coarsen(b);
	err = TL_RESERVE(b->v, b->cap, b->n + 1, b->max);
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
		.samples = p->samples,
		.tso = tso,
	};
	return 0;
}

/* What the unsafe call's row and the functions' table get. */
static int account(struct lane_builder *b, const struct lane_piece *p, uint32_t stack, uint64_t ns)
{
	int err = 0;

	if (p->state == ST_UNSAFE_CALL_CPU)
		err = sums__unsafe(b->tl, b->sums, p->ev, stack, ns, 0, p->samples);
	else if (p->state == ST_UNSAFE_CALL_BLOCKED)
		err = sums__unsafe(b->tl, b->sums, p->ev, stack, 0, ns, 0);
	if (!err && state__on_cpu(p->state))
		err = sums__stack(b->sums, stack, ns, p->samples);
	else if (!err && ns)
		err = off__add(b->tl, b->tg, b->th, p->state, p->ev, ns);
	return err;
}

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

int lane__emit(struct lane_builder *b, const struct lane_piece *p)
{
	uint64_t ns = p->end > b->cursor ? p->end - b->cursor : 0;
	struct lane_piece own;
	uint32_t stack;
	int err;

	if (!ns && !p->samples)
		return 0;
	if (b->th->collects) {
		own = *p;
		own.state = p->state == ST_FOREIGN_CPU	     ? ST_GC_WORK
			    : p->state == ST_FOREIGN_BLOCKED ? ST_GC_WAIT
							     : p->state;
		p = &own;
	}
	err = stack__compose(b->tl, b->tg, p->state, p->ev, &stack);
	if (!err)
		err = account(b, p, stack, ns);
	if (err || !ns)
		return err;
	b->lane->states_ns[p->state] += ns;
	mutator__spent(&b->mutator, p->state, ns);
	if (p->sampled)
		b->lane->sampled_states |= 1U << p->state;
	if (p->state == ST_SAFE_CALL_CPU && !p->recorded)
		b->short_cpu_ns += ns;
	err = append(b, p, stack, cap_of(b, p), tso_of(b, p));
	b->cursor = p->end;
	b->edge_exact = p->end_exact;
	return err;
}
