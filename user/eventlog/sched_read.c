/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sched_read: makes, frees and reads the scheduler model. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "sched_priv.h"

/* ── finding and making ──────────────────────────────────────────────────────────────────── */

struct sched_cap *sched__cap(struct el_sched *s, uint16_t no)
{
	struct sched_cap *c;

	if (no >= SCHED_CAPS)
		return NULL;
	if (s->by_cap[no])
		return s->by_cap[no];
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->pub.cap = no;
	c->pub.lane = &c->lane.slices;
	c->lane.kind = LANE_CAPABILITY;
	c->lane.room = &s->cap_room;
	c->state = CS_IDLE;
	s->by_cap[no] = c;
	s->caps[s->n_caps++] = c;
	return c;
}

struct sched_thread *sched__thread_at(const struct el_sched *s, size_t i)
{
	return &s->thread_chunks[i / THREAD_CHUNK][i % THREAD_CHUNK];
}

struct sched_thread *sched__find(const struct el_sched *s, uint32_t tid)
{
	struct sched_thread *t = s->recent[tid % RECENT_THREADS];
	uint32_t at;

	if (t && t->pub.tid == tid)
		return t;
	at = u64map__get(&s->by_tid, tid);
	return at == U64MAP_NONE ? NULL : sched__thread_at(s, at);
}

void sched__drop_label(struct el_sched *s, struct sched_thread *t)
{
	if (t->pub.label)
		s->label_bytes -= strlen(t->pub.label);
	free(t->pub.label);
	t->pub.label = NULL;
}

/* ── those that ended ────────────────────────────────────────────────────────────────────── */

static bool may_give_way(const struct sched_thread *t)
{
	return t->pub.finished && !t->lane;
}

static bool is_over(const struct el_sched *s, const struct sched_thread *t)
{
	uint64_t start = t->pub.start, end = t->pub.end;

	if (!may_give_way(t))
		return false;
	return (s->opts.window && !el_window__clip(s->opts.window, &start, &end)) ||
	       (s->crowded && t->pub.state_ns[HS_RUNNING] <= s->gives_way_ns);
}

static bool is_unsure(const struct el_sched *s, const struct sched_thread *t)
{
	return s->opts.window && t->pub.finished && t->lane && t->pub.end <= s->opts.window->sure;
}

static void push(struct thread_list *list, struct sched_thread *t)
{
	if (t->listed)
		return;
	t->listed = true;
	t->next = NULL;
	*list->end = t;
	list->end = &t->next;
}

/* Pops the first thread that is still in the state in which it was listed; NULL: there is none. */
static struct sched_thread *pop(const struct el_sched *s, struct thread_list *list,
				bool (*still)(const struct el_sched *, const struct sched_thread *))
{
	struct sched_thread *t;

	do {
		t = list->first;
		if (!t)
			return NULL;
		list->first = t->next;
		if (!list->first)
			list->end = &list->first;
		t->listed = false;
	} while (!still(s, t));
	return t;
}

void sched__over(struct el_sched *s, struct sched_thread *t)
{
	s->n_ended++;
	if (is_over(s, t)) {
		sched__drop_label(s, t);
		push(&s->over, t);
	} else if (is_unsure(s, t)) {
		push(&s->unsure, t);
	}
}

/* ── lanes and places ────────────────────────────────────────────────────────────────────── */

int sched__begin_lane(struct el_sched *s, struct sched_thread *t)
{
	struct lane *lane;

	t->inside = true;
	if (s->n_lanes < s->opts.thread_lanes) {
		lane = calloc(1, sizeof(*lane));
		if (!lane)
			return -ENOMEM;
		s->n_lanes++;
	} else {
		struct sched_thread *last = pop(s, &s->unsure, is_unsure);

		if (!last)
			return 0;
		lane = last->lane;
		last->lane = NULL;
		last->pub.lane = NULL;
		lane__free(lane);
		*lane = (struct lane){0};
	}
	lane->kind = LANE_HASKELL;
	lane->room = &s->thread_room;
	t->lane = lane;
	t->pub.lane = &lane->slices;
	return 0;
}

static size_t list_over(struct el_sched *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_threads; i++) {
		struct sched_thread *t = sched__thread_at(s, i);

		if (!is_over(s, t))
			continue;
		n++;
		push(&s->over, t);
	}
	return n;
}

/*
 * A server may start more threads in its life than there are places; those that ran longest are of
 * interest. Of the threads that ended, those that ran less than the average are given up, or all if
 * these are few, since looking for them takes long.
 */
static void crowd(struct el_sched *s)
{
	unsigned __int128 sum = 0;
	size_t n = 0;

	for (size_t i = 0; i < s->n_threads; i++) {
		const struct sched_thread *t = sched__thread_at(s, i);

		if (!may_give_way(t))
			continue;
		n++;
		sum += t->pub.state_ns[HS_RUNNING];
	}
	s->n_ended = 0;
	if (!n)
		return;
	s->crowded = true;
	s->gives_way_ns = (uint64_t)(sum / n);
	if (list_over(s) >= s->n_threads / 16)
		return;
	s->gives_way_ns = UINT64_MAX;
	list_over(s);
}

/* Finds a place for a new thread, by its number. NULL: there is none. */
static struct sched_thread *place(struct el_sched *s, uint32_t tid)
{
	struct sched_thread *t;

	if (s->n_threads == THREADS_MAX) {
		/* only now, since GHC posts wakeups of threads that have just ended */
		t = pop(s, &s->over, is_over);
		if (!t) {
			/* takes long: only once many have ended */
			if (s->n_ended >= THREADS_MAX / 16)
				crowd(s);
			t = pop(s, &s->over, is_over);
		}
		if (!t) {
			s->info.dropped++;
			return NULL;
		}
		s->info.n_given_up += t->inside || !s->opts.window;
		if (u64map__put(&s->by_tid, tid, u64map__get(&s->by_tid, t->pub.tid)))
			return NULL;
		u64map__del(&s->by_tid, t->pub.tid);
		if (s->recent[t->pub.tid % RECENT_THREADS] == t)
			s->recent[t->pub.tid % RECENT_THREADS] = NULL;
		sched__drop_label(s, t);
		/* it has no lane, since none of its slices was in the window */
		*t = (struct sched_thread){0};
		return t;
	}
	if (s->n_threads % THREAD_CHUNK == 0) {
		struct sched_thread *chunk = calloc(THREAD_CHUNK, sizeof(*chunk));

		if (!chunk)
			return NULL;
		s->thread_chunks[s->n_threads / THREAD_CHUNK] = chunk;
	}
	if (u64map__put(&s->by_tid, tid, (uint32_t)s->n_threads))
		return NULL;
	return sched__thread_at(s, s->n_threads++);
}

struct sched_thread *sched__thread(struct el_sched *s, uint32_t tid, uint64_t time)
{
	struct sched_thread *t;

	t = sched__find(s, tid);
	if (t) {
		s->recent[tid % RECENT_THREADS] = t;
		return t;
	}
	t = place(s, tid);
	if (!t)
		return NULL;
	t->pub.tid = tid;
	t->pub.cap = EL_CAP_GLOBAL;
	t->pub.start = t->pub.since = t->pub.end = time;
	t->pub.state = HS_UNKNOWN;
	s->recent[tid % RECENT_THREADS] = t;
	return t;
}

/* ── the public face ─────────────────────────────────────────────────────────────────────── */

int el_sched__new(const struct el_sched_opts *opts, struct el_sched **ret_s)
{
	struct el_sched *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	if (opts)
		s->opts = *opts;
	s->cap_room.max = CAP_SLICES;
	s->thread_room.max = THREAD_SLICES;
	s->over.end = &s->over.first;
	s->unsure.end = &s->unsure.first;
	*ret_s = s;
	return 0;
}

void el_sched__free(struct el_sched *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_caps; i++) {
		lane__free(&s->caps[i]->lane);
		free(s->caps[i]);
	}
	for (size_t i = 0; i < s->n_threads; i++) {
		struct sched_thread *t = sched__thread_at(s, i);

		free(t->pub.label);
		if (t->lane)
			lane__free(t->lane);
		free(t->lane);
	}
	for (size_t i = 0; i < ARRAY_SIZE(s->thread_chunks); i++)
		free(s->thread_chunks[i]);
	u64map__free(&s->by_tid);
	free(s->all_gcs);
	free(s);
}

void el_sched__cut(struct el_sched *s, uint16_t cap, uint64_t time)
{
	/* 0 has another meaning */
	if (cap < SCHED_CAPS)
		s->cut_after[cap] = MAX(time, (uint64_t)1);
}

struct el_sched_info el_sched__info(const struct el_sched *s)
{
	struct el_sched_info info = s->info;

	info.n_caps = s->n_caps;
	info.n_threads = s->n_threads;
	info.n_lanes = s->n_lanes;
	info.odd += s->cap_room.unordered + s->thread_room.unordered;
	return info;
}

const struct el_cap *el_sched__cap(const struct el_sched *s, size_t i)
{
	return &s->caps[i]->pub;
}

const struct el_thread *el_sched__thread(const struct el_sched *s, size_t i)
{
	return &sched__thread_at(s, i)->pub;
}

const struct el_thread *el_sched__find_thread(const struct el_sched *s, uint32_t tid)
{
	uint32_t at = u64map__get(&s->by_tid, tid);

	return at == U64MAP_NONE ? NULL : &sched__thread_at(s, at)->pub;
}

const struct el_gc *el_sched__gc(const struct el_sched *s, size_t i)
{
	return &s->all_gcs[i];
}

uint32_t el_sched__running(const struct el_sched *s, uint16_t cap)
{
	const struct sched_cap *c = cap < SCHED_CAPS ? s->by_cap[cap] : NULL;

	if (c && c->pair.thread)
		return c->pair.next == EL_RUN_THREAD ? 0 : c->pair.tid;
	return c && c->state == CS_HASKELL ? c->thread : 0;
}
