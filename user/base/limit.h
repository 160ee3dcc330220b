/* SPDX-License-Identifier: GPL-2.0-or-later */
/* limit: which limit of this process, or of its control group, may have caused an error. */
#ifndef SAFESCOPED_BASE_LIMIT_H
#define SAFESCOPED_BASE_LIMIT_H

#include <stdint.h>
#include <sys/types.h>

struct limit_text {
	char text[160];
};

/*
 * Text to append to an error message: ": no more than 64 descriptors may be open (RLIMIT_NOFILE);
 * it needs 128 or more" for -EMFILE, ": no more than 60.0 MB of memory may be used (MemoryMax)" for
 * -ENOMEM. Empty if no limit is known, and for all other errors.
 */
struct limit_text limit__why(int err);
/*
 * The same where a process could not be started: also, for -EAGAIN, ": no more than 1024 processes
 * and threads may run (TasksMax of its control group)". Other calls have other reasons for it.
 */
struct limit_text limit__why_no_process(int err);

/* The lowest limit on memory, and its name; UINT64_MAX and "": none. */
uint64_t limit__memory(const char **ret_name);
/* The same for control groups only, and for processes and threads; mounted on a directory such as
 * /sys/fs/cgroup, given the text of /proc/self/cgroup. */
uint64_t limit__cgroup_memory(const char *mounted, const char *text);
uint64_t limit__cgroup_processes(const char *mounted, const char *text);

#endif
