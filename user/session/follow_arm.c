/* SPDX-License-Identifier: GPL-2.0-or-later */
/* follow_arm: the command's program, whose file is inspected before it runs. */
#include "follow_priv.h"
#include "session_priv.h"

const char *follow__why(const struct session *s)
{
	return s->follow->why;
}

void follow__arm(struct session *s)
{
	struct follow *f = s->follow;
	const struct target_opts opts = {
		.symbols_path = s->opts->symbols,
		.force = s->opts->force,
		.cache = s->cache,
		.reason = f->why,
		.reason_size = sizeof(f->why),
	};
	const char *path = NULL;
	int fd = command__file(s->command, &path);
	struct target_info info;
	struct target *file;

	kernel__follow(s->kernel, command__pid(s->command));
	if (fd < 0 || target__open_file(fd, path, &opts, &file))
		return;
	info = *target__info(file);
	info.pid = command__pid(s->command);
	f->armed = kernel__arm(s->kernel, &info, target__account(file)) == 0;
	f->suspend = info.suspend;
	/* the analysis stays in the cache */
	target__free(file);
}

bool follow__is_other(const struct follow *f, const struct target_info *info)
{
	return !f->armed || info->suspend.dev != f->suspend.dev ||
	       info->suspend.ino != f->suspend.ino || info->suspend.offset != f->suspend.offset;
}
