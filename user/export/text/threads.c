/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The text report's table of OS threads: where each one's time went, those that used or wanted a
 * CPU first; and what they waited in or for. Threads that slept all the time share one row.
 */
#include <stdlib.h>
#include <string.h>

#include "export/lanes.h"
#include "text_priv.h"

#define REASONS	      6
#define REASONS_BRIEF 3
#define REASON_SHOWN  1.0 /* percent of the session */

/* Busiest first, sleeping ones last. */
static int by_busy(const void *pa, const void *pb)
{
	const struct pic_lane *a = *(const struct pic_lane *const *)pa;
	const struct pic_lane *b = *(const struct pic_lane *const *)pb;
	uint64_t busy_a = lane__busy_ns(a), busy_b = lane__busy_ns(b);

	if (a->asleep != b->asleep)
		return a->asleep ? 1 : -1;
	if (busy_a != busy_b)
		return busy_a < busy_b ? 1 : -1;
	return (a->tid > b->tid) - (a->tid < b->tid);
}

/* ── what they waited in or for ──────────────────────────────────────────────────────────── */

/* True for waits that have their own column in the table. */
static bool is_column(const char *reason)
{
	for (unsigned s = 0; s < ST_MAX; s++)
		if (!state__on_cpu(LANE_THREAD, s) && !strcmp(reason, state__title(LANE_THREAD, s)))
			return true;
	return !strcmp(reason, "memory (page fault)");
}

struct reason {
	const char *text;
	uint64_t ns;
	size_t threads;
	pid_t tid; /* the last thread that had it */
};

static int by_ns(const void *pa, const void *pb)
{
	const struct reason *a = pa, *b = pb;

	if (a->ns != b->ns)
		return a->ns < b->ns ? 1 : -1;
	return strcmp(a->text, b->text);
}

/* Adds the thread's reasons to the n collected so far; returns their number afterwards. */
static size_t add_reasons(struct reason *v, size_t n, const struct pic_lane *lane)
{
	/* where a thread without Haskell sleeps is of no interest */
	if (lane->states_ns[ST_FOREIGN_BLOCKED] > (lane->end_ns - lane->start_ns) / 2)
		return n;
	for (size_t k = 0; k < lane->n_off_cpu; k++) {
		const struct pic_off_cpu *off = &lane->off_cpu[k];
		size_t i = 0;

		if (is_column(off->reason))
			continue;
		while (i < n && strcmp(v[i].text, off->reason) != 0)
			i++;
		if (i == n)
			v[n++] = (struct reason){.text = off->reason};
		v[i].ns += off->ns;
		v[i].threads++;
		v[i].tid = lane->tid;
	}
	return n;
}

int text__waits(const struct text *t, const struct pic_lane *const *lanes, size_t awake)
{
	size_t max = 0, n = 0;
	struct reason *v;
	struct buf text;
	int err = 0;

	for (size_t i = 0; i < awake; i++)
		max += lanes[i]->n_off_cpu;
	v = calloc(max + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < awake; i++)
		n = add_reasons(v, n, lanes[i]);
	qsort(v, n, sizeof(*v), by_ns);
	buf__init(&text, 1 << 20);
	for (size_t i = 0; i < MIN(n, (size_t)(t->brief ? REASONS_BRIEF : REASONS)); i++) {
		if (human__percent(v[i].ns, t->wall_ns) < REASON_SHOWN)
			break;
		buf__addf(&text, "%s%s (%s", i ? ", " : "", v[i].text, human__duration(v[i].ns).s);
		if (v[i].threads > 1)
			buf__addf(&text, ", %zu threads", v[i].threads);
		else if (v[i].tid)
			buf__addf(&text, ", %d", v[i].tid);
		buf__addf(&text, ")");
	}
	if (text.len)
		err = text__paragraph(t, "  waited in or for: ", text.data);
	buf__free(&text);
	free(v);
	return err;
}

int text__order_threads(const struct pic_target *target, const struct pic_lane ***ret_v,
			size_t *ret_awake)
{
	const struct pic_lanes *lanes = &target->lanes[LANE_THREAD];
	const struct pic_lane **v = calloc(lanes->n + 1, sizeof(struct pic_lane *));

	if (!v)
		return -ENOMEM;
	*ret_awake = 0;
	for (size_t i = 0; i < lanes->n; i++) {
		v[i] = &lanes->v[i];
		*ret_awake += !v[i]->asleep;
	}
	qsort(v, lanes->n, sizeof(struct pic_lane *), by_busy);
	*ret_v = v;
	return 0;
}

int text__threads(const struct text *t)
{
	const struct pic_lanes *lanes = &t->target->lanes[LANE_THREAD];
	size_t awake = 0, merged = 0;
	const struct pic_lane **v;
	int err;

	if (!lanes->n || !export__shows(t->opts, LANE_THREAD))
		return 0;
	err = text__order_threads(t->target, &v, &awake);
	if (err)
		return err;
	for (size_t i = 0; i < lanes->n; i++)
		merged += v[i]->merged_ns != 0;
	/* a shared row for a single thread gains nothing */
	if (t->opts->verbose || awake + 1 >= lanes->n)
		awake = lanes->n;
	err = text__lanes(t, LANE_THREAD, v, lanes->n, awake);
	if (!err)
		err = text__waits(t, v, awake);
	free(v);
	if (!err && merged)
		fprintf(t->out,
			"  short slices of %zu %s were merged in the profiles; these shares are "
			"exact\n",
			merged, plural(merged, "thread", "threads"));
	return err;
}
