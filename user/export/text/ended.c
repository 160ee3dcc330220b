/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text report's table of ended processes without a part of their own: the sums of their
 * programs. */
#include "text_priv.h"

int text__ended(const struct text *t)
{
	static const struct table_column columns[] = {
		{"program", COL_FLEX, NULL, 0},
		{"processes", COL_RIGHT, NULL, 0},
		{"CPU", COL_RIGHT, NULL, 0},
		{"samples", COL_RIGHT | COL_SPARE, NULL, 1},
		{"safe calls", COL_RIGHT, NULL, 0},
		{"in safe calls", COL_RIGHT, NULL, 0},
		{"collections", COL_RIGHT | COL_SPARE, NULL, 2},
		{"GC pause", COL_RIGHT | COL_SPARE, NULL, 3},
	};
	const struct pic_session *session = t->session;
	struct table *table;
	int err;

	if (!session->n_ended)
		return 0;
	err = table__new(columns, ARRAY_SIZE(columns), &table);
	if (err)
		return err;
	for (size_t i = 0; i < MIN(session->n_ended, t->rows); i++) {
		const struct pic_ended *ended = &session->ended[i];

		table__cell(table, ended->exe[0] ? ended->exe : "others");
		table__cell(table, human__count(ended->processes).s);
		text__cell_duration(table, ended->cpu_ns);
		table__cell(table, human__count(ended->samples).s);
		table__cell(table, human__count(ended->safe_calls).s);
		text__cell_duration(table, ended->safe_call_ns);
		table__cell(table, human__count(ended->gcs).s);
		text__cell_duration(table, ended->gc_pause_ns);
	}
	return text__print(t, "Processes that ended earlier, by program", table, session->n_ended,
			   "programs");
}
