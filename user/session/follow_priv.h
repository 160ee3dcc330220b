/* SPDX-License-Identifier: GPL-2.0-or-later */
/* follow: what is known of processes that start. */
#ifndef SAFESCOPED_SESSION_FOLLOW_PRIV_H
#define SAFESCOPED_SESSION_FOLLOW_PRIV_H

#include <stdbool.h>
#include <sys/types.h>

#include "target/target.h"

struct follow {
	/* the command's child already has its probes, `suspend` among them */
	bool armed;
	pid_t became; /* the member that last ran another program */
	struct target_probe suspend;
	char why[512];
};

/* True if the armed child runs another program than the one whose file was inspected. */
bool follow__is_other(const struct follow *f, const struct target_info *info);

#endif
