/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "samples.h"

#include <stdlib.h>
#include <string.h>

#include "../sums.h"
#include "parts.h"

struct collecting {
	const struct picture *pic;
	const struct pic_target *target;
	struct dict *dict;
	int32_t mapping; /* of the target's executable; 0: no sample yet */
	struct otlp_samples samples;
	uint64_t bytes; /* the maximum size of the samples */
	uint64_t most;	/* the limit for samples and dictionary */
};

/* A sample of one value: its stack, five attributes, the value, and their tags. */
#define SAMPLE_BYTES 50

/* ── one sample ──────────────────────────────────────────────────────────────────────────── */

static int by_number(const void *a, const void *b)
{
	return (*(const int32_t *)a > *(const int32_t *)b) -
	       (*(const int32_t *)a < *(const int32_t *)b);
}

static bool has_value(const int64_t *values)
{
	bool has = false;

	for (size_t i = 0; i < OTLP_TYPES; i++)
		has |= values[i] != 0;
	return has;
}

static int add(struct collecting *c, uint32_t stack, const int32_t *attributes, size_t n,
	       const int64_t *values)
{
	struct otlp_samples *all = &c->samples;
	struct otlp_sample *s;
	int err = ARRAY_RESERVE(all->v, all->cap, all->n + 1, EXPORT_MAX_ENTRIES);
	if (err)
		return err;
	if (!c->mapping)
		c->mapping = dict__mapping(c->dict, c->target->exe, c->target->build_id);
	s = &all->v[all->n++];
	*s = (struct otlp_sample){.stack = dict__stack(c->dict, stack, c->mapping,
						       path__base(or_empty(c->target->exe)))};
	for (size_t i = 0; i < n; i++)
		s->attributes[i] = attributes[i];
	/* so that equal sets compare equal */
	if (n)
		qsort(s->attributes, n, sizeof(*s->attributes), by_number);
	memcpy(s->values, values, sizeof(s->values));
	for (size_t i = 0; i < OTLP_TYPES; i++)
		c->bytes += values[i] ? SAMPLE_BYTES : 0;
	return 0;
}

static bool has_room(const struct collecting *c)
{
	return !c->samples.n || c->bytes + dict__bytes(c->dict) < c->most;
}

static int add_part(struct collecting *c, const struct view *view, const struct part *part)
{
	const struct pic_lane *lane = view->lane;
	const struct pic_row *row = part->row;
	bool idle = state__is_idle(lane->kind, row->state);
	const int64_t ns = (int64_t)part->ns;
	const int64_t values[OTLP_TYPES] = {
		[OTLP_SAMPLES] = (int64_t)part->samples,
		[OTLP_CPU] = row->on_cpu ? ns : 0,
		[OTLP_OFF_CPU] = !row->on_cpu && !idle ? ns : 0,
		[OTLP_SAFE_CALL] = state__in_safe_call(lane->kind, row->state) ? ns : 0,
	};
	int32_t attributes[OTLP_ATTRIBUTES];
	size_t n = 0;

	/* time that a log alone does not record has no stack */
	if (!has_value(values) || (!row->stack && session__log_alone(c->pic)))
		return 0;
	if (lane->kind == LANE_THREAD && lane->tid)
		attributes[n++] = dict__number(c->dict, "thread.id", lane->tid);
	if (lane->kind == LANE_THREAD && *or_empty(lane->name))
		attributes[n++] = dict__text(c->dict, "thread.name", lane->name);
	attributes[n++] = dict__text(c->dict, "ghc.state", state__name(lane->kind, row->state));
	if (part->cap != NO_CAP)
		attributes[n++] = dict__number(c->dict, "ghc.capability", part->cap);
	if (*part->label)
		attributes[n++] = dict__text(c->dict, "ghc.thread.label", part->label);
	return add(c, row->stack, attributes, n, values);
}

/* *next: the number of the first part to add, afterwards of the first that had no room; *ret_whole:
 * all had room. */
static int add_lane(struct collecting *c, const struct views *views, const struct view *view,
		    size_t *next, bool *ret_whole)
{
	struct parts parts = {0};
	int err = parts__of(views, view, &parts);
	size_t i = *next;

	for (; !err && i < parts.n && has_room(c); i++)
		err = add_part(c, view, &parts.v[i]);
	*next = i;
	*ret_whole = i >= parts.n;
	parts__free(&parts);
	return err;
}

static int add_centre(struct collecting *c, const struct pic_cc_node *node)
{
	const int64_t values[OTLP_TYPES] = {
		[OTLP_SAMPLES] = (int64_t)node->ticks,
		[OTLP_CPU] = (int64_t)(node->ticks * c->target->tick_ns),
	};

	return node->stack && has_value(values) ? add(c, node->stack, NULL, 0, values) : 0;
}

/* Allocation belongs to no thread: which OS threads ran the Haskell threads is not recorded
 * here. */
static int add_allocated(struct collecting *c, const struct pic_alloc_row *row)
{
	const int64_t values[OTLP_TYPES] = {[OTLP_ALLOC] = (int64_t)row->bytes};

	return has_value(values) ? add(c, row->stack, NULL, 0, values) : 0;
}

/* Adds what belongs to no lane, after the last lane; in a report that GHC wrote there is nothing
 * else. */
static int add_rest(struct collecting *c, bool log_alone, size_t *next, bool *ret_whole)
{
	const struct pic_target *target = c->target;
	bool centres = log_alone && !target->lanes[LANE_CAPABILITY].n;
	size_t n_centres = centres ? target->n_cc_nodes : 0;
	size_t n = n_centres + target->alloc.n_rows, i = *next;
	int err = 0;

	for (; !err && i < n && has_room(c); i++)
		err = i < n_centres ? add_centre(c, &target->cc_nodes[i])
				    : add_allocated(c, &target->alloc.rows[i - n_centres]);
	*next = i;
	*ret_whole = i >= n;
	return err;
}

/* ── all of a process ────────────────────────────────────────────────────────────────────── */

static int cmp_samples(const void *pa, const void *pb)
{
	const struct otlp_sample *a = pa, *b = pb;

	if (a->stack != b->stack)
		return a->stack < b->stack ? -1 : 1;
	for (size_t i = 0; i < OTLP_ATTRIBUTES; i++)
		if (a->attributes[i] != b->attributes[i])
			return a->attributes[i] < b->attributes[i] ? -1 : 1;
	return 0;
}

static void merge(struct otlp_samples *s)
{
	size_t kept = 0;

	if (!s->n)
		return;
	qsort(s->v, s->n, sizeof(*s->v), cmp_samples);
	for (size_t i = 1; i < s->n; i++) {
		if (cmp_samples(&s->v[kept], &s->v[i])) {
			s->v[++kept] = s->v[i];
			continue;
		}
		for (size_t k = 0; k < OTLP_TYPES; k++)
			s->v[kept].values[k] += s->v[i].values[k];
	}
	s->n = kept + 1;
}

static int add_all(struct collecting *c, const struct views *views, struct otlp_part *part)
{
	bool log_alone = session__log_alone(c->pic), whole = true;
	int err = 0;

	while (!err && part->lane < views->n) {
		const struct view *view = &views->v[part->lane];

		if (view->target_no == part->target_no && sums__counts(view, log_alone))
			err = add_lane(c, views, view, &part->part, &whole);
		if (err || !whole)
			return err;
		part->lane++;
		part->part = 0;
	}
	err = add_rest(c, log_alone, &part->part, &whole);
	part->last = whole;
	return err;
}

int otlp_samples__collect(const struct picture *pic, const struct views *views,
			  struct otlp_part *part, struct dict *dict,
			  struct otlp_samples *ret_samples)
{
	struct otlp_part next = *part;
	struct collecting c = {
		.pic = pic,
		.target = picture__target(pic, part->target_no),
		.dict = dict,
		.most = part->bytes,
	};
	int err = add_all(&c, views, &next);

	if (!err)
		err = dict__error(dict);
	if (err) {
		otlp_samples__free(&c.samples);
		return err;
	}
	merge(&c.samples);
	*part = next;
	*ret_samples = c.samples;
	return 0;
}

void otlp_samples__free(struct otlp_samples *samples)
{
	free(samples->v);
	*samples = (struct otlp_samples){0};
}
