/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * record: takes what the kernel and the snapshots tell, one thing at a time. Everything is
 * checked before it is used: sizes against counts, times against each other.
 */
#include "private.h"

/* Far more than 2^32 seconds: a time beyond it is damaged, and sums below it cannot overflow. */
#define MAX_TIME (1ULL << 62)

static int keep(struct timeline *tl, struct target_state *tg, struct evs *evs, const struct ev *ev)
{
	int err;

	if (tl->n_records >= tl->fold_at) {
		err = tl__fold(tl);
		if (err)
			return err;
		/* Not again for a handful of records, and never again if hardly any can go. */
		if (tl->n_records > tl->opts.max_records - tl->opts.max_records / 8)
			tl->fold_at = SIZE_MAX;
		else
			tl->fold_at = MIN(tl->n_records + MAX(tl->opts.max_records / 4, (size_t)1),
					  tl->opts.max_records);
	}
	if (tl->n_records >= tl->opts.max_records) {
		if (!tg->left_out++)
			tg->blind_ns = ev->t0 ? ev->t0 : ev->t1;
		return -ENOSPC;
	}
	err = TL_RESERVE(evs->v, evs->cap, evs->n + 1, tl->opts.max_records);
	if (err)
		return err;
	evs->v[evs->n++] = *ev;
	tl->n_records++;
	return 0;
}

static void take_rts(struct ev *ev, const struct wire_rts *rts)
{
	ev->where = rts->where <= WIRE_WHERE_NOT_READY ? rts->where : WIRE_WHERE_UNKNOWN;
	ev->left = rts->cap_no < TL_MAX_CAPS ? (uint16_t)rts->cap_no : TL_NO_CAP;
	ev->cap = ev->where == WIRE_WHERE_HASKELL || ev->where == WIRE_WHERE_RTS ? ev->left
										 : TL_NO_CAP;
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

static int fixed_part(const struct view *view, void *ret, size_t size)
{
	if (view->size < size)
		return -EBADMSG;
	memcpy(ret, view->rec, size);
	return 0;
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

static void count_quality(struct tl_quality *q, const struct wire_stack *head, bool gap,
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
		q->broken[head->cause < TL_CAUSES ? head->cause : 0]++;
		break;
	}
}

/*
 * Where no timer ticks are seen: the samples of threads that hold a capability, as its cost-centre
 * stack says what a tick would count. (Without -threaded a capability is held in safe calls, too.)
 */
static int count_cost(struct target_state *tg, const struct wire_rts *rts)
{
	uint32_t id;
	int err;

	if (rts->where != WIRE_WHERE_HASKELL && rts->where != WIRE_WHERE_RTS &&
	    (rts->where != WIRE_WHERE_SAFE_CALL || tg->pub.threaded))
		return 0;
	err = ccs__get(tg, rts->cccs, &id);
	if (!err)
		ccs__count_sample(tg, id);
	return err;
}

static int take_sample(struct timeline *tl, struct target_state *tg, struct thread *th,
		       struct view *view)
{
	struct wire_sample rec;
	struct raw_stack raw = {.head = &rec.stack, .frames = view->frames, .rts = &rec.rts};
	struct ev ev = {0};
	bool in_haskell;
	int err = fixed_part(view, &rec, sizeof(rec));

	if (!err)
		err = stack_part(view, sizeof(rec), &rec.stack);
	if (err || rec.call_start_ns > rec.h.ns)
		return -EBADMSG;
	ev.t0 = ev.t1 = rec.h.ns;
	ev.call_start_ns = rec.call_start_ns;
	ev.short_cpu_ns = rec.short_cpu_ns;
	ev.syscall = WIRE_NO_SYSCALL;
	take_rts(&ev, &rec.rts);
	raw.ip = rec.ip;
	raw.site = rec.site;
	err = count_cost(tg, &rec.rts);
	if (!err)
		err = stack__take(tl, tg, &raw, &ev);
	if (err)
		return err;
	/* rts/sm/NonMoving.c, nonmovingConcurrentMark: it has a thread of its own */
	if (ev.where == WIRE_WHERE_FOREIGN && (ev.code == CODE_GC || (ev.flags & EV_GC_CODE)))
		th->collects = true;
	in_haskell = ev.where == WIRE_WHERE_HASKELL && ev.code == CODE_HASKELL;
	count_quality(&tg->pub.quality, &rec.stack, ev.flags & EV_GAP, in_haskell);
	if (in_haskell && ev.site)
		tg->site_v[ev.site - 1]->called_back = true;
	return keep(tl, tg, &th->samples, &ev);
}

static int take_off(struct timeline *tl, struct target_state *tg, struct thread *th,
		    struct view *view)
{
	struct wire_off rec;
	struct raw_stack raw = {.head = &rec.stack, .frames = view->frames, .rts = &rec.rts};
	struct ev ev = {0};
	int err = fixed_part(view, &rec, sizeof(rec));

	if (!err)
		err = stack_part(view, sizeof(rec), &rec.stack);
	if (err || rec.out_ns > rec.h.ns || rec.call_start_ns > rec.h.ns)
		return -EBADMSG;
	gcs__stay(tg, &rec);
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
	take_rts(&ev, &rec.rts);
	raw.ip = rec.ip;
	raw.site = rec.site;
	err = stack__take(tl, tg, &raw, &ev);
	return err ? err : keep(tl, tg, &th->offs, &ev);
}

static int take_call(struct timeline *tl, struct target_state *tg, struct thread *th,
		     struct view *view)
{
	struct wire_call rec;
	struct raw_stack raw = {.head = &rec.stack, .frames = view->frames, .rts = &rec.rts};
	struct ev ev = {0};
	int err = fixed_part(view, &rec, sizeof(rec));

	if (!err)
		err = stack_part(view, sizeof(rec), &rec.stack);
	if (err || rec.start_ns > rec.h.ns)
		return -EBADMSG;
	/* Without a begin there is no call, only a return; the kernel counts those. */
	if (rec.flags & WIRE_CALL_UNMATCHED)
		return 0;
	ev.t0 = rec.start_ns;
	ev.t1 = rec.h.ns;
	ev.call_start_ns = rec.start_ns;
	ev.syscall = WIRE_NO_SYSCALL;
	ev.call_flags = (uint8_t)rec.flags;
	take_rts(&ev, &rec.rts);
	ev.where = WIRE_WHERE_SAFE_CALL;
	ev.cap = TL_NO_CAP;
	raw.site = rec.site;
	err = stack__take(tl, tg, &raw, &ev);
	if (!err && th->has_start && ev.site && ev.site == th->at_start.site) {
		if (rec.flags & WIRE_CALL_OPEN_AT_START)
			th->ended_before_call = true;
		else
			th->began_same_call = true;
	}
	if (!err)
		err = flow__add(tg, th->tid, &ev);
	return err ? err : keep(tl, tg, &th->calls, &ev);
}

static int take_gc(struct target_state *tg, const struct view *view)
{
	struct wire_gc rec;
	int err = fixed_part(view, &rec, sizeof(rec));

	return err ? err : gcs__record(tg, &rec);
}

static int take_tso(struct timeline *tl, struct target_state *tg, const struct view *view)
{
	struct wire_tso rec;
	int err = fixed_part(view, &rec, sizeof(rec));

	return err ? err : tsos__record(tl, tg, &rec);
}

static void take_name(struct thread *th, const char comm[16])
{
	if (!comm[0])
		return;
	memcpy(th->name, comm, sizeof(th->name));
	th->name[sizeof(th->name) - 1] = 0;
}

static int take_event(struct timeline *tl, struct target_state *tg, struct thread *th,
		      const struct wire_thread_event *rec)
{
	switch (rec->h.type) {
	case WIRE_THREAD_NEW:
		th->born = true;
		th->start_ns = rec->h.ns;
		take_name(th, rec->comm);
		return 0;
	case WIRE_THREAD_EXIT:
		th->end_ns = rec->h.ns;
		take_name(th, rec->comm);
		th->shorts = (struct short_calls){true, rec->short_calls, rec->short_wall_ns,
						  rec->short_blocked_ns, rec->short_runnable_ns};
		thread__fit(th);
		return 0;
	case WIRE_EXEC:
		return input__end_target(tl, tg->pub.pid, "exec", rec->h.ns);
	default:
		return input__end_target(tl, tg->pub.pid, "exited", rec->h.ns);
	}
}

/* The thread that a record is of. A new thread may have the number of one that ended. */
static int thread_of(struct target_state *tg, const struct wire_hdr *h, struct thread **ret_thread)
{
	struct thread *th;
	pid_t tid = (pid_t)h->tid;

	HASH_FIND_INT(tg->threads, &tid, th);
	/* The snapshot may have seen it before its record was read. */
	if (th && h->type == WIRE_THREAD_NEW &&
	    !(th->has_start && !th->born && th->at_start.t0 >= h->ns)) {
		if (!th->end_ns)
			th->end_ns = h->ns; /* its end was lost */
		HASH_DEL(tg->threads, th);
	}
	return thread__get(tg, tid, ret_thread);
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
	};

	return h->type < ARRAY_SIZE(least) && least[h->type] && h->size <= size &&
	       h->size >= least[h->type];
}

/* What GHC's profiler does at a tick: one for the cost-centre stack of each capability. */
static int take_tick(struct target_state *tg, const struct view *view)
{
	struct wire_tick_cap cap;
	struct wire_tick rec;
	uint64_t disabled = 0, queued = 0, others = 0;
	bool idle = false;
	uint32_t id;
	int err = fixed_part(view, &rec, sizeof(rec));

	if (err || rec.ncaps > WIRE_TICK_CAPS ||
	    view->size - sizeof(rec) < (size_t)rec.ncaps * sizeof(struct wire_tick_cap))
		return -EBADMSG;
	tg->pub.ticks++;
	for (uint32_t i = 0; i < rec.ncaps; i++) {
		memcpy(&cap, view->rec + sizeof(rec) + i * sizeof(cap), sizeof(cap));
		if (cap.disabled && cap.no < 64)
			disabled |= 1ULL << cap.no;
		queued += cap.queued;
		idle |= !cap.disabled && !cap.has_task && !cap.queued;
		/* at a tick the one that runs may just have been queued, behind the others */
		if (cap.has_task && cap.queued)
			others += cap.queued - !cap.tso_id;
		err = ccs__get(tg, cap.cccs, &id);
		if (err)
			return err;
		ccs__count_tick(tg, id);
		err = ccs__note_tick(tg, rec.h.ns, (uint16_t)MIN(cap.no, 0xffffU), id);
		if (err)
			return err;
	}
	if (!rec.enabled || rec.enabled >= TL_MAX_CAPS)
		return 0;
	tg->pub.capabilities = rec.enabled;
	err = flow__queued(tg, rec.h.ns, queued);
	if (!err && idle && others)
		err = flow__starved(tg, rec.h.ns, others);
	return err ? err : caps__note(tg, rec.h.ns, rec.enabled, disabled);
}

int input__record(struct timeline *tl, const void *rec, size_t size)
{
	struct wire_thread_event event;
	struct target_state *tg;
	struct thread *th;
	struct wire_hdr h;
	struct view view;
	int err;

	if (tl->finished)
		return -EINVAL;
	if (size < sizeof(h))
		return -EBADMSG;
	memcpy(&h, rec, sizeof(h));
	if (!size_fits(&h, size) || h.ns > MAX_TIME || h.tid > INT32_MAX || h.tgid > INT32_MAX)
		return -EBADMSG;
	view.rec = rec;
	view.size = h.size;
	tg = tl__find(tl, (pid_t)h.tgid);
	if (!tg || tg->ended)
		return -ENOENT;
	err = ccs__resolve_at(tl, tg, h.ns);
	if (err)
		return err;
	if (h.type == WIRE_TICK)
		return take_tick(tg, &view);
	if (h.type == WIRE_GC)
		return take_gc(tg, &view);
	if (h.type == WIRE_TSO)
		return take_tso(tl, tg, &view);
	err = thread_of(tg, &h, &th);
	if (err)
		return err;
	switch (h.type) {
	case WIRE_SAMPLE:
		return take_sample(tl, tg, th, &view);
	case WIRE_OFF:
		return take_off(tl, tg, th, &view);
	case WIRE_CALL:
		return take_call(tl, tg, th, &view);
	default:
		err = fixed_part(&view, &event, sizeof(event));
		return err ? err : take_event(tl, tg, th, &event);
	}
}

/* ── snapshots and the kernel's maps ─────────────────────────────────────────────────────── */

static int take_snap(struct timeline *tl, struct target_state *tg, const struct snap_thread *snap,
		     uint64_t at_ns, struct ev *ret_ev)
{
	struct ev ev = {.t0 = at_ns, .t1 = at_ns, .syscall = snap->syscall};
	struct raw_stack raw = {
		.head = &snap->stack,
		.frames = snap->frames,
		.rts = &snap->rts,
		.site = snap->site,
	};
	int err;

	if (snap->stack.nframes > WIRE_OFF_FRAMES)
		return -EBADMSG;
	if (snap->state != 'R')
		ev.flags |= EV_SLEEPS;
	take_rts(&ev, &snap->rts);
	err = stack__take(tl, tg, &raw, &ev);
	if (!err)
		*ret_ev = ev;
	return err;
}

static int snap_thread(struct timeline *tl, struct target_state *tg, const struct snap_thread *snap,
		       uint64_t at_ns, bool at_end)
{
	struct thread *th;
	int err = thread__get(tg, snap->tid, &th);

	if (err)
		return err;
	take_name(th, snap->comm);
	if (at_end && !th->done && !th->has_start && !th->born && !th->start_ns &&
	    tg->has_snapshot && !th->samples.n && !th->offs.n && !th->calls.n)
		th->start_ns = MIN(MAX(snap->start_time_ns, tg->pub.attach_ns), at_ns);
	err = take_snap(tl, tg, snap, at_ns, at_end ? &th->at_end : &th->at_start);
	if (err)
		return err;
	if (at_end)
		th->has_end = true;
	else
		th->has_start = true;
	return 0;
}

int input__snapshot(struct timeline *tl, pid_t pid, const struct snapshot *snapshot, uint64_t at_ns,
		    bool at_end)
{
	struct target_state *tg = tl__find(tl, pid);
	int err;

	if (tl->finished)
		return -EINVAL;
	if (!tg)
		return -ENOENT;
	for (size_t i = 0; i < snapshot->n; i++) {
		err = snap_thread(tl, tg, &snapshot->threads[i], at_ns, at_end);
		if (err)
			return err;
	}
	if (!at_end)
		tg->has_snapshot = true;
	return 0;
}

int input__thread_state(struct timeline *tl, pid_t tid, const struct wire_thread *state)
{
	struct target_state *tg = tl__find(tl, (pid_t)state->tgid);
	struct wire_stack no_frames = {0};
	struct raw_stack raw = {.head = &no_frames, .rts = &state->off_rts, .ip = state->off_ip};
	struct ev ev = {.t0 = state->off_since_ns,
			.t1 = UINT64_MAX,
			.wake_ns = state->wake_ns,
			.syscall = state->off_syscall};
	const struct wire_open *top;
	struct thread *th;
	struct site *site;
	int err;

	if (tl->finished)
		return -EINVAL;
	if (!tg)
		return -ENOENT;
	if (state->depth > WIRE_OPEN_MAX || state->off_since_ns > MAX_TIME)
		return -EBADMSG;
	err = thread__get(tg, tid, &th);
	for (uint32_t i = 0; !err && i < state->depth; i++)
		err = name__site(tl, tg, state->open[i].site, &site);
	if (err && err != -E2BIG)
		return err;
	if (!th->final)
		th->final = malloc(sizeof(*th->final));
	if (!th->final)
		return -ENOMEM;
	*th->final = *state;
	th->shorts = (struct short_calls){true, state->short_calls, state->short_wall_ns,
					  state->short_blocked_ns, state->short_runnable_ns};
	top = state->depth ? &state->open[state->depth - 1] : NULL;
	if (top) {
		ev.call_start_ns = top->start_ns;
		raw.site = top->site;
	}
	if (!state->off_state)
		ev.flags |= EV_RUNNABLE;
	take_rts(&ev, &state->off_rts);
	err = stack__take(tl, tg, &raw, &ev);
	if (err)
		return err;
	th->final_off = ev;
	th->has_final = true;
	return 0;
}

int input__thread_off_stack(struct timeline *tl, pid_t pid, pid_t tid,
			    const struct wire_off_stack *stack)
{
	struct target_state *tg = tl__find(tl, pid);
	uint64_t frames[WIRE_OFF_FRAMES];
	struct raw_stack raw = {.head = &stack->stack, .frames = frames};
	struct thread *th;
	struct ev ev;
	int err;

	if (tl->finished)
		return -EINVAL;
	if (!tg)
		return -ENOENT;
	HASH_FIND_INT(tg->threads, &tid, th);
	if (!th || !th->has_final)
		return -ENOENT;
	if (stack->stack.nframes > WIRE_OFF_FRAMES)
		return -EBADMSG;
	memcpy(frames, stack->frames, sizeof(frames));
	ev = th->final_off;
	ev.hs = ev.c = 0;
	raw.rts = &th->final->off_rts;
	raw.ip = th->final->off_ip;
	err = stack__take(tl, tg, &raw, &ev);
	if (!err)
		th->final_off = ev;
	return err;
}
