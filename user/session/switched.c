/* SPDX-License-Identifier: GPL-2.0-or-later */
/* switched: the operator's off switch. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session_priv.h"

#define LOOK_EVERY_NS 200000000ULL

bool session__is_off(const char *path)
{
	struct stat st, to;

	/* not access(), which checks with the real user's rights */
	return lstat(path, &st) == 0 && (st.st_uid == 0 || st.st_uid == geteuid()) &&
	       stat(path, &to) == 0;
}

/* Warns whoever created the file that it has no effect. */
static void look_ignored(struct session *s, const char *path)
{
	struct stat st;
	bool there = lstat(path, &st) == 0, denied = !there && errno == EACCES;

	if ((there || denied) && !s->off_ignored)
		log_warn("%s: has no effect: %s", path,
			 denied ? "this user cannot see whether it exists"
			 : st.st_uid && st.st_uid != geteuid()
				 ? "it belongs neither to root nor to the user that safescoped "
				   "runs as"
				 : "its target does not exist");
	s->off_ignored = there || denied;
}

bool switched__off(struct session *s, uint64_t now)
{
	const char *path = s->opts->off_path;

	if (s->switched_off)
		return true;
	if (!path || now - s->switch_ns < LOOK_EVERY_NS)
		return false;
	s->switch_ns = now;
	if (!session__is_off(path)) {
		look_ignored(s, path);
		return false;
	}
	log_warn("%s: switched off", path);
	s->switched_off = s->stopped = true;
	kernel__release(s->kernel);
	return true;
}
