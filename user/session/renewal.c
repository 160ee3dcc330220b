/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * renewal: processes that were started before the session had anything that they should not have
 * cannot be started again in it. Where one has ended (a bug, the kernel's choice when memory was
 * short), a session that another one may follow ends, instead of going on without for months.
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
