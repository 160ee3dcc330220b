/* SPDX-License-Identifier: GPL-2.0-or-later */
/* log_models: a reader with every model attached to it. */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "log_models.h"

/* Haskell threads whose lanes are kept; of the others there are sums. */
#define THREAD_LANES 256

/* The guess may be off by as much as somebody set the clock; by so much nothing is lost. */
#define MARGIN_NS 1000000000ULL

static int on_wall_clock(void *ctx, const struct el_event *ev)
{
	struct log_models *m = ctx;
	uint64_t wall = ev->wall.sec * 1000000000ULL + ev->wall.ns;
	uint64_t now_wall = m->now_wall_ns, now = m->now_ns, at;

	if (m->guessed || ev->wall.sec > UINT32_MAX || wall > now_wall || now_wall - wall > now)
		return 0;
	at = now - (now_wall - wall);
	m->guess_ns = (int64_t)at - (int64_t)MIN(ev->time, (uint64_t)INT64_MAX / 2);
	m->guessed = true;
	m->window.from = 1;
	if ((int64_t)m->session_ns - (int64_t)MARGIN_NS > m->guess_ns)
		m->window.from =
			(uint64_t)((int64_t)m->session_ns - (int64_t)MARGIN_NS - m->guess_ns);
	return 0;
}

static int attach_all(struct log_models *m)
{
	static const uint16_t wall[] = {EL_WALL_CLOCK_TIME};
	int err = 0;

	/* In this order each event meets them: the window opens before they look at it. */
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

/* `window`: the models' own, or NULL: then nothing need be looked at. */
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
		err = el_info__new(m->sched, &m->info);
	if (!err)
		err = el_profile__new(window, &m->profile);
	if (!err)
		err = el_annot__new(window, el_profile__tree(m->profile), m->sched, &m->annot);
	if (!err)
		err = el_heap__new(window, el_profile__tree(m->profile), &m->heap);
	if (!err)
		err = attach_all(m);
	if (err)
		log_models__free(m);
	return err;
}

int log_models__new(struct log_models *m, const struct options *options)
{
	memset(m, 0, sizeof(*m));
	m->window = (struct el_window){.from = options->from_ns,
				       .to = options->to_ns,
				       .from_marker = options->from_marker,
				       .to_marker = options->to_marker};
	if (options->from_ns || options->to_ns || options->from_marker || options->to_marker)
		return make_all(m, &m->window);
	return make_all(m, NULL);
}

int log_models__new_joined(struct log_models *m, const struct tl_log_join *how)
{
	struct el_match_opts opts = {.window = &m->window};
	int err;

	memset(m, 0, sizeof(*m));
	/* Nothing is inside until the log has told its wall clock. */
	m->window.from = UINT64_MAX;
	m->session_ns = how->session_ns;
	m->now_ns = how->now_ns;
	m->now_wall_ns = how->now_wall_ns;
	err = el_match__new(&opts, &m->match);
	return err ? err : make_all(m, &m->window);
}

void log_models__free(struct log_models *m)
{
	el_match__free(m->match);
	el_heap__free(m->heap);
	el_annot__free(m->annot);
	el_profile__free(m->profile);
	el_info__free(m->info);
	el_sched__free(m->sched);
	eventlog__free(m->log);
	memset(m, 0, sizeof(*m));
}

int log_models__read(struct log_models *m, int fd, bool live, uint64_t *ret_lost)
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

int log_models__finish(struct log_models *m)
{
	uint64_t end = eventlog__stats(m->log)->last_time;
	int err = el_sched__finish(m->sched, end);

	return err ? err : el_annot__finish(m->annot, end);
}

void log_models__tell(const struct log_models *m, struct tl_log *ret_log)
{
	uint64_t last = eventlog__stats(m->log)->last_time;

	ret_log->stats = eventlog__stats(m->log);
	ret_log->info = m->info;
	ret_log->sched = m->sched;
	ret_log->profile = m->profile;
	ret_log->annot = m->annot;
	ret_log->heap = m->heap;
	ret_log->match = m->match;
	ret_log->offset_ns = m->guess_ns;
	ret_log->from_ns = m->window.from;
	ret_log->to_ns = m->window.to ? MIN(m->window.to, last) : last;
}

uint64_t log_models__dropped(const struct log_models *m)
{
	return el_info__process(m->info).dropped + el_sched__info(m->sched).dropped +
	       el_profile__info(m->profile).dropped + el_annot__info(m->annot).dropped +
	       el_heap__info(m->heap).dropped;
}
