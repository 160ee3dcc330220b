/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * claim: derives what capabilities and Haskell threads did from what threads did. A capability does
 * what the thread that holds it does, and a Haskell thread what the OS thread that it runs on does.
 */
#include "lanes_priv.h"

#define MAX_CLAIMS  ((size_t)1 << 26)
#define MAX_OVERLAP 32

int claims__add(struct claims *claims, const struct claim *claim)
{
	int err = ARRAY_RESERVE(claims->v, claims->cap, claims->n + 1, MAX_CLAIMS);

	if (!err)
		claims->v[claims->n++] = *claim;
	return err;
}

void claims__free(struct claims *claims)
{
	free(claims->v);
	memset(claims, 0, sizeof(*claims));
}

void claims__keep_only(struct claims *claims, size_t n)
{
	claims->n = n;
	if (!n)
		claims__free(claims);
}

int claims__copy(const struct claims *from, struct claims *ret_to)
{
	*ret_to = (struct claims){0};
	if (!from->n)
		return 0;
	ret_to->v = malloc(from->n * sizeof(*from->v));
	if (!ret_to->v)
		return -ENOMEM;
	memcpy(ret_to->v, from->v, from->n * sizeof(*from->v));
	ret_to->n = ret_to->cap = from->n;
	return 0;
}

struct pic_slice claim__slice(const struct claim *c, uint64_t start, uint64_t end)
{
	struct pic_slice s = c->s;

	s.start_ns = start;
	s.end_ns = end;
	s.state = c->state;
	s.exact = s.exact && start == c->s.start_ns && end == c->s.end_ns;
	s.samples = start == c->s.start_ns ? s.samples : 0;
	return s;
}

int claims__by_start(const struct claim *a, const struct claim *b)
{
	return CMP(a->s.start_ns, b->s.start_ns)
		       ?: CMP(b->s.end_ns, a->s.end_ns)
		       ?: CMP(a->s.tid, b->s.tid);
}

static int put(struct claim_walk *w, const struct claim *c, uint64_t end)
{
	int err;

	if (end <= w->cursor)
		return 0;
	err = w->put(w->ctx, c, end);
	w->cursor = end;
	return err;
}

static int gap(struct claim_walk *w, uint64_t end, const struct claim *next)
{
	int err;

	if (end <= w->cursor || !(next || w->to_the_end))
		return 0;
	err = w->gap(w->ctx, end, next);
	w->cursor = end;
	return err;
}

int claims__walk(struct claim_walk *w, const struct claim *v, size_t n, uint64_t until)
{
	const struct claim *open[MAX_OVERLAP] = {0};
	size_t depth = 0, at;
	int err = 0;

	for (size_t i = 0; !err && i <= n; i++) {
		const struct claim *next = i < n && v[i].s.start_ns < until ? &v[i] : NULL;
		uint64_t start = next ? next->s.start_ns : until;

		for (; !err && depth && open[depth - 1]->s.end_ns <= start; depth--)
			err = put(w, open[depth - 1], open[depth - 1]->s.end_ns);
		if (!err && depth)
			err = put(w, open[depth - 1], start);
		if (!err)
			err = gap(w, start, next);
		if (!next)
			break;
		if (depth == MAX_OVERLAP)
			memmove(open, open + 1, --depth * sizeof(open[0]));
		at = next->weak ? 0 : depth;
		memmove(open + at + 1, open + at, (depth - at) * sizeof(open[0]));
		open[at] = next;
		depth++;
	}
	return err;
}

void claims__keep_rest(struct claims *claims, size_t *kept, size_t from, size_t to, uint64_t until)
{
	for (size_t i = from; i < to; i++) {
		struct claim c = claims->v[i];

		if (c.s.end_ns <= until)
			continue;
		if (c.s.start_ns < until) {
			c.s.start_ns = until;
			c.s.samples = 0;
			c.is_rest = true;
		}
		claims->v[(*kept)++] = c;
	}
}

/* The account divides the classes of each OS thread by its own samples, as the thread's does. */
int claim__book(struct lanes *l, enum lane_kind kind, uint32_t owner, const struct claim *c,
		const struct pic_slice *as)
{
	const struct ledger_place place = {
		.owner = owner, .detail = (uint32_t)as->tid, .class = (enum ledger_class)c->class};
	struct ledger *ledger = l->ledger[kind];
	int64_t ns = (int64_t)(as->end_ns - as->start_ns);
	uint32_t unsampled;
	int err;

	if (c->class == LEDGER_CLASSES)
		return ledger__off(ledger, owner, as->state, as->stack, ns);
	err = lane__unsampled(l, kind, as->state, &unsampled);
	if (!err)
		err = ledger__guessed_time(ledger, &place, as->state, unsampled, ns);
	if (!err && as->samples)
		err = ledger__sample(ledger, &place, as->state, as->stack, as->samples);
	return err;
}
