/* SPDX-License-Identifier: GPL-2.0-or-later */
/* modules_cut: separates the code of two modules where the fewest references cross. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/search.h"
#include "modules_read_priv.h"

#define MAX_PLACES (1U << 20)
/* Closure types that a reference may lead to. */
#define TYPE_CONSTR_LAST 7
#define TYPE_FUN	 8
#define TYPE_THUNK_LAST	 22
#define TYPE_RET_SMALL	 30
#define TYPE_STOP_FRAME	 36

/* Where code may begin, and how many references cross each of these places. */
struct crossings {
	const struct mod_image *img;
	const struct mod_marks *marks;
	const struct mod_between *where;
	uint64_t *places;
	size_t n, cap;
	int64_t *count; /* n + 1; holds differences at first */
	int64_t *ends;	/* n + 1; number of references' ends before the place; holds differences at
			   first */
	int64_t all_ends;
};

static uint32_t word32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static bool is_table(uint32_t type)
{
	return (type >= TYPE_FUN && type <= TYPE_THUNK_LAST) ||
	       (type >= TYPE_RET_SMALL && type <= TYPE_STOP_FRAME);
}

static int find_places(struct crossings *c)
{
	const struct mod_between *w = c->where;

	for (uint64_t at = (w->low + 8) & ~7ULL; at <= w->high; at += 8) {
		uint32_t type = mod_image__type(c->img, at);
		uint64_t place;
		int err;

		if (type < TYPE_FUN || type > TYPE_THUNK_LAST)
			continue;
		place = at - mod_image__table_size(c->img, type);
		if (place <= w->low)
			continue;
		err = ARRAY_RESERVE(c->places, c->cap, c->n + 1, MAX_PLACES);
		if (err)
			return err == -E2BIG ? 0 : err;
		c->places[c->n++] = place;
	}
	return 0;
}

static bool in_window(const struct crossings *c, uint64_t code)
{
	return code >= c->where->start && code < c->where->end;
}

static void add_reference(struct crossings *c, uint64_t from, uint64_t to)
{
	uint64_t low = MIN(from, to), high = MAX(from, to);
	size_t a, b;

	if (!in_window(c, low) || !in_window(c, high))
		return;
	a = search__first(c->n, i, c->places[i] > low);
	b = search__first(c->n, i, c->places[i] > high);
	c->count[a]++;
	c->count[b]--;
	c->ends[a]++;
	c->ends[b]++;
	c->all_ends += 2;
}

/* The position of a closure in the order of code; 0: no closure at that word. */
static uint64_t place_of_closure(const struct crossings *c, uint64_t vaddr)
{
	size_t i = mod_image__word(c->img, vaddr & ~7ULL);
	uint32_t type;

	if (i >= c->img->n_words)
		return 0;
	type = mod_image__type(c->img, c->img->words[i]);
	if (mod_image__is_static(type))
		return c->img->words[i];
	if ((type < 1 || type > TYPE_CONSTR_LAST) && !(c->img->words[i] & MOD_SYMBOL))
		return 0;
	return mod_marks__code_before(c->marks, vaddr);
}

/* A reference to a constructor does not count: it is as likely to come from another module. */
static void refer(struct crossings *c, uint64_t from, uint64_t to)
{
	if (in_window(c, to)) {
		if (is_table(mod_image__type(c->img, to)))
			add_reference(c, from, to);
	} else if (to >= c->img->data_start && to < c->img->data_start + 8 * c->img->n_words) {
		add_reference(c, from, place_of_closure(c, to));
	}
}

/* Tries every offset as an absolute and as a relative address, whatever the instruction: hardly
 * anything else looks like one. */
static void scan_code(struct crossings *c)
{
	const struct mod_image *img = c->img;
	uint64_t end = MIN(c->where->end, img->text_end - 4);

	for (uint64_t at = c->where->start; at < end; at++) {
		uint32_t v = word32(img->text + (at - img->text_start));

		refer(c, at, v);
		refer(c, at, at + 4 + (uint64_t)(int64_t)(int32_t)v);
	}
}

/* References from a table's SRT to the static objects its code needs: relative to the table
 * (GHC.Cmm.Info). */
static void scan_tables(struct crossings *c)
{
	for (uint64_t at = (c->where->start + 7) & ~7ULL; at < c->where->end; at += 8) {
		int32_t srt;

		if (!is_table(mod_image__type(c->img, at)))
			continue;
		srt = (int32_t)word32(c->img->text + (at - c->img->text_start) - 4);
		if (srt)
			refer(c, at, at + (uint64_t)(int64_t)srt);
	}
}

/* References from closure to closure. */
static void scan_data(struct crossings *c)
{
	const struct mod_static *s = c->marks->statics;
	size_t n = c->marks->n_statics;
	size_t i = search__first(n, k, s[k].code >= c->where->start);

	for (; i + 1 < n && in_window(c, s[i].code); i++) {
		size_t w = mod_image__word(c->img, s[i].data);
		size_t end = mod_image__word(c->img, s[i + 1].data);

		for (; w < end; w++)
			if (c->img->words[w] >= c->img->data_start)
				refer(c, s[i].code, c->img->words[w]);
	}
}

static int count_crossings(struct crossings *c)
{
	int err = find_places(c);

	if (err)
		return err;
	c->count = calloc(c->n + 1, sizeof(*c->count));
	c->ends = calloc(c->n + 1, sizeof(*c->ends));
	if (!c->count || !c->ends)
		return -ENOMEM;
	if (!c->n)
		return 0;
	scan_code(c);
	scan_tables(c);
	scan_data(c);
	for (size_t i = 1; i < c->n; i++) {
		c->count[i] += c->count[i - 1];
		c->ends[i] += c->ends[i - 1];
	}
	return 0;
}

static void fini(struct crossings *c)
{
	free(c->places);
	free(c->count);
	free(c->ends);
}

/*
 * The cost of a cut: the share of crossing references among the references of each part, added up.
 * Their plain number would be lowest where one part is nearly empty.
 */
static double cost(const struct crossings *c, size_t i)
{
	double crossing = (double)c->count[i] + 0.5, before = (double)c->ends[i] + 1;
	double behind = (double)(c->all_ends - c->ends[i]) + 1;

	return crossing / before + crossing / behind;
}

int mod_cut__find(const struct mod_image *img, const struct mod_marks *marks,
		  const struct mod_between *where, struct mod_cut *ret_cut)
{
	struct crossings c = {.img = img, .marks = marks, .where = where};
	int err = count_crossings(&c);
	size_t best = 0, first, last;

	if (!err && !c.n)
		err = -ENOENT;
	if (err)
		goto out;
	for (size_t i = 1; i < c.n; i++)
		if (cost(&c, i) < cost(&c, best))
			best = i;
	first = last = best;
	for (size_t i = 0; i < c.n; i++) {
		if (cost(&c, i) > cost(&c, best) * 3)
			continue;
		first = MIN(first, i);
		last = MAX(last, i);
	}
	*ret_cut = (struct mod_cut){
		.at = c.places[best], .low = c.places[first], .high = c.places[last]};
out:
	fini(&c);
	return err;
}
