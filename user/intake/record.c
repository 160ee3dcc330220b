/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * record: takes the kernel's records, one at a time. Everything is checked before it is used: sizes
 * against counts, times against each other.
 */
#include "intake_priv.h"

#define TASK_TRACED 8 /* include/linux/sched.h, __TASK_TRACED; the same since Linux 2.6 */

/* Not again for a handful of records, and never again if hardly any can go. */
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

static int keep(struct intake *in, struct seen *s, struct seen_thread *th, struct evs *evs,
		const struct ev *ev)
{
	int err;

	if (in->n_records >= in->opts.max_records && !in->ahead) {
		if (!s->left_out++)
			s->blind_ns = MAX(ev->t0 ? ev->t0 : ev->t1, s->pub->attach_ns);
		return -ENOSPC;
	}
	/* those of the next window come on top of all others */
	err = ARRAY_RESERVE(evs->v, evs->cap, evs->n + 1, 2 * in->opts.max_records);
	if (err)
		return err;
	evs->v[evs->n] = *ev;
	if (in->ahead) {
		evs->v[evs->n].flags |= EV_AHEAD;
	} else {
		th->had_records = true;
		/* only of one with an entry is it known when it left the CPU */
		th->has_entry |= evs == &th->offs;
		th->last_ns = MAX(th->last_ns, ev->t1);
	}
	evs->n++;
	in->n_records++;
	return 0;
}

void ev__take_rts(struct ev *ev, const struct wire_rts *rts)
{
	ev->where = rts->where <= WIRE_WHERE_NOT_READY ? rts->where : WIRE_WHERE_UNKNOWN;
	ev->left = rts->cap_no < MAX_CAPS ? (uint16_t)rts->cap_no : NO_CAP;
	ev->cap =
		ev->where == WIRE_WHERE_HASKELL || ev->where == WIRE_WHERE_RTS ? ev->left : NO_CAP;
	ev->tso = rts->tso ? rts->tso_id : 0;
	if (rts->flags & WIRE_RTS_CALLS_UNKNOWN)
		ev->flags |= EV_CALLS_UNKNOWN;
	if (rts->flags & WIRE_RTS_SUSPENDING)
		ev->flags |= EV_HANDOVER;
}

/* The fixed part of a record and its frames, once its sizes are known to agree. */
struct view {
	const uint8_t *rec;
	size_t size;
	uint64_t frames[WIRE_FRAMES_MAX];
};

/* It is there: size_fits(). */
static void fixed_part(const struct view *view, void *ret, size_t size)
{
	memcpy(ret, view->rec, size);
}

static int stack_part(struct view *view, size_t fixed, const struct wire_stack *head)
{
	size_t bytes = (size_t)head->nframes * sizeof(uint64_t);

	if (head->nframes > WIRE_FRAMES_MAX || view->size - fixed < bytes ||
	    head->end > WIRE_END_BROKEN)
		return -EBADMSG;
	if (bytes)
		memcpy(view->frames, view->rec + fixed, bytes);
	return 0;
}

static void count_quality(struct pic_quality *q, const struct wire_stack *head, bool gap,
			  bool haskell)
{
	q->samples++;
	q->haskell_samples += haskell;
	q->resynchronised += head->resync > 0;
	switch (head->end) {
	case WIRE_END_NONE:
		q->none++;
		break;
	case WIRE_END_COMPLETE:
		if (gap)
			q->gap++;
		else if (head->elided & 1)
			q->elided++;
		else
			q->complete++;
		q->haskell_complete += haskell;
		break;
	case WIRE_END_TRUNCATED:
		q->truncated++;
		break;
	default:
		q->broken[head->cause < PIC_CAUSES ? head->cause : 0]++;
		break;
	}
}

static int take_sample(struct intake *in, struct seen *s, struct seen_thread *th, struct view *view)
{
	struct wire_sample rec;
	struct raw_stack raw = {.head = &rec.stack, .frames = view->frames, .rts = &rec.rts};
	struct ev ev = {0};
	bool in_haskell, early;
	int err;

	fixed_part(view, &rec, sizeof(rec));
	if (stack_part(view, sizeof(rec), &rec.stack) || rec.call_start_ns > rec.h.ns)
		return -EBADMSG;
	ev.t0 = ev.t1 = rec.h.ns;
	ev.call_start_ns = rec.call_start_ns;
	ev.short_cpu_ns = rec.short_cpu_ns;
	ev.syscall = WIRE_NO_SYSCALL;
	ev__take_rts(&ev, &rec.rts);
	raw.ip = rec.ip;
	raw.sampled = true;
	raw.site = rec.site;
	err = in->ahead ? 0 : ccs__count_sample(s, &rec.rts);
	if (!err)
		err = stack__take(in, s, &raw, &ev);
	if (err)
		return err;
	if (in->ahead)
		return keep(in, s, th, &th->samples, &ev);
	/* rts/sm/NonMoving.c, nonmovingConcurrentMark: it has a thread of its own */
	if (ev.where == WIRE_WHERE_FOREIGN && (ev.code == CODE_GC || (ev.flags & EV_GC_CODE)))
		th->collects = true;
	early = ev.where == WIRE_WHERE_NOT_READY && ev.code == CODE_HASKELL;
	in_haskell = ev.where == WIRE_WHERE_HASKELL && ev.code == CODE_HASKELL;
	gcs__runs(s, th->tid, &ev);
	s->pub->quality.early += early;
	count_quality(&s->pub->quality, &rec.stack, ev.flags & EV_GAP, in_haskell);
	if (in_haskell && ev.site)
		s->site_v[ev.site - 1]->called_back = true;
	if (ev.where == WIRE_WHERE_HASKELL)
		allocs__note_sample(s, &rec, &ev);
	return keep(in, s, th, &th->samples, &ev);
}

/*
 * An interval without a begin is from before the thread was first seen. One that has shown before,
 * and whose entry on the kernel side came late, has run since then for all that is known.
 */
static bool is_late_entry(const struct intake *in, struct seen_thread *th,
			  const struct wire_off *rec)
{
	/* what is known ahead is no record yet */
	if (rec->out_ns || !(th->had_records || (in->ahead && (th->samples.n || th->calls.n))))
		return false;
	if (!in->ahead) {
		th->has_entry = true;
		th->last_ns = MAX(th->last_ns, rec->h.ns);
	}
	return true;
}

static int take_off(struct intake *in, struct seen *s, struct seen_thread *th, struct view *view)
{
	struct wire_off rec;
	struct raw_stack raw = {.head = &rec.stack, .frames = view->frames, .rts = &rec.rts};
	struct ev ev = {0};
	int err;

	fixed_part(view, &rec, sizeof(rec));
	if (stack_part(view, sizeof(rec), &rec.stack) || rec.out_ns > rec.h.ns ||
	    rec.call_start_ns > rec.h.ns)
		return -EBADMSG;
	if (is_late_entry(in, th, &rec))
		return 0;
	gcs__off(s, &rec);
	ev.t0 = rec.out_ns;
	ev.t1 = rec.h.ns;
	ev.wake_ns = rec.wake_ns;
	ev.call_start_ns = rec.call_start_ns;
	ev.short_cpu_ns = rec.short_cpu_ns;
	ev.syscall = rec.syscall;
	if (!rec.out_ns)
		ev.flags |= EV_NEVER_SEEN;
	else if (!rec.prev_state)
		ev.flags |= EV_RUNNABLE;
	if (rec.prev_state & TASK_TRACED)
		ev.flags |= EV_TRACED;
	ev__take_rts(&ev, &rec.rts);
	raw.ip = rec.ip;
	raw.site = rec.site;
	err = stack__take(in, s, &raw, &ev);
	/* those that the kernel held back have no stack, and not the time of any of them */
	if (!err && !in->ahead && rec.stack.nframes)
		gcs__runs(s, th->tid, &ev);
	return err ? err : keep(in, s, th, &th->offs, &ev);
}

/* Its time is counted from there. */
static uint64_t call_begin(const struct wire_call *rec)
{
	return rec->start_ns + MIN(rec->handover_ns, rec->h.ns - rec->start_ns);
}

static int take_call(struct intake *in, struct seen *s, struct seen_thread *th, struct view *view)
{
	struct wire_call rec;
	struct raw_stack raw = {.head = &rec.stack, .frames = view->frames, .rts = &rec.rts};
	struct ev ev = {0};
	int err;

	fixed_part(view, &rec, sizeof(rec));
	if (stack_part(view, sizeof(rec), &rec.stack) || rec.start_ns > rec.h.ns)
		return -EBADMSG;
	/* Without a begin there is no call, only a return; the kernel counts those. */
	if (rec.flags & WIRE_CALL_UNMATCHED)
		return 0;
	ev.t0 = rec.start_ns;
	ev.t1 = rec.h.ns;
	ev.wake_ns = call_begin(&rec);
	ev.call_start_ns = rec.start_ns;
	ev.syscall = WIRE_NO_SYSCALL;
	ev.call_flags = (uint8_t)rec.flags;
	ev__take_rts(&ev, &rec.rts);
	ev.where = WIRE_WHERE_SAFE_CALL;
	ev.cap = NO_CAP;
	raw.site = rec.site;
	err = stack__take(in, s, &raw, &ev);
	if (in->ahead)
		return err ? err : keep(in, s, th, &th->calls, &ev);
	s->last_call_ns = MAX(s->last_call_ns, ev.t1);
	if (!err && th->has_start && ev.site && ev.site == th->at_start.site) {
		if (rec.flags & WIRE_CALL_OPEN_AT_START)
			th->ended_before_call = true;
		else
			th->began_same_call = true;
	}
	/* one that was over by then is none of those: its record comes late */
	if (!err && s->was_cut && ev.site && rec.start_ns < s->pub->attach_ns &&
	    rec.h.ns > s->pub->attach_ns)
		carried__record(in, s, th, &rec, s->site_v[ev.site - 1]);
	if (!err)
		err = notes__flow(s, th->tid, &ev);
	return err ? err : keep(in, s, th, &th->calls, &ev);
}

static int take_gc(struct seen *s, const struct view *view)
{
	struct wire_gc rec;

	fixed_part(view, &rec, sizeof(rec));
	return gcs__record(s, &rec);
}

static int take_alloc(struct intake *in, struct seen *s, struct view *view)
{
	struct wire_alloc rec;
	struct raw_stack raw = {.head = &rec.stack, .frames = view->frames, .rts = &rec.rts};
	struct ev ev = {0};
	int err;

	fixed_part(view, &rec, sizeof(rec));
	if (stack_part(view, sizeof(rec), &rec.stack) || rec.reason > WIRE_ALLOC_STOPPED)
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

	fixed_part(view, &rec, sizeof(rec));
	if (rec.n_caps > WIRE_HEAP_CAPS || rec.n_gens > WIRE_HEAP_GENS ||
	    view->size - sizeof(rec) < rec.n_caps * sizeof(*caps))
		return -EBADMSG;
	memcpy(caps, view->rec + sizeof(rec), rec.n_caps * sizeof(*caps));
	return allocs__heap(in, s, &rec, caps);
}

static int take_allocated(struct intake *in, struct seen *s, const struct view *view)
{
	struct wire_allocated rec;

	fixed_part(view, &rec, sizeof(rec));
	return allocs__tick(in, s, &rec);
}

static int take_tso(struct intake *in, struct seen *s, const struct view *view)
{
	struct wire_tso rec;

	fixed_part(view, &rec, sizeof(rec));
	return notes__tso(in, s, &rec);
}

void thread__take_name(struct seen_thread *th, const char comm[16])
{
	if (!comm[0])
		return;
	memcpy(th->name, comm, sizeof(th->name));
	th->name[sizeof(th->name) - 1] = 0;
}

static void take_shorts(struct seen_thread *th, const struct wire_thread_event *rec)
{
	th->shorts = (struct short_calls){true, rec->short_calls, rec->short_wall_ns,
					  rec->short_blocked_ns, rec->short_runnable_ns};
}

static int take_event(struct intake *in, struct seen *s, struct seen_thread *th,
		      const struct wire_thread_event *rec)
{
	switch (rec->h.type) {
	case WIRE_THREAD_NEW:
		th->born = true;
		th->has_entry |= rec->flags & WIRE_THREAD_HAS_ENTRY;
		th->start_ns = rec->h.ns;
		thread__take_name(th, rec->comm);
		return 0;
	case WIRE_THREAD_EXIT:
		th->end_ns = rec->h.ns;
		carried__exit(s, th, rec->open_calls, rec->flags & WIRE_THREAD_ALONE);
		thread__take_name(th, rec->comm);
		take_shorts(th, rec);
		seen__fit(th);
		return 0;
	case WIRE_EXEC:
		carried__exec(s, th, rec->open_calls);
		take_shorts(th, rec);
		return target__end(in, s, "exec", rec->h.ns);
	default:
		return target__end(in, s, "exited", rec->h.ns);
	}
}

/*
 * A start by /proc is a clock tick early at most (10 ms), and some time before the record of it, as
 * copy_process() may be interrupted between the two (kernel/fork.c). No number is used again so
 * soon.
 */
#define SHOWN_EARLY_NS 100000000ULL

/*
 * Whether the snapshot, or the kernel's map at a cut, showed it before its first record came.
 * Threads that are created while a snapshot is read are in it, and begin after the snapshot's time.
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
	/* one that was gone again when it was looked at has no start there */
	if (!th->shown_ns)
		return !th->end_ns && new_ns - th->at_start.t0 < SHOWN_EARLY_NS;
	return th->shown_ns <= new_ns && new_ns - th->shown_ns < SHOWN_EARLY_NS;
}

/* The thread that a record is of. A new thread may have the number of one that ended. */
static int thread_of(struct seen *s, const struct wire_hdr *h, struct seen_thread **ret_thread)
{
	struct seen_thread *th;
	pid_t tid = (pid_t)h->tid;

	HASH_FIND_INT(s->threads, &tid, th);
	if (th && h->type == WIRE_THREAD_NEW && !was_shown(th, h->ns)) {
		if (!th->end_ns)
			th->end_ns = h->ns; /* its end was lost */
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
	};

	return h->type < ARRAY_SIZE(least) && least[h->type] && h->size <= size &&
	       h->size >= least[h->type];
}

/* What GHC's profiler does at a tick: one for the cost-centre stack of each capability. */
static int take_tick(struct seen *s, const struct view *view)
{
	struct wire_tick_cap cap;
	struct wire_tick rec;
	uint64_t disabled = 0, queued = 0, others = 0;
	bool idle = false;
	uint32_t id;
	int err;

	fixed_part(view, &rec, sizeof(rec));
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
		/* at a tick the one that runs may just have been queued, after the others */
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

static int take_record(struct intake *in, const void *rec, size_t size)
{
	struct wire_thread_event event;
	struct seen *s;
	struct seen_thread *th;
	struct wire_hdr h;
	struct view view;
	int err;

	if (in->closed)
		return -EINVAL;
	if (size < sizeof(h))
		return -EBADMSG;
	memcpy(&h, rec, sizeof(h));
	if (!size_fits(&h, size) || h.ns > MAX_TIME || h.tid > INT32_MAX || h.tgid > INT32_MAX)
		return -EBADMSG;
	view.rec = rec;
	view.size = h.size;
	s = intake__find(in, (pid_t)h.tgid);
	if (!s || s->ended)
		return -ENOENT;
	err = ccs__resolve_at(in, s, h.ns);
	if (err)
		return err;
	if (h.type == WIRE_TICK)
		return take_tick(s, &view);
	if (h.type == WIRE_GC)
		return take_gc(s, &view);
	if (h.type == WIRE_TSO)
		return take_tso(in, s, &view);
	/* before the thread is looked up: threads that have ended may go by it */
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
		return take_sample(in, s, th, &view);
	case WIRE_OFF:
		return take_off(in, s, th, &view);
	case WIRE_CALL:
		return take_call(in, s, th, &view);
	default:
		fixed_part(&view, &event, sizeof(event));
		return take_event(in, s, th, &event);
	}
}

static int take_gc_ahead(struct seen *s, const struct view *view)
{
	struct wire_gc rec;

	fixed_part(view, &rec, sizeof(rec));
	return rec.point == WIRE_GC_END ? gcs__ahead(s, &rec) : -EINVAL;
}

/* That ticks come at all: until then samples would be counted. */
static int take_tick_ahead(struct seen *s, const struct view *view)
{
	struct wire_tick_cap cap;
	struct wire_tick rec;

	fixed_part(view, &rec, sizeof(rec));
	if (rec.ncaps > WIRE_TICK_CAPS ||
	    view->size - sizeof(rec) < (size_t)rec.ncaps * sizeof(struct wire_tick_cap))
		return -EBADMSG;
	for (uint32_t i = 0; i < rec.ncaps; i++) {
		memcpy(&cap, view->rec + sizeof(rec) + i * sizeof(cap), sizeof(cap));
		s->ccs.ticked |= cap.cccs && s->pub->profiled;
	}
	return 0;
}

int intake__ahead(struct intake *in, const void *rec, size_t size)
{
	struct seen_thread *th;
	struct wire_hdr h;
	struct view view;
	struct seen *s;
	pid_t tid;
	int err;

	if (in->closed)
		return -EINVAL;
	if (size < sizeof(h))
		return -EBADMSG;
	memcpy(&h, rec, sizeof(h));
	if (!size_fits(&h, size) || h.ns > MAX_TIME || h.tid > INT32_MAX || h.tgid > INT32_MAX)
		return -EBADMSG;
	view.rec = rec;
	view.size = h.size;
	tid = (pid_t)h.tid;
	s = intake__find(in, (pid_t)h.tgid);
	if (!s || s->ended)
		return -ENOENT;
	if (h.type == WIRE_TICK)
		return take_tick_ahead(s, &view);
	if (h.type == WIRE_GC)
		return take_gc_ahead(s, &view);
	err = target__thread(s, tid, &th);
	if (err)
		return err;
	in->ahead = true;
	switch (h.type) {
	case WIRE_SAMPLE:
		err = take_sample(in, s, th, &view);
		break;
	case WIRE_OFF:
		err = take_off(in, s, th, &view);
		break;
	case WIRE_CALL:
		err = take_call(in, s, th, &view);
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

int intake__record(struct intake *in, const void *rec, size_t size)
{
	const struct intake_input input = {.kind = TI_RECORD, .data = rec, .size = size};

	return tap__report(in, take_record(in, rec, size), &input);
}
