/* SPDX-License-Identifier: GPL-2.0-or-later */
/* snapshots: what members' threads are doing when they join, and at the end. */
#include <errno.h>
#include <string.h>

#include "session_priv.h"

void snapshots__want(struct session *s, struct member *m)
{
	m->snapshot_due = true;
	m->snapshot_until_ns = time__monotonic_ns() + SNAPSHOT_TIMEOUT_MS * 1000000ULL;
	held__begin(m->held, m->snapshot_until_ns - SNAPSHOT_TIMEOUT_MS * 1000000ULL);
	s->n_snapshots++;
}

void snapshots__over(struct session *s, struct member *m)
{
	const struct target_info *info = target__info(m->target);

	if (!m->snapshot_due)
		return;
	m->snapshot_due = false;
	s->n_snapshots--;
	held__give(m->held, s->feed);
	if (m->announced)
		return;
	m->announced = true;
	log_verbose("attached: pid %d, GHC %s %s, %u %s", info->pid, info->ghc_version, info->way,
		    info->capabilities, info->capabilities == 1 ? "capability" : "capabilities");
}

const char *snapshots__why_not(int err)
{
	switch (err) {
	case -EAGAIN:
		return "its runtime's layout could not be checked";
	case -ETIMEDOUT:
		return "its memory could not be read in time";
	case -EBUSY:
		return "there was no time for it, or no process to read its memory could be "
		       "started";
	default:
		return strerror(-err);
	}
}

static void no_snapshot(struct session *s, struct member *m, int err)
{
	const char *why = snapshots__why_not(err);

	if (target__alive(m->target)) {
		/* a busy host has many of them, and each is in the window's report */
		if (s->opts->window_ns)
			log_verbose("pid %d: no snapshot of its threads: %s", m->pid, why);
		else
			log_warn("pid %d: no snapshot of its threads: %s", m->pid, why);
		intake__add_missing(s->in, m->pid,
				    "the snapshot of sleeping threads failed: their states before "
				    "their first event are unknown");
	}
	snapshots__over(s, m);
}

void snapshots__start(struct session *s, struct member *m, uint64_t now)
{
	int err;

	m->snapshot_ns = time__monotonic_ns();
	err = looks__snapshot(s->looks, m->target, SNAPSHOT_TIMEOUT_MS);
	if (err == -EDQUOT && now < m->snapshot_until_ns)
		return;
	if (err)
		no_snapshot(s, m, err == -EDQUOT ? -ETIMEDOUT : err);
}

/* Enters the calls that threads were in when the process joined. */
static void enter_open_calls(struct session *s, const struct member *m,
			     const struct snapshot *snapshot)
{
	bool refused = false;

	for (size_t i = 0; i < snapshot->n; i++) {
		const struct snap_thread *t = &snapshot->threads[i];

		if (t->rts.where == WIRE_WHERE_SAFE_CALL &&
		    kernel__open_call(s->kernel, m->pid, t->tid, m->attach_ns, t->site,
				      t->incall) == -EDQUOT)
			refused = true;
	}
	if (refused)
		intake__add_missing(s->in, m->pid,
				    "calls that threads were in when it joined: too many threads "
				    "of its user are in such calls");
}

void snapshots__take(struct session *s, struct member *m, bool at_end)
{
	struct snapshot snapshot;
	int err = looks__snapshot_taken(s->looks, m->target, &snapshot);

	if (err == -EINPROGRESS)
		return;
	if (err) {
		no_snapshot(s, m, err);
		return;
	}
	if (!at_end)
		enter_open_calls(s, m, &snapshot);
	err = intake__snapshot(s->in, m->pid, &snapshot, m->snapshot_ns, at_end);
	if (err == -ENOENT) /* it ended as the snapshot was taken, and its window is over */
		log_debug("pid %d: left before its snapshot arrived", m->pid);
	else if (err)
		log_warn("pid %d: the snapshot is left out: %s", m->pid, strerror(-err));
	snapshot__free(&snapshot);
	snapshots__over(s, m);
}

void snapshots__last(struct session *s, uint64_t until_ns)
{
	struct member *m = NULL;
	uint64_t now;
	size_t left;

	while ((m = members__next_live(s->members, m))) {
		looks__cancel(s->looks, m->target);
		snapshots__over(s, m);
		snapshots__want(s, m);
		m->snapshot_until_ns = until_ns;
	}
	do {
		now = time__monotonic_ns();
		left = 0;
		while ((m = members__next_live(s->members, m))) {
			if (!m->snapshot_due)
				continue;
			if (!target__looks(m->target))
				snapshots__start(s, m, now);
			else
				snapshots__take(s, m, true);
			left += m->snapshot_due;
		}
		if (left)
			looks__wait(s->looks, -1, 10);
		kernel__beat(s->kernel);
	} while (left && now < until_ns);
	while ((m = members__next_live(s->members, m))) {
		looks__cancel(s->looks, m->target);
		if (m->snapshot_due)
			no_snapshot(s, m, -ETIMEDOUT);
	}
}
