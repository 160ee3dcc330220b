/* SPDX-License-Identifier: GPL-2.0-or-later */
/* alive: reports to an observer that the session goes on. */
#include "session_priv.h"

#define REPORT_EVERY_NS 1000000000ULL

void alive__report(struct session *s, uint64_t now)
{
	if (!s->opts->alive || (s->alive_ns && now - s->alive_ns < REPORT_EVERY_NS))
		return;
	s->alive_ns = now;
	s->opts->alive(s->opts->alive_ctx);
}
