/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text report's tables of cost centres, with the shares that GHC's own report would show, and
 * of their stacks, in the form of GHC's report. */
#include <stdlib.h>

#include "text_priv.h"

#define SHARE_SHOWN	0.05 /* percent */
#define TREE_SHOWN	0.1  /* percent inherited: less is shown only with -v */
#define TREE_INDENT_MAX 60

/* ── centres ─────────────────────────────────────────────────────────────────────────────── */

/* Prints what the shares refer to, and what is excluded from that. */
static void put_whole(const struct text *t, uint64_t whole)
{
	const struct pic_target *target = t->target;
	const char *comma = "  not in these shares: ";

	fprintf(t->out, "  of %s %s\n", human__count(whole).s,
		target->cost_centres[0].from_samples
			? "samples of threads that held a capability; the RTS's timer was not seen"
			: "ticks of the RTS's timer, one for each capability");
	for (size_t i = 0; i < target->n_cost_centres; i++) {
		const struct pic_cost_centre *c = &target->cost_centres[i];

		if (!cost_centre__is_overhead(c) || !c->self_ticks)
			continue;
		fprintf(t->out, "%s%s %s", comma, human__count(c->self_ticks).s,
			text__safe(t, c->kind));
		comma = ", ";
	}
	if (*comma == ',')
		fputc('\n', t->out);
}

int text__cost_centres(const struct text *t)
{
	const struct pic_target *target = t->target;
	uint64_t whole = 0;
	struct table *table;
	size_t n = 0;
	int err;

	for (size_t i = 0; i < target->n_cost_centres; i++)
		if (!cost_centre__is_overhead(&target->cost_centres[i]))
			whole += target->cost_centres[i].self_ticks;
	if (!whole)
		return 0;
	err = text__table(&centre_columns, &table);
	if (err)
		return err;
	for (size_t i = 0; i < target->n_cost_centres; i++) {
		struct centre_row row = {.centre = target->cost_centres[i]};

		row.self = human__percent(row.centre.self_ticks, whole);
		row.total = human__percent(row.centre.total_ticks, whole);
		if (!cost_centre__is_overhead(&row.centre) &&
		    MAX(row.self, row.total) >= SHARE_SHOWN && ++n <= t->rows)
			text__row(table, &centre_columns, &row);
	}
	err = text__print(t, "Cost centres", table, n, "cost centres");
	put_whole(t, whole);
	return err;
}

/* ── their stacks ────────────────────────────────────────────────────────────────────────── */

/* The ticks that GHC's report counts: those outside the RTS's own centres. */
static uint64_t counted_ticks(const struct pic_target *target)
{
	return target->n_cc_nodes ? target->cc_nodes[0].inherited_ticks : 0;
}

/* A node's place in the table: after its parent, and after the parent's heavier children with their
 * subtrees. */
struct place {
	uint32_t size;	/* of the subtree */
	uint32_t after; /* the number of rows before its next child */
	unsigned depth;
	bool shown;
};

/* True if GHC counts the node's stack and it is heavy enough. The RTS's own centres are children of
 * the root. */
static bool is_shown(const struct text *t, const struct pic_cc_node *n)
{
	if (n->parent == 0 && cost_centre__is_overhead(&t->target->cost_centres[n->centre]))
		return false;
	return n->inherited_ticks &&
	       (t->opts->verbose ||
		human__percent(n->inherited_ticks, counted_ticks(t->target)) >= TREE_SHOWN);
}

static int cmp_children(const void *pa, const void *pb, void *arg)
{
	const struct pic_cc_node *nodes = arg;
	uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;

	if (nodes[a].parent != nodes[b].parent)
		return nodes[a].parent < nodes[b].parent ? -1 : 1;
	if (nodes[a].inherited_ticks != nodes[b].inherited_ticks)
		return nodes[a].inherited_ticks < nodes[b].inherited_ticks ? 1 : -1;
	return (a > b) - (a < b);
}

/*
 * Fills rows with the nodes in the table's order, UINT32_MAX for those not shown. In cc_nodes
 * parents come before their children, and the root is the first.
 */
static void order_nodes(const struct text *t, struct place *places, uint32_t *children,
			uint32_t *rows)
{
	const struct pic_cc_node *nodes = t->target->cc_nodes;
	size_t n = t->target->n_cc_nodes;

	for (size_t i = n; i-- > 0;) {
		places[i].size++;
		if (i)
			places[nodes[i].parent].size += places[i].size;
		children[i] = (uint32_t)i;
	}
	qsort_r(children + 1, n - 1, sizeof(*children), cmp_children, (void *)nodes);
	places[0] = (struct place){.after = 1, .shown = true};
	for (size_t i = 1; i < n; i++) {
		struct place *place = &places[children[i]];
		struct place *parent = &places[nodes[children[i]].parent];

		place->depth = parent->depth + 1;
		place->shown = parent->shown && is_shown(t, &nodes[children[i]]);
		rows[parent->after] = place->shown ? children[i] : UINT32_MAX;
		place->after = parent->after + 1;
		parent->after += place->size;
	}
}

static void add_node(struct table *table, const struct pic_target *target, uint32_t node,
		     unsigned depth)
{
	const struct pic_cc_node *n = &target->cc_nodes[node];
	const struct pic_cost_centre *c = &target->cost_centres[n->centre];

	table__cellf(table, "%*s%s", (int)MIN(depth, (unsigned)TREE_INDENT_MAX), "", c->label);
	table__cell(table, c->module);
	table__cell(table, c->src_loc);
	table__cellf(table, "%" PRIu64, n->ticks);
	table__cellf(table, "%.1f", human__percent(n->ticks, counted_ticks(target)));
	table__cellf(table, "%.1f", human__percent(n->inherited_ticks, counted_ticks(target)));
}

int text__cost_centre_stacks(const struct text *t)
{
	static const struct table_column columns[] = {
		{"COST CENTRE", COL_FLEX, NULL, 0},
		{"MODULE", COL_FLEX, NULL, 0},
		{"SRC", COL_FLEX, NULL, 0},
		{"ticks", COL_RIGHT, NULL, 0},
		{"individual", COL_RIGHT, "%time", 0},
		{"inherited", COL_RIGHT, "%time", 0},
	};
	const struct pic_target *target = t->target;
	size_t n = target->n_cc_nodes;
	struct place *places;
	struct table *table;
	uint32_t *rows;
	int err;

	/* Only a log, or GHC's own report, yields a connected tree. */
	if (!t->log_alone || !counted_ticks(target))
		return 0;
	err = table__new(columns, ARRAY_SIZE(columns), &table);
	if (err)
		return err;
	places = calloc(n, sizeof(*places));
	rows = calloc(2 * n, sizeof(*rows));
	if (places && rows)
		order_nodes(t, places, rows + n, rows);
	else
		err = -ENOMEM;
	for (size_t i = 0; i < n && !err; i++)
		if (rows[i] != UINT32_MAX)
			add_node(table, target, rows[i], places[rows[i]].depth);
	free(places);
	free(rows);
	if (err) {
		table__free(table);
		return err;
	}
	err = text__print(t, "Cost-centre stacks", table, 0, "");
	if (!t->opts->verbose)
		fprintf(t->out, "  stacks under %.1f %% are left out; -v shows all\n", TREE_SHOWN);
	return err;
}
