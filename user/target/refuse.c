/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reports why a process is not a target. */
#include <stdarg.h>
#include <stdio.h>

#include "base/base.h"
#include "target_priv.h"

void target__refuse(struct target *t, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (t->reason)
		snprintf(t->reason, t->reason_size, "%s", text);
	else
		log_error("pid %d: %s", t->info.pid, text);
}
