/* SPDX-License-Identifier: GPL-2.0-or-later */
/* signalled: what signals ask of the session. */
#include <signal.h>

#include "session_priv.h"

void signalled__take(struct session *s)
{
	struct signal_taken taken;

	if (!signals__take(s->signal_fd, &taken))
		return;
	if (s->opts->kind != SESSION_COMMAND || s->n_signals++) {
		s->stopped = true;
		return;
	}
	if (!taken.by_terminal && !command__ended(s->command))
		kill(command__pid(s->command), taken.number);
}

bool signalled__is_urgent(void *ctx)
{
	struct session *s = ctx;

	/* without a command, before it starts, and from its second signal on, a signal ends the
	 * session */
	if (s->opts->kind != SESSION_COMMAND || !s->command || s->n_signals)
		return true;
	signalled__take(s);
	return false;
}
