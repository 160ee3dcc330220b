/* SPDX-License-Identifier: GPL-2.0-or-later */
/* log_models: a reader with every model attached to it. */
#include "logs_priv.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include "base/base.h"
#include "intake/tap.h"
#include "join/join.h"

/* The most Haskell threads whose lanes are kept (struct el_sched_opts); others only count in
 * sums. */
#define THREAD_LANES 256

/*
 * The wall clock may have been set between the log's beginning and now: an error of up to this much
 * loses no event of the session.
 */
#define MARGIN_NS 1000000000ULL

/* For all joined logs together. By its models' limits, a single one takes about half of it at
 * most. */
#define HELD_MAX ((size_t)256 << 20)

size_t log_models__heap_in_use(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* The offset by the wall clock's time when the log began. INT64_MIN: by that, the system had not
 * booted yet. */
static int64_t by_wall(const struct log_models *m, const struct el_event *ev)
{
	uint64_t wall = ev->wall.sec * 1000000000ULL + ev->wall.ns;
	uint64_t now = m->now_ns + m->shift_ns, at;

	if (wall > m->now_wall_ns || m->now_wall_ns - wall > now)
		return INT64_MIN;
	at = now - (m->now_wall_ns - wall);
	return (int64_t)at - (int64_t)MIN(ev->time, (uint64_t)INT64_MAX / 2);
}

/*
 * A log begins after its process. If by the wall clock it does not, the clock has been set since.
 * If it does, the clock may have been set back, or the process may have done something else before.
 */
static int on_wall_clock(void *ctx, const struct el_event *ev)
{
	int64_t margin = (int64_t)MARGIN_NS, wall, start, latest;
	struct log_models *m = ctx;

	if (m->guessed || ev->wall.sec > UINT32_MAX)
		return 0;
	m->wall_seen = true;
	wall = by_wall(m, ev);
	start = m->start_ns ? (int64_t)(m->start_ns + m->shift_ns) : INT64_MIN;
	m->unsure = m->shift_ns != 0;
	if (wall == INT64_MIN || (start != INT64_MIN && wall < start - margin)) {
		wall = start;
		m->unsure = true;
	}
	if (wall == INT64_MIN)
		return 0;
	m->guessed = true;
	m->guess_ns = wall;
	m->other_ns = start == INT64_MIN ? wall : start;
	latest = MAX(m->guess_ns, m->other_ns);
	m->window.from = 1;
	if ((int64_t)m->session_ns > latest)
		m->window.sure = (uint64_t)((int64_t)m->session_ns - latest);
	if ((int64_t)m->window.sure > margin)
		m->window.from = m->window.sure - MARGIN_NS;
	return 0;
}

static int attach_all(struct log_models *m)
{
	static const uint16_t wall[] = {EL_WALL_CLOCK_TIME};
	int err = 0;

	/* The models see each event in this order: the window opens before they look at it. */
	if (m->session_ns)
		err = eventlog__subscribe(m->log, wall, ARRAY_SIZE(wall), on_wall_clock, m);
	if (!err)
		err = el_window__attach(&m->window, m->log);
	if (!err)
		err = el_sched__attach(m->sched, m->log);
	if (!err)
		err = el_info__attach(m->info, m->log);
	if (!err)
		err = el_profile__attach(m->profile, m->log);
	if (!err)
		err = el_annot__attach(m->annot, m->log);
	if (!err)
		err = el_heap__attach(m->heap, m->log);
	if (!err && m->match)
		err = el_match__attach(m->match, m->log);
	return err;
}

/* `window`: the models' own, or NULL: all events are inside. */
static int make_all(struct log_models *m, const struct el_window *window)
{
	struct el_sched_opts sched = {.window = window, .thread_lanes = THREAD_LANES};
	int err;

	if (m->match) {
		sched.on_call = el_match__on_call;
		sched.ctx = m->match;
	}
	err = eventlog__new(NULL, &m->log);
	if (!err)
		err = el_sched__new(&sched, &m->sched);
	if (!err)
		err = el_info__new(window, m->sched, &m->info);
	if (!err)
		err = el_profile__new(window, &m->profile);
	if (!err)
		err = el_annot__new(window, el_profile__tree(m->profile), m->sched, &m->annot);
	if (!err)
		err = el_heap__new(window, el_profile__tree(m->profile), &m->heap);
	return err ? err : attach_all(m);
}

int log_models__new(const struct log_part *part, struct log_models **ret_models)
{
	bool all = !part->from_ns && !part->to_ns && !part->from_marker && !part->to_marker;
	struct log_models *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	m->window = (struct el_window){.from = part->from_ns,
				       .to = part->to_ns,
				       .from_marker = part->from_marker,
				       .to_marker = part->to_marker};
	err = make_all(m, all ? NULL : &m->window);
	if (err)
		log_models__free(m);
	else
		*ret_models = m;
	return err;
}

static int make_joined(struct log_models *m)
{
	int err;

	/* no event is inside until the log's wall clock is known */
	m->window = (struct el_window){.from = UINT64_MAX};
	err = el_match__new(&m->window, &m->match);
	return err ? err : make_all(m, &m->window);
}

int log_models__new_joined(const struct intake_log_join *how, struct log_models **ret_models)
{
	struct log_models *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	m->bytes = log_models__heap_in_use();
	m->session_ns = how->session_ns;
	m->now_ns = how->now_ns;
	m->now_wall_ns = how->now_wall_ns;
	m->start_ns = how->start_ns;
	m->suspended_ns = how->suspended_ns;
	err = make_joined(m);
	if (err)
		log_models__free(m);
	else
		*ret_models = m;
	return err;
}

static void free_all(struct log_models *m)
{
	el_match__free(m->match);
	el_heap__free(m->heap);
	el_annot__free(m->annot);
	el_profile__free(m->profile);
	el_info__free(m->info);
	el_sched__free(m->sched);
	eventlog__free(m->log);
	m->match = NULL;
	m->heap = NULL;
	m->annot = NULL;
	m->profile = NULL;
	m->info = NULL;
	m->sched = NULL;
	m->log = NULL;
}

void log_models__free(struct log_models *m)
{
	if (!m)
		return;
	free_all(m);
	free(m);
}

struct eventlog *log_models__reader(struct log_models *m)
{
	return m->log;
}

const struct eventlog_stats *log_models__stats(const struct log_models *m)
{
	return m->log ? eventlog__stats(m->log) : &m->stats;
}

static int read_file(struct log_models *m, int fd, bool live, uint64_t *ret_lost)
{
	const struct eventlog_stats *stats = eventlog__stats(m->log);
	int err = eventlog__open_fd(m->log, fd);

	if (!err)
		err = eventlog__poll(m->log);
	*ret_lost = stats->lost_bytes;
	if (!err)
		err = eventlog__finish(m->log);
	if (!live)
		*ret_lost = stats->lost_bytes;
	return err ? err : log_models__finish(m);
}

/* Where the log ends, as placed by the guess. */
static int64_t end_of(const struct log_models *m)
{
	const struct eventlog_stats *stats = log_models__stats(m);
	uint64_t end = stats->ended ? stats->last_time : stats->reaches;

	return MAX(m->guess_ns, m->other_ns) + (int64_t)MIN(end, (uint64_t)INT64_MAX / 4);
}

/*
 * While the system is suspended the wall clock goes on, but CLOCK_MONOTONIC does not. If that
 * happened after the program's start, the log is placed too early by the time suspended, and seems
 * to end before the session. How much of the suspended time counts is unknown: as a rule none of
 * it, or all of it.
 */
static bool may_be_later(struct log_models *m)
{
	int64_t session = (int64_t)m->session_ns, latest = (int64_t)(m->now_ns + MARGIN_NS);
	int64_t suspended = (int64_t)m->suspended_ns;

	m->early = m->guessed && m->suspended_ns > MARGIN_NS && end_of(m) < session;
	/* without any guess, the log seems to begin before the system booted, which the time
	 * suspended may explain */
	if (!m->guessed)
		return m->wall_seen && m->suspended_ns > MARGIN_NS;
	return m->early && end_of(m) + suspended >= session && end_of(m) + suspended <= latest;
}

int log_models__read(struct log_models *m, int fd, bool live, uint64_t *ret_lost)
{
	int err = read_file(m, fd, live, ret_lost);

	if (!err && m->session_ns && may_be_later(m)) {
		free_all(m);
		m->guessed = false;
		m->shift_ns = m->suspended_ns;
		err = make_joined(m);
		if (!err)
			err = read_file(m, fd, live, ret_lost);
	}
	m->bytes = log_models__heap_in_use() - MIN(m->bytes, log_models__heap_in_use());
	return err;
}

bool log_models__hold(const struct log_models *m, struct logs_held *held)
{
	if (held->bytes + m->bytes > HELD_MAX && m->bytes > HELD_MAX / MAX(held->n_logs, 1u))
		return false;
	held->bytes += m->bytes;
	return true;
}

int log_models__finish(struct log_models *m)
{
	uint64_t end = log_models__stats(m)->last_time;
	int err;

	/* A program that ends writes all its buffers; one that is killed, or runs on, may have
	 * written some of them long ago. */
	for (uint16_t cap = 0; cap < EL_CAPS_MAX && !log_models__stats(m)->ended; cap++)
		el_sched__cut(m->sched, cap, eventlog__cap_reaches(m->log, cap));
	err = el_sched__finish(m->sched, end);
	if (!err)
		err = el_profile__finish(m->profile);
	return err ? err : el_annot__finish(m->annot, end);
}

bool log_models__has_clock(const struct log_models *m)
{
	return m->guessed;
}

bool log_models__has_wall_clock(const struct log_models *m)
{
	return m->wall_seen;
}

const struct el_window *log_models__window(const struct log_models *m)
{
	return &m->window;
}

const struct el_annot *log_models__annot(const struct log_models *m)
{
	return m->annot;
}

uint64_t log_models__dropped(const struct log_models *m)
{
	return el_info__process(m->info).dropped + el_sched__info(m->sched).dropped +
	       el_profile__info(m->profile).dropped + el_annot__info(m->annot).dropped +
	       el_heap__info(m->heap).dropped;
}

void log_models__fill(const struct log_models *m, struct join_log *log)
{
	uint64_t last = log_models__stats(m)->last_time;

	log->stats = log_models__stats(m);
	log->info = m->info;
	log->sched = m->sched;
	log->profile = m->profile;
	log->annot = m->annot;
	log->heap = m->heap;
	log->match = m->match;
	log->left_out = log_models__dropped(m);
	log->offset_ns = m->guess_ns;
	log->other_offset_ns = m->other_ns;
	log->unsure = m->unsure;
	log->early = m->early;
	log->from_ns = m->window.from;
	log->to_ns = m->window.to ? MIN(m->window.to, last) : last;
}
