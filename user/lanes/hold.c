/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hold: what collections waited for. */
#include "ledger/sums.h"
#include "hold.h"

static void add(struct holding *h, const struct gc_span *gc, const struct pic_slice *s, uint64_t ns)
{
	/* the leader of a collection waits for others, whatever its C frames look like */
	if (gc->tid ? s->tid == gc->tid : s->state == CS_RTS)
		return;
	if (s->state == CS_GC || s->state == CS_UNKNOWN ||
	    state__is_idle(LANE_CAPABILITY, s->state))
		return;
	h->hold.cap = s->cap;
	h->hold.busy_ns += ns;
	if (h->in_unsafe)
		h->hold.unsafe_ns += ns;
	else if (s->state == CS_PREEMPTED)
		h->hold.no_cpu_ns += ns;
	else if (s->state == CS_HASKELL)
		h->hold.haskell_ns += ns;
	if (s->state == CS_UNSAFE_CALL && ns > h->longest_unsafe_ns) {
		h->longest_unsafe_ns = ns;
		h->hold.unsafe_stack = s->stack;
	} else if (s->state == CS_HASKELL && ns > h->longest_haskell_ns) {
		h->longest_haskell_ns = ns;
		h->hold.haskell_stack = s->stack;
	}
}

/* The collection has begun. */
static int settle(struct holds *holds, size_t n_gcs, struct holding *h)
{
	int err = ARRAY_RESERVE(holds->v, holds->cap, n_gcs, SEEN_MAX_GCS);

	if (err)
		return err;
	while (holds->n < n_gcs)
		holds->v[holds->n++] = (struct hold){0};
	if (h->hold.busy_ns > holds->v[h->gc].busy_ns)
		holds->v[h->gc] = h->hold;
	*h = (struct holding){.gc = h->gc + 1, .in_unsafe = h->in_unsafe};
	return 0;
}

int holds__see(struct holds *holds, const struct seen_gcs *gcs, struct holding *h,
	       const struct pic_slice *s)
{
	int err = 0;

	/* a thread preempted in an unsafe call is still in it */
	h->in_unsafe = s->state == CS_UNSAFE_CALL || (h->in_unsafe && s->state == CS_PREEMPTED);
	while (!err && h->gc < gcs->n && gcs->v[h->gc].start < s->end_ns && gcs->v[h->gc].work) {
		const struct gc_span *gc = &gcs->v[h->gc];
		uint64_t from = MAX(s->start_ns, gc->start), to = MIN(s->end_ns, gc->work);

		if (from < to)
			add(h, gc, s, to - from);
		if (gc->work > s->end_ns)
			break;
		err = settle(holds, gcs->n, h);
	}
	return err;
}

void holds__cut(struct holds *holds, size_t n_gone)
{
	n_gone = MIN(n_gone, holds->n);
	holds->n -= n_gone;
	if (n_gone && holds->n)
		memmove(holds->v, holds->v + n_gone, holds->n * sizeof(*holds->v));
	/* for a collection still pending, count what it waits for from here on */
	for (size_t i = 0; i < holds->n; i++)
		holds->v[i] = (struct hold){0};
}

void holding__cut(struct holding *h, size_t n_gone)
{
	*h = (struct holding){.gc = h->gc - MIN(h->gc, n_gone), .in_unsafe = h->in_unsafe};
}

static struct hold hold_of(const struct holds *holds, size_t gc)
{
	return gc < holds->n ? holds->v[gc] : (struct hold){0};
}

void holds__fill(const struct holds *holds, size_t gc, struct pic_gc_event *event)
{
	struct hold hold = hold_of(holds, gc);

	event->haskell_ns = hold.haskell_ns;
	event->no_cpu_ns = hold.no_cpu_ns;
	event->haskell_stack = hold.haskell_stack;
	event->cap = hold.busy_ns ? hold.cap : NO_CAP;
}

int holds__fill_unsafe(const struct holds *holds, const struct seen_gcs *gcs, struct picture *pic,
		       struct pic_target *target)
{
	struct unsafe_hold *v = malloc((gcs->n + 1) * sizeof(*v));
	size_t n = 0;
	int err;

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < gcs->n; i++) {
		const struct gc_span *gc = &gcs->v[i];
		struct hold hold = hold_of(holds, i);

		if (!gc->synced || !gc->work)
			continue;
		v[n++] = (struct unsafe_hold){.ns = hold.unsafe_ns,
					      .start_ns = MAX(gc->start, target->attach_ns),
					      .end_ns = gc->work,
					      .stack = hold.unsafe_stack,
					      .cap = hold.cap};
	}
	err = unsafe__fill(pic, target, v, n);
	free(v);
	return err;
}
