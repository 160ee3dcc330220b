/* SPDX-License-Identifier: GPL-2.0-or-later */
/* log_centres: cost centres, their stacks, and the ticks in them. */
#include <stdio.h>

#include "join_priv.h"

/* ── stacks of the tree's nodes ──────────────────────────────────────────────────────────── */

/*
 * Late cost centres have names like $wgo, which mean nothing without their module. The frame is
 * equal to that of a cost centre read from memory (ccs.c), since one stack may have both.
 */
static int centre_frame(struct log_build *b, const struct cost_centre *cc, uint32_t *ret_frame)
{
	char name[2048];
	struct pic_frame frame = {.name = name,
				  .module = cc->module,
				  .file = cc->module,
				  .src = cc->srcloc,
				  .kind = TF_HASKELL};

	if (cc->kind == CCK_GC || cc->kind == CCK_SYSTEM) {
		*ret_frame = picture__mark(b->pic, cc->kind == CCK_GC ? MARK_GC : MARK_RTS);
		return 0;
	}
	if (!*cc->module || !strcmp(cc->module, cc->label))
		snprintf(name, sizeof(name), "%s", cc->label);
	else
		snprintf(name, sizeof(name), "%s.%s", cc->module, cc->label);
	return picture__add_frame(b->pic, &frame, ret_frame);
}

/* Not work of the program, so MAIN is not below it. */
static bool stands_alone(enum cc_kind kind)
{
	return kind == CCK_IDLE || kind == CCK_GC || kind == CCK_SYSTEM;
}

/* Root first: MAIN, which everything is part of. Idleness has no frame; it is a gap in time. */
static int make_stack(struct log_build *b, uint32_t node, uint32_t *ret_stack)
{
	uint32_t frames[1024], max = MIN(b->opts.max_depth, (uint32_t)ARRAY_SIZE(frames));
	uint32_t at = ARRAY_SIZE(frames), n = 0;
	int err;

	for (uint32_t i = node; n < max; i = cctree__node(b->tree, i)->parent) {
		struct cost_centre cc = cctree__cc(b->tree, cctree__node(b->tree, i)->cc);

		if (cc.kind == CCK_IDLE)
			break;
		err = n + 1 == max && i != CC_ROOT
			      ? picture__add_text(b->pic, TF_MARK, "[truncated]", &frames[--at])
			      : centre_frame(b, &cc, &frames[--at]);
		if (err)
			return err;
		n++;
		if (i == CC_ROOT || stands_alone(cc.kind))
			break;
	}
	return picture__add_stack(b->pic, frames + at, n, ret_stack);
}

/* The stack of a node of the tree that is shown. */
static int shown_stack(struct log_build *b, uint32_t node, uint32_t *ret_stack)
{
	int err =
		b->node_stacks[node] == UINT32_MAX ? make_stack(b, node, &b->node_stacks[node]) : 0;

	*ret_stack = b->node_stacks[node];
	return err;
}

int elog__node_stack(struct log_build *b, uint32_t node, uint32_t *ret_stack)
{
	if (node == CC_NO_NODE) {
		*ret_stack = 0;
		return 0;
	}
	return shown_stack(b, b->map ? b->map[node] : node, ret_stack);
}

/* ── sums ────────────────────────────────────────────────────────────────────────────────── */

/* For a centre that calls itself, only the outermost occurrence counts. */
static bool inside_itself(const struct log_build *b, uint32_t node)
{
	uint32_t cc = cctree__node(b->tree, node)->cc;

	while (node != CC_ROOT) {
		node = cctree__node(b->tree, node)->parent;
		if (cctree__node(b->tree, node)->cc == cc)
			return true;
	}
	return false;
}

static int fill_nodes(struct log_build *b, struct pic_cost_centre *centres)
{
	size_t n = cctree__n_nodes(b->tree);
	struct pic_cc_node *nodes = picture__alloc(b->pic, n, sizeof(*nodes));
	int err = 0;

	if (!nodes)
		return -ENOMEM;
	for (size_t i = 0; i < n && !err; i++) {
		const struct cc_node *node = cctree__node(b->tree, (uint32_t)i);

		nodes[i] = (struct pic_cc_node){
			.centre = node->cc,
			.parent = i == CC_ROOT ? UINT32_MAX : node->parent,
			.ticks = node->ticks,
			.inherited_ticks = node->inherited_ticks,
		};
		centres[node->cc].self_ticks += node->ticks;
		if (!inside_itself(b, (uint32_t)i))
			centres[node->cc].total_ticks += node->inherited_ticks;
		err = node->ticks ? shown_stack(b, (uint32_t)i, &nodes[i].stack) : 0;
	}
	b->pub->cc_nodes = nodes;
	b->pub->n_cc_nodes = n;
	return err;
}

static int by_self_ticks(const void *pa, const void *pb, void *arg)
{
	const struct pic_cost_centre *centres = arg;
	const struct pic_cost_centre *a = &centres[*(const uint32_t *)pa];
	const struct pic_cost_centre *b = &centres[*(const uint32_t *)pb];
	int diff;

	if (a->self_ticks != b->self_ticks)
		return a->self_ticks < b->self_ticks ? 1 : -1;
	if (a->total_ticks != b->total_ticks)
		return a->total_ticks < b->total_ticks ? 1 : -1;
	diff = strcmp(a->module, b->module);
	return diff ? diff : strcmp(a->label, b->label);
}

/* Sorts heaviest first, and updates the nodes. */
static int sort_centres(struct log_build *b, const struct pic_cost_centre *unsorted, size_t n)
{
	struct pic_cost_centre *sorted = picture__alloc(b->pic, n, sizeof(*sorted));
	struct pic_cc_node *nodes = (struct pic_cc_node *)b->pub->cc_nodes;
	uint32_t *order = calloc(n + 1, sizeof(*order)), *place = calloc(n + 1, sizeof(*place));
	int err = sorted && order && place ? 0 : -ENOMEM;

	if (!err) {
		for (size_t i = 0; i < n; i++)
			order[i] = (uint32_t)i;
		qsort_r(order, n, sizeof(*order), by_self_ticks, (void *)unsorted);
		for (size_t i = 0; i < n; i++) {
			sorted[i] = unsorted[order[i]];
			place[order[i]] = (uint32_t)i;
		}
		for (size_t i = 0; i < b->pub->n_cc_nodes; i++)
			nodes[i].centre = place[nodes[i].centre];
		b->pub->cost_centres = sorted;
		b->pub->n_cost_centres = n;
	}
	free(order);
	free(place);
	return err;
}

/* What ran, by cost centre; the RTS's own centres are not functions. */
static int fill_functions(struct log_build *b)
{
	uint64_t step = b->in.interval_ns;
	struct pic_function *functions =
		picture__alloc(b->pic, b->pub->n_cost_centres, sizeof(*functions));
	size_t n = 0;

	if (!functions)
		return -ENOMEM;
	for (size_t i = 0; i < b->pub->n_cost_centres; i++) {
		const struct pic_cost_centre *c = &b->pub->cost_centres[i];
		char name[2048];

		if (!c->total_ticks ||
		    (strcmp(c->kind, "program") != 0 && strcmp(c->kind, "caf") != 0))
			continue;
		snprintf(name, sizeof(name), "%s%s%s", c->module, *c->module ? "." : "", c->label);
		functions[n++] = (struct pic_function){
			.name = picture__string(b->pic, name),
			.module = c->module,
			.kind = TF_HASKELL,
			.self_samples = c->self_ticks,
			.total_samples = c->total_ticks,
			.self_ns = c->self_ticks * step,
			.total_ns = c->total_ticks * step,
		};
	}
	b->pub->functions = functions;
	b->pub->n_functions = n;
	return 0;
}

static int fill_centres(struct log_build *b)
{
	size_t n = cctree__n_ccs(b->tree);
	struct pic_cost_centre *centres = calloc(n + 1, sizeof(*centres));
	int err;

	if (!centres)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct cost_centre cc = cctree__cc(b->tree, (uint32_t)i);

		centres[i] = (struct pic_cost_centre){
			.label = picture__string(b->pic, cc.label),
			.module = picture__string(b->pic, cc.module),
			.src_loc = picture__string(b->pic, cc.srcloc),
			.kind = cc_kind__name(cc.kind),
			.from_log = true,
		};
	}
	err = fill_nodes(b, centres);
	if (!err)
		err = sort_centres(b, centres, n);
	free(centres);
	return err ? err : fill_functions(b);
}

int elog__centres(struct log_build *b)
{
	struct cctree *tree = b->in.profile ? el_profile__tree(b->in.profile) : b->in.tree;
	struct cctree_totals totals;
	int err;

	if (!tree)
		return 0;
	if (b->in.profile)
		b->in.interval_ns = el_profile__info(b->in.profile).interval_ns;
	b->pub->tick_ns = b->in.interval_ns;
	b->tree = tree;
	if (b->in.n_hide || b->in.n_only) {
		err = cctree__filter(tree, b->in.hide, b->in.n_hide, b->in.only, b->in.n_only,
				     &b->filtered, &b->map);
		if (err)
			return err;
		b->tree = b->filtered;
	}
	b->n_node_stacks = cctree__n_nodes(b->tree);
	b->node_stacks = malloc((b->n_node_stacks + 1) * sizeof(*b->node_stacks));
	if (!b->node_stacks)
		return -ENOMEM;
	memset(b->node_stacks, 0xff, b->n_node_stacks * sizeof(*b->node_stacks));
	err = cctree__inherit(b->tree, &totals);
	/* The tree of a log without samples has only MAIN and what annotations brought. */
	if (!err && (b->in.tree || el_profile__info(b->in.profile).samples))
		err = fill_centres(b);
	return err;
}
