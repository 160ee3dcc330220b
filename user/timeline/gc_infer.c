/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gc_infer: collections of a program without symbols, where no probe marks them. In a collection no
 * capability runs Haskell code and at least one thread works in the runtime; nothing else in it
 * takes long. Two that follow each other without a sample between them are one.
 */
#include "private.h"

#define LEAST_NS 200000 /* what else the runtime does at once is shorter */

struct caps_walk {
	const struct tl_cap_lane *lanes;
	size_t n;
	size_t *at;
	bool *mutates; /* the last thing that it was seen to do itself */
};

/* What all of them do at t: 1: stopped, and somebody works in the runtime; *ret_end: up to when. */
static bool stopped(struct caps_walk *w, uint64_t t, uint64_t *ret_end)
{
	bool all = true, works = false;
	uint64_t end = UINT64_MAX;

	for (size_t i = 0; i < w->n; i++) {
		const struct tl_cap_lane *lane = &w->lanes[i];
		const struct tl_cap_stretch *s;

		while (w->at[i] < lane->n_stretches && lane->stretches[w->at[i]].end_ns <= t)
			w->at[i]++;
		if (w->at[i] == lane->n_stretches)
			continue;
		s = &lane->stretches[w->at[i]];
		if (s->start_ns > t) {
			end = MIN(end, s->start_ns);
			continue;
		}
		end = MIN(end, s->end_ns);
		if (s->state == CS_HASKELL || s->state == CS_UNSAFE_CALL)
			w->mutates[i] = true;
		else if (s->state != CS_PREEMPTED)
			w->mutates[i] = false;
		works |= s->state == CS_RTS || s->state == CS_GC ||
			 (s->state == CS_PREEMPTED && !w->mutates[i]);
		all &= !w->mutates[i] && s->state != CS_UNKNOWN;
	}
	*ret_end = end;
	return all && works;
}

static int add(struct target_state *tg, size_t *cap, uint64_t start, uint64_t end)
{
	struct tl_gc *gc = &tg->pub.gc;
	int err;

	if (end - start < LEAST_NS)
		return 0;
	if (tg->pub.n_gcs >= TL_MAX_GCS)
		return 0;
	err = TL_RESERVE(tg->gc_events, *cap, tg->pub.n_gcs + 1, TL_MAX_GCS);
	if (err)
		return err;
	tg->gc_events[tg->pub.n_gcs++] = (struct tl_gc_event){
		.start_ns = start,
		.end_ns = end,
		.sync_ns = UINT64_MAX,
		.number = UINT64_MAX,
		.generation = -1,
		.inferred = true,
	};
	gc->count++;
	gc->pause_ns += end - start;
	gc->max_pause_ns = MAX(gc->max_pause_ns, end - start);
	return 0;
}

int gc_infer__build(struct target_state *tg)
{
	struct caps_walk w = {.lanes = tg->cap_lanes, .n = tg->pub.n_cap_lanes};
	uint64_t t = UINT64_MAX, start = 0, end;
	size_t cap = 0;
	bool in = false;
	int err = 0;

	if (!w.n)
		return 0;
	w.at = calloc(w.n, sizeof(*w.at));
	w.mutates = calloc(w.n, sizeof(*w.mutates));
	if (!w.at || !w.mutates)
		err = -ENOMEM;
	for (size_t i = 0; i < w.n; i++)
		t = MIN(t, w.lanes[i].start_ns);
	for (; !err && t != UINT64_MAX; t = end) {
		bool now = stopped(&w, t, &end);

		if (now && !in)
			start = t;
		else if (!now && in)
			err = add(tg, &cap, start, t);
		in = now;
	}
	free(w.at);
	free(w.mutates);
	tg->pub.gcs = tg->gc_events;
	tg->pub.gc.known = tg->pub.gc.inferred = tg->pub.n_gcs > 0;
	return err;
}
