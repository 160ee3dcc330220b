/* SPDX-License-Identifier: GPL-2.0-or-later */
/* thread_record: what the kernel's records have on a thread: samples, off-CPU time, calls, its
 * start and its end. */
#include "record_priv.h"

/* include/linux/sched.h, __TASK_STOPPED and __TASK_TRACED; the same since Linux 2.6 */
#define TASK_STOPPED 4
#define TASK_TRACED  8

static int keep(struct intake *in, struct seen *s, struct seen_thread *th, struct evs *evs,
		const struct ev *ev)
{
	int err;

	if (in->n_records >= in->opts.max_records && !in->ahead) {
		if (!s->left_out++)
			s->blind_ns = MAX(ev->t0 ? ev->t0 : ev->t1, s->pub->attach_ns);
		return -ENOSPC;
	}
	/* events of the next window come on top of all others */
	err = ARRAY_RESERVE(evs->v, evs->cap, evs->n + 1, 2 * in->opts.max_records);
	if (err)
		return err;
	evs->v[evs->n] = *ev;
	if (in->ahead) {
		evs->v[evs->n].flags |= EV_AHEAD;
	} else {
		th->had_records = true;
		/* only a thread with an entry has a time when it left the CPU */
		th->has_entry |= evs == &th->offs;
		th->last_ns = MAX(th->last_ns, ev->t1);
		th->only_sampled = evs == &th->samples && (ev->flags & EV_NO_ENTRY);
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
	if (rts->flags & WIRE_RTS_CALLED_BACK)
		ev->flags |= EV_CALLED_BACK;
}

/* Notes that the call of this event has called back. `site`: as in struct ev. */
static void note_callback(struct seen *s, uint32_t site)
{
	if (site)
		site__calls_back(s->site_v[site - 1]);
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

/*
 * For a thread that the kernel side has no room for, and that is known only where it is sampled: if
 * it had run since its last record, there would be more samples. So it was off the CPU up to `end`,
 * for an unknown reason. The interval starts at the same time in all windows, so that each of them
 * finds the same state for it.
 */
static int keep_unseen(struct intake *in, struct seen *s, struct seen_thread *th, uint64_t end)
{
	uint64_t last = th->samples.n ? th->samples.v[th->samples.n - 1].t0 : 0, start;
	struct ev ev = {.t1 = end,
			.syscall = WIRE_NO_SYSCALL,
			.cap = NO_CAP,
			.left = NO_CAP,
			.flags = EV_NO_ENTRY};
	bool had_entry = th->has_entry;
	int err;

	last = MAX(last, th->last_ns);
	start = last ? last + in->period_ns / 2 : MAX(th->start_ns, s->joined_ns);
	ev.t0 = start;
	if (!in->period_ns || start >= end || end - start <= (INTAKE_SILENCE - 1) * in->period_ns)
		return 0;
	err = keep(in, s, th, &th->offs, &ev);
	th->has_entry = had_entry;
	return err;
}

/* The runtime's own code in a thread that is in no in-call. */
static void foreign_sample(struct seen_thread *th, struct ev *ev, bool has_task)
{
	bool collects = ev->code == CODE_GC || (ev->flags & EV_GC_CODE);

	/* as in hs_init() and hs_exit() */
	if (has_task && (collects || ev->code == CODE_RTS))
		ev->where = WIRE_WHERE_NO_CAP;
	/* rts/sm/NonMoving.c, nonmovingConcurrentMark: it has a thread of its own */
	else if (collects)
		th->collects = true;
}

int record__sample(struct intake *in, struct seen *s, struct seen_thread *th, struct view *view)
{
	struct wire_sample rec;
	struct raw_stack raw = {.head = &rec.stack, .frames = view->frames, .rts = &rec.rts};
	struct ev ev = {0};
	bool in_haskell, early;
	int err;

	view__fixed(view, &rec, sizeof(rec));
	if (view__stack(view, sizeof(rec), &rec.stack) || rec.call_start_ns > rec.h.ns)
		return -EBADMSG;
	ev.t0 = ev.t1 = rec.h.ns;
	ev.call_start_ns = rec.call_start_ns;
	ev.short_cpu_ns = rec.short_cpu_ns;
	ev.syscall = WIRE_NO_SYSCALL;
	ev__take_rts(&ev, &rec.rts);
	raw.ip = rec.ip;
	raw.sampled = true;
	raw.site = rec.site;
	if (rec.rts.flags & WIRE_RTS_NO_ENTRY) {
		ev.flags |= EV_NO_ENTRY;
		err = keep_unseen(in, s, th, ev.t0 - MIN(ev.t0, in->period_ns / 2));
		if (err)
			return err;
	}
	err = in->ahead ? 0 : ccs__count_sample(s, &rec.rts);
	if (!err)
		err = stack__take(in, s, &raw, &ev);
	if (err)
		return err;
	if (in->ahead)
		return keep(in, s, th, &th->samples, &ev);
	if (ev.where == WIRE_WHERE_FOREIGN)
		foreign_sample(th, &ev, rec.rts.cap != 0);
	early = ev.where == WIRE_WHERE_NOT_READY && ev.code == CODE_HASKELL;
	in_haskell = ev.where == WIRE_WHERE_HASKELL && ev.code == CODE_HASKELL;
	gcs__runs(s, th->tid, &ev);
	s->pub->quality.early += early;
	count_quality(&s->pub->quality, &rec.stack, ev.flags & EV_GAP, in_haskell);
	if (in_haskell && ev.site)
		s->site_v[ev.site - 1]->called_back = true;
	if (ev.flags & EV_CALLED_BACK)
		note_callback(s, ev.site);
	if (ev.where == WIRE_WHERE_HASKELL)
		allocs__note_sample(s, &rec, &ev);
	return keep(in, s, th, &th->samples, &ev);
}

/*
 * An interval without a start is from before the thread was first seen. If the thread was seen
 * earlier, and only its entry on the kernel side came late, it is assumed to have run since then,
 * unless samples should have shown it. Returns 1 if the record has nothing else, 0 if it is to be
 * taken like any other, or a negative errno.
 */
static int take_late_entry(struct intake *in, struct seen *s, struct seen_thread *th,
			   const struct wire_off *rec)
{
	int err;

	/* events known ahead are not records yet */
	if (rec->out_ns || !(th->had_records || (in->ahead && (th->samples.n || th->calls.n))))
		return 0;
	err = th->only_sampled ? keep_unseen(in, s, th, rec->h.ns) : 0;
	if (err)
		return err;
	if (!in->ahead) {
		th->has_entry = true;
		th->only_sampled = false;
		th->last_ns = MAX(th->last_ns, rec->h.ns);
	}
	return 1;
}

int record__off(struct intake *in, struct seen *s, struct seen_thread *th, struct view *view)
{
	struct wire_off rec;
	struct raw_stack raw = {.head = &rec.stack, .frames = view->frames, .rts = &rec.rts};
	struct ev ev = {0};
	int err;

	view__fixed(view, &rec, sizeof(rec));
	if (view__stack(view, sizeof(rec), &rec.stack) || rec.out_ns > rec.h.ns ||
	    rec.call_start_ns > rec.h.ns)
		return -EBADMSG;
	err = take_late_entry(in, s, th, &rec);
	if (err)
		return MIN(err, 0);
	gcs__off(s, &rec);
	ev.t0 = rec.out_ns;
	ev.t1 = rec.h.ns;
	ev.wake_ns = rec.wake_ns;
	ev.call_start_ns = rec.call_start_ns;
	ev.short_cpu_ns = rec.short_cpu_ns;
	ev.syscall = rec.syscall;
	if (!rec.out_ns)
		ev.flags |= th->born ? EV_NEVER_SEEN | EV_NO_ENTRY : EV_NEVER_SEEN;
	else if (!rec.prev_state)
		ev.flags |= EV_RUNNABLE;
	/* made by a replay for the time that a damaged capture lacks (capture/gaps.c) */
	if (rec.rts.flags & WIRE_RTS_NO_ENTRY)
		ev.flags |= EV_NO_ENTRY;
	if (rec.prev_state & TASK_TRACED)
		ev.flags |= EV_TRACED;
	if (rec.prev_state & (TASK_STOPPED | TASK_TRACED))
		ev.flags |= EV_STOPPED;
	ev__take_rts(&ev, &rec.rts);
	raw.ip = rec.ip;
	raw.site = rec.site;
	err = stack__take(in, s, &raw, &ev);
	if (!err && !in->ahead && ev.flags & EV_CALLED_BACK)
		note_callback(s, ev.site);
	/* a record of intervals that the kernel side held back has no stack, and the time of none
	 * of them */
	if (!err && !in->ahead && rec.stack.nframes)
		gcs__runs(s, th->tid, &ev);
	return err ? err : keep(in, s, th, &th->offs, &ev);
}

/* The call's time is counted from here. */
static uint64_t call_begin(const struct wire_call *rec)
{
	return rec->start_ns + MIN(rec->handover_ns, rec->h.ns - rec->start_ns);
}

int record__call(struct intake *in, struct seen *s, struct seen_thread *th, struct view *view)
{
	struct wire_call rec;
	struct raw_stack raw = {.head = &rec.stack, .frames = view->frames, .rts = &rec.rts};
	struct ev ev = {0};
	int err;

	view__fixed(view, &rec, sizeof(rec));
	if (view__stack(view, sizeof(rec), &rec.stack) || rec.start_ns > rec.h.ns)
		return -EBADMSG;
	/* Without a start there is no call, only a return; the kernel side counts those. */
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
	if (!err && rec.flags & WIRE_CALL_CALLED_BACK)
		note_callback(s, ev.site);
	if (!err)
		snapshot__compare(th, &ev);
	/* a call that had ended by the cut is not one of these: its record is just late */
	if (!err && s->was_cut && ev.site && rec.start_ns < s->pub->attach_ns &&
	    rec.h.ns > s->pub->attach_ns)
		carried__record(in, s, th, &rec, s->site_v[ev.site - 1]);
	if (!err)
		err = notes__flow(s, th->tid, &ev);
	return err ? err : keep(in, s, th, &th->calls, &ev);
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

int record__event(struct intake *in, struct seen *s, struct seen_thread *th,
		  const struct view *view)
{
	struct wire_thread_event rec;

	view__fixed(view, &rec, sizeof(rec));
	switch (rec.h.type) {
	case WIRE_THREAD_NEW:
		th->born = true;
		th->has_entry |= rec.flags & WIRE_THREAD_HAS_ENTRY;
		th->start_ns = rec.h.ns;
		thread__take_name(th, rec.comm);
		return 0;
	case WIRE_THREAD_EXIT:
		th->end_ns = rec.h.ns;
		carried__exit(s, th, rec.open_calls, rec.flags & WIRE_THREAD_ALONE);
		thread__take_name(th, rec.comm);
		take_shorts(th, &rec);
		seen__fit(th);
		return 0;
	case WIRE_EXEC:
		carried__exec(s, th, rec.open_calls);
		take_shorts(th, &rec);
		return target__end(in, s, "exec", rec.h.ns);
	default:
		return target__end(in, s, "exited", rec.h.ns);
	}
}
