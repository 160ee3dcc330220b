/* SPDX-License-Identifier: GPL-2.0-or-later */
/* log_models: a reader with every model attached to it. */
#include "logs_priv.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include "base/base.h"
#include "intake/tap.h"
#include "join/join.h"

/* Haskell threads whose lanes are kept (struct el_sched_opts); of the others only sums are. */
#define THREAD_LANES 256

/*
 * The wall clock may have been set between the log's beginning and now: an error up to this costs
 * no event of the session.
 */
#define MARGIN_NS 1000000000ULL

/* Of all joined logs together. One alone takes about half of it at most, by its models' limits. */
#define HELD_MAX ((size_t)256 << 20)

size_t log_models__heap_in_use(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

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
	if ((int64_t)m->session_ns > m->guess_ns)
		m->window.sure = (uint64_t)((int64_t)m->session_ns - m->guess_ns);
	if (m->window.sure > MARGIN_NS)
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

/* `window`: the models' own, or NULL: everything is inside. */
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

int log_models__new_joined(const struct intake_log_join *how, struct log_models **ret_models)
{
	struct log_models *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	/* nothing is inside before the log's wall clock is known */
	m->window.from = UINT64_MAX;
	m->bytes = log_models__heap_in_use();
	m->session_ns = how->session_ns;
	m->now_ns = how->now_ns;
	m->now_wall_ns = how->now_wall_ns;
	err = el_match__new(&m->window, &m->match);
	if (!err)
		err = make_all(m, &m->window);
	if (err)
		log_models__free(m);
	else
		*ret_models = m;
	return err;
}

void log_models__free(struct log_models *m)
{
	if (!m)
		return;
	el_match__free(m->match);
	el_heap__free(m->heap);
	el_annot__free(m->annot);
	el_profile__free(m->profile);
	el_info__free(m->info);
	el_sched__free(m->sched);
	eventlog__free(m->log);
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
	if (!err)
		err = log_models__finish(m);
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
	int err = el_sched__finish(m->sched, end);

	if (!err)
		err = el_profile__finish(m->profile);
	return err ? err : el_annot__finish(m->annot, end);
}

bool log_models__has_clock(const struct log_models *m)
{
	return m->guessed;
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
	log->from_ns = m->window.from;
	log->to_ns = m->window.to ? MIN(m->window.to, last) : last;
}
