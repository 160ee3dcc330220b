/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * renewal: helper processes that were started before the session held anything they must not
 * inherit cannot be started again during the session. If one has ended (a bug, or the kernel's OOM
 * killer), a session that may be followed by another one ends, instead of going on without it for
 * months. It also ends once something that it had to start without is available.
 */
#include "debuginfod/debuginfod.h"
#include "push/push.h"
#include "session_priv.h"

bool renewal__may_be(const struct session *s, uint64_t now)
{
	uint64_t after = s->opts->renew_after_ns;

	return after && now - s->began_ns >= after;
}

static bool is_back(struct session *s)
{
	return push__has_other_files(s->push) ||
	       (s->no_archives &&
		target_cache__finds_archives(s->opts->archives, s->opts->n_archives));
}

/* Looks less and less often, as there may be many archives. */
static bool has_come_back(struct session *s, uint64_t now)
{
	if (now < s->lacking.until_ns)
		return false;
	retry__begin(&s->lacking, now, RETRY_NS, RETRY_LONGEST_NS);
	return is_back(s);
}

bool renewal__is_due(struct session *s, uint64_t now)
{
	const char *what = NULL;

	if (s->renewed)
		return true;
	if (!renewal__may_be(s, now))
		return false;
	if (push__has_ended(s->push))
		what = "pushes";
	else if (scrape__has_ended(s->scrape))
		what = "serves metrics";
	else if (debuginfod__has_ended(s->debuginfod))
		what = "downloads debug files";
	if (what)
		log_warn("the process that %s has ended: the session restarts", what);
	else if (has_come_back(s, now))
		log_info("what the session had to do without is available again: the session "
			 "restarts");
	else
		return false;
	s->renewed = true;
	return true;
}
