/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lane: slices in time order in bounded memory, and the wanted window of a log. */
#include "lane_priv.h"

#include <string.h>

#include "base/base.h"
#include "eventlog.h"

/* ── lanes ───────────────────────────────────────────────────────────────────────────────── */

/* If all lanes together are at their limit, this one is merged before it gets another slice. */
static int store(struct lane *lane, const struct pic_slice *slice)
{
	struct lane_room *room = lane->room;
	size_t before = lane->slices.n, left = room->max - MIN(room->used, room->max);
	int err = slices__put(&lane->slices, lane->kind, slice,
			      MIN(MAX(before + left, LANE_LEAST), LANE_MAX));

	room->used += lane->slices.n - before;
	return err;
}

int lane__end(struct lane *lane)
{
	struct pic_slice slices[MERGE_PARTS];
	unsigned n = lane->grouped ? merge__end(&lane->group, slices) : 0;
	int err = 0;

	lane->grouped = false;
	for (unsigned i = 0; i < n && !err; i++)
		err = store(lane, &slices[i]);
	return err;
}

int lane__begin(struct lane *lane, const struct pic_slice *slice)
{
	struct pic_slice s = *slice;
	int err;

	if (s.start_ns < lane->end_ns) {
		lane->room->unordered++;
		s.start_ns = lane->end_ns;
	}
	if (s.end_ns <= s.start_ns)
		return 0;
	err = lane__end(lane);
	lane->end_ns = s.end_ns;
	if (!lane->slices.merged_ns)
		return err ? err : store(lane, &s);
	merge__begin(&lane->group, lane->kind, s.start_ns);
	merge__add(&lane->group, &s);
	lane->grouped = true;
	return err;
}

void lane__free(struct lane *lane)
{
	lane->room->used -= lane->slices.n;
	slices__free(&lane->slices);
}

/* ── window ──────────────────────────────────────────────────────────────────────────────── */

static int on_message(void *ctx, const struct el_event *ev)
{
	struct el_window *w = ctx;

	if (w->from_marker && !w->opened) {
		if (text__starts_with(ev->text.s, ev->text.len, w->from_marker)) {
			w->opened = true;
			w->from = MAX(w->from, ev->time);
		}
		return 0;
	}
	if (w->to_marker && !w->closed &&
	    text__starts_with(ev->text.s, ev->text.len, w->to_marker)) {
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
