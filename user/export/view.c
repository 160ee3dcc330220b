/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lanes of all kinds in one shape.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "view_each.h"

/* Coarser than this no lane is: a session has at least some stretches left. */
#define MAX_GRAIN_NS (UINT64_C(1) << 40)

/* ── states ──────────────────────────────────────────────────────────────────────────────── */

const char *view__state_name(enum lane_kind kind, unsigned state)
{
	switch (kind) {
	case LANE_CAPABILITY:
		return cap_state__name((enum tl_cap_state)state);
	case LANE_HASKELL:
		return tso_state__name((enum tl_tso_state)state);
	default:
		return state__name((enum tl_state)state);
	}
}

const char *view__state_title(enum lane_kind kind, unsigned state)
{
	switch (kind) {
	case LANE_CAPABILITY:
		return cap_state__title((enum tl_cap_state)state);
	case LANE_HASKELL:
		return tso_state__title((enum tl_tso_state)state);
	default:
		return state__title((enum tl_state)state);
	}
}

bool view__on_cpu(enum lane_kind kind, unsigned state)
{
	switch (kind) {
	case LANE_CAPABILITY:
		return state == CS_HASKELL || state == CS_GC || state == CS_RTS;
	case LANE_HASKELL:
		return state == HS_RUNNING;
	default:
		return state__on_cpu((enum tl_state)state);
	}
}

unsigned view__states(enum lane_kind kind)
{
	return kind == LANE_CAPABILITY ? CS_MAX : kind == LANE_HASKELL ? HS_MAX : ST_MAX;
}

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

static int add_label(struct views *views, const struct tl_tso_lane *lane, uint32_t target_no)
{
	struct view_label *label;

	if (!lane->label || !*lane->label || *views__label(views, target_no, lane->tso))
		return 0;
	label = calloc(1, sizeof(*label));
	if (!label)
		return -ENOMEM;
	label->key = (struct label_key){.tso = lane->tso, .target_no = target_no};
	label->text = lane->label;
	HASH_ADD(hh, views->labels, key, sizeof(label->key), label);
	if (!label->hh.tbl) {
		free(label);
		return -ENOMEM;
	}
	return 0;
}

/* ── the list ────────────────────────────────────────────────────────────────────────────── */

/* What a thread did, or was kept from doing: not that it slept, or waited for the world. */
static uint64_t busy_of(const struct tl_lane *lane)
{
	uint64_t sum = 0;

	for (int s = 0; s < ST_MAX; s++)
		if (s != ST_IDLE && s != ST_FOREIGN_BLOCKED && s != ST_SAFE_CALL_BLOCKED &&
		    s != ST_RTS_BLOCKED)
			sum += lane->states_ns[s];
	return sum;
}

static int add(struct views *views, const struct lane_view *view)
{
	int err = array__reserve((void **)&views->v, &views->cap, views->n + 1, EXPORT_MAX_ENTRIES,
				 sizeof(*views->v));

	if (!err)
		views->v[views->n++] = *view;
	return err;
}

static int add_target(struct views *views, const struct tl_target *target, uint32_t no,
		      unsigned lanes)
{
	struct lane_view view = {.target = target, .target_no = no};
	int err = 0;

	view.kind = LANE_CAPABILITY;
	for (size_t i = 0; !err && lanes & EXPORT_LANES_CAPABILITY && i < target->n_cap_lanes;
	     i++) {
		view.cap = &target->cap_lanes[i];
		view.lane_no = (uint32_t)i;
		view.n = view.cap->n_stretches;
		err = add(views, &view);
	}
	view.cap = NULL;
	view.kind = LANE_THREAD;
	for (size_t i = 0; !err && lanes & EXPORT_LANES_THREAD && i < target->n_lanes; i++) {
		view.thread = &target->lanes[i];
		view.lane_no = (uint32_t)i;
		view.n = view.thread->n_stretches;
		view.busy_ns = busy_of(view.thread);
		err = add(views, &view);
	}
	view.thread = NULL;
	view.kind = LANE_HASKELL;
	for (size_t i = 0; !err && lanes & EXPORT_LANES_HASKELL && i < target->n_tso_lanes; i++) {
		view.tso = &target->tso_lanes[i];
		view.lane_no = (uint32_t)i;
		view.n = view.tso->n_stretches;
		view.busy_ns = view.tso->states_ns[HS_RUNNING];
		/* of most threads of a log there are sums only */
		if (view.n)
			err = add(views, &view);
		if (!err)
			err = add_label(views, view.tso, no);
	}
	return err;
}

static int cmp_views(const void *pa, const void *pb)
{
	const struct lane_view *a = pa, *b = pb;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->kind != LANE_CAPABILITY && a->busy_ns != b->busy_ns)
		return a->busy_ns > b->busy_ns ? -1 : 1;
	if (a->target_no != b->target_no)
		return a->target_no < b->target_no ? -1 : 1;
	return (a->lane_no > b->lane_no) - (a->lane_no < b->lane_no);
}

/* Snapshots may reach beyond the session's own ends by a little; the axis then does too. */
static void widen(void *ctx, const struct span *span)
{
	struct views *views = ctx;

	views->start_ns = MIN(views->start_ns, span->start_ns);
	views->end_ns = MAX(views->end_ns, span->end_ns);
}

int views__collect(const struct timeline *tl, unsigned lanes, struct views *ret_views)
{
	const struct tl_session *session = timeline__session(tl);
	struct views views = {.start_ns = session->start_ns, .end_ns = session->end_ns};
	int err = 0;

	views.end_ns = MAX(views.end_ns, views.start_ns);
	for (size_t t = 0; !err && t < timeline__n_targets(tl); t++)
		err = add_target(&views, timeline__target(tl, t), (uint32_t)t, lanes ? lanes : ~0U);
	if (err) {
		views__free(&views);
		return err;
	}
	if (views.n)
		qsort(views.v, views.n, sizeof(*views.v), cmp_views);
	for (size_t i = 0; i < views.n; i++)
		view__each(&views.v[i], 0, widen, &views);
	*ret_views = views;
	return 0;
}

void views__free(struct views *views)
{
	struct view_label *label, *next;

	HASH_ITER (hh, views->labels, label, next) {
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the analyzer loses track of uthash */
		HASH_DEL(views->labels, label);
		free(label);
	}
	free(views->v);
	memset(views, 0, sizeof(*views));
}

/* ── accounts ────────────────────────────────────────────────────────────────────────────── */

const struct ledger_row *view__rows(const struct lane_view *view, size_t *ret_n)
{
	switch (view->kind) {
	case LANE_CAPABILITY:
		*ret_n = view->cap->n_rows;
		return view->cap->rows;
	case LANE_HASKELL:
		*ret_n = view->tso->n_rows;
		return view->tso->rows;
	default:
		*ret_n = view->thread->n_rows;
		return view->thread->rows;
	}
}

bool view__is_idle(enum lane_kind kind, unsigned state)
{
	switch (kind) {
	case LANE_CAPABILITY:
		return state == CS_IDLE || state == CS_DISABLED;
	case LANE_HASKELL:
		return false;
	default:
		return state == ST_IDLE;
	}
}

uint64_t view__weight(const struct lane_view *view, const struct ledger_row *row,
		      enum export_weight weight)
{
	if (weight == WEIGHT_SAMPLES)
		return row->samples;
	if (weight == WEIGHT_CPU)
		return row->on_cpu ? row->ns : 0;
	return view__is_idle(view->kind, row->state) ? 0 : row->ns;
}

/* ── stretches ───────────────────────────────────────────────────────────────────────────── */

struct bill {
	const struct timeline *tl;
	uint64_t (*cost)(const struct timeline *tl, const struct span *span);
	uint64_t sum;
};

static void charge(void *ctx, const struct span *span)
{
	struct bill *bill = ctx;

	bill->sum += bill->cost(bill->tl, span);
}

uint64_t views__grain(const struct timeline *tl, const struct views *views, uint64_t budget,
		      uint64_t (*cost)(const struct timeline *tl, const struct span *span))
{
	uint64_t grain = 0;

	while (grain < MAX_GRAIN_NS) {
		struct bill bill = {.tl = tl, .cost = cost};

		for (size_t i = 0; i < views->n && bill.sum <= budget; i++)
			view__each(&views->v[i], grain, charge, &bill);
		if (bill.sum <= budget)
			break;
		grain = grain ? grain * 2 : 1024;
	}
	return grain;
}

/* ── names ───────────────────────────────────────────────────────────────────────────────── */

static const char *text_or_empty(const char *s)
{
	return s ? s : "";
}

void view__name(const struct lane_view *view, bool several, char *out, size_t size)
{
	const char *comm = text_or_empty(view->target->comm), *label;
	int pid = (int)view->target->pid;
	char behind[64] = "";

	if (view->kind == LANE_THREAD) {
		if (several)
			snprintf(behind, sizeof(behind), " (%s)", comm);
		snprintf(out, size, "%d %.16s%s", (int)view->thread->tid, view->thread->name,
			 behind);
		return;
	}
	if (several)
		snprintf(behind, sizeof(behind), " (%.32s, pid %d)", comm, pid);
	if (view->kind == LANE_CAPABILITY) {
		snprintf(out, size, "capability %" PRIu32 "%s", view->cap->no, behind);
		return;
	}
	label = text_or_empty(view->tso->label);
	snprintf(out, size, "thread %" PRIu64 "%s%.64s%s%s", view->tso->tso, *label ? " " : "",
		 label, view->tso->bound ? ", bound" : "", behind);
}
