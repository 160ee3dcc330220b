/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * record: takes the kernel's records, one at a time. Everything is checked before it is used: sizes
 * against counts, and times against each other.
 */
#include "record_priv.h"

/* Makes room, and sets the next threshold so that this is not repeated for a handful of records,
 * and never again if hardly any could be released. */
static int make_room(struct intake *in)
{
	size_t max = in->opts.max_records;
	int err = in->opts.make_room ? in->opts.make_room(in->opts.ctx) : 0;

	if (err)
		return err;
	in->room_at = in->n_records > max - max / 8
			      ? SIZE_MAX
			      : MIN(in->n_records + MAX(max / 4, (size_t)1), max);
	return 0;
}

static int take_gc(struct seen *s, const struct view *view)
{
	struct wire_gc rec;

	view__fixed(view, &rec, sizeof(rec));
	return gcs__record(s, &rec);
}

static int take_alloc(struct intake *in, struct seen *s, struct view *view)
{
	struct wire_alloc rec;
	struct raw_stack raw = {.head = &rec.stack, .frames = view->frames, .rts = &rec.rts};
	struct ev ev = {0};
	int err;

	view__fixed(view, &rec, sizeof(rec));
	if (view__stack(view, sizeof(rec), &rec.stack) || rec.reason > WIRE_ALLOC_STOPPED)
		return -EBADMSG;
	ev.t0 = ev.t1 = rec.h.ns;
	ev.syscall = WIRE_NO_SYSCALL;
	ev__take_rts(&ev, &rec.rts);
	err = stack__take(in, s, &raw, &ev);
	if (!err)
		allocs__sample(s, &rec, &ev);
	return err;
}

static int take_heap(struct intake *in, struct seen *s, const struct view *view)
{
	struct wire_heap_cap caps[WIRE_HEAP_CAPS];
	struct wire_heap rec;

	view__fixed(view, &rec, sizeof(rec));
	if (rec.n_caps > WIRE_HEAP_CAPS || rec.n_gens > WIRE_HEAP_GENS ||
	    view->size - sizeof(rec) < rec.n_caps * sizeof(*caps))
		return -EBADMSG;
	memcpy(caps, view->rec + sizeof(rec), rec.n_caps * sizeof(*caps));
	return allocs__heap(in, s, &rec, caps);
}

static int take_allocated(struct intake *in, struct seen *s, const struct view *view)
{
	struct wire_allocated rec;

	view__fixed(view, &rec, sizeof(rec));
	return allocs__tick(in, s, &rec);
}

/* A sample is one record, but may come with many notes of Haskell threads. */
static int make_room_for_notes(struct intake *in, struct seen *s)
{
	size_t max = in->opts.max_records;
	int err;

	if (s->n_tso_notes < (s->tso_notes_room_at ? s->tso_notes_room_at : max / 2))
		return 0;
	err = make_room(in);
	s->tso_notes_room_at =
		s->n_tso_notes > max - max / 8 ? SIZE_MAX : MAX(s->n_tso_notes + max / 8, max / 2);
	return err;
}

static int take_tso(struct intake *in, struct seen *s, const struct view *view)
{
	struct wire_tso rec;

	view__fixed(view, &rec, sizeof(rec));
	return notes__tso(in, s, &rec);
}

static int take_tso_waits(struct intake *in, struct seen *s, const struct view *view)
{
	struct wire_tso_waits rec;

	view__fixed(view, &rec, sizeof(rec));
	return notes__tso_waits(in, s, &rec);
}

/*
 * The start in /proc is at most a clock tick (10 ms) early, and it precedes its record by a while,
 * as copy_process() may be interrupted between the two (kernel/fork.c). No tid is reused that soon.
 */
#define SHOWN_EARLY_NS 100000000ULL

/*
 * Whether the snapshot, or the kernel's map at a cut, had the thread before its first record came.
 * Threads created while a snapshot is read are in it, but begin after the snapshot's time.
 */
static bool was_shown(const struct seen_thread *th, uint64_t new_ns)
{
	const struct wire_thread *state = th->final ? th->final : th->before;

	if (th->born)
		return false;
	if (!th->has_start)
		return state && MAX(state->off_since_ns, state->on_since_ns) >= new_ns;
	if (th->at_start.t0 >= new_ns)
		return true;
	/* a thread that had exited when it was looked at has no start in the snapshot */
	if (!th->shown_ns)
		return !th->end_ns && new_ns - th->at_start.t0 < SHOWN_EARLY_NS;
	return th->shown_ns <= new_ns && new_ns - th->shown_ns < SHOWN_EARLY_NS;
}

/* Finds the thread of a record. A new thread may have the tid of one that ended. */
static int thread_of(struct seen *s, const struct wire_hdr *h, struct seen_thread **ret_thread)
{
	struct seen_thread *th;
	pid_t tid = (pid_t)h->tid;

	HASH_FIND_INT(s->threads, &tid, th);
	if (th && h->type == WIRE_THREAD_NEW && !was_shown(th, h->ns)) {
		if (!th->end_ns)
			th->end_ns = h->ns; /* its exit record was lost */
		HASH_DEL(s->threads, th);
	}
	return target__thread(s, tid, ret_thread);
}

static bool size_fits(const struct wire_hdr *h, size_t size)
{
	static const uint16_t least[] = {
		[WIRE_SAMPLE] = sizeof(struct wire_sample),
		[WIRE_OFF] = sizeof(struct wire_off),
		[WIRE_CALL] = sizeof(struct wire_call),
		[WIRE_TICK] = sizeof(struct wire_tick),
		[WIRE_THREAD_NEW] = sizeof(struct wire_thread_event),
		[WIRE_THREAD_EXIT] = sizeof(struct wire_thread_event),
		[WIRE_EXEC] = sizeof(struct wire_thread_event),
		[WIRE_PROC_EXIT] = sizeof(struct wire_thread_event),
		[WIRE_GC] = sizeof(struct wire_gc),
		[WIRE_TSO] = sizeof(struct wire_tso),
		[WIRE_ALLOC] = sizeof(struct wire_alloc),
		[WIRE_HEAP] = sizeof(struct wire_heap),
		[WIRE_ALLOCATED] = sizeof(struct wire_allocated),
		[WIRE_THREAD_NAME] = sizeof(struct wire_thread_event),
		[WIRE_TSO_WAITS] = sizeof(struct wire_tso_waits),
	};

	return h->type < ARRAY_SIZE(least) && least[h->type] && h->size <= size &&
	       h->size >= least[h->type];
}

/* What GHC's profiler does at a tick: counts one for the cost-centre stack of each capability. */
static int take_tick(struct seen *s, const struct view *view)
{
	struct wire_tick_cap cap;
	struct wire_tick rec;
	uint64_t disabled = 0, queued = 0, others = 0;
	bool idle = false;
	uint32_t id;
	int err;

	view__fixed(view, &rec, sizeof(rec));
	if (rec.ncaps > WIRE_TICK_CAPS ||
	    view->size - sizeof(rec) < (size_t)rec.ncaps * sizeof(struct wire_tick_cap))
		return -EBADMSG;
	s->pub->ticks++;
	for (uint32_t i = 0; i < rec.ncaps; i++) {
		memcpy(&cap, view->rec + sizeof(rec) + i * sizeof(cap), sizeof(cap));
		if (cap.disabled && cap.no < 64)
			disabled |= 1ULL << cap.no;
		queued += cap.queued;
		idle |= !cap.disabled && !cap.has_task && !cap.queued;
		/* at a tick, the thread that runs may just have been queued after the others */
		if (cap.has_task && cap.queued)
			others += cap.queued - !cap.tso_id;
		err = ccs__get(s, cap.cccs, &id);
		if (err)
			return err;
		ccs__count_tick(s, id);
		err = ccs__note_tick(s, rec.h.ns, (uint16_t)MIN(cap.no, 0xffffU), id);
		if (err)
			return err;
	}
	if (!rec.enabled || rec.enabled >= MAX_CAPS)
		return 0;
	s->pub->capabilities = rec.enabled;
	err = notes__queued(s, rec.h.ns, queued);
	if (!err && idle && others)
		err = notes__starved(s, rec.h.ns, others);
	return err ? err : notes__caps(s, rec.h.ns, rec.enabled, disabled);
}

/* The checks common to all records. *ret_view is the record, *ret_seen its process. */
static int open_record(struct intake *in, const void *rec, size_t size, struct wire_hdr *ret_hdr,
		       struct view *ret_view, struct seen **ret_seen)
{
	struct wire_hdr h;
	struct seen *s;

	if (in->closed)
		return -EINVAL;
	if (size < sizeof(h))
		return -EBADMSG;
	memcpy(&h, rec, sizeof(h));
	if (!size_fits(&h, size) || h.ns > MAX_TIME || h.tid > INT32_MAX || h.tgid > INT32_MAX)
		return -EBADMSG;
	s = intake__find(in, (pid_t)h.tgid);
	if (!s || s->ended)
		return -ENOENT;
	ret_view->rec = rec;
	ret_view->size = h.size;
	*ret_hdr = h;
	*ret_seen = s;
	return 0;
}

/* A name alone makes no thread: it does not show since when there is one. */
static int take_thread_name(struct seen *s, const struct view *view)
{
	struct wire_thread_event rec;
	struct seen_thread *th;
	pid_t tid;

	view__fixed(view, &rec, sizeof(rec));
	tid = (pid_t)rec.h.tid;
	HASH_FIND_INT(s->threads, &tid, th);
	if (th && !th->end_ns)
		thread__take_name(th, rec.comm);
	return 0;
}

static int take_record(struct intake *in, const void *rec, size_t size)
{
	struct seen *s;
	struct seen_thread *th;
	struct wire_hdr h;
	struct view view;
	int err;

	err = open_record(in, rec, size, &h, &view, &s);
	if (!err)
		err = ccs__resolve_at(in, s, h.ns);
	if (err)
		return err;
	if (h.type == WIRE_TICK)
		return take_tick(s, &view);
	if (h.type == WIRE_GC)
		return take_gc(s, &view);
	if (h.type == WIRE_THREAD_NAME)
		return take_thread_name(s, &view);
	if (h.type == WIRE_TSO || h.type == WIRE_TSO_WAITS)
		err = make_room_for_notes(in, s);
	if (!err && h.type == WIRE_TSO)
		return take_tso(in, s, &view);
	if (!err && h.type == WIRE_TSO_WAITS)
		return take_tso_waits(in, s, &view);
	if (err)
		return err;
	/* before the thread is looked up, since this may free threads that have ended */
	err = in->n_records >= in->room_at ? make_room(in) : 0;
	if (!err && h.type == WIRE_ALLOC)
		return take_alloc(in, s, &view);
	if (!err && h.type == WIRE_HEAP)
		return take_heap(in, s, &view);
	if (!err && h.type == WIRE_ALLOCATED)
		return take_allocated(in, s, &view);
	if (!err)
		err = thread_of(s, &h, &th);
	if (err)
		return err;
	switch (h.type) {
	case WIRE_SAMPLE:
		return record__sample(in, s, th, &view);
	case WIRE_OFF:
		return record__off(in, s, th, &view);
	case WIRE_CALL:
		return record__call(in, s, th, &view);
	default:
		return record__event(in, s, th, &view);
	}
}

static int take_gc_ahead(struct seen *s, const struct view *view)
{
	struct wire_gc rec;

	view__fixed(view, &rec, sizeof(rec));
	return rec.point == WIRE_GC_END ? gcs__ahead(s, &rec) : -EINVAL;
}

/* Notes only that ticks come at all: without any, samples would be counted. */
static int take_tick_ahead(struct seen *s, const struct view *view)
{
	struct wire_tick_cap cap;
	struct wire_tick rec;

	view__fixed(view, &rec, sizeof(rec));
	if (rec.ncaps > WIRE_TICK_CAPS ||
	    view->size - sizeof(rec) < (size_t)rec.ncaps * sizeof(struct wire_tick_cap))
		return -EBADMSG;
	for (uint32_t i = 0; i < rec.ncaps; i++) {
		memcpy(&cap, view->rec + sizeof(rec) + i * sizeof(cap), sizeof(cap));
		s->ccs.ticked |= cap.cccs && s->pub->profiled;
	}
	return 0;
}

/* Notes that the thread lives until then, even if nothing else is recorded of it. */
static int take_exit_ahead(struct seen *s, const struct wire_hdr *h)
{
	struct seen_thread *th;
	pid_t tid = (pid_t)h->tid;

	HASH_FIND_INT(s->threads, &tid, th);
	if (!th)
		return -ENOENT;
	th->ahead_ns = h->ns;
	return 0;
}

int intake__ahead(struct intake *in, const void *rec, size_t size)
{
	struct seen_thread *th;
	struct wire_hdr h;
	struct view view;
	struct seen *s;
	int err;

	err = open_record(in, rec, size, &h, &view, &s);
	if (err)
		return err;
	if (h.type == WIRE_TICK)
		return take_tick_ahead(s, &view);
	if (h.type == WIRE_GC)
		return take_gc_ahead(s, &view);
	if (h.type == WIRE_THREAD_EXIT)
		return take_exit_ahead(s, &h);
	err = target__thread(s, (pid_t)h.tid, &th);
	if (err)
		return err;
	in->ahead = true;
	switch (h.type) {
	case WIRE_SAMPLE:
		err = record__sample(in, s, th, &view);
		break;
	case WIRE_OFF:
		err = record__off(in, s, th, &view);
		break;
	case WIRE_CALL:
		err = record__call(in, s, th, &view);
		break;
	default:
		err = -EINVAL;
	}
	in->ahead = false;
	return err;
}

void intake__looks_ahead(struct intake *in)
{
	in->looks_ahead = true;
}

bool intake__does_look_ahead(const struct intake *in)
{
	return in->looks_ahead;
}

int intake__ends_ahead(struct intake *in, pid_t pid, uint64_t ns, bool exits)
{
	struct seen *s = intake__find(in, pid);

	if (!s)
		return -ENOENT;
	s->ahead_ns = ns;
	s->exits_ahead = exits;
	return 0;
}

int intake__record(struct intake *in, const void *rec, size_t size)
{
	const struct intake_input input = {.kind = TI_RECORD, .data = rec, .size = size};

	return tap__report(in, take_record(in, rec, size), &input);
}
