/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * speedscope's first profile: all threads, added up by stack, the heaviest branch first.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "speedscope.h"

static int cmp_by_stack(const void *pa, const void *pb, void *arg)
{
	const struct weighted *a = pa, *b = pb;
	const struct speedscope *w = arg;

	if (a->owner != b->owner)
		return a->owner < b->owner ? -1 : 1;
	return stacks__cmp(timeline__stack(w->tl, a->stack), timeline__stack(w->tl, b->stack),
			   w->map);
}

/* A stretch of items that agree in all frames above some depth. */
struct group {
	size_t start, n;
	uint64_t weight;
};

static int cmp_group(const void *pa, const void *pb)
{
	const struct group *a = pa, *b = pb;

	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	return (a->start > b->start) - (a->start < b->start);
}

/* What tells items apart at a depth: the owner first, then frame by frame; 0: the stack ended. */
static uint64_t key_at(const struct speedscope *w, const struct weighted *item, uint32_t depth)
{
	struct tl_stack stack;

	if (!depth)
		return item->owner;
	stack = timeline__stack(w->tl, item->stack);
	return depth <= stack.n ? (uint64_t)w->map[stack.frames[depth - 1]] + 1 : 0;
}

static size_t group_end(const struct speedscope *w, const struct weighted *items, size_t start,
			size_t n, uint32_t depth)
{
	uint64_t key = key_at(w, &items[start], depth);
	size_t end = start + 1;

	while (end < n && key_at(w, &items[end], depth) == key)
		end++;
	return end;
}

/*
 * Orders sorted items so that at every depth the heaviest branch comes first: then the first
 * profile reads like a flame graph as soon as it opens. tmp has room for n items. Recursion is as
 * deep as stacks branch, and the timeline caps their depth.
 */
static int heaviest_first(const struct speedscope *w, struct weighted *items, size_t n,
			  uint32_t depth, struct weighted *tmp)
{
	struct group *groups;
	size_t n_groups = 0, at = 0;
	int err = 0;

	if (n < 2)
		return 0;
	/* Down to where they part. Items are distinct stacks, so they do. */
	while (group_end(w, items, 0, n, depth) == n)
		depth++;
	for (size_t i = 0; i < n; i = group_end(w, items, i, n, depth))
		n_groups++;
	groups = calloc(n_groups, sizeof(*groups));
	if (!groups)
		return -ENOMEM;
	for (size_t i = 0, g = 0; i < n; g++) {
		groups[g].start = i;
		groups[g].n = group_end(w, items, i, n, depth) - i;
		for (size_t k = 0; k < groups[g].n; k++)
			groups[g].weight += items[i + k].weight;
		i += groups[g].n;
	}
	qsort(groups, n_groups, sizeof(*groups), cmp_group);
	memcpy(tmp, items, n * sizeof(*items));
	for (size_t g = 0; g < n_groups; g++) {
		memcpy(items + at, tmp + groups[g].start, groups[g].n * sizeof(*items));
		at += groups[g].n;
	}
	at = 0;
	for (size_t g = 0; g < n_groups && !err; g++) {
		err = heaviest_first(w, items + at, groups[g].n, depth + 1, tmp);
		at += groups[g].n;
	}
	free(groups);
	return err;
}

/* Different stacks of the timeline may look alike in the file: one item for each that is seen. */
static void merge_alike(const struct speedscope *w, struct weights *weights)
{
	size_t kept = 0;

	for (size_t i = 1; i < weights->n; i++) {
		if (!cmp_by_stack(&weights->items[kept], &weights->items[i], (void *)w))
			weights->items[kept].weight += weights->items[i].weight;
		else
			weights->items[++kept] = weights->items[i];
	}
	if (weights->n)
		weights->n = kept + 1;
}

/* OS threads; of a log alone the capabilities too. */
static int collect_lanes(struct speedscope *w, struct weights *weights)
{
	int err = 0;

	for (size_t i = 0; i < w->views.n && !err; i++) {
		const struct lane_view *view = &w->views.v[i];
		uint32_t owner = w->n_targets > 1 ? view->target_no : 0;
		const struct ledger_row *rows;
		size_t n;

		if (view->kind != LANE_THREAD &&
		    (view->kind != LANE_CAPABILITY || !session__log_alone(w->tl)))
			continue;
		rows = view__rows(view, &n);
		for (size_t k = 0; k < n && !err; k++)
			if (timeline__stack(w->tl, rows[k].stack).n)
				err = weights__add(weights, owner, rows[k].stack,
						   view__weight(view, &rows[k], WEIGHT_WALL));
	}
	return err;
}

/* A report that GHC wrote has no lanes: its ticks, each worth the time between two. */
static int collect_centres(struct speedscope *w, struct weights *weights)
{
	const struct tl_target *t = timeline__target(w->tl, 0);
	int err = 0;

	for (size_t i = 0; t && i < t->n_cc_nodes && !err; i++)
		if (t->cc_nodes[i].ticks && t->cc_nodes[i].stack)
			err = weights__add(weights, 0, t->cc_nodes[i].stack,
					   t->cc_nodes[i].ticks * t->tick_ns);
	return err;
}

static int collect(struct speedscope *w, struct weights *weights)
{
	int err = collect_lanes(w, weights);

	if (!err && !w->views.n && session__log_alone(w->tl))
		err = collect_centres(w, weights);
	if (err)
		return err;
	weights__merge(weights);
	if (weights->n)
		qsort_r(weights->items, weights->n, sizeof(*weights->items), cmp_by_stack, w);
	merge_alike(w, weights);
	return 0;
}

static const char *title(const struct speedscope *w)
{
	if (!session__log_alone(w->tl))
		return "all threads";
	return w->views.n ? "all capabilities" : "all cost centres";
}

static void put_sample(const struct speedscope *w, const struct weighted *item, bool first)
{
	struct tl_stack stack = timeline__stack(w->tl, item->stack);
	bool comma = w->n_targets > 1;

	fputs_unlocked(first ? "[" : ",[", w->out);
	if (comma)
		put_u64(w->out, w->process_frame + item->owner);
	speedscope__put_stack(w, stack, comma);
	fputc_unlocked(']', w->out);
}

int speedscope__put_sum(struct speedscope *w)
{
	struct weights weights = {0};
	struct weighted *tmp = NULL;
	uint64_t total = 0;
	int err = collect(w, &weights);

	if (!err && weights.n) {
		tmp = calloc(weights.n, sizeof(*tmp));
		err = tmp ? heaviest_first(w, weights.items, weights.n, 0, tmp) : -ENOMEM;
		free(tmp);
	}
	if (err)
		goto out;
	for (size_t i = 0; i < weights.n; i++)
		total += weights.items[i].weight;
	speedscope__put_head(w, title(w), total);
	for (size_t i = 0; i < weights.n; i++)
		put_sample(w, &weights.items[i], !i);
	fputs("],\n\"weights\":[", w->out);
	for (size_t i = 0; i < weights.n; i++)
		fprintf(w->out, "%s%" PRIu64, i ? "," : "", weights.items[i].weight);
	fputs("]}", w->out);
out:
	weights__free(&weights);
	return err;
}
