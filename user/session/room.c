/* SPDX-License-Identifier: GPL-2.0-or-later */
/* room: processes that are looked at, or join, later because there is no room or time for them at
 * present. */
#include <errno.h>
#include <signal.h>

#include "base/retry.h"
#include "process/proc.h"
#include "session_priv.h"

/* When to try again. */
#define WAIT_NS 5000000000ULL

static void report_no_files(struct session *s, pid_t pid)
{
	struct no_files *no = &s->no_files;

	no->n++;
	no->lately++;
	if (no->reported)
		return;
	no->reported = true;
	log_warn("pid %d: cannot be inspected, like later processes, until descriptors are closed: "
		 "no more than %llu may be open (RLIMIT_NOFILE)",
		 pid, (unsigned long long)fd__limit());
}

bool room__wait(struct session *s, struct candidate *c, uint64_t now, int err)
{
	if (err == -EDQUOT)
		return candidates__wait(s->candidates, c, now + WAIT_NS);
	/* whatever killed a helper may do so each time, and memory may stay short for long */
	if (err != -EMFILE)
		return room__wait_for_time(s, c);
	if (!c->missed)
		report_no_files(s, c->pid);
	return candidates__wait_for_files(s->candidates, c, now + WAIT_NS);
}

int room__await(struct session *s, struct candidate *c, uint64_t now, uint64_t give_up_ns)
{
	uid_t account;
	int err;

	/* this needs no descriptor */
	if (kill(c->pid, 0) && errno == ESRCH)
		return -ESRCH;
	if (!fd__has_room(ROOM_LOOK_FDS)) {
		/* it goes on waiting for the same reason */
		c->due_ns = now + WAIT_NS;
		return -EDQUOT;
	}
	err = proc__account(c->pid, &account);
	if (retry__shows_nothing(err)) {
		c->due_ns = now + WAIT_NS;
		return -EDQUOT;
	}
	if (err)
		return -ESRCH;
	if (c->waits == WAITS_FOR_ROOM && !members__has_room(s->members, account)) {
		candidates__wait(s->candidates, c, now + WAIT_NS);
		return -EDQUOT;
	}
	candidates__go_on(s->candidates, c, give_up_ns);
	return 0;
}

bool room__wait_for_time(struct session *s, struct candidate *c)
{
	bool first = !retry__has_begun(&c->again);
	bool waits = candidates__wait_for_time(s->candidates, c, time__monotonic_ns());

	if (first)
		hourly__report(s, c->pid, "left out",
			       waits ? "its runtime could not be checked in time; it is checked "
				       "again from time to time"
				     : "its runtime could not be checked in time, and too many "
				       "other processes of its user wait to be checked again");
	return waits;
}

bool room__wait_unconfirmed(struct session *s, struct candidate *c)
{
	c->unconfirmed = true;
	return candidates__wait_for_time(s->candidates, c, time__monotonic_ns());
}

void room__come_back(struct session *s, const struct member *m, int err)
{
	const struct wire_proc_new rec = {.h = {.tgid = (uint32_t)m->pid, .tid = (uint32_t)m->pid}};
	struct candidate *c = candidates__add(s->candidates, &rec, 0, 0);

	s->unseen.processes |= !c;
	if (!c)
		return;
	c->again = m->waited;
	if (!(err == -ENOTSUP ? room__wait_unconfirmed(s, c) : room__wait_for_time(s, c)))
		candidates__drop(s->candidates, c);
}
