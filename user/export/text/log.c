/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text report's parts from an eventlog: the windows that the program marked, the heap. */
#include <string.h>

#include "text_priv.h"

/* ── windows ─────────────────────────────────────────────────────────────────────────────── */

int text__windows(const struct text *t)
{
	static const struct table_column columns[] = {
		{"window", COL_FLEX, NULL, 0},	  {"times", COL_RIGHT, NULL, 0},
		{"total", COL_RIGHT, NULL, 0},	  {"mean", COL_RIGHT, NULL, 0},
		{"min", COL_RIGHT, NULL, 0},	  {"max", COL_RIGHT, NULL, 0},
		{"not ended", COL_RIGHT, NULL, 0}};
	const struct pic_target *target = t->target;
	struct table *table;
	int err;

	if (!target->n_windows)
		return 0;
	err = table__new(columns, ARRAY_SIZE(columns), &table);
	if (err)
		return err;
	for (size_t i = 0; i < MIN(target->n_windows, t->rows); i++) {
		const struct pic_window *w = &target->windows[i];

		table__cell(table, w->label);
		table__cellf(table, "%" PRIu64, w->count);
		text__cell_duration(table, w->total_ns);
		text__cell_duration(table, w->count ? w->total_ns / w->count : UINT64_MAX);
		text__cell_duration(table, w->count ? w->min_ns : UINT64_MAX);
		text__cell_duration(table, w->count ? w->max_ns : UINT64_MAX);
		if (w->unfinished)
			table__cellf(table, "%" PRIu64, w->unfinished);
		else
			table__cell(table, "");
	}
	return text__print(t, "What the program marked with START and STOP", table,
			   target->n_windows, "windows");
}

/* ── heap ────────────────────────────────────────────────────────────────────────────────── */

static struct human value(const struct pic_counter *c, uint64_t n)
{
	return strcmp(c->unit, "bytes") ? human__count(n) : human__bytes(n);
}

static int put_counters(const struct text *t, unsigned kind, const char *title)
{
	static const struct table_column columns[] = {{"", COL_FLEX, NULL, 0},
						      {"largest", COL_RIGHT, NULL, 0},
						      {"last", COL_RIGHT, NULL, 0}};
	struct table *table;
	size_t n = 0;
	int err = table__new(columns, ARRAY_SIZE(columns), &table);

	if (err)
		return err;
	for (size_t i = 0; i < t->target->n_counters; i++) {
		const struct pic_counter *c = &t->target->counters[i];

		if (c->kind != kind || ++n > t->rows)
			continue;
		table__cell(table, c->name);
		table__cell(table, value(c, c->max_value).s);
		table__cell(table, value(c, c->last_value).s);
	}
	if (n)
		return text__print(t, title, table, n, "curves");
	table__free(table);
	return 0;
}

int text__heap(const struct text *t)
{
	int err = put_counters(t, TC_HEAP, "Heap");

	if (!err)
		err = put_counters(t, TC_HEAP_PROFILE, "Heap profile, by largest size");
	return err ? err : put_counters(t, TC_TICKY, "Ticky counters");
}
