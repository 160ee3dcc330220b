/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The lanes of all processes in one list.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "lanes.h"

/* The coarsest grain: every session keeps at least a few slices. */
#define MAX_GRAIN_NS (UINT64_C(1) << 40)

/* ── labels ──────────────────────────────────────────────────────────────────────────────── */

struct label_key {
	uint64_t tso;
	uint32_t target_no, pad;
};

struct view_label {
	UT_hash_handle hh;
	struct label_key key;
	const char *text;
};

const char *views__label(const struct views *views, uint32_t target_no, uint64_t tso)
{
	const struct label_key key = {.tso = tso, .target_no = target_no};
	const struct view_label *label;

	HASH_FIND(hh, views->labels, &key, sizeof(key), label);
	return label ? label->text : "";
}

static int add_label(struct views *views, const struct pic_lane *lane, uint32_t target_no)
{
	struct view_label *label;

	if (!lane->name || !*lane->name || *views__label(views, target_no, lane->tso))
		return 0;
	label = calloc(1, sizeof(*label));
	if (!label)
		return -ENOMEM;
	label->key = (struct label_key){.tso = lane->tso, .target_no = target_no};
	label->text = lane->name;
	return HASH_INSERT(views->labels, key, sizeof(label->key), label);
}

/* ── the list ────────────────────────────────────────────────────────────────────────────── */

static int add(struct views *views, const struct view *view)
{
	const struct pic_lane *lane = view->lane;
	int err = ARRAY_RESERVE(views->v, views->cap, views->n + 1, EXPORT_MAX_ENTRIES);

	if (err)
		return err;
	views->v[views->n++] = *view;
	/* Snapshots may reach slightly beyond the session's ends; extend the axis to them. */
	if (lane->n_slices) {
		views->start_ns = MIN(views->start_ns, lane->slices[0].start_ns);
		views->end_ns = MAX(views->end_ns, lane->slices[lane->n_slices - 1].end_ns);
	}
	return 0;
}

static int add_lanes(struct views *views, const struct pic_target *target, uint32_t target_no,
		     enum lane_kind kind)
{
	const struct pic_lanes *lanes = &target->lanes[kind],
			       *threads = &target->lanes[LANE_THREAD];
	uint64_t process_ns = 0;
	int err = 0;

	for (uint32_t i = 0; i < threads->n; i++)
		process_ns += lane__busy_ns(&threads->v[i]);
	for (uint32_t i = 0; !err && i < lanes->n; i++) {
		struct view view = {&lanes->v[i], target, target_no, i, 0, process_ns};

		if (kind == LANE_THREAD) {
			view.busy_ns = lane__busy_ns(view.lane);
		} else if (kind == LANE_HASKELL) {
			view.busy_ns = view.lane->states_ns[HS_RUNNING];
			err = add_label(views, view.lane, target_no);
		}
		/* most Haskell threads of a log have sums but no slices */
		if (!err && (kind != LANE_HASKELL || view.lane->n_slices))
			err = add(views, &view);
	}
	return err;
}

static int cmp_views(const void *pa, const void *pb)
{
	const struct view *a = pa, *b = pb;

	if (a->lane->kind != b->lane->kind)
		return a->lane->kind < b->lane->kind ? -1 : 1;
	if (a->lane->housekeeping != b->lane->housekeeping)
		return a->lane->housekeeping ? 1 : -1;
	if (a->process_ns != b->process_ns)
		return a->process_ns > b->process_ns ? -1 : 1;
	if (a->target_no != b->target_no)
		return a->target_no < b->target_no ? -1 : 1;
	if (a->busy_ns != b->busy_ns)
		return a->busy_ns > b->busy_ns ? -1 : 1;
	return (a->lane_no > b->lane_no) - (a->lane_no < b->lane_no);
}

int views__collect(const struct picture *pic, struct views *ret_views)
{
	const struct pic_session *session = picture__session(pic);
	struct views views = {.start_ns = session->start_ns,
			      .end_ns = MAX(session->end_ns, session->start_ns)};
	int err = 0;

	for (size_t t = 0; !err && t < picture__n_targets(pic); t++)
		for (unsigned kind = 0; !err && kind < LANE_KINDS; kind++)
			err = add_lanes(&views, picture__target(pic, t), (uint32_t)t,
					(enum lane_kind)kind);
	if (err) {
		views__free(&views);
		return err;
	}
	if (views.n)
		qsort(views.v, views.n, sizeof(*views.v), cmp_views);
	*ret_views = views;
	return 0;
}

void views__free(struct views *views)
{
	HASH_FREE(views->labels);
	free(views->v);
	memset(views, 0, sizeof(*views));
}

void views__keep(struct views *views, const struct export_opts *opts)
{
	size_t n = 0;

	for (size_t i = 0; i < views->n; i++)
		if (export__shows(opts, views->v[i].lane->kind))
			views->v[n++] = views->v[i];
	views->n = n;
}

void walk__merge(struct walk *w)
{
	const struct pic_lane *lane = w->lane;
	uint64_t start = w->at_ns;
	struct merge m;

	merge__begin(&m, lane->kind, start);
	for (; w->i < lane->n_slices && w->at_ns - start < w->grain_ns; w->i++) {
		const struct pic_slice *s = &lane->slices[w->i];

		if (s->end_ns <= w->at_ns)
			continue;
		/* stop at a gap: no slice covers that time */
		if (s->start_ns > w->at_ns || s->end_ns - w->at_ns >= w->grain_ns)
			break;
		merge__add(&m, s);
		w->at_ns = s->end_ns;
	}
	w->n_merged = merge__end(&m, w->merged);
	w->next = 0;
}

void views__limit(struct views *views, const struct picture *pic, uint64_t budget,
		  uint64_t (*cost)(const struct picture *pic, enum lane_kind kind,
				   const struct pic_slice *slice),
		  const char *format, const char *but)
{
	uint64_t grain = 0;

	while (grain < MAX_GRAIN_NS) {
		uint64_t sum = 0;

		for (size_t i = 0; i < views->n && sum <= budget; i++) {
			struct walk walk = {.lane = views->v[i].lane, .grain_ns = grain};
			struct pic_slice slice;

			while (walk__next(&walk, &slice))
				sum += cost(pic, walk.lane->kind, &slice);
		}
		if (sum <= budget)
			break;
		grain = grain ? grain * 2 : 1024;
	}
	views->grain_ns = grain;
	if (grain)
		log_warn("%s: too many slices for a file that viewers can open: those under %s are "
			 "merged%s",
			 format, human__duration(grain).s, but);
}

/* ── names ───────────────────────────────────────────────────────────────────────────────── */

struct view_name views__thread(const struct views *views, uint32_t target_no, uint64_t tso)
{
	const char *label = views__label(views, target_no, tso);
	struct view_name out;

	snprintf(out.s, sizeof(out.s), "Haskell thread %" PRIu64 "%s%.180s%s", tso,
		 *label ? " (" : "", label, *label ? ")" : "");
	return out;
}

struct view_name view__name(const struct view *view, bool several)
{
	const struct pic_lane *lane = view->lane;
	const char *comm = or_empty(view->target->comm), *name = or_empty(lane->name);
	struct view_name out;
	char process[64] = "";

	if (several && lane->kind == LANE_THREAD)
		snprintf(process, sizeof(process), " (%s)", comm);
	else if (several)
		snprintf(process, sizeof(process), " (%.32s, pid %d)", comm,
			 (int)view->target->pid);
	if (lane->kind == LANE_THREAD)
		snprintf(out.s, sizeof(out.s), "%d %.16s%s", (int)lane->tid, name, process);
	else if (lane->kind == LANE_CAPABILITY)
		snprintf(out.s, sizeof(out.s), "capability %" PRIu32 "%s", lane->cap, process);
	else
		snprintf(out.s, sizeof(out.s), "Haskell thread %" PRIu64 "%s%.64s%s%s%s", lane->tso,
			 *name ? " (" : "", name, *name ? ")" : "", lane->bound ? ", bound" : "",
			 process);
	return out;
}
