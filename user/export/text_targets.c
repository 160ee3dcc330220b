/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text report's first table when several processes were profiled: what each of them did with
 * its threads' time, those first that used most of the CPU. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "text_priv.h"

static const struct {
	enum tl_state state;
	const char *title, *group;
} columns[] = {
	{ST_HASKELL, "Haskell", "on CPU"},
	{ST_UNSAFE_CALL_CPU, "unsafe", "on CPU"},
	{ST_SAFE_CALL_CPU, "safe", "on CPU"},
	{ST_GC_WORK, "GC", "on CPU"},
	{ST_RTS, "RTS", "on CPU"},
	{ST_UNSAFE_CALL_BLOCKED, "unsafe", "waiting"},
	{ST_SAFE_CALL_BLOCKED, "safe", "waiting"},
	{ST_CAP_WAIT, "cap", "waiting"},
	{ST_GC_WAIT, "GC", "waiting"},
	{ST_PREEMPTED, "CPU", "waiting"},
};

struct row {
	const struct tl_target *target;
	uint64_t cpu, states_ns[ST_MAX];
};

static void sum_up(struct row *row, const struct tl_target *target)
{
	row->target = target;
	for (size_t i = 0; i < target->n_lanes; i++) {
		row->cpu += target->lanes[i].cpu_ns;
		for (int s = 0; s < ST_MAX; s++)
			row->states_ns[s] += target->lanes[i].states_ns[s];
	}
}

static int by_cpu(const void *pa, const void *pb)
{
	const struct row *a = pa, *b = pb;

	if (a->cpu != b->cpu)
		return a->cpu < b->cpu ? 1 : -1;
	return (a->target->pid > b->target->pid) - (a->target->pid < b->target->pid);
}

static void add_row(struct table *table, const struct row *row, uint32_t shown)
{
	const struct tl_target *target = row->target;

	table__cellf(table, "%d %s", (int)target->pid, target->comm ? target->comm : "?");
	text__cell_count(table, target->n_lanes);
	text__cell_duration(table, row->cpu);
	for (size_t c = 0; c < ARRAY_SIZE(columns); c++) {
		if (shown >> columns[c].state & 1)
			text__cell_duration(table, row->states_ns[columns[c].state]);
		else
			table__cell(table, "");
	}
	table__cell(table, target->n_findings ? target->findings[0].kind : "");
}

static int put_table(const struct text *t, const struct row *rows, size_t n)
{
	struct row all = {0};
	struct table *table;
	uint32_t shown = 0;
	size_t last = 3 + ARRAY_SIZE(columns);
	int err = table__new(last + 1, &table);

	if (err)
		return err;
	for (size_t i = 0; i < n; i++)
		for (int s = 0; s < ST_MAX; s++) {
			all.states_ns[s] += rows[i].states_ns[s];
			shown |= rows[i].states_ns[s] ? 1u << s : 0;
		}
	table__column(table, 0, "process", "", COL_FLEX);
	table__column(table, 1, "threads", "", COL_RIGHT);
	table__worth(table, 1, 1);
	table__column(table, 2, "CPU", "", COL_RIGHT);
	for (size_t c = 0; c < ARRAY_SIZE(columns); c++) {
		table__column(table, 3 + c, columns[c].title, columns[c].group, COL_RIGHT);
		table__worth(table, 3 + c, all.states_ns[columns[c].state]);
	}
	table__column(table, last, "what stands out", "", COL_FLEX);
	table__worth(table, last, 0);
	for (size_t i = 0; i < MIN(n, t->rows); i++)
		add_row(table, &rows[i], shown);
	text__section(t, "Processes, by CPU time");
	err = text__print(table, t);
	text__more(t, n, "processes");
	return err;
}

int text__targets(const struct text *t, const struct timeline *tl)
{
	size_t n = timeline__n_targets(tl);
	struct row *rows = calloc(n, sizeof(*rows));
	int err;

	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		sum_up(&rows[i], timeline__target(tl, i));
	qsort(rows, n, sizeof(*rows), by_cpu);
	err = put_table(t, rows, n);
	free(rows);
	return err;
}
