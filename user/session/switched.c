/* SPDX-License-Identifier: GPL-2.0-or-later */
/* switched: the operator's switch. */
#include <unistd.h>

#include "session_priv.h"

#define LOOK_EVERY_NS 200000000ULL

bool switched__off(struct session *s, uint64_t now)
{
	if (s->switched_off || !s->opts->off_path || now - s->switch_ns < LOOK_EVERY_NS)
		return s->switched_off;
	s->switch_ns = now;
	if (access(s->opts->off_path, F_OK))
		return false;
	log_warn("%s: switched off", s->opts->off_path);
	s->switched_off = s->stopped = true;
	kernel__release(s->kernel);
	return true;
}
