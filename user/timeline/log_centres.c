/* SPDX-License-Identifier: GPL-2.0-or-later */
/* log_centres: cost centres, their stacks, and what ticked in them. */
#include <stdio.h>

#include "log_priv.h"

/* ── stacks of the tree's nodes ──────────────────────────────────────────────────────────── */

/*
 * Late cost centres have names like $wgo, which tell nothing without their module. Equal to the
 * frames of cost centres that come from memory (ccs.c): one stack may have both.
 */
static int centre_frame(struct timeline *tl, const struct cost_centre *cc, uint32_t *ret_frame)
{
	char name[2048];
	struct tl_frame frame = {.name = name,
				 .module = cc->module,
				 .file = cc->module,
				 .src = cc->srcloc,
				 .kind = TF_HASKELL};

	if (cc->kind == CCK_GC || cc->kind == CCK_SYSTEM) {
		*ret_frame = tl->marks[cc->kind == CCK_GC ? MARK_GC : MARK_RTS];
		return 0;
	}
	if (!*cc->module || !strcmp(cc->module, cc->label))
		snprintf(name, sizeof(name), "%s", cc->label);
	else
		snprintf(name, sizeof(name), "%s.%s", cc->module, cc->label);
	return frames__add(&tl->frames, &frame, ret_frame);
}

/* No work of the program's: MAIN is not below it. */
static bool stands_alone(enum cc_kind kind)
{
	return kind == CCK_IDLE || kind == CCK_GC || kind == CCK_SYSTEM;
}

/* Root first: MAIN, of which all are part. Idleness has no frame, it is a gap on the time axis. */
static int make_stack(struct timeline *tl, struct log_build *b, uint32_t node, uint32_t *ret_stack)
{
	uint32_t frames[1024], max = MIN(tl->opts.max_depth, (uint32_t)ARRAY_SIZE(frames));
	uint32_t at = ARRAY_SIZE(frames), n = 0;
	int err;

	for (uint32_t i = node; n < max; i = cctree__node(b->tree, i)->parent) {
		struct cost_centre cc = cctree__cc(b->tree, cctree__node(b->tree, i)->cc);

		if (cc.kind == CCK_IDLE)
			break;
		err = n + 1 == max && i != CC_ROOT
			      ? frames__add_text(&tl->frames, TF_MARK, "[truncated]", &frames[--at])
			      : centre_frame(tl, &cc, &frames[--at]);
		if (err)
			return err;
		n++;
		if (i == CC_ROOT || stands_alone(cc.kind))
			break;
	}
	return stacks__add(&tl->stacks, frames + at, n, ret_stack);
}

/* The stack of a node of the tree that is shown. */
static int shown_stack(struct timeline *tl, struct log_build *b, uint32_t node, uint32_t *ret_stack)
{
	int err = b->node_stacks[node] == UINT32_MAX
			  ? make_stack(tl, b, node, &b->node_stacks[node])
			  : 0;

	*ret_stack = b->node_stacks[node];
	return err;
}

int elog__node_stack(struct timeline *tl, struct log_build *b, uint32_t node, uint32_t *ret_stack)
{
	if (node == CC_NO_NODE) {
		*ret_stack = 0;
		return 0;
	}
	return shown_stack(tl, b, b->map ? b->map[node] : node, ret_stack);
}

/* ── sums ────────────────────────────────────────────────────────────────────────────────── */

/* Of a centre that calls itself the outermost occurrence counts. */
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

static int fill_nodes(struct timeline *tl, struct target_state *tg, struct log_build *b,
		      struct tl_cost_centre *centres)
{
	size_t n = cctree__n_nodes(b->tree);
	struct tl_cc_node *nodes = elog__alloc(b, n, sizeof(*nodes));
	int err = 0;

	if (!nodes)
		return -ENOMEM;
	for (size_t i = 0; i < n && !err; i++) {
		const struct cc_node *node = cctree__node(b->tree, (uint32_t)i);

		nodes[i] = (struct tl_cc_node){
			.centre = node->cc,
			.parent = i == CC_ROOT ? UINT32_MAX : node->parent,
			.ticks = node->ticks,
			.inherited_ticks = node->inherited_ticks,
		};
		centres[node->cc].self_ticks += node->ticks;
		if (!inside_itself(b, (uint32_t)i))
			centres[node->cc].total_ticks += node->inherited_ticks;
		err = node->ticks ? shown_stack(tl, b, (uint32_t)i, &nodes[i].stack) : 0;
	}
	tg->pub.cc_nodes = nodes;
	tg->pub.n_cc_nodes = n;
	return err;
}

static int by_self_ticks(const void *pa, const void *pb, void *arg)
{
	const struct tl_cost_centre *centres = arg;
	const struct tl_cost_centre *a = &centres[*(const uint32_t *)pa];
	const struct tl_cost_centre *b = &centres[*(const uint32_t *)pb];
	int diff;

	if (a->self_ticks != b->self_ticks)
		return a->self_ticks < b->self_ticks ? 1 : -1;
	if (a->total_ticks != b->total_ticks)
		return a->total_ticks < b->total_ticks ? 1 : -1;
	diff = strcmp(a->module, b->module);
	return diff ? diff : strcmp(a->label, b->label);
}

/* Heaviest first, and the nodes with them. */
static int sort_centres(struct target_state *tg, struct log_build *b,
			const struct tl_cost_centre *unsorted, size_t n)
{
	struct tl_cost_centre *sorted = elog__alloc(b, n, sizeof(*sorted));
	struct tl_cc_node *nodes = (struct tl_cc_node *)tg->pub.cc_nodes;
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
		for (size_t i = 0; i < tg->pub.n_cc_nodes; i++)
			nodes[i].centre = place[nodes[i].centre];
		tg->pub.cost_centres = sorted;
		tg->pub.n_cost_centres = n;
	}
	free(order);
	free(place);
	return err;
}

/* What ran, by cost centre; the RTS's own centres are no functions. */
static int fill_functions(struct timeline *tl, struct target_state *tg, const struct log_build *b)
{
	uint64_t step = b->in.interval_ns;
	size_t n = 0;

	tg->functions = calloc(tg->pub.n_cost_centres + 1, sizeof(*tg->functions));
	if (!tg->functions)
		return -ENOMEM;
	for (size_t i = 0; i < tg->pub.n_cost_centres; i++) {
		const struct tl_cost_centre *c = &tg->pub.cost_centres[i];
		char name[2048];

		if (!c->total_ticks ||
		    (strcmp(c->kind, "program") != 0 && strcmp(c->kind, "caf") != 0))
			continue;
		snprintf(name, sizeof(name), "%s%s%s", c->module, *c->module ? "." : "", c->label);
		tg->functions[n++] = (struct tl_function){
			.name = tl__string(tl, name),
			.module = c->module,
			.kind = TF_HASKELL,
			.self_samples = c->self_ticks,
			.total_samples = c->total_ticks,
			.self_ns = c->self_ticks * step,
			.total_ns = c->total_ticks * step,
		};
	}
	tg->pub.functions = tg->functions;
	tg->pub.n_functions = n;
	return 0;
}

static int fill_centres(struct timeline *tl, struct target_state *tg, struct log_build *b)
{
	size_t n = cctree__n_ccs(b->tree);
	struct tl_cost_centre *centres = calloc(n + 1, sizeof(*centres));
	int err;

	if (!centres)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct cost_centre cc = cctree__cc(b->tree, (uint32_t)i);

		centres[i] = (struct tl_cost_centre){
			.label = tl__string(tl, cc.label),
			.module = tl__string(tl, cc.module),
			.src_loc = tl__string(tl, cc.srcloc),
			.kind = cc_kind__name(cc.kind),
			.from_log = true,
		};
	}
	err = fill_nodes(tl, tg, b, centres);
	if (!err)
		err = sort_centres(tg, b, centres, n);
	free(centres);
	return err ? err : fill_functions(tl, tg, b);
}

int elog__centres(struct timeline *tl, struct target_state *tg, struct log_build *b)
{
	struct cctree *tree = b->in.profile ? el_profile__tree(b->in.profile) : b->in.tree;
	struct cctree_totals totals;
	int err;

	if (!tree)
		return 0;
	if (b->in.profile)
		b->in.interval_ns = el_profile__info(b->in.profile).interval_ns;
	tg->pub.tick_ns = b->in.interval_ns;
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
	/* A log without samples has a tree of MAIN alone, and of what annotations told. */
	if (!err && (b->in.tree || el_profile__info(b->in.profile).samples))
		err = fill_centres(tl, tg, b);
	return err;
}
