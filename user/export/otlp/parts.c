/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parts.h"

#include <stdlib.h>

#include "../carriers.h"

static void divide(const struct views *views, const struct view *view, const struct pic_row *row,
		   const struct carrier *carriers, size_t n, struct parts *parts)
{
	struct division d = carriers__divide(carriers, n);
	const struct carrier *c;

	while ((c = division__next(&d)))
		parts->v[parts->n++] = (struct part){
			.row = row,
			.ns = division__time(&d, row->ns),
			.samples = division__samples(&d, row->samples),
			.label = c->tso ? views__label(views, view->target_no, c->tso) : "",
			.cap = c->cap,
		};
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
