/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parts.h"

#include <stdlib.h>
#include <string.h>

/* What the slices of one state and stack add up to on one capability and for one label. */
struct share {
	const char *label;
	uint64_t ns, samples;
	uint32_t stack;
	uint16_t cap;
	uint8_t state;
};

struct shares {
	struct share *v;
	size_t n, cap;
};

static int cmp_kind(const struct share *a, const struct share *b)
{
	if (a->state != b->state)
		return a->state < b->state ? -1 : 1;
	return (a->stack > b->stack) - (a->stack < b->stack);
}

static int cmp_shares(const void *pa, const void *pb)
{
	const struct share *a = pa, *b = pb;
	int diff = cmp_kind(a, b);

	if (!diff)
		diff = (a->cap > b->cap) - (a->cap < b->cap);
	return diff ? diff : strcmp(a->label, b->label);
}

/* Sorted, one for each state, stack, capability and label. */
static int collect(const struct views *views, const struct view *view, struct shares *shares)
{
	const struct pic_lane *lane = view->lane;
	size_t kept = 0;
	int err = ARRAY_RESERVE(shares->v, shares->cap, lane->n_slices, EXPORT_MAX_ENTRIES);

	if (err || !lane->n_slices)
		return err;
	for (size_t i = 0; i < lane->n_slices; i++) {
		const struct pic_slice *s = &lane->slices[i];

		shares->v[i] = (struct share){
			.label = s->tso ? views__label(views, view->target_no, s->tso) : "",
			.ns = s->end_ns - MIN(s->start_ns, s->end_ns),
			.samples = s->samples,
			.stack = s->stack,
			.cap = s->cap,
			.state = s->state,
		};
	}
	qsort(shares->v, lane->n_slices, sizeof(*shares->v), cmp_shares);
	for (size_t i = 1; i < lane->n_slices; i++) {
		struct share *last = &shares->v[kept];

		if (cmp_shares(last, &shares->v[i])) {
			shares->v[++kept] = shares->v[i];
			continue;
		}
		last->ns += shares->v[i].ns;
		last->samples += shares->v[i].samples;
	}
	shares->n = kept + 1;
	return 0;
}

static int cmp_to_row(const void *key, const void *element)
{
	const struct pic_row *row = key;
	const struct share of_row = {.state = row->state, .stack = row->stack};

	return cmp_kind(&of_row, element);
}

/* Those of the row's state and stack; NULL: there are none. */
static const struct share *shares_of(const struct shares *shares, const struct pic_row *row,
				     size_t *ret_n)
{
	const struct share *end = shares->v + shares->n, *first, *last;

	if (!shares->n)
		return NULL;
	first = last = bsearch(row, shares->v, shares->n, sizeof(*shares->v), cmp_to_row);
	if (!first)
		return NULL;
	while (first > shares->v && !cmp_to_row(row, first - 1))
		first--;
	while (last + 1 < end && !cmp_to_row(row, last + 1))
		last++;
	*ret_n = (size_t)(last - first) + 1;
	return first;
}

/* `whole` times `done` of `all`, without overflow. */
static uint64_t portion(uint64_t whole, uint64_t done, uint64_t all)
{
	return all ? (uint64_t)((unsigned __int128)whole * done / all) : 0;
}

static int divide(const struct pic_row *row, const struct share *shares, size_t n,
		  struct parts *parts)
{
	uint64_t all_ns = 0, all_samples = 0, ns = 0, samples = 0;

	for (size_t i = 0; i < n; i++) {
		all_ns += shares[i].ns;
		all_samples += shares[i].samples;
	}
	for (size_t i = 0; i < n; i++) {
		/* what comes after the last one is nothing: the sums are exact */
		uint64_t ns_before = portion(row->ns, ns, all_ns);
		uint64_t samples_before = portion(row->samples, samples, all_samples);
		bool last = i + 1 == n;

		ns += shares[i].ns;
		samples += shares[i].samples;
		parts->v[parts->n++] = (struct part){
			.row = row,
			.ns = (last ? row->ns : portion(row->ns, ns, all_ns)) - ns_before,
			.samples = (last ? row->samples
					 : portion(row->samples, samples, all_samples)) -
				   samples_before,
			.label = shares[i].label,
			.cap = shares[i].cap,
		};
	}
	return 0;
}

static int add_row(const struct view *view, const struct shares *shares, const struct pic_row *row,
		   struct parts *parts)
{
	size_t n = 1;
	const struct share *its = shares_of(shares, row, &n);
	int err = ARRAY_RESERVE(parts->v, parts->cap, parts->n + n, EXPORT_MAX_ENTRIES);

	if (err)
		return err;
	if (its)
		return divide(row, its, n, parts);
	parts->v[parts->n++] = (struct part){
		.row = row,
		.ns = row->ns,
		.samples = row->samples,
		.label = "",
		.cap = view->lane->kind == LANE_CAPABILITY ? (uint16_t)view->lane->cap : NO_CAP,
	};
	return 0;
}

int parts__of(const struct views *views, const struct view *view, struct parts *ret_parts)
{
	struct shares shares = {0};
	struct parts parts = {0};
	int err = collect(views, view, &shares);

	for (size_t i = 0; !err && i < view->lane->n_rows; i++)
		err = add_row(view, &shares, &view->lane->rows[i], &parts);
	free(shares.v);
	if (err)
		parts__free(&parts);
	else
		*ret_parts = parts;
	return err;
}

void parts__free(struct parts *parts)
{
	free(parts->v);
	*parts = (struct parts){0};
}
