/* SPDX-License-Identifier: GPL-2.0-or-later */
/* censuses: heap censuses of members, taken after major collections, if requested. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "session_priv.h"

#define TIMEOUT_MS 10000
/* Attempts before the best of several bad censuses is used. */
#define MOST_TRIES 8
/* Censuses that a later collection disturbs are not counted among these, up to this many, since the
 * program may soon collect less. */
#define MOST_DISTURBED 16
/* Limit for a good census: the share that could not be identified, plus the deviation of its size
 * from the live bytes. */
#define BAD_PERCENT 5
/* The collection at a program's end leaves nothing that the program had. A collection is known to
 * be another one only after the process has lived on for this long, or has collected again. */
#define LIVES_ON_NS 500000000ULL
/* A growing heap is counted again when this much more is live than at the last census, to show what
 * grows in it; at most this many times, and no sooner than this after the last one. */
#define GROWN_PERCENT 25
#define MOST_AGAIN    16
#define AGAIN_NS      5000000000ULL

static bool is_major(const struct wire_heap *rec)
{
	/* the number of generations may be unread: it is two unless more are requested */
	return rec->generation + 1 >= (rec->n_gens ? rec->n_gens : 2);
}

void censuses__want(struct session *s, struct member *m)
{
	if (!s->opts->heap_census)
		return;
	m->census.due = true;
	m->census.tries = m->census.n_disturbed = 0;
}

void censuses__want_all(struct session *s)
{
	struct member *m = NULL;

	while ((m = members__next_live(s->members, m)))
		censuses__want(s, m);
}

static void give_up(struct member *m, int err)
{
	if (err == -EBUSY || err == -EDQUOT)
		return;
	m->census.due = false;
	if (!target__alive(m->target))
		return;
	log_warn("pid %d: cannot take a census of its heap: %s", m->pid, strerror(-err));
	m->census.failed = true;
}

/* ── one that was taken ──────────────────────────────────────────────────────────────────── */

/*
 * 0 for a perfect census. During the next collection, blocks are missing from the generations'
 * lists (rts/sm/GC.c, prepare_collected_gen).
 */
static double badness(const struct target_census *c)
{
	double live = (double)MAX(c->live_bytes, (uint64_t)1);
	double found = (double)c->blocks_bytes + (double)c->large_bytes + (double)c->compact_bytes;
	double unknown = (double)c->unknown_bytes / (double)MAX(c->walked_bytes, (uint64_t)1);

	return unknown + fabs(found - live) / live + c->cut;
}

static void drop(struct target_census **census)
{
	free(*census);
	*census = NULL;
}

static void give_best(struct session *s, struct member *m)
{
	struct census_state *c = &m->census;
	int err = intake__census(s->in, m->pid, c->best, c->best_ns);

	if (err) {
		log_warn("pid %d: the heap census is left out: %s", m->pid, strerror(-err));
		c->failed = true;
	} else {
		c->taken_ns = c->best_ns;
		c->live_bytes = c->best->live_bytes;
	}
	c->due = false;
	drop(&c->best);
}

/* Judges the latest census, now that its collection was not the one at the program's end. */
static void settle(struct session *s, struct member *m)
{
	struct census_state *c = &m->census;
	double fresh = badness(c->fresh);
	bool good = !c->fresh_disturbed && fresh * 100 <= BAD_PERCENT;

	log_debug("pid %d: heap census %.3f s after its collection: %.1f %% bad%s", m->pid,
		  (double)(c->taken_at_ns - c->fresh_ns) / 1e9, 100 * fresh,
		  c->fresh_disturbed ? ", and another collection ran meanwhile" : "");
	if (good || !c->best || fresh < badness(c->best)) {
		drop(&c->best);
		c->best = c->fresh;
		c->best_ns = c->fresh_ns;
		c->fresh = NULL;
	}
	drop(&c->fresh);
	if (c->fresh_disturbed && c->n_disturbed < MOST_DISTURBED)
		c->n_disturbed++;
	else
		c->tries++;
	if (good || c->tries >= MOST_TRIES)
		give_best(s, m);
}

void censuses__turn(struct session *s, uint64_t now)
{
	struct member *m = NULL;

	if (!s->opts->heap_census)
		return;
	while ((m = members__next_live(s->members, m)))
		if (m->census.fresh && now - m->census.taken_at_ns >= LIVES_ON_NS &&
		    target__alive(m->target))
			settle(s, m);
}

void censuses__end(struct session *s, struct member *m, bool exited)
{
	struct census_state *c = &m->census;

	if (c->fresh && !exited)
		settle(s, m);
	drop(&c->fresh);
	if (c->best)
		give_best(s, m);
	if (!s->opts->heap_census || c->taken_ns || m->only_sampled)
		return;
	if (s->opts->kind != SESSION_SYSTEM)
		intake__set_exit_code(s->in, EXIT_PARTIAL);
	intake__add_missing(
		s->in, m->pid,
		c->failed ? "a heap census: its heap could not be read"
			  : "a heap census: there was no major collection after which to take it");
}

void censuses__end_all(struct session *s)
{
	struct member *m = NULL;

	while ((m = members__next_live(s->members, m)))
		censuses__end(s, m, false);
}

/* ── taking one ──────────────────────────────────────────────────────────────────────────── */

static bool has_grown(const struct census_state *c, const struct wire_heap *rec)
{
	return c->taken_ns && c->again < MOST_AGAIN && rec->h.ns > c->taken_ns + AGAIN_NS &&
	       8 * rec->live_words > c->live_bytes + c->live_bytes / 100 * GROWN_PERCENT;
}

/* Begins the census that is due, if any, after the major collection that ended at `ns`. */
static void begin(struct session *s, struct member *m, uint64_t ns, uint64_t live_bytes)
{
	struct census_state *c = &m->census;
	int err;

	if (!c->due || target__looks(m->target))
		return;
	err = looks__census(s->looks, m->target, TIMEOUT_MS, s->opts->freeze_ms);
	if (err) {
		give_up(m, err);
		return;
	}
	c->began_ns = ns;
	c->began_live_bytes = live_bytes;
	c->disturbed_ns = 0;
}

void censuses__take(struct session *s, struct member *m)
{
	struct census_state *c = &m->census;
	struct target_census *census;
	int err = looks__census_taken(s->looks, m->target, &census);

	if (err == -EINPROGRESS)
		return;
	if (err) {
		give_up(m, err);
	} else {
		drop(&c->fresh);
		c->fresh = census;
		c->fresh->live_bytes = c->began_live_bytes;
		c->fresh_ns = c->began_ns;
		c->fresh_disturbed = c->disturbed_ns;
		c->taken_at_ns = time__monotonic_ns();
	}
	c->began_ns = 0;
	if (err || !c->disturbed_ns)
		return;
	/* the next collection may be far off */
	settle(s, m);
	begin(s, m, c->disturbed_ns, c->disturbed_live_bytes);
}

void censuses__on_heap(struct session *s, const struct wire_heap *rec, size_t size)
{
	struct census_state *c;
	struct member *m;

	if (!s->opts->heap_census || size < sizeof(*rec))
		return;
	m = members__find_live(s->members, (pid_t)rec->h.tgid);
	if (!m || !m->ready || m->snapshot_due)
		return;
	if (m->census.fresh && rec->h.ns > m->census.fresh_ns)
		settle(s, m);
	if (!is_major(rec))
		return;
	c = &m->census;
	if (c->began_ns) {
		c->disturbed_ns = rec->h.ns;
		c->disturbed_live_bytes = 8 * rec->live_words;
		return;
	}
	if (!c->due && has_grown(c, rec)) {
		c->again++;
		censuses__want(s, m);
	}
	begin(s, m, rec->h.ns, 8 * rec->live_words);
}
