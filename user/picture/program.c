/* SPDX-License-Identifier: GPL-2.0-or-later */
/* program: what a process's program is called. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "picture.h"

/* What the kernel keeps of a name: TASK_COMM_LEN, less the NUL (Linux, include/linux/sched.h). */
#define COMM_MAX 15

/* "app (deleted)" was replaced or removed (Linux, fs/d_path.c). */
static size_t file_len(const char *name)
{
	static const char gone[] = " (deleted)";
	size_t len = strlen(name), cut = sizeof(gone) - 1;

	return len > cut && !strcmp(name + len - cut, gone) ? len - cut : len;
}

struct pic_program pic_target__program(const struct pic_target *target)
{
	const char *comm = target->comm ? target->comm : "";
	const char *file = path__base(target->exe ? target->exe : "");
	size_t len = strlen(comm), whole = file_len(file);
	struct pic_program program;

	/* one that is not cut was given by the program, or is as long as the file's */
	if (!len || (len == COMM_MAX && whole > len && !strncmp(comm, file, len)))
		snprintf(program.s, sizeof(program.s), "%.*s", (int)MIN(whole, sizeof(program.s)),
			 file);
	else
		snprintf(program.s, sizeof(program.s), "%s", comm);
	return program;
}
