/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text report's first table if several processes were profiled: what each of them did with its
 * threads' time, most CPU time first. */
#include <stdlib.h>

#include "text_priv.h"

/* States of threads without Haskell or without work, which are of no interest here. */
static const uint32_t left_out = 1u << ST_FOREIGN_CPU | 1u << ST_RTS_BLOCKED |
				 1u << ST_FOREIGN_BLOCKED | 1u << ST_HASKELL_BLOCKED |
				 1u << ST_SAFE_CALL | 1u << ST_IDLE | 1u << ST_UNKNOWN;

struct row {
	const struct pic_target *target;
	struct account sum;
};

static int by_cpu(const void *pa, const void *pb)
{
	const struct row *a = pa, *b = pb;

	if (a->sum.cpu != b->sum.cpu)
		return a->sum.cpu < b->sum.cpu ? 1 : -1;
	return (a->target->pid > b->target->pid) - (a->target->pid < b->target->pid);
}

static int put_table(const struct text *t, const struct row *rows, size_t n)
{
	static const struct table_column before[] = {{"process", COL_FLEX, NULL, 0},
						     {"threads", COL_RIGHT | COL_SPARE, NULL, 1},
						     {"CPU", COL_RIGHT, NULL, 0}};
	static const struct table_column after = {"what stands out", COL_FLEX | COL_SPARE, NULL, 0};
	struct account all = {0};
	struct states_table st;
	uint32_t shown = 0;
	int err;

	for (size_t i = 0; i < n; i++)
		for (unsigned s = 0; s < ST_MAX; s++) {
			all.states_ns[s] += rows[i].sum.states_ns[s];
			shown |= rows[i].sum.states_ns[s] ? 1u << s : 0;
		}
	err = states_table__new(&st, LANE_THREAD, before, ARRAY_SIZE(before), shown & ~left_out, 0,
				&all, &after);
	if (err)
		return err;
	for (size_t i = 0; i < MIN(n, t->rows); i++) {
		const struct pic_target *target = rows[i].target;

		table__cellf(st.table, "%d %s", (int)target->pid,
			     target->comm ? target->comm : "?");
		table__cell(st.table, human__count(target->lanes[LANE_THREAD].n).s);
		text__cell_duration(st.table, rows[i].sum.cpu);
		states_table__row(&st, &rows[i].sum, false);
		table__cell(st.table, target->n_findings ? target->findings[0].kind : "");
	}
	return text__print(t, "Processes, by CPU time: what their threads did", st.table, n,
			   "processes");
}

int text__targets(const struct text *t)
{
	size_t n = picture__n_targets(t->pic);
	struct row *rows = calloc(n, sizeof(*rows));
	int err;

	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct pic_lanes *lanes = &picture__target(t->pic, i)->lanes[LANE_THREAD];

		rows[i].target = picture__target(t->pic, i);
		for (size_t k = 0; k < lanes->n; k++)
			account__add(&rows[i].sum, &lanes->v[k]);
	}
	qsort(rows, n, sizeof(*rows), by_cpu);
	err = put_table(t, rows, n);
	free(rows);
	return err;
}
