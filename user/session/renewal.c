/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * renewal: helper processes that were started before the session held anything they must not
 * inherit cannot be started again during the session. If one has ended (a bug, or the kernel's OOM
 * killer), a session that may be followed by another one ends, instead of going on without it for
 * months.
 */
#include "debuginfod/debuginfod.h"
#include "push/push.h"
#include "session_priv.h"

bool renewal__may_be(const struct session *s, uint64_t now)
{
	uint64_t after = s->opts->renew_after_ns;

	return after && now - s->began_ns >= after;
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
		what = "answers for metrics";
	else if (debuginfod__has_ended(s->debuginfod))
		what = "downloads debug files";
	if (!what)
		return false;
	log_warn("the process that %s has ended: the session begins anew", what);
	s->renewed = true;
	return true;
}
