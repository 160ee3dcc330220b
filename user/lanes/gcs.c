/* SPDX-License-Identifier: GPL-2.0-or-later */
/* gcs: collections as the picture has them. */
#include "lanes_priv.h"

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
		/* if it began before a cut, this window has the rest, and counts it */
		uint64_t start = MAX(gc->start, pub->attach_ns), work = MAX(gc->work, start);
		/* if its start was unknown until its end, no earlier window has a part */
		uint64_t from = gc->late ? l->seen->joined_ns : pub->attach_ns;
		uint64_t pause = gc__pause(gc, from, UINT64_MAX);

		/* it had ended by then, and was reported later */
		if (gc__end(gc) < start) {
			pub->gc.count++;
			pub->gc.pause_ns += pause;
			continue;
		}
		if (l->goes_on && gc__end(gc) > l->end_ns) {
			/* one still running at the session's end is in no window */
			if (gc->end || gc->ends || !intake__does_look_ahead(l->in))
				pub->gc.pause_ns += gc__pause(gc, pub->attach_ns, l->end_ns);
			continue;
		}
		/* Still running: its time counts for the lanes, but not as a pause. */
		if (!gc->end)
			continue;
		events[pub->n_gcs++] = (struct pic_gc_event){
			.start_ns = work,
			.end_ns = gc->end,
			.sync_ns = gc->synced ? work - start : UINT64_MAX,
			.number = gc->number,
			.generation = gc->generation,
			.tid = gc->tid,
		};
		holds__fill(&l->holds, i, &events[pub->n_gcs - 1]);
		pub->gc.count++;
		pub->gc.pause_ns += pause;
		pub->gc.max_pause_ns = MAX(pub->gc.max_pause_ns, pause);
	}
	return 0;
}

/* The picture takes over the rows. */
static int fill_sync(struct lanes *l)
{
	struct pic_gc *gc = &l->seen->pub->gc;
	struct ledger_account *account;
	int err = ledger__accounts(l->gc_sync, 1, &account);

	if (err)
		return err;
	if (account->n && !picture__keep(l->pic, account->rows)) {
		ledger_accounts__free(account, 1);
		return -ENOMEM;
	}
	gc->sync_rows = account->rows;
	gc->n_sync_rows = account->n;
	account->rows = NULL;
	ledger_accounts__free(account, 1);
	return 0;
}

int gcs__fill(struct lanes *l)
{
	const struct seen_gcs *gcs = &l->seen->gcs;
	struct pic_target *pub = l->seen->pub;
	const struct pic_lanes *threads = &pub->lanes[LANE_THREAD];
	int err = 0;

	for (size_t i = 0; i < threads->n; i++)
		pub->gc.wait_ns += threads->v[i].states_ns[ST_GC_WAIT];
	pub->gc.known = gcs->known;
	pub->gc.quiet = !gcs->known && gcs->has_probes && !gcs->off_ns;
	pub->gc.missed = gcs->missed;
	pub->gc.before = gcs->before;
	pub->gc.first_counted_ns = gcs->first_counted_ns;
	pub->gc.counted_ns = gcs->counted_ns;
	pub->gc.before_known = gcs->before_known;
	if (gcs->known)
		err = fill_events(l);
	if (!err && gcs->full)
		err = lanes__lack(l, "no exact GC pauses: there were more than a million "
				     "collections; a shorter session has room for all of "
				     "them");
	/* some collections are known exactly; for the others there is only the bound */
	if (!err && gc_infer__is_needed(gcs))
		gc_infer__fill(l);
	if (!err)
		err = fill_sync(l);
	return err ? err : holds__fill_unsafe(&l->holds, gcs, l->pic, pub);
}
