/* SPDX-License-Identifier: GPL-2.0-or-later */
/* defs: the symbols of sections, in a counting sort, and a hash table of their names. */
#include "defs_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* More definitions of one name are not examined, so there may be a strong one among them. */
#define MAX_SAME_NAME 64

static uint32_t hash(const char *name)
{
	uint32_t h = 2166136261U;

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 16777619U;
	return h;
}

/* True for a symbol that names code; *ret_section is its section's index. */
static bool is_def(const struct sections *all, const struct member *m, uint32_t i,
		   struct member_symbol *sym, uint32_t *ret_section)
{
	const struct section *s;

	if (!member__symbol(m, i, sym) || !sym->section || !sym->name[0] ||
	    (sym->type != STT_FUNC && sym->type != STT_OBJECT && sym->type != STT_NOTYPE &&
	     sym->type != STT_GNU_IFUNC))
		return false;
	s = member__section(all, m, sym->section);
	if (!s || sym->value >= s->size)
		return false;
	*ret_section = (uint32_t)(s - all->v);
	return true;
}

/* Counts each section's symbols, or puts them in their places. */
static void go_through(struct defs *d, bool put)
{
	for (size_t k = 0; k < d->all->n_members; k++) {
		const struct member *m = &d->all->members[k];

		for (uint32_t i = 1; i < m->n_symbols; i++) {
			struct member_symbol sym;
			uint32_t section;

			if (!is_def(d->all, m, i, &sym, &section))
				continue;
			/* if the file is being rewritten, there may be more the second time */
			if (put && d->first[section] < d->n)
				d->v[d->first[section]++] = (struct def){section, i};
			else if (!put)
				d->first[section]++;
		}
	}
}

/* Turns numbers of symbols into start indices. */
static size_t sum_up(struct defs *d)
{
	size_t n = 0;

	for (size_t i = 0; i <= d->all->n; i++) {
		size_t here = d->first[i];

		d->first[i] = (uint32_t)n;
		n += here;
		if (n > MAX_DEFS)
			break;
	}
	return n;
}

static void index_names(struct defs *d)
{
	memset(d->buckets, 0xff, sizeof(*d->buckets) << d->bits);
	for (size_t i = d->n; i-- > 0;) {
		struct member_symbol sym;
		uint32_t *bucket;

		d->next[i] = DEFS_NONE;
		if (!defs__symbol(d, (uint32_t)i, &sym) || sym.bind == STB_LOCAL)
			continue;
		bucket = &d->buckets[hash(sym.name) >> (32 - d->bits)];
		d->next[i] = *bucket;
		*bucket = (uint32_t)i;
	}
}

int defs__init(struct defs *d, const struct sections *all)
{
	*d = (struct defs){.all = all, .bits = 4};
	d->first = calloc(all->n + 2, sizeof(*d->first));
	if (!d->first)
		return -ENOMEM;
	go_through(d, false);
	d->n = sum_up(d);
	if (d->n > MAX_DEFS)
		return -E2BIG;
	while (1ULL << d->bits < d->n)
		d->bits++;
	d->v = calloc(d->n + 1, sizeof(*d->v));
	d->next = calloc(d->n + 1, sizeof(*d->next));
	d->buckets = calloc(1ULL << d->bits, sizeof(*d->buckets));
	if (!d->v || !d->next || !d->buckets)
		return -ENOMEM;
	go_through(d, true);
	/* each section's start index has become its end, which is the next section's start */
	memmove(d->first + 1, d->first, all->n * sizeof(*d->first));
	d->first[0] = 0;
	index_names(d);
	return 0;
}

void defs__free(struct defs *d)
{
	free(d->v);
	free(d->first);
	free(d->next);
	free(d->buckets);
	memset(d, 0, sizeof(*d));
}

bool defs__symbol(const struct defs *d, uint32_t def, struct member_symbol *ret_symbol)
{
	const struct section *s = &d->all->v[d->v[def].section];

	return member__symbol(section__member(d->all, s), d->v[def].symbol, ret_symbol);
}

static uint32_t find_from(const struct defs *d, uint32_t def, const char *name)
{
	struct member_symbol sym;

	while (def != DEFS_NONE && (!defs__symbol(d, def, &sym) || strcmp(sym.name, name) != 0))
		def = d->next[def];
	return def;
}

uint32_t defs__find(const struct defs *d, const char *name)
{
	return find_from(d, d->buckets[hash(name) >> (32 - d->bits)], name);
}

uint32_t defs__find_next(const struct defs *d, uint32_t def, const char *name)
{
	return find_from(d, d->next[def], name);
}

bool defs__may_yield(const struct defs *d, uint32_t def)
{
	struct member_symbol sym, other;
	uint32_t i, n = 0;

	if (!defs__symbol(d, def, &sym) || sym.bind != STB_WEAK)
		return false;
	for (i = defs__find(d, sym.name); i != DEFS_NONE && n < MAX_SAME_NAME;
	     i = defs__find_next(d, i, sym.name), n++)
		if (d->v[i].section != d->v[def].section && defs__symbol(d, i, &other) &&
		    other.bind == STB_GLOBAL)
			return true;
	return i != DEFS_NONE;
}

bool defs__has(const struct defs *d, uint32_t section, const char *name, uint64_t value)
{
	for (uint32_t i = d->first[section]; i < d->first[section + 1]; i++) {
		struct member_symbol sym;

		if (defs__symbol(d, i, &sym) && sym.value == value && !strcmp(sym.name, name))
			return true;
	}
	return false;
}

static bool has_all_of(const struct defs *d, uint32_t a, uint32_t b)
{
	for (uint32_t i = d->first[b]; i < d->first[b + 1]; i++) {
		struct member_symbol sym;

		if (defs__symbol(d, i, &sym) && !defs__has(d, a, sym.name, sym.value))
			return false;
	}
	return true;
}

/* True if the symbols are the same in the same order: a quick test for sections with many. */
static bool has_same(const struct defs *d, uint32_t a, uint32_t b)
{
	uint32_t n = d->first[a + 1] - d->first[a];

	if (n != d->first[b + 1] - d->first[b])
		return false;
	for (uint32_t i = 0; i < n; i++) {
		struct member_symbol x, y;

		if (!defs__symbol(d, d->first[a] + i, &x) ||
		    !defs__symbol(d, d->first[b] + i, &y) || x.value != y.value ||
		    strcmp(x.name, y.name) != 0)
			return false;
	}
	return true;
}

/* Up to this many symbols, each is compared with each. */
#define FEW 64

bool defs__agree(const struct defs *d, uint32_t a, uint32_t b)
{
	if (a == b || has_same(d, a, b))
		return true;
	return d->first[a + 1] - d->first[a] <= FEW && d->first[b + 1] - d->first[b] <= FEW &&
	       has_all_of(d, a, b) && has_all_of(d, b, a);
}
