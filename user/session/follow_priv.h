/* SPDX-License-Identifier: GPL-2.0-or-later */
/* follow: what is known of the processes that begin. */
#ifndef SAFESCOPED_SESSION_FOLLOW_PRIV_H
#define SAFESCOPED_SESSION_FOLLOW_PRIV_H

#include <stdbool.h>
#include <sys/types.h>

#include "target/target.h"

struct follow {
	/* the command's child has its probes already, `suspend` among them */
	bool armed;
	pid_t became; /* the member that last ran another program */
	struct target_probe suspend;
	char why[512];
};

/* The armed child has become another program than the one whose file was looked at. */
bool follow__is_other(const struct follow *f, const struct target_info *info);

#endif
