/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the text report says of an eventlog: what it is, cost centres as GHC's own report has them,
 * Haskell threads, the windows that the program marked, the heap.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "text_priv.h"

#define TREE_SHOWN	0.1 /* percent inherited: below that only with -v */
#define TREE_INDENT_MAX 60

/* ── the log ─────────────────────────────────────────────────────────────────────────────── */

static void put_clock(const struct text *t, const struct tl_eventlog *e)
{
	char text[32];

	if (t->log_alone)
		return;
	if (e->offset_error_ns == UINT64_MAX) {
		fputs("; placed by its wall clock", t->out);
		return;
	}
	human__duration(text, sizeof(text), e->offset_error_ns);
	fprintf(t->out, "; its clock is known to %s", text);
}

static void put_agreement(const struct text *t, const struct tl_eventlog *e)
{
	const struct {
		const char *what;
		double share;
	} shares[] = {{"safe calls", e->agreement_safe_calls},
		      {"threads on capabilities", e->agreement_caps},
		      {"ticks", e->agreement_ticks}};
	const char *comma = "; differs from the kernel's records in ";

	for (size_t i = 0; i < ARRAY_SIZE(shares); i++) {
		if (shares[i].share < 0)
			continue;
		fprintf(t->out, "%s%.2f %% of %s", comma, 100 * (1 - shares[i].share),
			shares[i].what);
		comma = ", ";
	}
	if (e->tick_centres_differ >= 0)
		fprintf(t->out, ", in the cost centre of %.1f %% of single ticks",
			100 * e->tick_centres_differ);
}

void text__eventlog(const struct text *t)
{
	const struct tl_eventlog *e = &t->target->eventlog;
	char text[32];

	if (!e->known)
		return;
	fputs("Eventlog: ", t->out);
	text__put_safe(t->out, e->path);
	if (e->events) {
		human__count(text, sizeof(text), e->events);
		fprintf(t->out, ", %s events", text);
	}
	if (e->samples) {
		human__count(text, sizeof(text), e->samples);
		fprintf(t->out, ", %s cost-centre samples", text);
	}
	if (e->damaged_bytes) {
		human__bytes(text, sizeof(text), e->damaged_bytes);
		fprintf(t->out, "; %s damaged and left out", text);
	}
	put_clock(t, e);
	put_agreement(t, e);
	fputc('\n', t->out);
}

/* ── cost centres ────────────────────────────────────────────────────────────────────────── */

/* What GHC's report counts: the ticks outside the RTS's own centres. */
static uint64_t counted_ticks(const struct tl_target *target)
{
	return target->n_cc_nodes ? target->cc_nodes[0].inherited_ticks : 0;
}

/* First child and next sibling of each node, children by inherited ticks. */
struct tree {
	const struct tl_cc_node *nodes;
	uint32_t *order; /* children of all, by parent, then weight */
	uint32_t *first; /* of a node's children in `order`; n + 1 of them */
};

static int cmp_children(const void *pa, const void *pb, void *arg)
{
	const struct tl_cc_node *nodes = arg;
	uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;

	if (nodes[a].parent != nodes[b].parent)
		return nodes[a].parent < nodes[b].parent ? -1 : 1;
	if (nodes[a].inherited_ticks != nodes[b].inherited_ticks)
		return nodes[a].inherited_ticks < nodes[b].inherited_ticks ? 1 : -1;
	return (a > b) - (a < b);
}

/* Parents come before their children, and the root is the first. */
static int make_tree(const struct tl_target *target, struct tree *tree)
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

static void add_node(struct table *table, const struct tl_target *target, uint32_t node,
		     unsigned depth, uint64_t counted)
{
	const struct tl_cc_node *n = &target->cc_nodes[node];
	const struct tl_cost_centre *c = &target->cost_centres[n->centre];

	table__cellf(table, "%*s%s", (int)MIN(depth, (unsigned)TREE_INDENT_MAX), "", c->label);
	table__cell(table, c->module);
	table__cell(table, c->src_loc);
	table__cellf(table, "%" PRIu64, n->ticks);
	table__cellf(table, "%.1f", human__percent(n->ticks, counted));
	table__cellf(table, "%.1f", human__percent(n->inherited_ticks, counted));
}

/* Is it in a stack that GHC counts? The RTS's own centres are children of the root. */
static bool worth_showing(const struct text *t, const struct tl_cc_node *n, uint64_t counted)
{
	const struct tl_cost_centre *c = &t->target->cost_centres[n->centre];

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

static int put_stacks(const struct text *t)
{
	struct tree tree = {0};
	struct table *table = NULL;
	int err = make_tree(t->target, &tree);

	if (!err)
		err = table__new(6, &table);
	if (err)
		goto out;
	table__column(table, 0, "COST CENTRE", "", COL_FLEX);
	table__column(table, 1, "MODULE", "", COL_FLEX);
	table__column(table, 2, "SRC", "", COL_FLEX);
	table__column(table, 3, "ticks", "", COL_RIGHT);
	table__column(table, 4, "individual", "%time", COL_RIGHT);
	table__column(table, 5, "inherited", "%time", COL_RIGHT);
	err = add_tree(table, t, &tree);
	if (err) {
		table__free(table);
		goto out;
	}
	text__section(t, "Cost-centre stacks");
	err = text__print(table, t);
	if (!t->opts->verbose)
		fprintf(t->out, "  stacks under %.1f %% are left out; -v shows all\n", TREE_SHOWN);
out:
	free(tree.order);
	free(tree.first);
	return err;
}

int text__cost_centre_stacks(const struct text *t)
{
	/* A tree that hangs together is the log's, or GHC's own. */
	return t->log_alone && counted_ticks(t->target) ? put_stacks(t) : 0;
}

/* ── Haskell threads ─────────────────────────────────────────────────────────────────────── */

static const struct {
	enum tl_tso_state state;
	const char *title, *group;
} columns[] = {
	{HS_RUNNING, "running", ""},
	{HS_UNSAFE_CALL, "unsafe call", ""},
	{HS_SAFE_CALL, "safe call", ""},
	{HS_RUNNABLE, "ready", ""},
	{HS_GC, "GC", ""},
	{HS_BLOCKED_MVAR, "MVar", "blocked"},
	{HS_BLOCKED_STM, "STM", "blocked"},
	{HS_BLOCKED_BLACKHOLE, "thunk", "blocked"},
	{HS_BLOCKED_IO, "I/O", "blocked"},
	{HS_BLOCKED_DELAY, "delay", "blocked"},
	{HS_BLOCKED_OTHER, "other", "blocked"},
	{HS_UNKNOWN, "unknown", ""},
};

static void add_thread(struct table *table, const struct tl_tso_lane *lane, uint32_t shown)
{
	uint64_t wall = lane->end_ns - lane->start_ns;

	table__cellf(table, "%" PRIu64, lane->tso);
	table__cell(table, lane->label ? lane->label : "");
	text__cell_duration(table, wall);
	for (size_t c = 0; c < ARRAY_SIZE(columns); c++) {
		if (shown >> columns[c].state & 1)
			text__cell_share(table,
					 human__percent(lane->states_ns[columns[c].state], wall));
		else
			table__cell(table, "");
	}
}

int text__haskell_threads(const struct text *t)
{
	const struct tl_target *target = t->target;
	size_t n = MIN(target->n_tso_lanes, t->rows);
	struct table *table;
	uint32_t shown = 0;
	int err;

	if (!n)
		return 0;
	for (size_t i = 0; i < n; i++)
		for (int s = 0; s < HS_MAX; s++)
			if (human__percent(target->tso_lanes[i].states_ns[s],
					   target->tso_lanes[i].end_ns -
						   target->tso_lanes[i].start_ns) >=
			    TEXT_SHARE_SHOWN)
				shown |= 1u << s;
	err = table__new(3 + ARRAY_SIZE(columns), &table);
	if (err)
		return err;
	table__column(table, 0, "Haskell thread", "", COL_RIGHT);
	table__column(table, 1, "label", "", COL_FLEX);
	table__column(table, 2, "wall", "", COL_RIGHT);
	for (size_t c = 0; c < ARRAY_SIZE(columns); c++)
		table__column(table, 3 + c, columns[c].title, columns[c].group, COL_RIGHT);
	for (size_t i = 0; i < n; i++)
		add_thread(table, &target->tso_lanes[i], shown);
	text__section(t, "What Haskell threads did, in % of each one's life");
	err = text__print(table, t);
	text__more(t, target->n_tso_lanes, "Haskell threads");
	return err;
}

/* ── windows ─────────────────────────────────────────────────────────────────────────────── */

int text__windows(const struct text *t)
{
	static const char *const titles[] = {"window", "times", "total",    "mean",
					     "min",    "max",	"not ended"};
	const struct tl_target *target = t->target;
	struct table *table;
	int err;

	if (!target->n_windows)
		return 0;
	err = table__new(ARRAY_SIZE(titles), &table);
	if (err)
		return err;
	for (size_t c = 0; c < ARRAY_SIZE(titles); c++)
		table__column(table, c, titles[c], NULL, c ? COL_RIGHT : COL_FLEX);
	for (size_t i = 0; i < MIN(target->n_windows, t->rows); i++) {
		const struct tl_window *w = &target->windows[i];

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
	text__section(t, "What the program marked by START and STOP");
	err = text__print(table, t);
	text__more(t, target->n_windows, "windows");
	return err;
}

/* ── heap ────────────────────────────────────────────────────────────────────────────────── */

int text__heap(const struct text *t)
{
	static const struct {
		unsigned kind;
		const char *title;
	} kinds[] = {{TC_HEAP, "Heap"},
		     {TC_HEAP_PROFILE, "Heap profile, by largest size"},
		     {TC_TICKY, "Ticky counters"}};
	const struct tl_target *target = t->target;

	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		struct table *table;
		size_t n = 0;
		int err = table__new(3, &table);

		if (err)
			return err;
		table__column(table, 0, "", NULL, COL_FLEX);
		table__column(table, 1, "largest", NULL, COL_RIGHT);
		table__column(table, 2, "last", NULL, COL_RIGHT);
		for (size_t i = 0; i < target->n_counters; i++) {
			const struct tl_counter *c = &target->counters[i];
			char max[32], last[32];

			if (c->kind != kinds[k].kind || ++n > t->rows)
				continue;
			if (!strcmp(c->unit, "bytes")) {
				human__bytes(max, sizeof(max), c->max_value);
				human__bytes(last, sizeof(last), c->last_value);
			} else {
				human__count(max, sizeof(max), c->max_value);
				human__count(last, sizeof(last), c->last_value);
			}
			table__cell(table, c->name);
			table__cell(table, max);
			table__cell(table, last);
		}
		if (!n) {
			table__free(table);
			continue;
		}
		text__section(t, kinds[k].title);
		err = text__print(table, t);
		if (err)
			return err;
		text__more(t, n, "curves");
	}
	return 0;
}
