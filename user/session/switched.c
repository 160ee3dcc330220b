/* SPDX-License-Identifier: GPL-2.0-or-later */
/* switched: the operator's switch. */
#include <sys/stat.h>
#include <unistd.h>

#include "session_priv.h"

#define LOOK_EVERY_NS 200000000ULL

bool session__is_off(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && (st.st_uid == 0 || st.st_uid == geteuid()) &&
	       access(path, F_OK) == 0;
}

bool switched__off(struct session *s, uint64_t now)
{
	const char *path = s->opts->off_path;

	if (s->switched_off)
		return true;
	if (!path || now - s->switch_ns < LOOK_EVERY_NS)
		return false;
	s->switch_ns = now;
	if (!session__is_off(path))
		return false;
	log_warn("%s: switched off", path);
	s->switched_off = s->stopped = true;
	kernel__release(s->kernel);
	return true;
}
