/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sums by stack, the heaviest branch first: speedscope's first profiles, of all threads' CPU time
 * and wall time and of allocation; and one for each kind of lanes, in which each lane is a frame
 * and its states are the frames below it, so that these have the report's totals.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "speedscope_priv.h"

/* The part of the file for each kind of lanes; lanes beyond it share one frame. */
#define MAX_BYTES (UINT64_C(16) << 20)

/* The contents of one profile. An owner is a process, or a lane's number combined with a state. */
struct profile {
	struct speedscope *w;
	struct sums *sums;
	enum export_weight weight;
	bool of_lanes, first;
	enum lane_kind kind;
};

/* ── lanes as frames ─────────────────────────────────────────────────────────────────────── */

static const struct {
	const char *profile, *others, *file;
} kinds[LANE_KINDS] = {
	[LANE_CAPABILITY] = {"sums of capabilities", "[other capabilities]", "capabilities"},
	[LANE_THREAD] = {"sums of OS threads", "[other OS threads]", "OS threads"},
	[LANE_HASKELL] = {"sums of Haskell threads", "[other Haskell threads]", "Haskell threads"},
};

static uint64_t row_cost(const struct picture *pic, const struct pic_row *row)
{
	return 40 + 6 * (uint64_t)picture__stack(pic, row->stack).n;
}

const struct pic_lane *speedscope__undrawn(const struct speedscope *w, struct undrawn *at)
{
	for (; w->lane_frames[LANE_HASKELL].n && at->target < w->n_targets; at->target++) {
		const struct pic_lanes *lanes =
			&picture__target(w->pic, at->target)->lanes[LANE_HASKELL];

		while (at->lane < lanes->n) {
			const struct pic_lane *lane = &lanes->v[at->lane++];

			if (!lane->n_slices && lane->n_rows)
				return lane;
		}
		at->lane = 0;
	}
	return NULL;
}

void speedscope__number_lanes(struct speedscope *w)
{
	uint64_t cost[LANE_KINDS] = {0};
	struct undrawn at = {0};

	for (size_t i = 0; i < w->views.n; i++) {
		const struct pic_lane *lane = w->views.v[i].lane;
		struct lane_frames *f = &w->lane_frames[lane->kind];

		if (!f->n)
			f->first = i;
		for (size_t k = 0; k < lane->n_rows; k++)
			cost[lane->kind] += row_cost(w->pic, &lane->rows[k]);
		if (cost[lane->kind] <= MAX_BYTES || !f->n)
			f->n++;
		else
			f->others = 1;
	}
	if (speedscope__undrawn(w, &at))
		w->lane_frames[LANE_HASKELL].others = 1;
	for (unsigned k = 0; k < LANE_KINDS; k++) {
		w->lane_frames[k].frame = w->next_frame;
		w->next_frame += w->lane_frames[k].n + w->lane_frames[k].others;
	}
}

uint32_t speedscope__put_lane_frames(struct speedscope *w)
{
	uint32_t n = 0;

	for (unsigned k = 0; k < LANE_KINDS; k++) {
		const struct lane_frames *f = &w->lane_frames[k];

		for (uint32_t i = 0; i < f->n + f->others; i++, n++) {
			const struct view *view = &w->views.v[f->first + i];

			fputs(",\n{\"name\":", w->out);
			json__put_string(w->out, i < f->n ? view__name(view, w->n_targets > 1).s
							  : kinds[k].others);
			fprintf(w->out, ",\"file\":\"%s\"}", kinds[k].file);
		}
	}
	return n;
}

/* no: the lane's frame, counted from the kind's first one. */
static int collect_lane(struct profile *p, const struct pic_lane *lane, uint32_t no)
{
	int err = 0;

	for (size_t k = 0; !err && k < lane->n_rows; k++) {
		const struct pic_row *row = &lane->rows[k];
		const struct pic_slice slice = {.state = row->state, .stack = row->stack};

		if (!slice__is_gap(p->kind, &slice))
			err = sums__add(p->sums, &(struct sum){no * LANE_STATES + row->state,
							       row->stack,
							       {[WEIGHT_WALL] = row->ns}});
	}
	return err;
}

static int collect_lanes(struct profile *p)
{
	const struct lane_frames *f = &p->w->lane_frames[p->kind];
	const struct pic_lane *lane;
	struct undrawn at = {0};
	int err = 0;

	for (size_t i = f->first; !err && i < p->w->views.n; i++) {
		lane = p->w->views.v[i].lane;
		if (lane->kind != p->kind)
			break;
		err = collect_lane(p, lane, (uint32_t)MIN(i - f->first, (size_t)f->n));
	}
	while (!err && p->kind == LANE_HASKELL && (lane = speedscope__undrawn(p->w, &at)))
		err = collect_lane(p, lane, f->n);
	return err;
}

/* ── the heaviest first ──────────────────────────────────────────────────────────────────── */

/* Neighbouring items that agree in all frames above some depth. */
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

/* The key that distinguishes items at a depth: first the owner, then frame by frame; 0: the stack
 * ended. */
static uint64_t key_at(const struct profile *p, const struct sum *item, uint32_t depth)
{
	struct pic_stack stack;

	if (!depth)
		return p->of_lanes ? item->owner / LANE_STATES : item->owner;
	if (p->of_lanes && !--depth)
		return item->owner % LANE_STATES;
	stack = picture__stack(p->w->pic, item->stack);
	return depth <= stack.n ? (uint64_t)p->w->map[stack.frames[depth - 1]] + 1 : 0;
}

static size_t group_end(const struct profile *p, const struct sum *items, size_t start, size_t n,
			uint32_t depth)
{
	uint64_t key = key_at(p, &items[start], depth);
	size_t end = start + 1;

	while (end < n && key_at(p, &items[end], depth) == key)
		end++;
	return end;
}

/*
 * Reorders sorted items so that at every depth the heaviest branch comes first: the profile then
 * reads like a flame graph as soon as it opens. tmp has room for n items. Recursion is as deep as
 * stacks branch, and the picture caps their depth.
 */
static int heaviest_first(const struct profile *p, struct sum *items, size_t n, uint32_t depth,
			  struct sum *tmp)
{
	struct group *groups;
	size_t n_groups = 0, at = 0;
	int err = 0;

	if (n < 2)
		return 0;
	/* Descend to where they differ. Items are distinct stacks, so they do. */
	while (group_end(p, items, 0, n, depth) == n)
		depth++;
	for (size_t i = 0; i < n; i = group_end(p, items, i, n, depth))
		n_groups++;
	groups = calloc(n_groups, sizeof(*groups));
	if (!groups)
		return -ENOMEM;
	for (size_t i = 0, g = 0; i < n; g++) {
		groups[g].start = i;
		groups[g].n = group_end(p, items, i, n, depth) - i;
		for (size_t k = 0; k < groups[g].n; k++)
			groups[g].weight += items[i + k].by[p->weight];
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
		err = heaviest_first(p, items + at, groups[g].n, depth + 1, tmp);
		at += groups[g].n;
	}
	free(groups);
	return err;
}

/* ── writing ─────────────────────────────────────────────────────────────────────────────── */

static void put_sample(const struct profile *p, const struct sum *item, bool first)
{
	struct speedscope *w = p->w;
	uint32_t lane = item->owner / LANE_STATES, state = item->owner % LANE_STATES;
	bool top = p->of_lanes || w->n_targets > 1;

	fputs_unlocked(first ? "[" : ",[", w->out);
	if (p->of_lanes)
		fprintf(w->out, "%" PRIu32 ",%" PRIu32, w->lane_frames[p->kind].frame + lane,
			w->state_frames[p->kind][state]);
	else if (top)
		put_u64(w->out, w->process_frame + item->owner);
	speedscope__put_stack(w,
			      p->of_lanes ? speedscope__below_state(w, item->stack)
					  : picture__stack(w->pic, item->stack),
			      top);
	fputc_unlocked(']', w->out);
}

static int put_profile(const struct profile *p, const char *title)
{
	struct speedscope *w = p->w;
	struct sums *sums = p->sums;
	uint64_t total = 0;
	struct sum *tmp;
	int err;

	sums__arrange(sums, w->pic, w->map, p->weight, p->of_lanes);
	if (p->of_lanes && !sums->n)
		return 0;
	tmp = calloc(sums->n + 1, sizeof(*tmp));
	if (!tmp)
		return -ENOMEM;
	err = heaviest_first(p, sums->v, sums->n, 0, tmp);
	free(tmp);
	if (err)
		return err;
	for (size_t i = 0; i < sums->n; i++)
		total += sums->v[i].by[p->weight];
	fputs(p->first ? "" : ",\n", w->out);
	speedscope__put_head(w, title, p->weight == WEIGHT_ALLOC ? "bytes" : "nanoseconds", total);
	for (size_t i = 0; i < sums->n; i++)
		put_sample(p, &sums->v[i], !i);
	fputs("],\n\"weights\":[", w->out);
	for (size_t i = 0; i < sums->n; i++)
		fprintf(w->out, "%s%" PRIu64, i ? "," : "", sums->v[i].by[p->weight]);
	fputs("]}", w->out);
	return 0;
}

/* Writes a profile of all sums that have this weight. *first: no profile has been written yet. */
static int put_all(struct speedscope *w, enum export_weight weight, const char *what, bool *first)
{
	struct sums sums = {0};
	struct profile p = {.w = w, .sums = &sums, .weight = weight, .first = *first};
	char title[96];
	uint64_t any = 0;
	int err = 0;

	for (size_t i = 0; !err && i < w->sums.n; i++) {
		any |= w->sums.v[i].by[weight];
		err = sums__add(&sums, &w->sums.v[i]);
	}
	snprintf(title, sizeof(title), "%s, %s", what, w->sum_title);
	/* the one of wall time is always written */
	if (!err && (any || weight == WEIGHT_WALL)) {
		err = put_profile(&p, title);
		*first = false;
	}
	sums__free(&sums);
	return err;
}

int speedscope__put_sums(struct speedscope *w)
{
	bool first = true, alloc_first = w->weight == WEIGHT_ALLOC;
	int err = alloc_first ? put_all(w, WEIGHT_ALLOC, "allocation", &first) : 0;

	if (!err)
		err = put_all(w, WEIGHT_CPU, "CPU time", &first);
	if (!err)
		err = put_all(w, WEIGHT_WALL, "wall time", &first);
	if (!err && !alloc_first)
		err = put_all(w, WEIGHT_ALLOC, "allocation", &first);
	for (unsigned k = 0; !err && k < LANE_KINDS; k++) {
		struct sums sums = {0};
		struct profile p = {.w = w,
				    .sums = &sums,
				    .weight = WEIGHT_WALL,
				    .of_lanes = true,
				    .kind = (enum lane_kind)k};

		if (!w->lane_frames[k].n)
			continue;
		err = collect_lanes(&p);
		if (!err)
			err = put_profile(&p, kinds[k].profile);
		sums__free(&sums);
	}
	return err;
}
