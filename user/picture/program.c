/* SPDX-License-Identifier: GPL-2.0-or-later */
/* program: a name for a process's program. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "picture.h"

/* The kernel truncates a comm to TASK_COMM_LEN, less the NUL (Linux, include/linux/sched.h). */
#define COMM_MAX 15

struct pic_program pic_target__program(const struct pic_target *target)
{
	const char *comm = target->comm ? target->comm : "";
	const char *file = path__base(target->exe ? target->exe : "");
	size_t len = strlen(comm);
	struct pic_program program;

	/* a comm that is not truncated was set by the program, or is the file's whole name */
	if (!len || (len == COMM_MAX && strlen(file) > len && !strncmp(comm, file, len)))
		snprintf(program.s, sizeof(program.s), "%s", file);
	else
		snprintf(program.s, sizeof(program.s), "%s", comm);
	return program;
}
