/* SPDX-License-Identifier: GPL-2.0-or-later */
/* living: which Haskell threads the members have when a window ends. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "session_priv.h"

/* The lead before a window's end: a fixed part, a part per member, and this many times the duration
 * of each member's last look; at most this fraction of the window. */
#define LEAD_NS	     50000000ULL
#define LEAD_EACH_NS 10000000ULL
#define LEAD_TIMES   2
#define LEAD_PART    4
#define TIMEOUT_MS   1000
/* Minimum pause after a look, as a multiple of the CPU time it took, so that a process with a
 * hundred thousand threads is not read for each short window. */
#define PAUSE_TIMES 50

static bool is_wanted(const struct session *s)
{
	return s->opts->output->lanes & EXPORT_LANES_HASKELL;
}

/* When to start; 0: no window, or not wanted. */
static uint64_t due(const struct session *s)
{
	uint64_t end = windows__ends_ns(s), most = s->opts->window_ns / LEAD_PART;
	uint64_t lead = LEAD_NS + LEAD_EACH_NS * members__count_live(s->members);
	const struct member *m = NULL;

	if (!is_wanted(s) || !end)
		return 0;
	while (lead < most && (m = members__next_live(s->members, m)))
		if (m->living.not_before_ns < end)
			lead += LEAD_TIMES * m->living.took_ns;
	return end - MIN(lead, most);
}

uint64_t living__next_due(const struct session *s, uint64_t now)
{
	uint64_t at = due(s);

	return now < at ? at : 0;
}

static bool may_look(const struct member *m)
{
	return m->ready && !m->only_sampled && !m->snapshot_due && !target__looks(m->target);
}

/* False if there is no room for a look at present. */
static bool start(struct session *s, struct member *m)
{
	int err = looks__living(s->looks, m->target, TIMEOUT_MS);

	if (err == -EDQUOT)
		return false;
	m->living.going = !err;
	m->living.began_ns = time__monotonic_ns();
	if (err)
		log_debug("pid %d: its Haskell threads are not looked up: %s", m->pid,
			  strerror(-err));
	return true;
}

void living__turn(struct session *s, uint64_t now)
{
	uint64_t window = windows__ends_ns(s), begin = due(s);
	struct member *m = NULL;

	if (!begin || now < begin)
		return;
	while ((m = members__next_live(s->members, m))) {
		if (m->living.window_ns == window || now < m->living.not_before_ns || !may_look(m))
			continue;
		if (start(s, m))
			m->living.window_ns = window;
		if (time__monotonic_ns() - now > TURN_NS)
			return;
	}
}

void living__drop(struct member *m)
{
	free(m->living.living);
	m->living.living = NULL;
	m->living.going = false;
}

static void take(struct session *s, struct member *m, uint64_t window)
{
	struct target_living *living;
	uint64_t now, cpu_ns;
	int err = looks__living_taken(s->looks, m->target, &living);
	bool found;

	if (err == -EINPROGRESS)
		return;
	now = time__monotonic_ns();
	cpu_ns = err ? now - m->living.began_ns : living->cpu_ns;
	found = !err && living->n_quiet;
	m->living.not_before_ns = now + PAUSE_TIMES * cpu_ns;
	living__drop(m);
	if (found)
		m->living.took_ns = living->ended_ns - living->began_ns;
	else if (target__alive(m->target))
		log_debug("pid %d: its Haskell threads are not known: %s", m->pid,
			  strerror(err ? -err : EBUSY));
	/* a result for another window must not count for this one */
	if (found && m->living.window_ns == window)
		m->living.living = living;
	else if (!err)
		free(living);
}

void living__take(struct session *s, struct member *m)
{
	take(s, m, windows__ends_ns(s));
}

void living__last(struct session *s, uint64_t until_ns)
{
	struct member *m = NULL;
	size_t left = is_wanted(s) ? 1 : 0;

	while ((m = members__next_live(s->members, m))) {
		looks__cancel(s->looks, m->target);
		living__drop(m);
		m->living.window_ns = 0;
	}
	while (left && time__monotonic_ns() < until_ns) {
		left = 0;
		while ((m = members__next_live(s->members, m))) {
			if (m->living.going)
				take(s, m, until_ns);
			else if (m->living.window_ns != until_ns && may_look(m) && start(s, m))
				m->living.window_ns = until_ns;
			left += m->living.going || (m->living.window_ns != until_ns && may_look(m));
		}
		if (left)
			looks__wait(s->looks, -1, 10);
		kernel__beat(s->kernel);
	}
	while ((m = members__next_live(s->members, m)))
		looks__cancel(s->looks, m->target);
}

/* Threads that a collection resurrects are in no list until it ends. */
static bool is_complete(const struct session *s, const struct member *m,
			const struct target_living *l)
{
	for (uint64_t i = 0; i < l->n_quiet; i++)
		if (!intake__collects(s->in, m->pid, l->quiet[i].start_ns, l->quiet[i].end_ns))
			return true;
	return false;
}

void living__give(struct session *s, uint64_t at_ns)
{
	struct member *m = NULL;

	while ((m = members__next_live(s->members, m))) {
		const struct target_living *l = m->living.living;
		int err = 0;

		if (l && is_complete(s, m, l))
			err = intake__living(s->in, m->pid, l->v, l->n, l->began_ns, at_ns);
		if (err == -ENOMEM)
			feed__failed(s->feed);
		/* a look still in progress counts for no window */
		free(m->living.living);
		m->living.living = NULL;
	}
}
