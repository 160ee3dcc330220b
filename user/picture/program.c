/* SPDX-License-Identifier: GPL-2.0-or-later */
/* program: what a process's program is called. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "picture.h"

/* What the kernel keeps of a name: TASK_COMM_LEN, less the NUL (Linux, include/linux/sched.h). */
#define COMM_MAX 15

struct pic_program pic_target__program(const struct pic_target *target)
{
	const char *comm = target->comm ? target->comm : "";
	const char *file = path__base(target->exe ? target->exe : "");
	size_t len = strlen(comm);
	struct pic_program program;

	/* one that is not cut was given by the program, or is as long as the file's */
	if (!len || (len == COMM_MAX && strlen(file) > len && !strncmp(comm, file, len)))
		snprintf(program.s, sizeof(program.s), "%s", file);
	else
		snprintf(program.s, sizeof(program.s), "%s", comm);
	return program;
}
