/* SPDX-License-Identifier: GPL-2.0-or-later */
/* candidates: processes to be looked at, and whose turn it is. */
#include <errno.h>
#include <stdlib.h>

#include "base/retry.h"
#include "base/shares.h"
#include "confine/confine.h"
#include "process/proc.h"
#include "members_priv.h"

#define CANDIDATES_MAX 65536
/* Limit on waiting candidates, which are not forgotten before they end. Shared between users as in
 * base/shares.h: a single user gets at most half of it. */
#define WAITING_MAX 8192

/* The places of waiting candidates, by pid. */
struct waiting {
	struct shares *shares;
	size_t n;
};

struct candidates {
	struct candidate *all; /* by pid */
	size_t n_checked;
	struct waiting waiting; /* for room or descriptors */
	struct waiting late;	/* … and for time */
	uint64_t turn;
	uint64_t last; /* the last value given to candidate.place */
};

int candidates__new(struct candidates **ret_candidates)
{
	struct candidates *cs = calloc(1, sizeof(*cs));
	int err;

	if (!cs)
		return -ENOMEM;
	err = shares__new(WAITING_MAX, 0, &cs->waiting.shares);
	if (!err)
		err = shares__new(WAITING_MAX, 0, &cs->late.shares);
	if (err)
		candidates__free(cs);
	else
		*ret_candidates = cs;
	return err;
}

void candidates__free(struct candidates *cs)
{
	struct candidate *c = NULL;

	while (cs && (c = candidates__next(cs, c))) {
		target__free(c->target);
		c->target = NULL;
	}
	if (cs) {
		HASH_FREE(cs->all);
		shares__free(cs->waiting.shares);
		shares__free(cs->late.shares);
	}
	free(cs);
}

struct candidate *candidates__find(const struct candidates *cs, pid_t pid)
{
	struct candidate *c;

	HASH_FIND(hh, cs->all, &pid, sizeof(pid), c);
	return c;
}

struct candidate *candidates__next(const struct candidates *cs, const struct candidate *prev)
{
	return prev ? prev->hh.next : cs->all;
}

static struct candidate *add(struct candidates *cs, pid_t pid)
{
	struct candidate *c = HASH_COUNT(cs->all) < CANDIDATES_MAX ? calloc(1, sizeof(*c)) : NULL;

	if (!c)
		return NULL;
	c->pid = pid;
	return HASH_INSERT(cs->all, pid, sizeof(c->pid), c) ? NULL : c;
}

struct candidate *candidates__add(struct candidates *cs, const struct wire_proc_new *rec,
				  uint64_t due_ns, uint64_t give_up_ns)
{
	pid_t pid = (pid_t)rec->h.tgid;
	struct candidate *c = candidates__find(cs, pid);

	if (!c)
		c = add(cs, pid);
	if (!c) {
		log_warn("pid %d: not inspected: too many processes are starting", pid);
		return NULL;
	}
	c->due_ns = due_ns;
	candidates__go_on(cs, c, give_up_ns);
	c->program = *rec;
	c->reported = true;
	c->running = c->has_user = c->refused = c->missed = c->unconfirmed = c->mapped = false;
	retry__end(&c->again);
	c->place = ++cs->last;
	return c;
}

/* The user it is accounted to: nobody if the process is gone, or as long as that cannot be
 * determined. */
static uid_t user_of(struct candidate *c)
{
	uid_t user;
	int err;

	if (c->has_user)
		return c->user;
	err = proc__account(c->pid, &user);
	c->user = err ? CONFINE_NOBODY : user;
	c->has_user = !retry__shows_nothing(err);
	return c->user;
}

static struct waiting *waiting_like(struct candidates *cs, enum candidate_wait waits)
{
	return waits == WAITS_FOR_TIME ? &cs->late : &cs->waiting;
}

static void wait_no_more(struct candidates *cs, struct candidate *c)
{
	struct waiting *waiting = waiting_like(cs, c->waits);

	if (!c->waits)
		return;
	waiting->n--;
	shares__leave(waiting->shares, (uint64_t)c->pid, c->waits_of);
	c->waits = WAITS_NOT;
}

/* False if the user has as many places as allowed. A candidate that already has a place of this
 * kind keeps it. */
static bool take_place(struct candidates *cs, struct candidate *c, enum candidate_wait waits)
{
	struct waiting *waiting = waiting_like(cs, waits);
	uid_t user;

	if (c->waits && waiting_like(cs, c->waits) == waiting)
		return true;
	user = user_of(c);
	if (shares__ask(waiting->shares, user, 0) ||
	    shares__use(waiting->shares, (uint64_t)c->pid, user, 0))
		return false;
	wait_no_more(cs, c);
	waiting->n++;
	c->waits_of = user;
	return true;
}

void candidates__drop(struct candidates *cs, struct candidate *c)
{
	target__free(candidates__take_target(cs, c));
	wait_no_more(cs, c);
	HASH_DEL(cs->all, c);
	free(c);
}

static bool wait(struct candidates *cs, struct candidate *c, uint64_t due_ns,
		 enum candidate_wait waits)
{
	static const char *const what[] = {
		[WAITS_FOR_ROOM] = "other processes of its user have ended",
		[WAITS_FOR_FILES] = "descriptors are available",
		[WAITS_FOR_TIME] = "it is inspected again",
	};
	bool is_new = !c->waits;

	if (!take_place(cs, c, waits))
		return false;
	if (is_new)
		log_verbose("pid %d: waits until %s", c->pid, what[waits]);
	c->waits = waits;
	c->refused |= waits == WAITS_FOR_ROOM;
	c->missed |= waits == WAITS_FOR_FILES;
	c->running = true;
	c->reported = false;
	c->due_ns = due_ns;
	return true;
}

bool candidates__wait(struct candidates *cs, struct candidate *c, uint64_t due_ns)
{
	return wait(cs, c, due_ns, WAITS_FOR_ROOM);
}

bool candidates__wait_for_files(struct candidates *cs, struct candidate *c, uint64_t due_ns)
{
	return wait(cs, c, due_ns, WAITS_FOR_FILES);
}

bool candidates__wait_for_time(struct candidates *cs, struct candidate *c, uint64_t now)
{
	retry__begin(&c->again, now, RETRY_NS, RETRY_LONGEST_NS);
	return wait(cs, c, c->again.until_ns, WAITS_FOR_TIME);
}

size_t candidates__count_waiting(const struct candidates *cs, uid_t uid)
{
	size_t n = 0;

	for (struct candidate *c = cs->waiting.n ? cs->all : NULL; c; c = c->hh.next)
		n += c->waits == WAITS_FOR_ROOM && (uid == (uid_t)-1 || user_of(c) == uid);
	return n;
}

size_t candidates__count_waiting_for_files(const struct candidates *cs)
{
	size_t n = 0;

	for (struct candidate *c = cs->waiting.n ? cs->all : NULL; c; c = c->hh.next)
		n += c->waits == WAITS_FOR_FILES;
	return n;
}

size_t candidates__count_all_waiting(const struct candidates *cs)
{
	size_t n = 0;

	for (struct candidate *c = cs->all; c; c = c->hh.next)
		n += c->waits || retry__has_begun(&c->again);
	return n;
}

void candidates__go_on(struct candidates *cs, struct candidate *c, uint64_t give_up_ns)
{
	wait_no_more(cs, c);
	c->tries = 0;
	c->give_up_ns = give_up_ns;
}

/* ── targets ─────────────────────────────────────────────────────────────────────────────── */

void candidates__set_target(struct candidates *cs, struct candidate *c, struct target *target)
{
	c->target = target;
	cs->n_checked++;
}

struct target *candidates__take_target(struct candidates *cs, struct candidate *c)
{
	struct target *target = c->target;

	if (target)
		cs->n_checked--;
	c->target = NULL;
	return target;
}

size_t candidates__n_checked(const struct candidates *cs)
{
	return cs->n_checked;
}

/* ── turns ───────────────────────────────────────────────────────────────────────────────── */

bool candidate__is_due(const struct candidate *c, uint64_t now)
{
	/* the end of a check wakes the loop by itself */
	return (c->target && target__looks(c->target)) || now >= c->due_ns;
}

static uint64_t served_of(const struct served *served, struct candidate *c)
{
	return served__of(served, user_of(c));
}

void candidates__new_turn(struct candidates *cs)
{
	cs->turn++;
}

static bool comes_before(const struct served *served, struct candidate *a, struct candidate *b)
{
	uint64_t had_a = served_of(served, a), had_b = served_of(served, b);

	return had_a < had_b || (had_a == had_b && a->place < b->place);
}

struct candidate *candidates__next_due(struct candidates *cs, const struct served *served,
				       uint64_t now)
{
	struct candidate *c = NULL, *best = NULL;

	while ((c = candidates__next(cs, c))) {
		if (c->turn == cs->turn || !candidate__is_due(c, now))
			continue;
		if (!best || comes_before(served, c, best))
			best = c;
	}
	if (best) {
		best->turn = cs->turn;
		best->place = ++cs->last;
	}
	return best;
}
