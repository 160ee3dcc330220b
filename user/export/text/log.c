/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the text report has of an eventlog: the windows that the program marked, the heap.
 */
#include <string.h>

#include "text_priv.h"

/* ── windows ─────────────────────────────────────────────────────────────────────────────── */

struct window_row {
	struct pic_window window;
	uint64_t mean_ns;
};

int text__windows(const struct text *t)
{
#define WINDOW(member) offsetof(struct window_row, window.member)
	static const struct column v[] = {
		{"window", NULL, CELL_TEXT, WINDOW(label), 0, 0},
		{"times", NULL, CELL_KNOWN_INT, WINDOW(count), 0, 0},
		{"total", NULL, CELL_NS, WINDOW(total_ns), 0, 0},
		{"mean", NULL, CELL_NS, offsetof(struct window_row, mean_ns), 0, 0},
		{"min", NULL, CELL_NS, WINDOW(min_ns), 0, 0},
		{"max", NULL, CELL_NS, WINDOW(max_ns), 0, 0},
		{"not ended", NULL, CELL_KNOWN_INT, WINDOW(unfinished), 0, 0},
	};
	static const struct columns columns = {v, ARRAY_SIZE(v)};
	const struct pic_target *target = t->target;
	struct table *table;
	int err;

	if (!target->n_windows)
		return 0;
	err = text__table(&columns, &table);
	if (err)
		return err;
	for (size_t i = 0; i < MIN(target->n_windows, t->rows); i++) {
		struct window_row row = {.window = target->windows[i]};
		struct pic_window *w = &row.window;

		row.mean_ns = w->count ? w->total_ns / w->count : UINT64_MAX;
		if (!w->count)
			w->min_ns = w->max_ns = UINT64_MAX;
		if (!w->unfinished)
			w->unfinished = UINT64_MAX;
		text__row(table, &columns, &row);
	}
	return text__print(t, "What the program marked by START and STOP", table, target->n_windows,
			   "windows");
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
