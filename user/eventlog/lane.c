/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lane: stretches in time order in bounded memory, and the window that is wanted of a log.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "eventlog.h"
#include "lane_fast.h"

/* ── lanes ───────────────────────────────────────────────────────────────────────────────── */

static bool same(const struct el_stretch *a, const struct el_stretch *b)
{
	return a->what == b->what && a->kind == b->kind && a->aux == b->aux;
}

/* What took most of s[0..n), told by the first eight different ones. */
static const struct el_stretch *heaviest(const struct el_stretch *s, size_t n)
{
	const struct el_stretch *which[8] = {s};
	uint64_t ns[8];
	size_t n_which = 0, best = 0;

	for (size_t i = 0; i < n; i++) {
		size_t k = 0;

		while (k < n_which && !same(which[k], &s[i]))
			k++;
		if (k == ARRAY_SIZE(which))
			continue;
		if (k == n_which) {
			which[k] = &s[i];
			ns[k] = 0;
			n_which++;
		}
		ns[k] += s[i].end - s[i].start;
	}
	for (size_t k = 1; k < n_which; k++)
		if (ns[k] > ns[best])
			best = k;
	return which[best];
}

/* Groups of touching stretches that span less than `quantum` become one each. */
static void merge(struct el_lane *lane, uint64_t quantum)
{
	size_t out = 0, i = 0;

	while (i < lane->n) {
		struct el_stretch s = lane->s[i];
		size_t k = i + 1;

		while (k < lane->n && lane->s[k].start == lane->s[k - 1].end &&
		       lane->s[k].end - s.start < quantum)
			k++;
		if (k > i + 1) {
			uint64_t end = lane->s[k - 1].end, start = s.start;
			uint32_t all = 0;

			for (size_t m = i; m < k; m++)
				all += lane->s[m].n;
			s = *heaviest(&lane->s[i], k - i);
			s.start = start;
			s.end = end;
			s.n = all;
		}
		if (out && lane->s[out - 1].end == s.start && same(&lane->s[out - 1], &s)) {
			lane->s[out - 1].end = s.end;
			lane->s[out - 1].n += s.n;
		} else {
			lane->s[out++] = s;
		}
		i = k;
	}
	lane->n = out;
}

static int make_room(struct el_lane *lane)
{
	size_t max = lane->max ? lane->max : EL_LANE_MAX;
	uint64_t span;

	if (lane->n < max)
		return 0;
	span = lane->s[lane->n - 1].end - lane->s[0].start;
	if (!lane->merged_ns)
		lane->merged_ns = MAX(4 * (span / max), 2u);
	for (;;) {
		merge(lane, lane->merged_ns);
		if (lane->n <= max / 2)
			return 0;
		/* Stretches with holes between them do not merge, however long the quantum. */
		if (lane->merged_ns > span)
			return lane->n < max ? 0 : -E2BIG;
		/* Steps of four: each pass over a full lane costs. */
		lane->merged_ns *= 4;
	}
}

int el_lane__add(struct el_lane *lane, const struct el_stretch *add)
{
	struct el_stretch s = *add;
	int err;

	if (lane->n) {
		struct el_stretch *last = &lane->s[lane->n - 1];

		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): n of them are there */
		if (s.start < last->end) {
			lane->unordered++;
			s.start = last->end;
		}
		if (s.end <= s.start)
			return 0;
		if (lane->merged_ns &&
		    lane_join(lane, s.start, s.end, lane_key(s.what, s.kind, s.aux), s.n))
			return 0;
		if (s.start == last->end && same(last, &s)) {
			last->end = s.end;
			last->n += s.n;
			return 0;
		}
	}
	if (s.end <= s.start)
		return 0;
	err = make_room(lane);
	if (err)
		return err;
	err = array__reserve((void **)&lane->s, &lane->cap, lane->n + 1,
			     lane->max ? lane->max : EL_LANE_MAX, sizeof(*lane->s));
	if (err)
		return err;
	lane->s[lane->n++] = s;
	lane->n_parts = 0;
	return 0;
}

int lane__put_apart(struct el_lane *lane, uint64_t start, uint64_t end, uint32_t what,
		    uint16_t kind, uint16_t aux)
{
	struct el_stretch s = {.start = start, .end = end, .what = what, .kind = kind, .aux = aux};
	struct el_stretch *last = lane->n ? &lane->s[lane->n - 1] : NULL;

	if (!last || end <= start || start < last->end)
		return el_lane__add(lane, &s);
	/* Room and order as they mostly are. */
	if (same(last, &s)) {
		if (start != last->end)
			return el_lane__add(lane, &s);
		last->end = end;
		return 0;
	}
	if (lane->n < lane->cap && lane->n < (lane->max ? lane->max : EL_LANE_MAX)) {
		lane->s[lane->n++] = s;
		lane->n_parts = 0;
		return 0;
	}
	return el_lane__add(lane, &s);
}

void el_lane__free(struct el_lane *lane)
{
	free(lane->s);
	lane->s = NULL;
	lane->n = lane->cap = 0;
}

/* ── window ──────────────────────────────────────────────────────────────────────────────── */

static bool starts_with(struct el_str text, const char *prefix)
{
	size_t len = strlen(prefix);

	return text.len >= len && !memcmp(text.s, prefix, len);
}

static int on_message(void *ctx, const struct el_event *ev)
{
	struct el_window *w = ctx;

	if (w->from_marker && !w->opened) {
		if (starts_with(ev->text, w->from_marker)) {
			w->opened = true;
			w->from = MAX(w->from, ev->time);
		}
		return 0;
	}
	if (w->to_marker && !w->closed && starts_with(ev->text, w->to_marker)) {
		w->closed = true;
		w->to = w->to ? MIN(w->to, ev->time) : ev->time;
	}
	return 0;
}

int el_window__attach(struct el_window *w, struct eventlog *log)
{
	static const uint16_t ids[] = {EL_USER_MARKER, EL_USER_MSG};

	w->attached = true;
	if (!w->from_marker && !w->to_marker)
		return 0;
	return eventlog__subscribe(log, ids, ARRAY_SIZE(ids), on_message, w);
}

bool el_window__clip(const struct el_window *w, uint64_t *start, uint64_t *end)
{
	if (!w)
		return *start < *end;
	if (w->from_marker && !w->opened)
		return false;
	*start = MAX(*start, w->from);
	if (w->to)
		*end = MIN(*end, w->to);
	return *start < *end;
}

bool el_window__has(const struct el_window *w, uint64_t time)
{
	if (!w)
		return true;
	if (w->from_marker && !w->opened)
		return false;
	return time >= w->from && (!w->to || time < w->to);
}
