/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unseen: events for whose records the ring had no room. After a loss, looks for members that run
 * other programs, threads that have ended, and processes that have started.
 */
#include <errno.h>

#include "session_priv.h"

/* How often the count of lost records is read. */
#define LOSSES_EVERY_NS 1000000000ULL
/* After a loss all processes are scanned again, at most this often. */
#define RESCAN_EVERY_NS 10000000000ULL

/* True if more records were lost. */
static bool count_losses(struct session *s, uint64_t now)
{
	struct unseen *unseen = &s->unseen;
	uint64_t before = unseen->losses;

	if (now - unseen->read_ns < LOSSES_EVERY_NS)
		return false;
	unseen->read_ns = now;
	unseen->losses = kernel__counter(s->kernel, WIRE_CNT_LOST_RING);
	return unseen->losses != before;
}

/* ── members that run other programs ─────────────────────────────────────────────────────── */

static void end_replaced(struct session *s, struct member *m)
{
	uint64_t now = time__monotonic_ns();
	pid_t pid = m->pid;

	if (s->opts->kind == SESSION_PIDS)
		log_info("pid %d: runs another program now; its profile ends here", pid);
	else
		log_verbose("pid %d: runs another program now; its exec was not reported", pid);
	if (!member__forget(s, m))
		member__end(s, m, "exec", now);
	/* when the other program started is not known */
	if (follow__wants(s, pid))
		follow__running(s, pid);
}

/* A pidfd does not show an exec, after which it still is the same process. */
static void find_replaced(struct session *s)
{
	struct member *m = NULL, *next;
	bool any = false;

	while ((m = members__next_live(s->members, m))) {
		m->replaced = target__alive(m->target) && !target__runs_same(m->target);
		any |= m->replaced;
	}
	if (!any)
		return;
	/* the record may just be unread: it has the time and the open calls */
	records__drain(s);
	for (m = members__next_live(s->members, NULL); m; m = next) {
		next = members__next_live(s->members, m);
		if (m->replaced)
			end_replaced(s, m);
	}
}

/* ── threads that have ended ─────────────────────────────────────────────────────────────── */

static int on_thread(void *ctx, pid_t tid, const struct wire_thread *thread)
{
	const struct session *s = ctx;
	int err = intake__thread_state(s->in, tid, thread);

	return err == -ENOMEM ? err : 0;
}

static int end_threads(struct session *s)
{
	uint64_t now;
	int err, forgot;

	records__take_all(s);
	now = time__monotonic_ns();
	err = kernel__threads(s->kernel, on_thread, s);
	/* threads that end in between have a record */
	records__take_all(s);
	kernel__hold_again(s->kernel);
	if (!err)
		err = intake__end_lost(s->in, now);
	forgot = intake__forget_states(s->in);
	return err ? err : forgot;
}

/*
 * Done at once rather than at the next cut: once the process has ended as well, it can no longer be
 * determined which of its threads lived as long. It costs as much as a reading of the figures.
 */
static void find_ends(struct session *s, uint64_t now)
{
	struct unseen *unseen = &s->unseen;
	uint64_t before, after, max_rss;

	if (!unseen->ends || now < unseen->ends_ns)
		return;
	unseen->ends = false;
	usage__own(&before, &max_rss);
	if (end_threads(s) == -ENOMEM)
		feed__failed(s->feed);
	usage__own(&after, &max_rss);
	unseen->ends_ns = now + scrape__every_ns(after - before);
}

/* ── processes that have begun ───────────────────────────────────────────────────────────── */

static void find_processes(struct session *s, uint64_t now)
{
	struct unseen *unseen = &s->unseen;

	/* no process that starts joins such a session */
	if (s->opts->kind == SESSION_PIDS)
		unseen->processes = false;
	if (!unseen->processes || now - unseen->looked_ns < RESCAN_EVERY_NS)
		return;
	unseen->processes = false;
	unseen->looked_ns = now;
	records__scan(s);
}

void unseen__turn(struct session *s, uint64_t now)
{
	if (count_losses(s, now)) {
		s->unseen.processes = s->unseen.ends = true;
		find_replaced(s);
	}
	find_ends(s, now);
	find_processes(s, now);
}
