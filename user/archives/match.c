/* SPDX-License-Identifier: GPL-2.0-or-later */
/* match: chooses anchors, and searches the code for all of them in one pass. */
#include "match_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/search.h"

#define ANCHOR sizeof(uint64_t)
/* An anchor is within this many bytes of a section's beginning. */
#define MAX_ANCHOR_AT 256
/* The size, in bits, of the table that counts how often eight bytes occur, by their hash. */
#define COUNT_BITS 22
/* The most sections with one anchor: if there are more, they are all alike, and bytes alone
 * cannot identify them. */
#define MAX_ALIKE 16
/* The size, in bits, of the filter that the code is compared with first. */
#define FILTER_BITS 23

#define NONE UINT32_MAX

struct anchor {
	uint64_t bytes;
	uint32_t first; /* first section */
	uint32_t n;	/* number of sections; 0: the slot is free */
};

struct anchors {
	const struct sections *all;
	uint16_t *counts;
	uint32_t *next; /* next section with the same anchor, or NONE */
	uint16_t *at;	/* offset of the anchor in the section */
	struct anchor *table;
	uint32_t table_bits;
	uint64_t *filter;
};

static uint64_t load(const uint8_t *at)
{
	uint64_t bytes;

	memcpy(&bytes, at, sizeof(bytes));
	return bytes;
}

static uint64_t hash(uint64_t bytes)
{
	bytes ^= bytes >> 29;
	return bytes * 0x9e3779b97f4a7c15ULL;
}

static uint32_t top(uint64_t hashed, unsigned bits)
{
	return (uint32_t)(hashed >> (64 - bits));
}

const uint8_t *code__at(const struct code *code, uint64_t vaddr, uint64_t len)
{
	size_t after = search__first(code->n, i, code->ranges[i].start > vaddr);
	const struct code_range *r = after ? &code->ranges[after - 1] : NULL;

	if (!r || vaddr - r->start > r->len || len > r->len - (vaddr - r->start))
		return NULL;
	return r->bytes + (vaddr - r->start);
}

/* ── choosing the anchors ────────────────────────────────────────────────────────────────── */

/* Calls fn for each place where an anchor could be. */
static void each_window(const struct anchors *a, uint32_t section,
			void (*fn)(const struct anchors *a, uint32_t at, uint64_t bytes, void *ctx),
			void *ctx)
{
	const struct section *s = &a->all->v[section];
	const uint8_t *data = section__data(a->all, s);
	struct stretches stretches;
	uint32_t from, to;

	stretches__begin(&stretches, a->all, s);
	while (stretches__next(&stretches, &from, &to) && from < MAX_ANCHOR_AT)
		for (uint32_t at = from; at + ANCHOR <= MIN(to, (uint32_t)MAX_ANCHOR_AT); at++)
			fn(a, at, load(data + at), ctx);
}

static void count(const struct anchors *a, uint32_t at, uint64_t bytes, void *ctx)
{
	uint16_t *n = &a->counts[top(hash(bytes), COUNT_BITS)];

	(void)at;
	(void)ctx;
	*n = (uint16_t)MIN(*n + 1, UINT16_MAX);
}

struct choice {
	uint32_t at, n; /* n 0: none yet */
	uint64_t bytes;
};

static void choose(const struct anchors *a, uint32_t at, uint64_t bytes, void *ctx)
{
	uint32_t n = a->counts[top(hash(bytes), COUNT_BITS)];
	struct choice *best = ctx;

	if (!best->n || n < best->n)
		*best = (struct choice){at, n, bytes};
}

static struct anchor *place_of(const struct anchors *a, uint64_t bytes)
{
	uint32_t mask = (1U << a->table_bits) - 1, i = top(hash(bytes), a->table_bits);

	while (a->table[i].n && a->table[i].bytes != bytes)
		i = (i + 1) & mask;
	return &a->table[i];
}

static void insert(struct anchors *a, uint32_t section)
{
	struct choice best = {0};
	struct anchor *place;
	uint32_t bit;

	each_window(a, section, choose, &best);
	if (!best.n)
		return;
	place = place_of(a, best.bytes);
	if (place->n > MAX_ALIKE)
		return;
	a->at[section] = (uint16_t)best.at;
	a->next[section] = place->n ? place->first : NONE;
	place->bytes = best.bytes;
	place->first = section;
	place->n++;
	bit = top(hash(best.bytes), FILTER_BITS);
	a->filter[bit / 64] |= 1ULL << bit % 64;
}

static bool is_looked_for(const struct section *s)
{
	return s->fixed >= MATCH_MIN_FIXED;
}

static void anchors__free(struct anchors *a)
{
	free(a->counts);
	free(a->next);
	free(a->at);
	free(a->table);
	free(a->filter);
}

static int anchors__init(struct anchors *a, const struct sections *all)
{
	*a = (struct anchors){.all = all, .table_bits = 4};
	/* half of it stays free */
	while (1ULL << a->table_bits < 2 * all->n)
		a->table_bits++;
	a->counts = calloc(1U << COUNT_BITS, sizeof(*a->counts));
	a->next = calloc(all->n + 1, sizeof(*a->next));
	a->at = calloc(all->n + 1, sizeof(*a->at));
	a->table = calloc(1ULL << a->table_bits, sizeof(*a->table));
	a->filter = calloc((1U << FILTER_BITS) / 64, sizeof(*a->filter));
	if (!a->counts || !a->next || !a->at || !a->table || !a->filter)
		return -ENOMEM;
	for (uint32_t i = 0; i < all->n; i++)
		if (is_looked_for(&all->v[i]))
			each_window(a, i, count, NULL);
	for (uint32_t i = 0; i < all->n; i++)
		if (is_looked_for(&all->v[i]))
			insert(a, i);
	return 0;
}

/* ── reading the code ────────────────────────────────────────────────────────────────────── */

static int add(struct matches *m, uint64_t start, uint32_t section)
{
	int err = ARRAY_RESERVE(m->v, m->cap, m->n + 1, MATCH_MAX);

	if (!err)
		m->v[m->n++] = (struct match){start, section};
	return err;
}

/* Compares the sections whose anchor is found at `at` in the range. */
static int compare(const struct anchors *a, const struct anchor *anchor,
		   const struct code_range *range, uint64_t at, struct matches *m)
{
	int err = 0;

	for (uint32_t i = anchor->first; !err && i != NONE; i = a->next[i]) {
		const struct section *s = &a->all->v[i];
		uint64_t start = range->start + at - a->at[i];

		if (at < a->at[i] || start & (s->align - 1) ||
		    s->size > range->len - (at - a->at[i]))
			continue;
		if (section__is_at(a->all, s, range->bytes + at - a->at[i]))
			err = add(m, start, i);
	}
	return err;
}

static int read_range(const struct anchors *a, const struct code_range *range, struct matches *m)
{
	int err = 0;

	for (uint64_t at = 0; !err && at + ANCHOR <= range->len; at++) {
		uint64_t bytes = load(range->bytes + at), hashed = hash(bytes);
		uint32_t bit = top(hashed, FILTER_BITS);
		const struct anchor *anchor;

		if (!(a->filter[bit / 64] & 1ULL << bit % 64))
			continue;
		anchor = place_of(a, bytes);
		if (anchor->n && anchor->n <= MAX_ALIKE)
			err = compare(a, anchor, range, at, m);
	}
	return err;
}

static int by_start(const void *a, const void *b)
{
	const struct match *x = a, *y = b;

	return CMP(x->start, y->start) ?: CMP(x->section, y->section);
}

void matches__free(struct matches *matches)
{
	free(matches->v);
	memset(matches, 0, sizeof(*matches));
}

int matches__find(const struct sections *all, const struct code *code, struct matches *ret_matches)
{
	struct matches m = {0};
	struct anchors a;
	int err = anchors__init(&a, all);

	for (size_t i = 0; i < code->n && !err; i++)
		err = read_range(&a, &code->ranges[i], &m);
	anchors__free(&a);
	if (err) {
		matches__free(&m);
		return err;
	}
	if (m.n)
		qsort(m.v, m.n, sizeof(*m.v), by_start);
	*ret_matches = m;
	return 0;
}
