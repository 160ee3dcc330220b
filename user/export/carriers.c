/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "carriers.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/search.h"
#include "export_priv.h"

static int cmp_to(const struct carrier *c, unsigned state, uint32_t stack)
{
	return CMP(c->state, state) ?: CMP(c->stack, stack);
}

static int cmp_carriers(const void *pa, const void *pb)
{
	const struct carrier *a = pa, *b = pb;

	return cmp_to(a, b->state, b->stack) ?: CMP(a->cap, b->cap) ?: CMP(a->tso, b->tso);
}

int carriers__of(const struct pic_lane *lane, struct carriers *ret_carriers)
{
	struct carriers c = {0};
	size_t kept = 0;
	int err = ARRAY_RESERVE(c.v, c.room, lane->n_slices, EXPORT_MAX_ENTRIES);

	if (err)
		return err;
	for (size_t i = 0; i < lane->n_slices; i++) {
		const struct pic_slice *s = &lane->slices[i];

		c.v[i] = (struct carrier){
			.ns = s->end_ns - MIN(s->start_ns, s->end_ns),
			.samples = s->samples,
			.tso = s->tso,
			.stack = s->stack,
			.cap = s->cap,
			.state = s->state,
		};
	}
	if (lane->n_slices) {
		qsort(c.v, lane->n_slices, sizeof(*c.v), cmp_carriers);
		c.n = 1;
	}
	for (size_t i = 1; i < lane->n_slices; i++) {
		if (cmp_carriers(&c.v[kept], &c.v[i])) {
			c.v[++kept] = c.v[i];
			c.n = kept + 1;
			continue;
		}
		c.v[kept].ns += c.v[i].ns;
		c.v[kept].samples += c.v[i].samples;
	}
	*ret_carriers = c;
	return 0;
}

void carriers__free(struct carriers *c)
{
	free(c->v);
	*c = (struct carriers){0};
}

int carriers__of_threads(const struct views *views, struct carriers **ret_carriers)
{
	struct carriers *all = calloc(views->n + 1, sizeof(*all));
	int err = all ? 0 : -ENOMEM;

	for (size_t v = 0; !err && v < views->n; v++)
		if (views->v[v].lane->kind == LANE_THREAD)
			err = carriers__of(views->v[v].lane, &all[v]);
	if (err)
		carriers__free_all(all, views->n);
	else
		*ret_carriers = all;
	return err;
}

void carriers__free_all(struct carriers *carriers, size_t n)
{
	for (size_t i = 0; carriers && i < n; i++)
		carriers__free(&carriers[i]);
	free(carriers);
}

const struct carrier *carriers__find(const struct carriers *c, unsigned state, uint32_t stack,
				     size_t *ret_n)
{
	size_t first = search__first(c->n, i, cmp_to(&c->v[i], state, stack) >= 0);
	size_t end = search__first(c->n, i, cmp_to(&c->v[i], state, stack) > 0);

	*ret_n = end - first;
	return first < end ? &c->v[first] : NULL;
}

struct division carriers__divide(const struct carrier *carriers, size_t n)
{
	struct division d = {.next = carriers, .left = n};

	for (size_t i = 0; i < n; i++) {
		d.ns.all += carriers[i].ns;
		d.samples.all += carriers[i].samples;
	}
	return d;
}

static void step(struct division_sums *sums, uint64_t its)
{
	sums->before = sums->upto;
	sums->upto += its;
}

const struct carrier *division__next(struct division *d)
{
	const struct carrier *its = d->next;

	if (!d->left)
		return NULL;
	d->next++;
	d->left--;
	step(&d->ns, its->ns);
	step(&d->samples, its->samples);
	return its;
}

uint64_t carriers__upto(uint64_t whole, uint64_t done, uint64_t all)
{
	return all ? (uint64_t)((unsigned __int128)whole * done / all) : 0;
}

static uint64_t part_of(const struct division *d, const struct division_sums *sums, uint64_t whole)
{
	/* the last carrier gets the rest, even if none has a share */
	uint64_t to = d->left ? carriers__upto(whole, sums->upto, sums->all) : whole;

	return to - carriers__upto(whole, sums->before, sums->all);
}

uint64_t division__time(const struct division *d, uint64_t whole)
{
	return part_of(d, &d->ns, whole);
}

uint64_t division__samples(const struct division *d, uint64_t whole)
{
	return part_of(d, &d->samples, whole);
}
