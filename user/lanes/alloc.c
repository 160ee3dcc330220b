/* SPDX-License-Identifier: GPL-2.0-or-later */
/* alloc: what was allocated, booked by stack as it comes, and put into the picture. */
#include <string.h>

#include "ledger/sums.h"
#include "lanes_priv.h"

/* The one owner in its ledger. */
#define OWNER 0

/* The cost-centre stack that the thread was in; 0: none. */
static int book_centre(struct allocated *a, uint32_t ccs, uint64_t bytes)
{
	struct centres_bytes *by = &a->by_centre;
	int err = ccs ? ARRAY_RESERVE(by->v, by->cap, ccs, LEDGER_MAX_ROWS) : 0;

	/* beyond that many there are sums by stack still */
	if (err == -E2BIG || !ccs)
		return 0;
	while (!err && by->n < ccs)
		by->v[by->n++] = 0;
	if (!err)
		by->v[ccs - 1] += bytes;
	return err;
}

static int book_note(struct lanes *l, const struct alloc_note *note)
{
	struct allocated *a = &l->allocated;
	uint32_t stack;
	int err = stack__compose(l->in, l->seen, ST_HASKELL, &note->ev, &stack);

	if (err)
		return err;
	err = book_centre(a, note->ev.ccs, note->bytes);
	if (err)
		return err;
	a->sums.samples++;
	a->sums.sampled_bytes += note->bytes;
	a->sums.whole_stacks += note->whole;
	a->sums.stopped_bytes += note->stopped ? note->bytes : 0;
	a->sums.tick_samples += note->ticked;
	a->sums.tick_bytes += note->ticked ? note->bytes : 0;
	return ledger__weight(a->ledger, OWNER, stack, (int64_t)note->bytes, 1);
}

static enum pic_gc_reason reason_of(uint32_t wire)
{
	static const enum pic_gc_reason reasons[] = {
		[WIRE_ALLOC_NURSERY] = GC_REASON_NURSERY, [WIRE_ALLOC_LARGE] = GC_REASON_LARGE,
		[WIRE_ALLOC_FORCED] = GC_REASON_FORCED,	  [WIRE_ALLOC_IDLE] = GC_REASON_IDLE,
		[WIRE_ALLOC_OTHER] = GC_REASON_OTHER,
	};

	return wire < ARRAY_SIZE(reasons) ? reasons[wire] : GC_REASON_UNKNOWN;
}

static void add_reading(struct pic_alloc *sums, const struct alloc_reading *r)
{
	if (!sums->known)
		sums->from_ns = r->since_ns;
	sums->known = true;
	sums->to_ns = r->ns;
	sums->bytes += r->bytes;
	sums->large_bytes += r->large;
	if (r->ticked)
		return;
	sums->large_of_bytes += r->large_of;
	/* it was chosen among these at random */
	sums->collections += 1 + r->skipped;
	sums->reasons[reason_of(r->reason)] += 1 + r->skipped;
	sums->caps_left_out |= r->caps_left_out;
}

int allocated__take(struct lanes *l, uint64_t until)
{
	const struct seen_allocs *seen = &l->seen->allocs;
	int err = 0;

	for (size_t i = 0; !err && i < seen->n; i++)
		if (seen->v[i].ev.t1 <= until)
			err = book_note(l, &seen->v[i]);
	for (size_t i = 0; !err && i < seen->n_readings; i++)
		if (seen->readings[i].ns <= until) {
			add_reading(&l->allocated.sums, &seen->readings[i]);
			if (!err && !seen->readings[i].ticked)
				err = heap_curve__add(&l->allocated.heap, &seen->readings[i],
						      l->allocated.sums.bytes);
		}
	seen__forget_allocs(l->in, l->seen, until);
	return err;
}

static int by_bytes(const void *pa, const void *pb)
{
	const struct pic_alloc_row *a = pa, *b = pb;

	return CMP(b->bytes, a->bytes) ?: CMP(a->stack, b->stack);
}

/* What nobody was seen to allocate; in the next window somebody may be. */
static int book_rest(struct lanes *l)
{
	uint64_t rest = l->goes_on ? 0 : seen__unsampled_bytes(l->seen);
	uint32_t mark = picture__mark(l->pic, MARK_NO_SAMPLE), stack;
	int err = rest ? picture__add_stack(l->pic, &mark, 1, &stack) : 0;

	l->allocated.sums.unsampled_bytes = rest;
	return err || !rest ? err
			    : ledger__weight(l->allocated.ledger, OWNER, stack, (int64_t)rest, 0);
}

int allocated__fill(struct lanes *l)
{
	struct pic_target *pub = l->seen->pub;
	struct ledger_weight *weights = NULL;
	struct pic_alloc_row *rows;
	size_t n = 0;
	bool exited;
	int err = book_rest(l);

	if (!err)
		err = ledger__weights(l->allocated.ledger, &weights, &n);
	if (err)
		return err;
	rows = picture__alloc(l->pic, n, sizeof(*rows));
	for (size_t i = 0; rows && i < n; i++)
		rows[i] = (struct pic_alloc_row){
			.bytes = weights[i].n,
			.samples = weights[i].samples,
			.stack = weights[i].stack,
		};
	free(weights);
	if (!rows)
		return -ENOMEM;
	qsort(rows, n, sizeof(*rows), by_bytes);
	pub->alloc = l->allocated.sums;
	pub->alloc.rows = rows;
	pub->alloc.n_rows = n;
	err = allocators__fill(l->pic, pub);
	exited = pub->end && !strcmp(pub->end, "exited");
	return err ? err : heap_curve__fill(&l->allocated.heap, exited, l->pic, &pub->heap);
}
