/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gcs: collections as the picture has them, and whom they waited for. A thread in an unsafe call
 * does not hear of a collection before it returns.
 */
#include "ledger/sums.h"
#include "lanes_priv.h"

/* What a capability did while a collection waited for it. */
struct stopping {
	uint64_t busy_until; /* 0: it did nothing */
	uint64_t unsafe_ns;
	uint64_t longest_ns;
	uint32_t stack; /* of the longest slice in an unsafe call */
};

static struct stopping look(const struct pic_lane *lane, size_t *at, const struct gc_span *gc)
{
	struct stopping s = {0};
	bool unsafe = false;

	while (*at < lane->n_slices && lane->slices[*at].end_ns <= gc->start)
		++*at;
	for (size_t i = *at; i < lane->n_slices && lane->slices[i].start_ns < gc->work; i++) {
		const struct pic_slice *c = &lane->slices[i];
		uint64_t from = MAX(c->start_ns, gc->start), to = MIN(c->end_ns, gc->work);

		/* preempted in an unsafe call is still in it */
		unsafe = c->state == CS_UNSAFE_CALL || (unsafe && c->state == CS_PREEMPTED);
		if (c->tid == gc->tid || c->state == CS_GC || c->state == CS_UNKNOWN ||
		    state__is_idle(LANE_CAPABILITY, c->state))
			continue;
		s.busy_until = to;
		s.unsafe_ns += unsafe ? to - from : 0;
		if (c->state == CS_UNSAFE_CALL && to - from > s.longest_ns) {
			s.longest_ns = to - from;
			s.stack = c->stack;
		}
	}
	return s;
}

/*
 * The collection waited until its last capability stopped. The time that that one was in an unsafe
 * call meanwhile was waited for the call.
 */
static int hold_up(struct lanes *l, struct unsafe_sums *sums)
{
	const struct pic_lanes *caps = &l->seen->pub->lanes[LANE_CAPABILITY];
	const struct seen_gcs *gcs = &l->seen->gcs;
	size_t *at = calloc(caps->n + 1, sizeof(*at));

	if (!at)
		return -ENOMEM;
	for (size_t i = 0; i < gcs->n; i++) {
		const struct gc_span *gc = &gcs->v[i];
		struct stopping last = {0};

		if (!gc->synced || !gc->work)
			continue;
		unsafe_sums__know_gcs(sums);
		for (size_t c = 0; c < caps->n; c++) {
			struct stopping s = look(&caps->v[c], &at[c], gc);

			if (s.busy_until > last.busy_until)
				last = s;
		}
		if (last.longest_ns)
			unsafe_sums__held_up(sums, last.stack, last.unsafe_ns);
	}
	free(at);
	return 0;
}

static int fill_events(struct lanes *l)
{
	const struct seen_gcs *gcs = &l->seen->gcs;
	struct pic_target *pub = l->seen->pub;
	struct pic_gc_event *events = picture__alloc(l->pic, gcs->n, sizeof(*events));

	if (!events)
		return -ENOMEM;
	pub->gcs = events;
	for (size_t i = 0; i < gcs->n; i++) {
		const struct gc_span *gc = &gcs->v[i];

		/* Still collecting: the time counts for the lanes, not as a pause. */
		if (!gc->end)
			continue;
		events[pub->n_gcs++] = (struct pic_gc_event){
			.start_ns = gc->work,
			.end_ns = gc->end,
			.sync_ns = gc->synced ? gc->work - gc->start : UINT64_MAX,
			.number = gc->number,
			.generation = gc->generation,
			.tid = gc->tid,
		};
		pub->gc.count++;
		pub->gc.pause_ns += gc->end - gc->work;
		pub->gc.max_pause_ns = MAX(pub->gc.max_pause_ns, gc->end - gc->work);
	}
	return 0;
}

int gcs__fill(struct lanes *l)
{
	const struct seen_gcs *gcs = &l->seen->gcs;
	struct pic_target *pub = l->seen->pub;
	const struct pic_lanes *threads = &pub->lanes[LANE_THREAD];
	struct unsafe_sums *sums;
	int err = 0;

	for (size_t i = 0; i < threads->n; i++)
		pub->gc.wait_ns += threads->v[i].states_ns[ST_GC_WAIT];
	pub->gc.known = gcs->known;
	if (gcs->known)
		err = fill_events(l);
	if (!err && gcs->full)
		err = picture__add_missing(l->pic, pub,
					   "no exact GC pauses: there were more than a million "
					   "collections; a shorter session has room for all of "
					   "them");
	/* of some, all is known; of the others, only the bound */
	if (!err && (gcs->known ? gcs->off_ns != 0 : !gcs->has_probes || gcs->off_ns))
		err = gc_infer__fill(l);
	if (!err)
		err = unsafe_sums__new(l->pic, pub, &sums);
	if (err)
		return err;
	err = hold_up(l, sums);
	if (!err)
		err = unsafe_sums__fill(sums);
	unsafe_sums__free(sums);
	return err;
}
