/* SPDX-License-Identifier: GPL-2.0-or-later */
/* leaving: a member exits, execs, or is forgotten; its counters are read, and it is released. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "process/proc.h"
#include "session_priv.h"

/* Ends all work on the member; removes its state from the kernel. */
static void leave(struct session *s, struct member *m, uint64_t at_ns)
{
	int err;

	looks__cancel(s->looks, m->target);
	living__drop(m);
	snapshots__over(s, m);
	members__set_ended(s->members, m);
	/* an interval with its probes off ends here */
	kernel__cost(s->kernel, m->pid, at_ns, &m->cost);
	scrape__note_end(s, m);
	if (s->opts->kind == SESSION_PIDS)
		return;
	if (!m->forgotten) {
		missing__note_refused(s, m, true);
		missing__note_download(s, m, true);
	}
	/* its pid may be reused: only the counters of its sites stay in the kernel */
	kernel__detach(s->kernel, m->pid);
	err = members__leave_counters(s->members, m);
	if (err)
		feed__failed(s->feed);
}

void member__end(struct session *s, struct member *m, const char *how, uint64_t at_ns)
{
	if (!m->live)
		return;
	held__give(m->held, s->feed);
	missing__note_start(s, m);
	censuses__end(s, m, strncmp(how, "exited", 6) == 0);
	intake__end_target(s->in, m->pid, how, at_ns);
	leave(s, m, at_ns);
}

void member__exited(struct session *s, struct member *m)
{
	uint64_t now = time__monotonic_ns();
	int status = 0;
	char how[32];

	/* its exec was reported before its end was noticed, and it may be released by now */
	if (!m->live)
		return;
	if (m->pid == command__pid(s->command) && command__ended(s->command))
		status = command__status(s->command);
	else if (proc__exit_status(m->pid, target__pidfd(m->target), &status))
		status = -1;
	if (status < 0)
		snprintf(how, sizeof(how), "exited");
	else if (WIFSIGNALED(status))
		snprintf(how, sizeof(how), "killed %d", WTERMSIG(status));
	else
		snprintf(how, sizeof(how), "exited %d", WEXITSTATUS(status));
	member__end(s, m, how, now);
}

/*
 * An exec changes what /proc shows some time before the kernel reports it (fs/exec.c,
 * begin_new_exec() and exec_binprm()). A look in between finds the new program, and is then
 * followed by a report that the process runs another one. No instruction of that program has run by
 * then, so its runtime was not initialised, and no probe was hit.
 */
bool member__forget(struct session *s, struct member *m)
{
	uint64_t now = time__monotonic_ns();
	struct kernel_cost cost;

	if (m->ready || held__is_over(m->held))
		return false;
	kernel__cost(s->kernel, m->pid, now, &cost);
	if (cost.probe_hits || intake__forget_target(s->in, m->pid))
		return false;
	log_debug("pid %d: was inspected in the middle of its exec", m->pid);
	held__drop(m->held);
	m->forgotten = true;
	leave(s, m, now);
	return true;
}

/*
 * An exec of a member normally has a record of its own, before the one of the program that it then
 * runs. With WIRE_PROC_TARGET, the kernel's entry belongs to the new program, and stays.
 */
void member__exec_unseen(struct session *s, const struct wire_proc_new *rec)
{
	struct member *m = members__find_live(s->members, (pid_t)rec->h.tgid);

	if (!m || (rec->flags & (WIRE_PROC_FORK | WIRE_PROC_TARGET)) || m->probed_ns >= rec->h.ns)
		return;
	log_verbose("pid %d: runs another program now; its exec was not reported", m->pid);
	if (!member__forget(s, m))
		member__end(s, m, "exec", rec->h.ns);
}

void member__release(struct session *s, struct member *m)
{
	looks__cancel(s->looks, m->target);
	logs__ended(s, m);
	if (!m->forgotten)
		intake__settle_target(s->in, m->pid, m->log != NULL);
	target__free(m->target);
	m->target = NULL;
	if (!m->log)
		members__set_released(s->members, m);
}

static bool has_left_counters(void *ctx, uint32_t tgid)
{
	const struct session *s = ctx;

	return members__has_left_counters(s->members, (pid_t)tgid);
}

static int on_left_site(void *ctx, const struct wire_site_key *key, const struct wire_site *site)
{
	const struct session *s = ctx;

	return feed__site(s->feed, key, site);
}

void member__read_left(struct session *s)
{
	if (members__any_left_counters(s->members) &&
	    kernel__sweep_sites(s->kernel, has_left_counters, on_left_site, s))
		feed__failed(s->feed);
}

void member__release_left(struct session *s)
{
	struct member *m;

	while ((m = members__take_left(s->members)))
		member__release(s, m);
}

void member__sweep(struct session *s)
{
	member__read_left(s);
	member__release_left(s);
}

void member__retire(struct session *s)
{
	int err;

	if (members__count_released(s->members) <= 2 * SESSION_MAX_ENDED)
		return;
	err = intake__retire_settled(s->in, SESSION_MAX_ENDED);
	if (err)
		feed__failed(s->feed);
	members__forget_released(s->members, SESSION_MAX_ENDED);
}
