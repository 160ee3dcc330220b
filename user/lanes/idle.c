/* SPDX-License-Identifier: GPL-2.0-or-later */
/* idle: when a capability had nothing to do, since lanes were last advanced. */
#include "base/search.h"
#include "lanes_priv.h"

/* A capability takes up ready work in less than this. */
#define READY_IDLE_NS 1000000

#define MAX_IDLE ((size_t)1 << 26)

void idle__free(struct idle *idle)
{
	free(idle->v);
	free(idle->longs);
	memset(idle, 0, sizeof(*idle));
}

static int add_long(struct idle *idle, uint32_t span)
{
	int err = ARRAY_RESERVE(idle->longs, idle->longs_cap, idle->n_longs + 1, MAX_IDLE);

	if (!err)
		idle->longs[idle->n_longs++] = span;
	return err;
}

static int add(struct idle *idle, const struct idle_span *span)
{
	int err = ARRAY_RESERVE(idle->v, idle->cap, idle->n + 1, MAX_IDLE);

	if (err)
		return err;
	idle->v[idle->n++] = *span;
	return span->end - span->start < READY_IDLE_NS ? 0 : add_long(idle, (uint32_t)idle->n - 1);
}

int idle__copy(const struct idle *from, struct idle *ret_to)
{
	struct idle to = {.from = from->from, .before = from->before};
	int err = 0;

	for (size_t i = 0; !err && i < from->n; i++)
		err = add(&to, &from->v[i]);
	if (err)
		idle__free(&to);
	else
		*ret_to = to;
	return err;
}

static uint64_t all_of(const struct idle *idle)
{
	const struct idle_span *last = idle->n ? &idle->v[idle->n - 1] : NULL;

	return last ? last->before + (last->end - last->start) : idle->before;
}

int idle__add(struct idle *idle, uint64_t start, uint64_t end)
{
	struct idle_span *last = idle->n ? &idle->v[idle->n - 1] : NULL;
	bool was_long;

	if (!last || last->end != start)
		return add(idle, &(struct idle_span){start, end, all_of(idle)});
	was_long = last->end - last->start >= READY_IDLE_NS;
	last->end = end;
	return was_long || end - last->start < READY_IDLE_NS
		       ? 0
		       : add_long(idle, (uint32_t)idle->n - 1);
}

void idle__forget(struct idle *idle, uint64_t until)
{
	/* the last one may go on */
	size_t gone = search__first(idle->n, k, idle->v[k].end >= until);
	size_t short_of = search__first(idle->n_longs, i, idle->longs[i] >= gone);

	idle->before = all_of(idle);
	idle->from = until;
	idle->n -= gone;
	idle->n_longs -= short_of;
	if (gone && idle->n)
		memmove(idle->v, idle->v + gone, idle->n * sizeof(*idle->v));
	for (size_t i = 0; i < idle->n_longs; i++)
		idle->longs[i] = idle->longs[short_of + i] - (uint32_t)gone;
}

const struct idle_span *idle__next(const struct idle *idle, uint64_t t)
{
	size_t i = search__first(idle->n, k, idle->v[k].end > t);

	return i < idle->n ? &idle->v[i] : NULL;
}

uint64_t idle__ns(const struct idle *idle, uint64_t t)
{
	size_t i = search__first(idle->n, k, idle->v[k].end > t);

	if (i == idle->n)
		return all_of(idle);
	return idle->v[i].before + t - MIN(idle->v[i].start, t);
}

uint64_t idle__first_long(const struct idle *idle, uint64_t from, uint64_t end)
{
	size_t i = search__first(idle->n_longs, k,
				 idle->v[idle->longs[k]].end >= from + READY_IDLE_NS);
	const struct idle_span *span = i < idle->n_longs ? &idle->v[idle->longs[i]] : NULL;
	uint64_t start = span ? MAX(span->start, from) : 0;

	return span && MIN(span->end, end) >= start + READY_IDLE_NS ? start : UINT64_MAX;
}

uint64_t idle__last_long(const struct idle *idle, uint64_t t)
{
	size_t i = search__first(idle->n_longs, k, idle->v[idle->longs[k]].start >= t);

	return i ? MIN(idle->v[idle->longs[i - 1]].end, t) : 0;
}
