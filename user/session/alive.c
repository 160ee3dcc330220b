/* SPDX-License-Identifier: GPL-2.0-or-later */
/* alive: that the session goes on, for who watches it. */
#include <unistd.h>

#include "session_priv.h"

#define REPORT_EVERY_NS 1000000000ULL

void alive__report(struct session *s, uint64_t now)
{
	if (s->opts->alive_fd < 0 || (s->alive_ns && now - s->alive_ns < REPORT_EVERY_NS))
		return;
	s->alive_ns = now;
	/* a pipe that is full says as much */
	(void)!write(s->opts->alive_fd, "", 1);
}
