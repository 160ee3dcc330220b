/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text report's table of cost centres, with the shares that GHC's own report would have. */
#include <inttypes.h>
#include <string.h>

#include "text_priv.h"

#define SHARE_SHOWN 0.05 /* percent */

static void cell_share(struct table *table, uint64_t ticks, uint64_t whole)
{
	double percent = human__percent(ticks, whole);

	if (percent < SHARE_SHOWN)
		table__cell(table, "·");
	else
		table__cellf(table, "%.1f", percent);
}

/* What the whole is, and what is not in it. */
static void put_whole(const struct text *t, uint64_t whole)
{
	const struct tl_target *target = t->target;
	const char *comma = "  not in these shares: ";
	char count[32];

	human__count(count, sizeof(count), whole);
	fprintf(t->out, "  of %s %s\n", count,
		target->cost_centres[0].from_samples
			? "samples of threads that held a capability; the RTS's timer was not seen"
			: "ticks of the RTS's timer, one for each capability");
	for (size_t i = 0; i < target->n_cost_centres; i++) {
		const struct tl_cost_centre *c = &target->cost_centres[i];

		if (!cost_centre__is_overhead(c) || !c->self_ticks)
			continue;
		human__count(count, sizeof(count), c->self_ticks);
		fprintf(t->out, "%s%s %s", comma, count, c->kind);
		comma = ", ";
	}
	if (*comma == ',')
		fputc('\n', t->out);
}

static bool is_shown(const struct tl_cost_centre *c, uint64_t whole)
{
	return !cost_centre__is_overhead(c) &&
	       (human__percent(c->self_ticks, whole) >= SHARE_SHOWN ||
		human__percent(c->total_ticks, whole) >= SHARE_SHOWN);
}

static int put_table(const struct text *t, uint64_t whole, size_t *ret_left_out)
{
	size_t left = t->rows, left_out = 0;
	struct table *table;
	int err = table__new(5, &table);

	if (err)
		return err;
	table__column(table, 0, "self %", NULL, COL_RIGHT);
	table__column(table, 1, "total %", NULL, COL_RIGHT);
	table__column(table, 2, "cost centre", NULL, COL_FLEX);
	table__column(table, 3, "module", NULL, COL_FLEX);
	table__column(table, 4, "source", NULL, COL_FLEX);
	for (size_t i = 0; i < t->target->n_cost_centres; i++) {
		const struct tl_cost_centre *c = &t->target->cost_centres[i];

		if (!is_shown(c, whole))
			continue;
		if (!left) {
			left_out++;
			continue;
		}
		cell_share(table, c->self_ticks, whole);
		cell_share(table, c->total_ticks, whole);
		table__cell(table, c->label);
		table__cell(table, c->module);
		table__cell(table, c->src_loc);
		left--;
	}
	err = table__print(table, t->out, t->width, t->opts->colour);
	table__free(table);
	*ret_left_out = left_out;
	return err;
}

int text__cost_centres(const struct text *t)
{
	const struct tl_target *target = t->target;
	uint64_t whole = 0;
	size_t left_out = 0;
	int err;

	for (size_t i = 0; i < target->n_cost_centres; i++)
		if (!cost_centre__is_overhead(&target->cost_centres[i]))
			whole += target->cost_centres[i].self_ticks;
	if (!whole)
		return 0;
	text__section(t, "Cost centres");
	err = put_table(t, whole, &left_out);
	if (left_out)
		fprintf(t->out, "  … and %zu more cost centres\n", left_out);
	put_whole(t, whole);
	return err;
}
