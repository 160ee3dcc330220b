/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * allocs: what was allocated, and by whom, from the probes on collections. The end of each
 * collection reports how much every capability has allocated; a sample stands for everything that
 * its capability has allocated since its previous sample. Samples therefore add up to what the
 * runtime counts, whichever capability was the first to request collections, and however many
 * samples are missing. What was allocated while the probes were off has no sample. What has no
 * sample by the end of a window never gets one, so that the window's profile is what was allocated
 * in it, and bytes that no sample ever stands for do not pile up.
 */
#include "intake_priv.h"

/* More than a capability can have allocated: a larger number is corrupt. The sum over all
 * capabilities, none of which is assumed to shrink, fits into 64 bits. */
#define MAX_ALLOCATED (UINT64_C(1) << 56)

/* After this many collections without a request from large objects, one is unlikely to come. */
#define MAX_UNASKED 8

/* After this many samples of large objects in a row on one capability, others are unlikely. */
#define MAX_PASSED_OVER 32

/* When collections are this far apart, the sampler's ticks serve as samples of allocation, too. */
#define RARE_NS 50000000ULL

/* If no end of a collection was seen for this long, and some were counted, the probes were off. */
#define UNSEEN_NS 1000000000ULL

/* GHC's blocks (rts/include/rts/Constants.h). */
#define BLOCK_SIZE     4096
#define MEGABLOCK_SIZE (UINT64_C(1) << 20)

/* ── samples ─────────────────────────────────────────────────────────────────────────────── */

void allocs__sample(struct seen *s, const struct wire_alloc *rec, const struct ev *ev)
{
	struct seen_allocs *a = &s->allocs;

	/* the leader's sample comes first; if an end was lost, older samples are still here */
	if (rec->reason != WIRE_ALLOC_STOPPED || a->n_open == ARRAY_SIZE(a->open))
		a->n_open = 0;
	a->open[a->n_open++] = (struct alloc_open){
		.ev = *ev,
		.reason = rec->reason,
		/* for a capability that was stopped, the record has the leader's tid */
		.tid = rec->reason == WIRE_ALLOC_STOPPED ? 0 : (int32_t)rec->h.tid,
		.whole = rec->stack.end == WIRE_END_COMPLETE,
		.primitive = rec->flags & WIRE_ALLOC_PRIMITIVE,
	};
}

/*
 * Whether a sample stands for large objects. If nurseries are always used up before large objects
 * reach their limit, threads that make large objects show up when they find the nursery used up.
 */
static bool is_large(const struct seen_allocs *a, const struct alloc_open *open)
{
	return open->reason == WIRE_ALLOC_LARGE ||
	       (open->reason == WIRE_ALLOC_NURSERY && open->primitive && a->large_waits.bytes &&
		a->unasked >= MAX_UNASKED);
}

static void take_waiting(struct alloc_wait *waits, struct alloc_note *note)
{
	if (!waits->bytes)
		return;
	note->bytes += waits->bytes;
	note->older += waits->older;
	note->since_ns = MIN(note->since_ns, waits->since_ns);
	*waits = (struct alloc_wait){0};
}

/*
 * Moves waiting bytes into a sample's note. If large objects always reach their limit before the
 * nursery is used up, their samples are the only ones, and they stand for everything that the
 * capability has allocated.
 */
static void take(struct seen_allocs *a, const struct alloc_open *open, struct alloc_note *note)
{
	struct alloc_cap *cap = open->ev.left < SEEN_ALLOC_CAPS ? &a->caps[open->ev.left] : NULL;
	bool large = is_large(a, open);

	if (cap) {
		if (!large || cap->passed_over == MAX_PASSED_OVER)
			take_waiting(&cap->waits, note);
		cap->passed_over = large ? MIN(cap->passed_over + 1, MAX_PASSED_OVER) : 0;
	}
	if (large || open->reason == WIRE_ALLOC_UNKNOWN)
		take_waiting(&a->large_waits, note);
}

/* If there is no room for another note, its bytes wait for the next one. */
static int close_samples(struct intake *in, struct seen *s, uint64_t ns)
{
	struct seen_allocs *a = &s->allocs;
	int err = ARRAY_RESERVE(a->v, a->cap, a->n + a->n_open, in->opts.max_records);

	for (unsigned i = 0; !err && i < a->n_open; i++) {
		const struct alloc_open *open = &a->open[i];
		struct alloc_note *note = &a->v[a->n];

		*note = (struct alloc_note){
			.ev = open->ev,
			.since_ns = open->ev.t1,
			.until_ns = open->ev.t1,
			.tid = open->tid,
			.whole = open->whole,
			.stopped = open->reason == WIRE_ALLOC_STOPPED,
		};
		take(a, open, note);
		note->ev.t0 = note->ev.t1 = ns;
		a->n += note->bytes != 0;
		in->n_records += note->bytes != 0;
	}
	a->n_open = 0;
	return err == -E2BIG ? 0 : err;
}

/* ── readings ────────────────────────────────────────────────────────────────────────────── */

/* Adds bytes of the last reading, allocated since `since_ns`, to those that wait. */
static void wait_for_sample(struct alloc_wait *waits, uint64_t bytes, uint64_t since_ns)
{
	if (bytes && !waits->bytes)
		waits->since_ns = since_ns;
	waits->older = waits->bytes;
	waits->bytes += bytes;
}

/* Returns how much a capability has allocated since the last reading. */
static uint64_t advance(struct seen_allocs *a, struct alloc_cap *cap, uint64_t bytes, bool from_0)
{
	/* a capability created since then started at 0; one that could not be read did not */
	bool is_new = from_0 || (a->known && cap >= a->caps + a->n_caps);
	uint64_t before = cap->known ? cap->bytes : is_new ? 0 : bytes;

	cap->bytes = MAX(bytes, cap->bytes);
	cap->known = true;
	return bytes > before ? bytes - before : 0;
}

/* Divides `large`, the bytes of all capabilities that went into large objects, in proportion to
 * what each has allocated. What was not read before is no older than `since_ns`. */
static void divide(struct seen_allocs *a, const uint64_t *more, uint64_t all, uint64_t large,
		   uint64_t since_ns)
{
	uint64_t sum = 0, given = 0;

	for (size_t i = 0; i < SEEN_ALLOC_CAPS; i++) {
		uint64_t part = 0;

		sum += more[i];
		if (more[i])
			part = (uint64_t)((unsigned __int128)large * sum / all) - given;
		given += part;
		wait_for_sample(&a->caps[i].waits, more[i] - part,
				a->caps[i].read_ns ? a->caps[i].read_ns : since_ns);
	}
	wait_for_sample(&a->large_waits, large, a->heap_ns ? a->heap_ns : since_ns);
}

/* How long no end of a collection has been seen. */
static uint64_t without_end(const struct seen *s, uint64_t ns)
{
	uint64_t since = s->allocs.heap_ns ? s->allocs.heap_ns : s->pub->attach_ns;

	return ns - MIN(since, ns);
}

/*
 * Collections since the last reading that were not seen, as while the probes were off, have no
 * sample: takes their part out of more[], as if all collections were alike. Otherwise the samples
 * of one collection would stand for everything allocated in minutes. Not needed if there were
 * ticks.
 */
static uint64_t leave_unseen(struct seen *s, const struct wire_heap *rec,
			     uint64_t more[SEEN_ALLOC_CAPS], uint64_t since_ns)
{
	struct seen_allocs *a = &s->allocs;
	uint64_t n = rec->number - a->number, seen = 1 + (uint64_t)rec->skipped, sum = 0;

	if (!a->known || a->ticked || rec->number == WIRE_GC_NO_NUMBER ||
	    rec->number <= a->number || n <= seen || without_end(s, rec->h.ns) < UNSEEN_NS)
		return 0;
	for (size_t i = 0; i < SEEN_ALLOC_CAPS; i++) {
		uint64_t part = (uint64_t)((unsigned __int128)more[i] * (n - seen) / n);

		more[i] -= part;
		sum += part;
	}
	wait_for_sample(&a->unseen, sum, since_ns);
	return sum;
}

/* Merges two readings if there is no room: the heap is as the later collection left it. */
static void merge_reading(struct alloc_reading *last, const struct alloc_reading *next)
{
	struct alloc_reading sum = next->ticked ? *last : *next;
	bool two = !last->ticked && !next->ticked;

	sum.since_ns = last->since_ns;
	sum.ns = next->ns;
	sum.bytes = last->bytes + next->bytes;
	sum.large = last->large + next->large;
	sum.large_of = last->large_of + next->large_of;
	sum.skipped = last->skipped + next->skipped + two;
	sum.skipped_copied = last->skipped_copied + next->skipped_copied + (two ? last->copied : 0);
	*last = sum;
}

static int add_reading(struct intake *in, struct seen_allocs *a,
		       const struct alloc_reading *reading)
{
	struct alloc_reading *last = a->n_readings ? &a->readings[a->n_readings - 1] : NULL;
	int err = ARRAY_RESERVE(a->readings, a->readings_cap, a->n_readings + 1,
				in->opts.max_records);

	if (!err) {
		a->readings[a->n_readings++] = *reading;
		in->n_records++;
	} else if (err == -E2BIG && last) {
		merge_reading(last, reading);
		err = 0;
	}
	return err;
}

/* Converts a count of words or blocks to bytes; 0 if the count is impossible. */
static uint64_t bytes_of(uint64_t n, uint64_t size)
{
	return n < MAX_ALLOCATED / size ? n * size : 0;
}

static void read_heap(const struct wire_heap *rec, struct alloc_reading *r)
{
	_Static_assert(PIC_HEAP_GENS == WIRE_HEAP_GENS, "all that are read are shown");
	_Static_assert(PIC_HEAP_THREADS == WIRE_HEAP_THREADS, "all that are counted are shown");
	r->live = bytes_of(rec->live_words, 8);
	r->copied = bytes_of(rec->copied_words, 8);
	r->slop = bytes_of(rec->slop_words, 8);
	r->skipped_copied = bytes_of(rec->skipped_copied_words, 8);
	r->generation = rec->generation < 256 ? (int32_t)rec->generation : -1;
	r->held = rec->held * MEGABLOCK_SIZE;
	r->threads = MIN(rec->n_threads, (uint32_t)PIC_HEAP_THREADS);
	r->n_gens = rec->n_gens;
	for (uint32_t i = 0; i < rec->n_gens; i++) {
		const struct wire_heap_gen *from = &rec->gens[i];
		struct pic_heap_gen *to = &r->gens[i];

		to->large_bytes = bytes_of(from->n_large_words, 8);
		to->live_bytes = bytes_of(from->n_words, 8) + to->large_bytes;
		to->compact_bytes = bytes_of(from->n_compact_blocks, BLOCK_SIZE);
		to->block_bytes = bytes_of(from->n_blocks, BLOCK_SIZE) +
				  bytes_of(from->n_large_blocks, BLOCK_SIZE) + to->compact_bytes;
	}
}

/* The number counts the collections before this one: at 0, nothing allocated is older. */
static bool is_first(const struct wire_heap *rec)
{
	return rec->number == 0;
}

/* Adds what each capability has allocated since it was last read to more[] and the reading. */
static void read_caps(struct seen_allocs *a, const struct wire_heap *rec,
		      const struct wire_heap_cap *caps, uint64_t more[SEEN_ALLOC_CAPS],
		      struct alloc_reading *reading)
{
	bool from_0 = is_first(rec);

	for (uint32_t i = 0; i < rec->n_caps; i++) {
		struct alloc_cap *cap;
		uint64_t bytes;

		if (caps[i].no >= SEEN_ALLOC_CAPS || caps[i].allocated >= MAX_ALLOCATED)
			continue;
		cap = &a->caps[caps[i].no];
		bytes = advance(a, cap, caps[i].allocated, from_0) + (from_0 ? cap->unread : 0);
		cap->unread = 0;
		more[caps[i].no] += bytes;
		reading->bytes += bytes;
		reading->nursery += (uint64_t)caps[i].nursery * BLOCK_SIZE;
	}
}

/* Notes what the next records are compared with. */
static void note_reading(struct seen *s, const struct wire_heap *rec,
			 const struct alloc_reading *reading)
{
	struct seen_allocs *a = &s->allocs;
	bool from_0 = is_first(rec);

	for (uint32_t i = 0; i < SEEN_ALLOC_CAPS; i++)
		if (a->caps[i].known)
			a->caps[i].read_ns = rec->h.ns;
	a->ticked = 0;
	a->rare = without_end(s, rec->h.ns) >= RARE_NS;
	a->heap_ns = rec->h.ns;
	a->number = rec->number;
	/* not every request is sampled */
	a->unasked = rec->reason == WIRE_ALLOC_LARGE ? 0 : MIN(a->unasked + 1, MAX_UNASKED);
	/* what the sample stands for began before anything was counted */
	if (!a->known && !from_0)
		a->n_open = 0;
	/* stays 0 if nothing is older than the session */
	if (a->known ? a->n_caps > 0 : !from_0)
		a->n_caps = MAX(a->n_caps, MIN(rec->all_caps, (uint32_t)SEEN_ALLOC_CAPS));
	a->known = true;
	a->read_ns = rec->h.ns;
	a->live = reading->live;
	a->held = reading->held ? reading->held : a->held;
	a->threads = reading->threads ? reading->threads : a->threads;
}

int allocs__heap(struct intake *in, struct seen *s, const struct wire_heap *rec,
		 const struct wire_heap_cap *caps)
{
	struct seen_allocs *a = &s->allocs;
	bool from_0 = is_first(rec);
	uint64_t more[SEEN_ALLOC_CAPS] = {0}, large = rec->large_words * 8, all, sampled;
	struct alloc_reading reading = {
		.ns = rec->h.ns,
		.since_ns = from_0	 ? s->pub->attach_ns
			    : a->read_ns ? a->read_ns
					 : rec->h.ns,
		.reason = rec->reason,
		.skipped = rec->skipped,
		.caps_left_out = rec->all_caps > rec->n_caps,
	};
	int err;

	if (rec->reason > WIRE_ALLOC_OTHER || large > MAX_ALLOCATED)
		return -EBADMSG;
	read_caps(a, rec, caps, more, &reading);
	read_heap(rec, &reading);
	if (a->known && large >= a->large)
		reading.large = large - a->large;
	else if (a->known || from_0)
		reading.large = large;
	all = reading.bytes + a->ticked;
	reading.large = MIN(reading.large, all);
	reading.large_of = rec->flags & WIRE_HEAP_LARGE_SEEN ? all : 0;
	a->large = large;
	sampled = reading.bytes - leave_unseen(s, rec, more, reading.since_ns);
	/* ticks have already taken what there was, of either kind */
	divide(a, more, sampled,
	       all ? (uint64_t)((unsigned __int128)reading.large * sampled / all) : 0,
	       reading.since_ns);
	note_reading(s, rec, &reading);
	err = add_reading(in, a, &reading);
	return err ? err : close_samples(in, s, rec->h.ns);
}

/* ── ticks ───────────────────────────────────────────────────────────────────────────────── */

void allocs__note_sample(struct seen *s, const struct wire_sample *rec, const struct ev *ev)
{
	struct alloc_cap *cap =
		rec->rts.cap_no < SEEN_ALLOC_CAPS ? &s->allocs.caps[rec->rts.cap_no] : NULL;

	if (!cap)
		return;
	cap->sample = *ev;
	cap->sample_tid = (int32_t)rec->h.tid;
	cap->sample_whole = rec->stack.end == WIRE_END_COMPLETE;
}

/* Whether collections are too rare at that time to show who allocates. */
static bool is_rare(const struct seen *s, uint64_t ns)
{
	return s->allocs.rare || without_end(s, ns) >= RARE_NS;
}

static int note_tick(struct intake *in, struct seen_allocs *a, struct alloc_cap *cap, int32_t tid,
		     uint64_t ns)
{
	int err = ARRAY_RESERVE(a->v, a->cap, a->n + 1, in->opts.max_records);
	struct alloc_note *note;

	/* if there is no room, its bytes wait */
	if (err)
		return err == -E2BIG ? 0 : err;
	note = &a->v[a->n++];
	*note = (struct alloc_note){.ev = cap->sample,
				    .since_ns = ns,
				    .until_ns = ns,
				    .tid = tid,
				    .whole = cap->sample_whole,
				    .ticked = true};
	take_waiting(&cap->waits, note);
	note->ev.t0 = note->ev.t1 = ns;
	in->n_records++;
	return 0;
}

int allocs__tick(struct intake *in, struct seen *s, const struct wire_allocated *rec)
{
	struct seen_allocs *a = &s->allocs;
	struct alloc_cap *cap = rec->cap_no < SEEN_ALLOC_CAPS ? &a->caps[rec->cap_no] : NULL;
	struct alloc_reading reading = {.ns = rec->h.ns, .ticked = true};
	int err;

	if (rec->allocated >= MAX_ALLOCATED)
		return -EBADMSG;
	if (!cap || !cap->sample_tid || cap->sample_tid != (int32_t)rec->h.tid ||
	    cap->sample.t0 != rec->h.ns || !is_rare(s, rec->h.ns))
		return 0;
	cap->sample_tid = 0;
	if (!cap->known && !a->known) {
		cap->known = true;
		cap->bytes = cap->unread = rec->allocated;
		cap->read_ns = rec->h.ns;
		a->read_ns = a->read_ns ? a->read_ns : rec->h.ns;
		return 0;
	}
	reading.bytes = advance(a, cap, rec->allocated, false);
	if (!reading.bytes)
		return 0;
	reading.since_ns = a->read_ns ? a->read_ns : rec->h.ns;
	wait_for_sample(&cap->waits, reading.bytes, cap->read_ns ? cap->read_ns : reading.since_ns);
	cap->read_ns = rec->h.ns;
	a->ticked += reading.bytes;
	a->read_ns = rec->h.ns;
	err = add_reading(in, a, &reading);
	return err ? err : note_tick(in, a, cap, (int32_t)rec->h.tid, rec->h.ns);
}

/* ── letting go ──────────────────────────────────────────────────────────────────────────── */

void seen__forget_allocs(struct intake *in, struct seen *s, uint64_t t)
{
	struct seen_allocs *a = &s->allocs;
	size_t kept = 0, before = a->n + a->n_readings;

	for (size_t i = 0; i < a->n; i++)
		if (a->v[i].ev.t1 > t)
			a->v[kept++] = a->v[i];
	a->n = kept;
	kept = 0;
	for (size_t i = 0; i < a->n_readings; i++)
		if (a->readings[i].ns > t)
			a->readings[kept++] = a->readings[i];
	a->n_readings = kept;
	in->n_records -= before - a->n - a->n_readings;
}

int allocs__cut(struct intake *in, struct seen *s, uint64_t at_ns)
{
	struct seen_allocs *a = &s->allocs;
	int err = 0;

	seen__forget_allocs(in, s, at_ns);
	for (size_t i = 0; !err && i < a->n; i++)
		err = seen__renumber(in, &a->v[i].ev);
	/* the records that would follow the samples are from this very moment */
	for (unsigned i = 0; i < SEEN_ALLOC_CAPS; i++)
		a->caps[i].sample_tid = 0;
	for (unsigned i = 0; !err && i < a->n_open; i++)
		err = seen__renumber(in, &a->open[i].ev);
	return err;
}

/* The bytes up to a moment that no sample stands for, as far as they were found. */
struct rest {
	uint64_t most, bytes, since_ns;
};

/* Takes up to `bytes` for the rest and returns how many it took. */
static uint64_t take_part(struct rest *rest, uint64_t bytes, uint64_t since_ns)
{
	uint64_t part = MIN(bytes, rest->most - rest->bytes);

	rest->bytes += part;
	if (part)
		rest->since_ns = MIN(rest->since_ns, since_ns);
	return part;
}

static void take_waits(struct rest *rest, struct alloc_wait *waits, bool older)
{
	uint64_t part = take_part(rest, older ? waits->older : waits->bytes, waits->since_ns);

	waits->bytes -= part;
	waits->older -= MIN(waits->older, part);
}

/* Takes what waits; `older`: only what waited before the last reading. */
static void take_waiting_rest(struct rest *rest, struct seen_allocs *a, bool older)
{
	take_waits(rest, &a->unseen, older);
	take_waits(rest, &a->large_waits, older);
	for (size_t i = 0; i < SEEN_ALLOC_CAPS; i++)
		take_waits(rest, &a->caps[i].waits, older);
}

uint64_t seen__take_unsampled(struct intake *in, struct seen *s, uint64_t t, uint64_t most,
			      uint64_t *ret_since_ns)
{
	struct rest rest = {.most = most, .since_ns = UINT64_MAX};
	struct seen_allocs *a = &s->allocs;
	size_t kept = 0, before = a->n;

	/* a later sample may stand for some of them */
	for (size_t i = 0; i < before; i++) {
		struct alloc_note note = a->v[i];

		if (note.ev.t1 > t) {
			uint64_t part = take_part(&rest, note.older, note.since_ns);

			note.bytes -= part;
			note.older -= part;
		}
		if (note.bytes)
			a->v[kept++] = note;
	}
	a->n = kept;
	in->n_records -= before - kept;
	/* the last reading may be later, too */
	take_waiting_rest(&rest, a, true);
	take_waiting_rest(&rest, a, false);
	*ret_since_ns = rest.since_ns;
	return rest.bytes;
}
