/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Accounts added up by stack.
 */
#include <stdlib.h>
#include <string.h>

#include "sums.h"

void sums__free(struct sums *sums)
{
	free(sums->v);
	memset(sums, 0, sizeof(*sums));
}

int sums__add(struct sums *sums, const struct sum *sum)
{
	int err = ARRAY_RESERVE(sums->v, sums->cap, sums->n + 1, EXPORT_MAX_ENTRIES);

	if (!err)
		sums->v[sums->n++] = *sum;
	return err;
}

/* Adds a lane's account, except rows whose weights are all 0. */
static int add_rows(struct sums *sums, const struct pic_lane *lane, uint32_t owner, bool by_state)
{
	int err = 0;

	for (size_t i = 0; !err && i < lane->n_rows; i++) {
		const struct pic_row *row = &lane->rows[i];
		const struct sum sum = {
			.owner = by_state ? owner * LANE_STATES + row->state : owner,
			.stack = row->stack,
			.by = {[WEIGHT_WALL] = state__is_idle(lane->kind, row->state) ? 0 : row->ns,
			       [WEIGHT_CPU] = row->on_cpu ? row->ns : 0,
			       [WEIGHT_SAMPLES] = row->samples},
		};

		if (sum.by[WEIGHT_WALL] || sum.by[WEIGHT_CPU] || sum.by[WEIGHT_SAMPLES])
			err = sums__add(sums, &sum);
	}
	return err;
}

static int add_centres(struct sums *sums, const struct pic_target *target, uint32_t owner)
{
	int err = 0;

	for (size_t i = 0; !err && i < target->n_cc_nodes; i++) {
		const struct pic_cc_node *node = &target->cc_nodes[i];
		uint64_t ns = node->ticks * target->tick_ns;
		const struct sum sum = {owner, node->stack, {ns, ns, node->ticks, 0}};

		if (node->ticks && node->stack)
			err = sums__add(sums, &sum);
	}
	return err;
}

/* Allocation belongs to no lane: which OS threads ran the Haskell threads is not recorded here. */
static int add_allocated(struct sums *sums, const struct pic_alloc *alloc, uint32_t owner)
{
	int err = 0;

	for (size_t i = 0; !err && i < alloc->n_rows; i++) {
		const struct sum sum = {
			.owner = owner,
			.stack = alloc->rows[i].stack,
			.by = {[WEIGHT_ALLOC] = alloc->rows[i].bytes},
		};

		err = sums__add(sums, &sum);
	}
	return err;
}

static int cmp_ids(const void *pa, const void *pb, void *arg)
{
	const struct sum *a = pa, *b = pb;

	(void)arg;
	if (a->owner != b->owner)
		return a->owner < b->owner ? -1 : 1;
	return (a->stack > b->stack) - (a->stack < b->stack);
}

static void sort_and_merge(struct sums *sums, int (*cmp)(const void *a, const void *b, void *arg),
			   void *arg)
{
	size_t kept = 0;

	if (!sums->n)
		return;
	qsort_r(sums->v, sums->n, sizeof(*sums->v), cmp, arg);
	for (size_t i = 1; i < sums->n; i++) {
		if (cmp(&sums->v[kept], &sums->v[i], arg)) {
			sums->v[++kept] = sums->v[i];
			continue;
		}
		for (unsigned w = 0; w < WEIGHTS; w++)
			sums->v[kept].by[w] += sums->v[i].by[w];
	}
	sums->n = kept + 1;
}

void sums__merge(struct sums *sums)
{
	sort_and_merge(sums, cmp_ids, NULL);
}

/* The owner of a target's sums that belong to no lane. */
static uint32_t owner_of_target(const struct views *views, size_t t, enum sums_owner owner)
{
	if (owner == SUMS_BY_TARGET)
		return (uint32_t)t;
	return (uint32_t)((views->n + t) * (owner == SUMS_BY_STATE ? LANE_STATES : 1));
}

bool state__in_safe_call(enum lane_kind kind, unsigned state)
{
	return kind == LANE_THREAD && (state == ST_SAFE_CALL_CPU || state == ST_SAFE_CALL_BLOCKED ||
				       state == ST_SAFE_CALL);
}

bool sums__counts(const struct view *view, bool log_alone)
{
	enum lane_kind kind = view->lane->kind;

	return kind == LANE_THREAD ||
	       (kind == LANE_CAPABILITY && (log_alone || !view->target->lanes[LANE_THREAD].n));
}

int sums__collect(const struct picture *pic, const struct views *views, enum sums_owner owner,
		  struct sums *ret_sums, const char **ret_title)
{
	bool log_alone = session__log_alone(pic);
	struct sums sums = {0};
	int err = 0;

	*ret_title = !log_alone ? "all threads"
		     : views->n ? "all capabilities"
				: "all cost centres";
	for (size_t i = 0; !err && i < views->n; i++) {
		const struct view *view = &views->v[i];

		if (!sums__counts(view, log_alone))
			continue;
		err = add_rows(&sums, view->lane,
			       owner == SUMS_BY_TARGET ? view->target_no : (uint32_t)i,
			       owner == SUMS_BY_STATE);
	}
	for (size_t t = 0; !err && t < picture__n_targets(pic); t++) {
		const struct pic_target *target = picture__target(pic, t);
		uint32_t no = owner_of_target(views, t, owner);

		if (log_alone && !target->lanes[LANE_CAPABILITY].n)
			err = add_centres(&sums, target, no);
		if (!err)
			err = add_allocated(&sums, &target->alloc, no);
	}
	if (err) {
		sums__free(&sums);
		return err;
	}
	sums__merge(&sums);
	*ret_sums = sums;
	return 0;
}

struct arrangement {
	const struct picture *pic;
	const uint32_t *map;
};

static int cmp_stacks(const void *pa, const void *pb, void *arg)
{
	const struct sum *a = pa, *b = pb;
	const struct arrangement *by = arg;

	if (a->owner != b->owner)
		return a->owner < b->owner ? -1 : 1;
	return stacks__cmp(picture__stack(by->pic, a->stack), picture__stack(by->pic, b->stack),
			   by->map);
}

void sums__arrange(struct sums *sums, const struct picture *pic, const uint32_t *map,
		   enum export_weight weight, bool without_stack)
{
	struct arrangement by = {pic, map};
	size_t n = 0;

	for (size_t i = 0; i < sums->n; i++)
		if (sums->v[i].by[weight] &&
		    (without_stack || picture__stack(pic, sums->v[i].stack).n))
			sums->v[n++] = sums->v[i];
	sums->n = n;
	sort_and_merge(sums, cmp_stacks, &by);
}

bool session__log_alone(const struct picture *pic)
{
	const char *mode = picture__session(pic)->mode;

	return mode && !strcmp(mode, "eventlog");
}
