/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sched: what ran where, from the scheduler's events. A state machine for each capability (idle, a
 * thread, GC, disabled) and for each Haskell thread; both only move forward in time.
 *
 * GC on a capability is between its own GC_START and GC_END: the RTS posts both on every capability
 * that takes part. The one that leads also posts GC_GLOBAL_SYNC or GC_STATS_GHC in between
 * (rts/sm/GC.c, rts/Stats.c); its slice is the pause.
 */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "eventlog.h"
#include "lane_priv.h"
#include "sched_priv.h"
#include "sched_pair_priv.h"
#include "u64map_priv.h"

/* ── capabilities ────────────────────────────────────────────────────────────────────────── */

/* Counts what did not fit; any other error ends reading. */
static int lane_err(struct el_sched *s, int err)
{
	if (err != -E2BIG)
		return err;
	s->info.dropped++;
	return 0;
}

/* Puts a part inside the window. `lane` may be NULL. */
static inline int put(struct el_sched *s, struct lane *lane, struct pic_slice slice, uint64_t start,
		      uint64_t end, uint64_t *sum)
{
	int err;

	*sum += end - start;
	if (!lane)
		return 0;
	slice.start_ns = start;
	slice.end_ns = end;
	err = lane__put(lane, &slice);
	return err ? lane_err(s, err) : 0;
}

/* `stop`: the status of the STOP_THREAD that ends its run. */
static inline int cap_goes(struct el_sched *s, struct sched_cap *c, uint8_t state, uint64_t time,
			   uint16_t stop)
{
	uint64_t start = c->since, end;
	int err = 0;

	/* A buffer may have an event slightly older than the one before it. */
	if (time < c->since)
		time = c->since;
	end = time;
	if (c->seen && (!s->opts.window || el_window__clip(s->opts.window, &start, &end)))
		err = put(s, &c->lane,
			  cap_slice(c->state, c->state == CS_HASKELL ? c->thread : 0, stop), start,
			  end, &c->pub.state_ns[c->state]);
	c->seen = true;
	c->state = state;
	c->since = time;
	return err;
}

/* ── threads ─────────────────────────────────────────────────────────────────────────────── */

static inline int thread_slice_put(struct el_sched *s, struct sched_thread *t, uint8_t state,
				   uint64_t start, uint64_t end)
{
	int err = 0;

	if (!el_window__clip(s->opts.window, &start, &end))
		return 0;
	if (!t->inside)
		err = sched__begin_lane(s, t);
	return err ? err
		   : put(s, t->lane, thread_slice(t, state), start, end, &t->pub.state_ns[state]);
}

/* A runnable thread whose capability collects garbage waits for that, not for its turn. */
static int thread_waited(struct el_sched *s, struct sched_thread *t, uint64_t end)
{
	const struct sched_cap *c = t->pub.cap < SCHED_CAPS ? s->by_cap[t->pub.cap] : NULL;
	uint64_t from = t->pub.since;
	int err = 0;

	for (unsigned i = 0; c && i < GC_RING && !err; i++) {
		/* oldest first */
		const struct gc_span *g = &c->gcs[(c->n_gcs + i) % GC_RING];

		if (g->end <= from || g->start >= end)
			continue;
		if (g->start > from)
			err = thread_slice_put(s, t, HS_RUNNABLE, from, g->start);
		if (!err)
			err = thread_slice_put(s, t, HS_GC, MAX(from, g->start), MIN(end, g->end));
		from = MIN(end, g->end);
	}
	return err ? err : thread_slice_put(s, t, HS_RUNNABLE, from, end);
}

static inline int thread_goes(struct el_sched *s, struct sched_thread *t, uint8_t state,
			      uint64_t time)
{
	int err = 0;

	/* Buffers of different capabilities may disagree slightly when a thread moves. */
	if (time < t->pub.since)
		time = t->pub.since;
	if (t->pub.state == HS_RUNNABLE)
		err = thread_waited(s, t, time);
	else if (!t->pub.finished)
		err = thread_slice_put(s, t, t->pub.state, t->pub.since, time);
	t->pub.state = state;
	t->pub.since = time;
	t->pub.end = time;
	return err;
}

static void see_time(struct el_sched *s, uint64_t time)
{
	s->info.last = MAX(s->info.last, time);
}

/* ── events ──────────────────────────────────────────────────────────────────────────────── */

/* If another thread still counts as running here, its stop was lost. */
static int run_lost(struct el_sched *s, struct sched_cap *c, const struct sched_thread *next,
		    uint64_t time)
{
	struct sched_thread *t;

	if (!c->seen || c->state != CS_HASKELL)
		return 0;
	s->info.odd++;
	t = sched__find(s, c->thread);
	if (!t || t == next || t->pub.state != HS_RUNNING || t->pub.cap != c->pub.cap)
		return 0;
	return thread_goes(s, t, HS_UNKNOWN, time);
}

static __attribute__((noinline)) int on_run(struct el_sched *s, const struct el_event *ev)
{
	struct sched_cap *c = sched__cap(s, ev->cap);
	struct sched_thread *t = sched__thread(s, ev->thread.tid, ev->time);
	uint16_t before;
	int err;

	if (!c)
		return -ENOMEM;
	err = run_lost(s, c, t, ev->time);
	if (err)
		return err;
	c->pub.runs++;
	if (!t) {
		/* beyond the limit: the capability still runs it */
		err = cap_goes(s, c, CS_HASKELL, ev->time, 0);
		c->thread = ev->thread.tid;
		return err;
	}
	before = t->pub.cap;
	if (t->pub.state == HS_SAFE_CALL && ev->time >= t->pub.since) {
		t->pub.safe_calls++;
		if (s->opts.on_call && el_window__has(s->opts.window, t->pub.since)) {
			err = s->opts.on_call(s->opts.ctx, t->pub.tid, t->pub.since, ev->time,
					      before, ev->cap);
			if (err)
				return err;
		}
	}
	err = thread_goes(s, t, HS_RUNNING, ev->time);
	if (!err)
		err = cap_goes(s, c, CS_HASKELL, ev->time, 0);
	t->pub.cap = ev->cap;
	t->pub.finished = false;
	c->thread = ev->thread.tid;
	return err;
}

static uint8_t state_after(uint16_t status)
{
	switch (status) {
	case EL_STOP_HEAP_OVERFLOW:
	case EL_STOP_STACK_OVERFLOW:
	case EL_STOP_YIELDING:
	case EL_STOP_MIGRATING:
		return HS_RUNNABLE;
	case EL_STOP_FINISHED:
		return HS_UNKNOWN;
	case EL_STOP_FOREIGN_CALL:
	case EL_STOP_CCALL:
	case EL_STOP_CCALL_NO_UNBLOCK:
		return HS_SAFE_CALL;
	case EL_STOP_MVAR:
	case EL_STOP_MVAR_READ:
		return HS_BLOCKED_MVAR;
	case EL_STOP_BLACKHOLE:
		return HS_BLOCKED_BLACKHOLE;
	case EL_STOP_READ:
	case EL_STOP_WRITE:
	case EL_STOP_DO_PROC:
		return HS_BLOCKED_IO;
	case EL_STOP_DELAY:
		return HS_BLOCKED_DELAY;
	case EL_STOP_STM:
		return HS_BLOCKED_STM;
	default:
		return HS_BLOCKED_OTHER;
	}
}

static __attribute__((noinline)) int on_stop(struct el_sched *s, const struct el_event *ev)
{
	struct sched_cap *c = sched__cap(s, ev->cap);
	struct sched_thread *t = sched__thread(s, ev->stop.tid, ev->time);
	uint8_t after = state_after(ev->stop.status);
	int err = 0;

	if (!c)
		return -ENOMEM;
	if (c->state != CS_HASKELL || c->thread != ev->stop.tid) {
		/* The start of the run was lost, or is before the log's first event. */
		s->info.odd++;
		if (t && t->pub.state != HS_RUNNING)
			t->pub.since = MAX(t->pub.since, c->since);
	}
	if (t) {
		t->pub.cap = ev->cap;
		err = thread_goes(s, t, after, ev->time);
	}
	if (!err)
		err = cap_goes(s, c, after == HS_RUNNABLE ? CS_RTS : CS_IDLE, ev->time,
			       ev->stop.status);
	c->thread = 0;
	if (!t)
		return err;
	t->pub.finished = ev->stop.status == EL_STOP_FINISHED;
	if (t->pub.finished)
		sched__over(s, t);
	return err;
}

/* Beyond the limit only the sums continue. */
static int keep_gc(struct el_sched *s, const struct sched_cap *c, uint64_t start, uint64_t end)
{
	int err = ARRAY_RESERVE(s->all_gcs, s->gcs_cap, s->info.n_gcs + 1, GCS_MAX);
	uint64_t request = c->gc_request, requested = start;

	/* of the wait for the capabilities, too, only the part in the window */
	if (request < start && !el_window__clip(s->opts.window, &request, &requested))
		request = 0;
	if (!err)
		s->all_gcs[s->info.n_gcs++] = (struct el_gc){.start = start,
							     .end = end,
							     .request = request,
							     .cap = c->pub.cap,
							     .gen = c->gen};
	return err == -E2BIG ? 0 : err;
}

/*
 * The world runs again when the leader has ended the collection. The end posted by another
 * capability comes when its OS thread has noticed; the time between is no longer part of the
 * collection.
 */
static void gc_over(struct el_sched *s, const struct sched_cap *leader, uint64_t time)
{
	for (size_t i = 0; i < s->n_caps; i++) {
		struct sched_cap *c = s->caps[i];

		if (c != leader && c->state == CS_GC && !c->gc_over && c->gc_start <= time)
			c->gc_over = time;
	}
}

static int gc_leave(struct el_sched *s, struct sched_cap *c, uint64_t time)
{
	uint64_t end = c->gc_over && c->gc_over < time ? c->gc_over : time;
	int err = cap_goes(s, c, end < time ? CS_RTS : CS_IDLE, end, 0);

	c->gcs[c->n_gcs++ % GC_RING] = (struct gc_span){c->gc_start, c->since};
	if (!err && end < time)
		err = cap_goes(s, c, CS_IDLE, time, 0);
	else if (c->leads)
		gc_over(s, c, c->since);
	return err;
}

/* Counts the collection that the capability has left, with its part in the window. */
static int count_gc(struct el_sched *s, struct sched_cap *c)
{
	uint64_t start = c->gc_start, end = c->since;

	if (!el_window__clip(s->opts.window, &start, &end)) {
		/* one that took no time has no part, but is in the window or not */
		if (!el_window__has(s->opts.window, c->gc_start))
			return 0;
		start = end = c->gc_start;
	}
	c->pub.gcs++;
	if (!c->leads)
		return 0;
	s->info.gcs++;
	s->info.gc_pause_ns += end - start;
	s->info.gc_max_pause_ns = MAX(s->info.gc_max_pause_ns, end - start);
	return keep_gc(s, c, start, end);
}

static int on_gc(struct el_sched *s, const struct el_event *ev)
{
	struct sched_cap *c = sched__cap(s, ev->cap);
	int err;

	if (ev->cap == EL_CAP_GLOBAL)
		return 0;
	if (!c)
		return -ENOMEM;
	switch (ev->id) {
	case EL_REQUEST_SEQ_GC:
	case EL_REQUEST_PAR_GC:
		/* the one that requests it leads; others' parts may begin before its own */
		c->request = ev->time;
		return 0;
	case EL_GC_START:
		c->leads = false;
		c->gen = EL_GC_NO_GEN;
		c->gc_over = 0;
		c->gc_start = ev->time;
		c->gc_request = c->request;
		c->request = 0;
		return cap_goes(s, c, CS_GC, ev->time, 0);
	case EL_GC_GLOBAL_SYNC:
		c->leads = true;
		return 0;
	default:
		break;
	}
	if (c->state != CS_GC) {
		s->info.odd++;
		return 0;
	}
	err = gc_leave(s, c, ev->time);
	return err ? err : count_gc(s, c);
}

static int set_label(struct el_sched *s, struct sched_thread *t, struct el_str label)
{
	size_t len = MIN(label.len, LABEL_MAX);

	sched__drop_label(s, t);
	if (s->label_bytes + len > LABELS_MAX) {
		s->info.dropped++;
		return 0;
	}
	t->pub.label = strndup(label.s, len);
	if (!t->pub.label)
		return -ENOMEM;
	s->label_bytes += strlen(t->pub.label);
	return 0;
}

static int on_thread(struct el_sched *s, const struct el_event *ev)
{
	struct sched_thread *t;

	if (ev->id == EL_THREAD_LABEL) {
		t = sched__thread(s, ev->label.tid, ev->time);
		if (!t)
			return 0;
		return set_label(s, t, ev->label.label);
	}
	t = sched__thread(s, ev->thread.tid, ev->time);
	if (!t)
		return 0;
	switch (ev->id) {
	case EL_CREATE_THREAD:
		if (t->pub.cap == EL_CAP_GLOBAL)
			t->pub.cap = ev->cap;
		if (t->pub.state == HS_UNKNOWN && !t->pub.finished)
			return thread_goes(s, t, HS_RUNNABLE, ev->time);
		return 0;
	case EL_MIGRATE_THREAD:
		if (t->pub.state == HS_RUNNABLE) {
			/* Until now it waited for the old capability. */
			int err = thread_goes(s, t, HS_RUNNABLE, ev->time);

			t->pub.cap = ev->thread.cap;
			return err;
		}
		t->pub.cap = ev->thread.cap;
		return 0;
	case EL_THREAD_WAKEUP:
	case EL_THREAD_RUNNABLE:
		/* GHC also posts these after a thread's end, and while it makes a call. */
		if (t->pub.finished || t->pub.state == HS_RUNNING || t->pub.state == HS_SAFE_CALL ||
		    t->pub.state == HS_RUNNABLE)
			return 0;
		return thread_goes(s, t, HS_RUNNABLE, ev->time);
	default:
		return 0;
	}
}

static int on_cap(struct el_sched *s, const struct el_event *ev)
{
	struct sched_cap *c = ev->cap_no < SCHED_CAPS ? sched__cap(s, ev->cap_no) : NULL;

	if (!c)
		return 0;
	switch (ev->id) {
	case EL_CAP_DISABLE:
	case EL_CAP_DELETE:
		return cap_goes(s, c, CS_DISABLED, ev->time, 0);
	default:
		return cap_goes(s, c, CS_IDLE, ev->time, 0);
	}
}

static __attribute__((noinline)) int on_run_or_stop(struct el_sched *s, const struct el_event *ev)
{
	struct sched_cap *c = ev->cap < SCHED_CAPS ? s->by_cap[ev->cap] : NULL;
	/* the same field in both events */
	uint32_t tid = ev->thread.tid;
	struct sched_thread *t;
	int err;

	if (c && pair_has(&c->pair, ev))
		return pair_turn(&c->pair, ev, &s->info.dropped);
	see_time(s, ev->time);
	if (ev->cap == EL_CAP_GLOBAL)
		return 0;
	if (c)
		pair_settle(s, c);
	t = s->recent[tid % RECENT_THREADS];
	if (!t || t->pub.tid != tid)
		t = sched__find(s, tid);
	if (t && t->paired)
		pair_settle(s, t->paired);
	err = ev->id == EL_STOP_THREAD ? on_stop(s, ev) : on_run(s, ev);
	if (!err && c && t)
		pair_begin(s, c, t);
	return err;
}

static __attribute__((noinline)) int on_other(struct el_sched *s, const struct el_event *ev)
{
	struct sched_cap *c;

	pair_settle_all(s);
	see_time(s, ev->time);
	switch (ev->id) {
	case EL_GC_START:
	case EL_GC_END:
	case EL_GC_GLOBAL_SYNC:
	case EL_REQUEST_SEQ_GC:
	case EL_REQUEST_PAR_GC:
		return on_gc(s, ev);
	case EL_CAP_CREATE:
	case EL_CAP_DELETE:
	case EL_CAP_DISABLE:
	case EL_CAP_ENABLE:
		return on_cap(s, ev);
	case EL_GC_STATS_GHC:
		c = ev->cap < SCHED_CAPS ? sched__cap(s, ev->cap) : NULL;
		if (c) {
			c->leads = true;
			c->gen = ev->gen;
		}
		return 0;
	default:
		return on_thread(s, ev);
	}
}

/* The few instructions that nearly every event takes; any other event settles its pair. */
static int on_event(void *ctx, const struct el_event *ev)
{
	struct el_sched *s = ctx;
	struct sched_cap *c = ev->cap < SCHED_CAPS ? s->by_cap[ev->cap] : NULL;

	if (ev->id != EL_RUN_THREAD && ev->id != EL_STOP_THREAD)
		return on_other(s, ev);
	if (!c || ev->time >= c->pair.until || !pair_has(&c->pair, ev))
		return on_run_or_stop(s, ev);
	pair_add(&c->pair, ev);
	return 0;
}

int el_sched__attach(struct el_sched *s, struct eventlog *log)
{
	static const uint16_t ids[] = {
		EL_CREATE_THREAD,  EL_RUN_THREAD,     EL_STOP_THREAD,  EL_THREAD_RUNNABLE,
		EL_MIGRATE_THREAD, EL_THREAD_WAKEUP,  EL_THREAD_LABEL, EL_GC_START,
		EL_GC_END,	   EL_GC_GLOBAL_SYNC, EL_GC_STATS_GHC, EL_CAP_CREATE,
		EL_CAP_DELETE,	   EL_CAP_DISABLE,    EL_CAP_ENABLE,   EL_REQUEST_SEQ_GC,
		EL_REQUEST_PAR_GC,
	};

	return eventlog__subscribe(log, ids, ARRAY_SIZE(ids), on_event, s);
}

/* The end of what is known of a capability, in a log that ends at `end`. */
static uint64_t known_until(const struct el_sched *s, uint16_t cap, uint64_t end)
{
	uint64_t cut = cap < SCHED_CAPS ? s->cut_after[cap] : 0;

	return cut ? MIN(cut, end) : end;
}

static int finish_cap(struct el_sched *s, struct sched_cap *c, uint64_t end)
{
	uint64_t known = known_until(s, c->pub.cap, end);
	int err = known < end ? cap_goes(s, c, CS_UNKNOWN, known, 0) : 0;

	return err ? err : cap_goes(s, c, CS_IDLE, end, 0);
}

/* The thread's last state lasts until its capability, which would have logged the next one, has no
 * more events. */
static int finish_thread(struct el_sched *s, struct sched_thread *t, uint64_t end)
{
	uint64_t known = known_until(s, t->pub.cap, end);
	uint8_t last = t->pub.state;
	int err = 0;

	if (!t->pub.finished && known < end)
		err = thread_goes(s, t, HS_UNKNOWN, known);
	if (!t->pub.finished && !err)
		err = thread_goes(s, t, last, end);
	return err || !t->lane ? err : lane_err(s, lane__end(t->lane));
}

int el_sched__finish(struct el_sched *s, uint64_t end)
{
	int err = 0;

	pair_settle_all(s);
	end = MAX(end, s->info.last);
	/* threads that waited all the time have nothing before this, and one slice: there is room
	 * for as many */
	s->opts.thread_lanes *= 2;
	for (size_t i = 0; i < s->n_caps && !err; i++)
		err = finish_cap(s, s->caps[i], end);
	for (size_t i = 0; i < s->n_caps && !err; i++)
		err = lane_err(s, lane__end(&s->caps[i]->lane));
	for (size_t i = 0; i < s->n_threads && !err; i++)
		err = finish_thread(s, sched__thread_at(s, i), end);
	return err;
}
