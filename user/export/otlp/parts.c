/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parts.h"

#include <stdlib.h>

#include "../carriers.h"

static void divide(const struct views *views, const struct view *view, const struct pic_row *row,
		   const struct carrier *carriers, size_t n, struct parts *parts)
{
	uint64_t all_ns = 0, all_samples = 0, ns = 0, samples = 0;

	for (size_t i = 0; i < n; i++) {
		all_ns += carriers[i].ns;
		all_samples += carriers[i].samples;
	}
	for (size_t i = 0; i < n; i++) {
		const struct carrier *c = &carriers[i];
		/* what comes after the last one is nothing: the sums are exact */
		uint64_t ns_before = carriers__upto(row->ns, ns, all_ns);
		uint64_t samples_before = carriers__upto(row->samples, samples, all_samples);
		bool last = i + 1 == n;

		ns += c->ns;
		samples += c->samples;
		parts->v[parts->n++] = (struct part){
			.row = row,
			.ns = (last ? row->ns : carriers__upto(row->ns, ns, all_ns)) - ns_before,
			.samples = (last ? row->samples
					 : carriers__upto(row->samples, samples, all_samples)) -
				   samples_before,
			.label = c->tso ? views__label(views, view->target_no, c->tso) : "",
			.cap = c->cap,
		};
	}
}

static int add_row(const struct views *views, const struct view *view,
		   const struct carriers *carriers, const struct pic_row *row, struct parts *parts)
{
	size_t n;
	const struct carrier *its = carriers__find(carriers, row->state, row->stack, &n);
	int err = ARRAY_RESERVE(parts->v, parts->cap, parts->n + MAX(n, (size_t)1),
				EXPORT_MAX_ENTRIES);

	if (err)
		return err;
	if (n) {
		divide(views, view, row, its, n, parts);
		return 0;
	}
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
	struct carriers carriers = {0};
	struct parts parts = {0};
	int err = carriers__of(view->lane, &carriers);

	for (size_t i = 0; !err && i < view->lane->n_rows; i++)
		err = add_row(views, view, &carriers, &view->lane->rows[i], &parts);
	carriers__free(&carriers);
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
