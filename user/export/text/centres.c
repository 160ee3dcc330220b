/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text report's tables of cost centres, with the shares that GHC's own report would have, and
 * of their stacks, as GHC's report has them. */
#include <stdlib.h>

#include "text_priv.h"

#define SHARE_SHOWN	0.05 /* percent */
#define TREE_SHOWN	0.1  /* percent inherited: below that only with -v */
#define TREE_INDENT_MAX 60

/* ── centres ─────────────────────────────────────────────────────────────────────────────── */

/* What the whole is, and what is not in it. */
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
		fprintf(t->out, "%s%s %s", comma, human__count(c->self_ticks).s, c->kind);
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

/* What GHC's report counts: the ticks outside the RTS's own centres. */
static uint64_t counted_ticks(const struct pic_target *target)
{
	return target->n_cc_nodes ? target->cc_nodes[0].inherited_ticks : 0;
}

/* First child and next sibling of each node, children by inherited ticks. */
struct tree {
	const struct pic_cc_node *nodes;
	uint32_t *order; /* children of all, by parent, then weight */
	uint32_t *first; /* of a node's children in `order`; n + 1 of them */
};

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

/* Parents come before their children, and the root is the first. */
static int make_tree(const struct pic_target *target, struct tree *tree)
{
	size_t n = target->n_cc_nodes, at = 0;

	tree->nodes = target->cc_nodes;
	tree->order = calloc(n + 1, sizeof(*tree->order));
	tree->first = calloc(n + 1, sizeof(*tree->first));
	if (!tree->order || !tree->first)
		return -ENOMEM;
	for (size_t i = 1; i < n; i++)
		tree->order[i - 1] = (uint32_t)i;
	if (n > 1)
		qsort_r(tree->order, n - 1, sizeof(*tree->order), cmp_children,
			(void *)tree->nodes);
	for (size_t i = 0; i < n; i++) {
		tree->first[i] = (uint32_t)at;
		while (at < n - 1 && tree->nodes[tree->order[at]].parent == i)
			at++;
	}
	tree->first[n] = (uint32_t)at;
	return 0;
}

static void add_node(struct table *table, const struct pic_target *target, uint32_t node,
		     unsigned depth, uint64_t counted)
{
	const struct pic_cc_node *n = &target->cc_nodes[node];
	const struct pic_cost_centre *c = &target->cost_centres[n->centre];

	table__cellf(table, "%*s%s", (int)MIN(depth, (unsigned)TREE_INDENT_MAX), "", c->label);
	table__cell(table, c->module);
	table__cell(table, c->src_loc);
	table__cellf(table, "%" PRIu64, n->ticks);
	table__cellf(table, "%.1f", human__percent(n->ticks, counted));
	table__cellf(table, "%.1f", human__percent(n->inherited_ticks, counted));
}

/* Is it in a stack that GHC counts? The RTS's own centres are children of the root. */
static bool worth_showing(const struct text *t, const struct pic_cc_node *n, uint64_t counted)
{
	const struct pic_cost_centre *c = &t->target->cost_centres[n->centre];

	if (n->parent == 0 && cost_centre__is_overhead(c))
		return false;
	if (!n->inherited_ticks)
		return false;
	return t->opts->verbose || human__percent(n->inherited_ticks, counted) >= TREE_SHOWN;
}

/* Walks without recursion: stacks may be deep. */
static int add_tree(struct table *table, const struct text *t, const struct tree *tree)
{
	uint64_t counted = counted_ticks(t->target);
	size_t n = t->target->n_cc_nodes, depth = 0;
	uint32_t *path = calloc(n + 1, sizeof(*path)); /* position in `order` by depth */

	if (!path)
		return -ENOMEM;
	add_node(table, t->target, 0, 0, counted);
	path[0] = tree->first[0];
	for (uint32_t at = 0;;) {
		uint32_t child;

		if (path[depth] == tree->first[at + 1]) {
			if (!depth)
				break;
			depth--;
			at = tree->nodes[at].parent;
			continue;
		}
		child = tree->order[path[depth]++];
		if (!worth_showing(t, &tree->nodes[child], counted))
			continue;
		add_node(table, t->target, child, (unsigned)depth + 1, counted);
		at = child;
		path[++depth] = tree->first[child];
	}
	free(path);
	return 0;
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
	struct table *table = NULL;
	struct tree tree = {0};
	int err;

	/* A tree that hangs together is the log's, or GHC's own. */
	if (!t->log_alone || !counted_ticks(t->target))
		return 0;
	err = make_tree(t->target, &tree);
	if (!err)
		err = table__new(columns, ARRAY_SIZE(columns), &table);
	if (!err)
		err = add_tree(table, t, &tree);
	if (!err) {
		err = text__print(t, "Cost-centre stacks", table, 0, "");
		if (!t->opts->verbose)
			fprintf(t->out, "  stacks under %.1f %% are left out; -v shows all\n",
				TREE_SHOWN);
	} else {
		table__free(table);
	}
	free(tree.order);
	free(tree.first);
	return err;
}
