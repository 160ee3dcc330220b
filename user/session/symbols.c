/* SPDX-License-Identifier: GPL-2.0-or-later */
/* symbols: debug files that arrive while the session runs, and the names they provide. */
#include "session_priv.h"

int symbols__open(struct session *s)
{
	return debuginfod__open(s->opts->debuginfod, s->opts->n_debuginfod, &s->debuginfod);
}

void symbols__turn(struct session *s)
{
	size_t n;

	debuginfod__turn(s->debuginfod);
	n = debuginfod__n_over(s->debuginfod);
	if (n == s->n_symbols)
		return;
	s->n_symbols = n;
	if (intake__rename(s->in))
		feed__failed(s->feed);
}

void symbols__last(struct session *s, uint64_t now)
{
	/* a service has to end soon, and its last window is one of many */
	if (s->debuginfod && !s->windows)
		debuginfod__wait_until(s->debuginfod, now + debuginfod__timeout_ns(s->debuginfod),
				       s->signal_fd);
	if (intake__rename(s->in))
		feed__failed(s->feed);
}
