/* SPDX-License-Identifier: GPL-2.0-or-later */
/* censuses: counts what members' heaps are made of, after major collections, as was asked for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "session_priv.h"

#define TIMEOUT_MS 10000
/* Another major collection came while the blocks were walked: so often it is done again. */
#define MOST_TRIES 3
/* One that grows is counted again when so much more is live than the last time, to show what of it
 * grows; so often in all, and no sooner than this after the last time. */
#define GROWN_PERCENT 25
#define MOST_AGAIN    16
#define AGAIN_NS      5000000000ULL

static bool is_major(const struct wire_heap *rec)
{
	/* without a look at the generations: there are two unless more are asked for */
	return rec->generation + 1 >= (rec->n_gens ? rec->n_gens : 2);
}

void censuses__want(struct session *s, struct member *m)
{
	if (!s->opts->heap_census)
		return;
	m->census.due = true;
	m->census.tries = 0;
}

void censuses__want_all(struct session *s)
{
	struct member *m = NULL;

	while ((m = members__next_live(s->members, m)))
		censuses__want(s, m);
}

static bool has_grown(const struct census_state *c, const struct wire_heap *rec)
{
	return c->taken_ns && c->again < MOST_AGAIN && rec->h.ns > c->taken_ns + AGAIN_NS &&
	       rec->live_words > c->live_words + c->live_words / 100 * GROWN_PERCENT;
}

static void give_up(struct member *m, int err)
{
	if (err == -EBUSY || err == -EDQUOT)
		return;
	m->census.due = false;
	if (!target__alive(m->target))
		return;
	log_warn("pid %d: its heap cannot be counted: %s", m->pid, strerror(-err));
	m->census.failed = true;
}

void censuses__on_heap(struct session *s, const struct wire_heap *rec, size_t size)
{
	struct member *m;
	int err;

	if (!s->opts->heap_census || size < sizeof(*rec) || !is_major(rec))
		return;
	m = members__find_live(s->members, (pid_t)rec->h.tgid);
	if (!m || !m->ready || m->snapshot_due)
		return;
	if (m->census.began_ns) {
		m->census.disturbed = true;
		return;
	}
	if (!m->census.due && has_grown(&m->census, rec)) {
		m->census.again++;
		censuses__want(s, m);
	}
	if (!m->census.due || target__looks(m->target))
		return;
	err = looks__census(s->looks, m->target, TIMEOUT_MS);
	if (err) {
		give_up(m, err);
		return;
	}
	m->census.began_ns = rec->h.ns;
	m->census.live_words = rec->live_words;
	m->census.disturbed = false;
}

void censuses__take(struct session *s, struct member *m)
{
	struct target_census *census;
	int err = looks__census_taken(s->looks, m->target, &census);
	uint64_t at = m->census.began_ns;

	if (err == -EINPROGRESS)
		return;
	m->census.began_ns = 0;
	if (err) {
		give_up(m, err);
		return;
	}
	if (!m->census.disturbed || ++m->census.tries == MOST_TRIES) {
		m->census.due = false;
		m->census.taken_ns = at;
		err = intake__census(s->in, m->pid, census, at);
		if (err)
			log_warn("pid %d: the heap census is left out: %s", m->pid, strerror(-err));
	}
	free(census);
}
