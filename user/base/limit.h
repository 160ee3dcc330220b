/* SPDX-License-Identifier: GPL-2.0-or-later */
/* limit: which limit of this process, or of its control group, something may have failed for. */
#ifndef SAFESCOPED_BASE_LIMIT_H
#define SAFESCOPED_BASE_LIMIT_H

#include <stdint.h>
#include <sys/types.h>

struct limit_text {
	char text[160];
};

/*
 * The end of a line that has the error: ": no more than 64 descriptors may be open (RLIMIT_NOFILE);
 * it needs 128 or more" of -EMFILE, ": no more than 60.0 MB of memory may be used (MemoryMax)" of
 * -ENOMEM. Without text where no limit is known, and of every other error.
 */
struct limit_text limit__why(int err);

/* The lowest of those on memory, and what sets it; UINT64_MAX and "": there is none. */
uint64_t limit__memory(const char **ret_name);
/* The same of the control groups alone, below a directory such as /sys/fs/cgroup, by the text of
 * /proc/self/cgroup. */
uint64_t limit__cgroup_memory(const char *mounted, const char *text);

#endif
