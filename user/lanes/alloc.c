/* SPDX-License-Identifier: GPL-2.0-or-later */
/* alloc: books what was allocated by stack as it comes in, and puts it into the picture. */
#include <string.h>

#include "base/search.h"
#include "ledger/sums.h"
#include "lanes_priv.h"

/* The exit code of a program that exceeded its heap limit (rts/include/Rts.h). */
#define EXIT_HEAPOVERFLOW 251

/* The only owner in its ledger. */
#define OWNER 0

/* Bounds for the spans of a process, whatever the number of slices in its lanes. */
#define LEAST_SPANS ((size_t)1024)
#define MOST_SPANS  ((size_t)32768)

/* How many slices to search back for the Haskell code that a stopped capability ran. */
#define HOLDER_SLICES ((size_t)32)

/* `ccs`: the cost-centre stack that the thread was in; 0: none. */
static int book_centre(struct allocated *a, uint32_t ccs, uint64_t bytes)
{
	struct centres_bytes *by = &a->by_centre;
	int err = ccs ? ARRAY_RESERVE(by->v, by->cap, ccs, LEDGER_MAX_ROWS) : 0;

	/* beyond the limit there are still the sums by stack */
	if (err == -E2BIG || !ccs)
		return 0;
	while (!err && by->n < ccs)
		by->v[by->n++] = 0;
	if (!err)
		by->v[ccs - 1] += bytes;
	return err;
}

/* Bytes beyond the limit, which follows that of the lanes' slices, have no span. */
static int put_span(struct lanes *l, const struct pic_alloc_span *span)
{
	struct allocated *a = &l->allocated;
	int err =
		alloc_spans__put(&a->spans, span, MIN(MAX(l->max_slices, LEAST_SPANS), MOST_SPANS));

	if (err == -E2BIG) {
		a->sums.no_span_bytes += span->bytes;
		err = 0;
	}
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
	if (!err)
		err = put_span(l, &(struct pic_alloc_span){.from_ns = note->since_ns,
							   .to_ns = note->until_ns,
							   .bytes = note->bytes,
							   .samples = 1,
							   .tso = note->ev.tso,
							   .tid = note->tid,
							   .stack = stack,
							   .cap = note->ev.left});
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

enum pic_gc_reason gc__reason(uint32_t wire)
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
	/* one of these was chosen at random */
	sums->collections += 1 + r->skipped;
	sums->reasons[gc__reason(r->reason)] += 1 + r->skipped;
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
			if (seen->readings[i].ticked)
				l->allocated.heap.ticked += seen->readings[i].bytes;
			else
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

static int by_stack(const void *pa, const void *pb)
{
	const struct pic_alloc_row *a = pa, *b = pb;

	return CMP(a->stack, b->stack);
}

/* Books what no sample stands for: a window has all of its own bytes, and no others. */
static int book_rest(struct lanes *l, uint64_t until)
{
	struct pic_alloc *sums = &l->allocated.sums;
	uint64_t most = sums->bytes - MIN(sums->bytes, sums->sampled_bytes), since;
	uint64_t rest = seen__take_unsampled(l->in, l->seen, until, most, &since);
	uint32_t mark = picture__mark(l->pic, MARK_NO_SAMPLE), stack;
	int err = rest ? picture__add_stack(l->pic, &mark, 1, &stack) : 0;

	sums->unsampled_bytes = rest;
	if (err || !rest)
		return err;
	err = put_span(l, &(struct pic_alloc_span){.from_ns = since,
						   .to_ns = sums->to_ns,
						   .bytes = rest,
						   .stack = stack,
						   .cap = NO_CAP});
	return err ? err : ledger__weight(l->allocated.ledger, OWNER, stack, (int64_t)rest, 0);
}

/* ── the leaf ────────────────────────────────────────────────────────────────────────────── */

static bool is_in_module(const struct pic_frame *frame)
{
	return frame->module && *frame->module;
}

/*
 * Removes the frame that a heap check leaves on top (rts/HeapStackCheck.cmm: stg_ret_p and others).
 * With symbols, it is in no stack; in a stripped program it is recognised by having no name, while
 * the code of all modules has one. Modules are found late: call this when all names are known.
 */
static int cut_check(struct lanes *l, uint32_t *stack)
{
	struct pic_stack s = picture__stack(l->pic, *stack);
	const struct pic_frame *top = s.n ? picture__frame(l->pic, s.frames[s.n - 1]) : NULL;
	uint32_t cut;
	int err;

	if (s.n < 2 || top->kind != TF_HASKELL || *top->name != '[' || is_in_module(top) ||
	    !is_in_module(picture__frame(l->pic, s.frames[s.n - 2])))
		return 0;
	err = picture__add_stack(l->pic, s.frames, s.n - 1, &cut);
	if (!err && cut != picture__full_stack(l->pic))
		*stack = cut;
	return err;
}

/* Merges rows with the same stack and reduces *n. */
static void join_rows(struct pic_alloc_row *rows, size_t *n)
{
	size_t kept = 0;

	qsort(rows, *n, sizeof(*rows), by_stack);
	for (size_t i = 0; i < *n; i++) {
		if (kept && rows[kept - 1].stack == rows[i].stack) {
			rows[kept - 1].bytes += rows[i].bytes;
			rows[kept - 1].samples += rows[i].samples;
		} else {
			rows[kept++] = rows[i];
		}
	}
	*n = kept;
	qsort(rows, *n, sizeof(*rows), by_bytes);
}

static int fill_rows(struct lanes *l, struct pic_alloc *alloc)
{
	struct ledger_weight *weights = NULL;
	struct pic_alloc_row *rows;
	size_t n = 0;
	int err = ledger__weights(l->allocated.ledger, &weights, &n);

	if (err)
		return err;
	rows = picture__alloc(l->pic, n, sizeof(*rows));
	err = rows ? 0 : -ENOMEM;
	for (size_t i = 0; !err && i < n; i++) {
		rows[i] = (struct pic_alloc_row){
			.bytes = weights[i].n,
			.samples = weights[i].samples,
			.stack = weights[i].stack,
		};
		err = cut_check(l, &rows[i].stack);
	}
	free(weights);
	if (err)
		return err;
	join_rows(rows, &n);
	alloc->rows = rows;
	alloc->n_rows = n;
	return 0;
}

/* ── when and where ──────────────────────────────────────────────────────────────────────── */

/* The OS thread that last held the capability before it was stopped; 0: unknown. */
static pid_t holder(const struct pic_lanes *caps, const struct pic_alloc_span *span)
{
	const struct pic_lane *lane = NULL;
	size_t at, last;

	for (size_t i = 0; i < caps->n && !lane; i++)
		if (caps->v[i].cap == span->cap)
			lane = &caps->v[i];
	if (!lane)
		return 0;
	at = search__first(lane->n_slices, i, lane->slices[i].start_ns >= span->to_ns);
	last = at - MIN(at, HOLDER_SLICES);
	for (; at > last && lane->slices[at - 1].end_ns > span->from_ns; at--)
		if (lane->slices[at - 1].tid && lane->slices[at - 1].state == CS_HASKELL)
			return lane->slices[at - 1].tid;
	return 0;
}

/*
 * Spans of capabilities that were stopped by others get their threads from the capabilities' lanes.
 * What was allocated before a window, but was reported by a collection in it, counts in that
 * window.
 */
static int fill_spans(struct lanes *l, struct pic_target *pub)
{
	uint64_t start = picture__session(l->pic)->start_ns;
	struct alloc_spans *s = &l->allocated.spans;

	for (size_t i = 0; i < s->n; i++) {
		struct pic_alloc_span *span = &s->v[i];
		int err = cut_check(l, &span->stack);

		if (err)
			return err;
		span->to_ns = MAX(span->to_ns, start);
		span->from_ns = MIN(MAX(span->from_ns, start), span->to_ns);
		if (!span->tid && span->cap != NO_CAP)
			span->tid = holder(&pub->lanes[LANE_CAPABILITY], span);
	}
	alloc_spans__order(s);
	pub->alloc.span_grain_ns = s->grain_ns;
	if (s->n && !picture__keep(l->pic, s->v))
		return -ENOMEM;
	pub->alloc.spans = s->n ? s->v : NULL;
	pub->alloc.n_spans = s->n;
	if (s->n)
		*s = (struct alloc_spans){0};
	return 0;
}

int allocated__fill(struct lanes *l, uint64_t until)
{
	const struct seen_gcs *gcs = &l->seen->gcs;
	struct pic_target *pub = l->seen->pub;
	bool exited;
	int err = book_rest(l, until);

	pub->alloc = l->allocated.sums;
	if (gcs->came_off)
		pub->alloc.observed_ns = gcs->off_ns - MIN(gcs->off_ns, pub->attach_ns);
	if (!err && pub->alloc.caps_left_out)
		err = lanes__lack(l, "what capabilities beyond the first %d have allocated",
				  WIRE_HEAP_CAPS);
	if (!err)
		err = fill_rows(l, &pub->alloc);
	if (!err)
		err = fill_spans(l, pub);
	if (!err)
		err = allocators__fill(l->pic, pub);
	exited = pub->end && !strcmp(pub->end, "exited");
	if (!err)
		err = heap_curve__fill(&l->allocated.heap, exited, l->pic, &pub->heap);
	if (!err)
		pub->heap.whole_run = exited && pub->exit_code != EXIT_HEAPOVERFLOW &&
				      l->seen->from_start && !l->seen->was_cut;
	return err;
}
