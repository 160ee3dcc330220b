/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * allocs: what was allocated, and by whom, from the probes on collections. At each collection's end
 * comes how much every capability has allocated; a sample stands for all that its capability has
 * allocated since its last one. So samples add up to what the runtime counts, whichever capability
 * was the first to ask for collections, and however many samples are missing. Of what was allocated
 * while the probes were off there is no sample. What has no sample by a window's end has none: with
 * that the window's profile is what was allocated in it, and what no sample ever comes for does not
 * pile up.
 */
#include "intake_priv.h"

/* More than a capability can have allocated: the number is damaged. All of them together, of which
 * none is taken to have gone back, fit into 64 bits. */
#define MAX_ALLOCATED (UINT64_C(1) << 56)

/* So many collections without a request from large objects, and there will hardly be one. */
#define MAX_UNASKED 8

/* So many samples of large objects in a row at one capability, and there will hardly be another. */
#define MAX_PASSED_OVER 32

/* Where collections are that far apart, the sampler's ticks are samples of allocation, too. */
#define RARE_NS 50000000ULL

/* Where there were some, and no end of one was seen for so long, the probes were off. */
#define UNSEEN_NS 1000000000ULL

/* GHC's blocks (rts/include/rts/Constants.h). */
#define BLOCK_SIZE     4096
#define MEGABLOCK_SIZE (UINT64_C(1) << 20)

/* ── samples ─────────────────────────────────────────────────────────────────────────────── */

void allocs__sample(struct seen *s, const struct wire_alloc *rec, const struct ev *ev)
{
	struct seen_allocs *a = &s->allocs;

	/* the leader's is the first one; an end that was lost leaves older ones here */
	if (rec->reason != WIRE_ALLOC_STOPPED || a->n_open == ARRAY_SIZE(a->open))
		a->n_open = 0;
	a->open[a->n_open++] = (struct alloc_open){
		.ev = *ev,
		.reason = rec->reason,
		/* of a capability that was stopped it is the leader's */
		.tid = rec->reason == WIRE_ALLOC_STOPPED ? 0 : (int32_t)rec->h.tid,
		.whole = rec->stack.end == WIRE_END_COMPLETE,
		.primitive = rec->flags & WIRE_ALLOC_PRIMITIVE,
	};
}

/*
 * Whether a sample stands for large objects. Where nurseries are always used up before large
 * objects reach their limit, the threads that make some show when they find the nursery used up.
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
 * What a sample takes of the bytes that wait. Where large objects always reach their limit before
 * the nursery is used up, their samples are the only ones, and stand for all that the capability
 * has allocated.
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

/* Without room for another note its bytes wait for the next one. */
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

/* The last reading has more bytes that wait, which were allocated since `since_ns`. */
static void wait_for_sample(struct alloc_wait *waits, uint64_t bytes, uint64_t since_ns)
{
	if (bytes && !waits->bytes)
		waits->since_ns = since_ns;
	waits->older = waits->bytes;
	waits->bytes += bytes;
}

/* How much a capability has allocated since the last reading. */
static uint64_t advance(struct seen_allocs *a, struct alloc_cap *cap, uint64_t bytes, bool from_0)
{
	/* one that is new since then has begun with nothing; one that could not be read has not */
	bool is_new = from_0 || (a->known && cap >= a->caps + a->n_caps);
	uint64_t before = cap->known ? cap->bytes : is_new ? 0 : bytes;

	cap->bytes = MAX(bytes, cap->bytes);
	cap->known = true;
	return bytes > before ? bytes - before : 0;
}

/* `large` of what all have allocated was large objects: each capability's share of them. What was
 * not read before is not older than `since_ns`. */
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

/* How long no collection had been seen to end. */
static uint64_t without_end(const struct seen *s, uint64_t ns)
{
	uint64_t since = s->allocs.heap_ns ? s->allocs.heap_ns : s->pub->attach_ns;

	return ns - MIN(since, ns);
}

/*
 * Of collections since the last reading of which nothing was seen, as while the probes were off,
 * there is no sample either: their part of more[], as if all were alike. The samples of one
 * collection would stand for all that was allocated in minutes. Ticks have been there meanwhile.
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

/* There is no room for the next one: the heap is as the later collection left it. */
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

/* A count of words, or of blocks, as bytes; one that cannot be is 0. */
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

/* The count is that of collections before: nothing that was allocated is older. */
static bool is_first(const struct wire_heap *rec)
{
	return rec->number == 0;
}

/* What each capability has allocated since it was read last, into more[] and the reading. */
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

/* What the next records are compared with. */
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
	/* what it stands for began before anything was counted */
	if (!a->known && !from_0)
		a->n_open = 0;
	/* where nothing is older than the session, it stays 0 */
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
	/* ticks have taken what there was by then, of either kind */
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

/* Whether collections are too rare by then to show who allocates. */
static bool is_rare(const struct seen *s, uint64_t ns)
{
	return s->allocs.rare || without_end(s, ns) >= RARE_NS;
}

static int note_tick(struct intake *in, struct seen_allocs *a, struct alloc_cap *cap, int32_t tid,
		     uint64_t ns)
{
	int err = ARRAY_RESERVE(a->v, a->cap, a->n + 1, in->opts.max_records);
	struct alloc_note *note;

	/* without room its bytes wait */
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
	/* what would follow is of this very moment */
	for (unsigned i = 0; i < SEEN_ALLOC_CAPS; i++)
		a->caps[i].sample_tid = 0;
	for (unsigned i = 0; !err && i < a->n_open; i++)
		err = seen__renumber(in, &a->open[i].ev);
	return err;
}

/* What no sample stands for up to a moment, as far as it was found. */
struct rest {
	uint64_t most, bytes, since_ns;
};

/* So many of the bytes are of it. */
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

/* What waits, or of that only what waited before the last reading. */
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

	/* a sample that has come since may stand for some of it */
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
	/* the last reading may have come since, too */
	take_waiting_rest(&rest, a, true);
	take_waiting_rest(&rest, a, false);
	*ret_since_ns = rest.since_ns;
	return rest.bytes;
}
