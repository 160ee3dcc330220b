/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * heap: curves over time: heap size and live bytes, allocation by capability, the bands of a heap
 * profile, ticky counters. A curve that gets too long keeps every second point.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "eventlog.h"
#include "pack_priv.h"
#include "u64map_priv.h"

#define SERIES_MAX   (16u << 10)
#define POINTS_MAX   (32u << 10)
#define POINTS_ALL   (2u << 20) /* of all curves */
#define TEXT_MAX     (8u << 20) /* bytes of all names, with their index */
#define NAME_CENTRES 4		/* centres in the name of a cost-centre band */

struct el_heap {
	const struct el_window *window;
	struct cctree *tree;
	struct strtab *strings;
	struct el_series *series;
	size_t series_cap, points;
	struct u64map by_key; /* kind << 56 | name or id */
	struct u64map ticky_name;
	struct el_heap_info info;
	uint64_t sample_time; /* of the heap profile sample that is being read */
	bool in_sample;
};

int el_heap__new(const struct el_window *window, struct cctree *tree, struct el_heap **ret_h)
{
	struct el_heap *h = calloc(1, sizeof(*h));
	int err;

	if (!h)
		return -ENOMEM;
	h->window = window;
	h->tree = tree;
	err = strtab__new(&h->strings);
	if (err) {
		free(h);
		return err;
	}
	strtab__set_max(h->strings, TEXT_MAX);
	*ret_h = h;
	return 0;
}

void el_heap__free(struct el_heap *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->info.n_series; i++)
		free(h->series[i].p);
	free(h->series);
	strtab__free(h->strings);
	u64map__free(&h->by_key);
	u64map__free(&h->ticky_name);
	free(h);
}

static int series_get(struct el_heap *h, uint16_t kind, uint64_t id, uint32_t name,
		      struct el_series **ret_s)
{
	/* Bands are distinguished by name; ticky ids are addresses, below 2^56 in user space. */
	uint64_t key = (uint64_t)kind << 56 | (kind == ESK_PROFILE ? name : id & (~0ull >> 8));
	uint32_t at = u64map__get(&h->by_key, key);
	int err;

	if (at == U64MAP_NONE) {
		err = ARRAY_RESERVE(h->series, h->series_cap, h->info.n_series + 1, SERIES_MAX);
		if (!err)
			err = u64map__put(&h->by_key, key, (uint32_t)h->info.n_series);
		if (err)
			return err;
		at = (uint32_t)h->info.n_series++;
		h->series[at] =
			(struct el_series){.name = name, .kind = kind, .id = id, .every = 1};
	}
	*ret_s = &h->series[at];
	return 0;
}

static void thin(struct el_heap *h, struct el_series *s)
{
	size_t out = 0;

	for (size_t i = 0; i < s->n; i += 2)
		s->p[out++] = s->p[i];
	h->points -= s->n - out;
	s->n = out;
	s->every *= 2;
}

/* `add`: adds to the value that the series has at this time already (two stacks with one name). */
static int series_add(struct el_heap *h, struct el_series *s, uint64_t time, uint64_t value,
		      bool add)
{
	int err;

	s->last = value;
	if (s->n && s->p[s->n - 1].time == time) {
		struct el_point *p = &s->p[s->n - 1];

		p->value = add && p->value <= UINT64_MAX - value ? p->value + value : value;
		s->last = p->value;
		s->max_value = MAX(s->max_value, p->value);
		return 0;
	}
	if (s->n >= POINTS_MAX || (h->points >= POINTS_ALL && s->n > 1))
		thin(h, s);
	if (h->points >= POINTS_ALL)
		return -E2BIG;
	err = ARRAY_RESERVE(s->p, s->cap, s->n + 1, POINTS_MAX);
	if (err)
		return err;
	s->p[s->n++] = (struct el_point){time, value};
	s->max_value = MAX(s->max_value, value);
	h->points++;
	return 0;
}

static int add_point(struct el_heap *h, uint16_t kind, uint64_t id, const char *name, size_t len,
		     uint64_t time, uint64_t value)
{
	struct el_series *s;
	uint32_t str;
	int err;

	if (!el_window__has(h->window, time))
		return 0;
	err = strtab__add(h->strings, name, strnlen(name, MIN(len, 1024u)), &str);
	if (!err)
		err = series_get(h, kind, id, str, &s);
	if (!err)
		err = series_add(h, s, time, value, kind == ESK_PROFILE);
	return err;
}

/* Bands that the sample did not mention get 0. */
static int sample_end(struct el_heap *h)
{
	int err = 0;

	if (!h->in_sample)
		return 0;
	h->in_sample = false;
	for (size_t i = 0; i < h->info.n_series && !err; i++) {
		struct el_series *s = &h->series[i];

		if (s->kind == ESK_PROFILE && s->last && s->n &&
		    s->p[s->n - 1].time < h->sample_time)
			err = series_add(h, s, h->sample_time, 0, false);
	}
	return err;
}

/* Innermost first, as GHC's own heap profiles name stacks. */
static size_t stack_name(struct el_heap *h, struct el_u32s ccs, char *out, size_t size)
{
	size_t n = 0;

	for (uint32_t i = 0; i < ccs.n && n < size; i++) {
		uint32_t cc;
		struct cost_centre c;

		if (i == NAME_CENTRES) {
			n += (size_t)snprintf(out + n, size - n, "/...");
			break;
		}
		if (cctree__cc_by_id(h->tree, el_u32s__get(ccs, i), &cc))
			break;
		c = cctree__cc(h->tree, cc);
		n += (size_t)snprintf(out + n, size - n, "%s%s%s%s", i ? "/" : "", c.module,
				      *c.module ? "." : "", c.label);
	}
	return MIN(n, size - 1);
}

static int on_entry(struct el_heap *h, const struct el_event *ev)
{
	uint64_t time = h->in_sample ? h->sample_time : ev->time;
	char name[1024] = "MAIN";
	size_t len = 4;

	if (ev->id == EL_HEAP_PROF_SAMPLE_STRING)
		return add_point(h, ESK_PROFILE, 0, ev->band.name.s, ev->band.name.len, time,
				 ev->band.bytes);
	if (!h->tree)
		return 0;
	if (ev->band.ccs.n)
		len = stack_name(h, ev->band.ccs, name, sizeof(name));
	return add_point(h, ESK_PROFILE, 0, name, len, time, ev->band.bytes);
}

static int on_ticky(struct el_heap *h, const struct el_event *ev)
{
	uint32_t name = u64map__get(&h->ticky_name, ev->ticky.id);
	struct el_series *s;
	int err;

	if (!el_window__has(h->window, ev->time))
		return 0;
	if (name == U64MAP_NONE)
		name = 0;
	err = series_get(h, ESK_TICKY_ENTRIES, ev->ticky.id, name, &s);
	if (!err)
		err = series_add(h, s, ev->time, ev->ticky.entries, false);
	if (!err)
		err = series_get(h, ESK_TICKY_ALLOCS, ev->ticky.id, name, &s);
	if (!err)
		err = series_add(h, s, ev->time, ev->ticky.allocs, false);
	return err;
}

static int on_ticky_def(struct el_heap *h, const struct el_event *ev)
{
	const struct el_str *s = &ev->ticky.name;
	uint32_t name;
	int err;

	if (h->ticky_name.n >= SERIES_MAX)
		return -E2BIG;
	err = strtab__add(h->strings, s->s, strnlen(s->s, MIN(s->len, 1024u)), &name);
	return err ? err : u64map__put(&h->ticky_name, ev->ticky.id, name);
}

static int take(struct el_heap *h, const struct el_event *ev)
{
	char name[64];
	int err;

	switch (ev->id) {
	case EL_HEAP_SIZE:
		return add_point(h, ESK_HEAP, 0, "heap size", 64, ev->time, ev->bytes);
	case EL_HEAP_LIVE:
		return add_point(h, ESK_HEAP, 1, "heap live", 64, ev->time, ev->bytes);
	case EL_BLOCKS_SIZE:
		return add_point(h, ESK_HEAP, 2, "blocks", 64, ev->time, ev->bytes);
	case EL_HEAP_ALLOCATED:
		snprintf(name, sizeof(name), "allocated, capability %u", ev->cap);
		return add_point(h, ESK_HEAP, 3 + ev->cap, name, 64, ev->time, ev->bytes);
	case EL_HEAP_PROF_SAMPLE_BEGIN:
	case EL_HEAP_BIO_PROF_SAMPLE_BEGIN:
		err = sample_end(h);
		h->in_sample = true;
		h->sample_time = ev->time;
		/* Biographical samples are written at the end, each with its own time. */
		if (ev->id == EL_HEAP_BIO_PROF_SAMPLE_BEGIN && ev->sample_time)
			h->sample_time = ev->sample_time;
		return err;
	case EL_HEAP_PROF_SAMPLE_END:
		return sample_end(h);
	case EL_HEAP_PROF_SAMPLE_COST_CENTRE:
	case EL_HEAP_PROF_SAMPLE_STRING:
		return on_entry(h, ev);
	case EL_TICKY_COUNTER_DEF:
		return on_ticky_def(h, ev);
	case EL_TICKY_COUNTER_SAMPLE:
		return on_ticky(h, ev);
	default:
		return 0;
	}
}

static int on_event(void *ctx, const struct el_event *ev)
{
	struct el_heap *h = ctx;
	int err = take(h, ev);

	if (err == -E2BIG) {
		h->info.dropped++;
		err = 0;
	}
	return err;
}

int el_heap__attach(struct el_heap *h, struct eventlog *log)
{
	static const uint16_t ids[] = {
		EL_HEAP_SIZE,
		EL_HEAP_LIVE,
		EL_BLOCKS_SIZE,
		EL_HEAP_ALLOCATED,
		EL_HEAP_PROF_SAMPLE_BEGIN,
		EL_HEAP_BIO_PROF_SAMPLE_BEGIN,
		EL_HEAP_PROF_SAMPLE_END,
		EL_HEAP_PROF_SAMPLE_COST_CENTRE,
		EL_HEAP_PROF_SAMPLE_STRING,
		EL_TICKY_COUNTER_DEF,
		EL_TICKY_COUNTER_SAMPLE,
	};

	return eventlog__subscribe(log, ids, ARRAY_SIZE(ids), on_event, h);
}

struct el_heap_info el_heap__info(const struct el_heap *h)
{
	return h->info;
}

const struct el_series *el_heap__series(const struct el_heap *h, size_t i)
{
	return &h->series[i];
}

const char *el_heap__string(const struct el_heap *h, uint32_t id)
{
	return strtab__get(h->strings, id);
}

/* ── packing ─────────────────────────────────────────────────────────────────────────────── */

struct packed_series {
	uint64_t id, max_value, last, every;
	uint32_t name;
	uint16_t kind;
};

void el_heap__pack(const struct el_heap *h, struct pack *p)
{
	PACK(p, h->info);
	pack__strings(p, h->strings);
	for (size_t i = 0; i < h->info.n_series; i++) {
		const struct el_series *s = &h->series[i];
		const struct packed_series packed = {.id = s->id,
						     .max_value = s->max_value,
						     .last = s->last,
						     .every = s->every,
						     .name = s->name,
						     .kind = s->kind};

		PACK(p, packed);
		pack__array(p, s->p, s->n, sizeof(*s->p));
	}
}

static int unpack_series(struct el_heap *h, struct unpack *u)
{
	struct packed_series packed;
	struct el_series *s;
	int err = ARRAY_RESERVE(h->series, h->series_cap, h->info.n_series + 1, SERIES_MAX);

	UNPACK(u, packed);
	unpack__require(u,
			packed.name < strtab__count(h->strings) && packed.kind <= ESK_TICKY_ALLOCS);
	if (err || u->bad)
		return err ? err : -EBADMSG;
	s = &h->series[h->info.n_series++];
	*s = (struct el_series){.name = packed.name,
				.kind = packed.kind,
				.id = packed.id,
				.max_value = packed.max_value,
				.last = packed.last,
				.every = packed.every};
	err = UNPACK_ARRAY(u, s->p, s->n, MIN(POINTS_MAX, POINTS_ALL - h->points));
	s->cap = s->n;
	h->points += s->n;
	for (size_t i = 0; i < s->n; i++)
		unpack__require(u, s->p[i].value <= s->max_value);
	return err;
}

int el_heap__unpack(struct unpack *u, struct el_heap **ret_h)
{
	struct el_heap_info info;
	struct el_heap *h;
	int err = el_heap__new(NULL, NULL, &h);

	if (err)
		return err;
	UNPACK(u, info);
	h->info.dropped = info.dropped;
	err = unpack__strings(u, h->strings);
	for (size_t i = 0; i < info.n_series && !err && !u->bad; i++)
		err = unpack_series(h, u);
	if (u->bad || err == -E2BIG)
		err = -EBADMSG;
	if (err)
		el_heap__free(h);
	else
		*ret_h = h;
	return err;
}
