/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "limit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base.h"
#include "read.h"

#define MAX_CGROUP_TEXT ((size_t)1 << 16)
/* What a session with one process has open: reserved descriptors, the kernel side, an event or two
 * per CPU, and the process. */
#define FDS_NEEDED	  120U
#define FDS_NEEDED_BY_CPU 4U
/* Without a limit, cgroup v1 reports slightly less than 2^63. */
#define NO_LIMIT (1ULL << 62)

static int read_text(const char *path, char **ret_text)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;
	size_t len;

	if (fd < 0)
		return -errno;
	err = read__all(fd, MAX_CGROUP_TEXT, ret_text, &len);
	fd__close(&fd);
	return err;
}

/* Reads "max" or a number. */
static uint64_t read_limit(const char *path)
{
	uint64_t limit = UINT64_MAX;
	char *text = NULL;

	if (read_text(path, &text))
		return UINT64_MAX;
	if (*text >= '0' && *text <= '9')
		limit = strtoull(text, NULL, 10);
	free(text);
	return limit < NO_LIMIT ? limit : UINT64_MAX;
}

/* The lowest limit of a group and its ancestors, all of which apply. */
static uint64_t lowest_above(const char *mounted, const char *group, size_t len, const char *file)
{
	uint64_t lowest = UINT64_MAX;
	char path[PATH_MAX];

	for (;;) {
		while (len && group[len - 1] == '/')
			len--;
		if (snprintf(path, sizeof(path), "%s%.*s/%s", mounted, (int)len, group, file) <
		    (int)sizeof(path))
			lowest = MIN(lowest, read_limit(path));
		if (!len)
			return lowest;
		while (len && group[len - 1] != '/')
			len--;
	}
}

/* A controller, and the files with its limit in the unified hierarchy and in one of its own. */
struct controller {
	const char *name, *unified, *own;
};

static const struct controller memory = {"memory", "memory.max", "memory.limit_in_bytes"};
static const struct controller processes = {"pids", "pids.max", "pids.max"};

static bool is_name(const char *names, size_t len, const char *name)
{
	return len == strlen(name) && !strncmp(names, name, len);
}

static uint64_t cgroup_limit(const struct controller *c, const char *mounted, const char *text)
{
	char first[PATH_MAX];
	uint64_t lowest = UINT64_MAX;

	snprintf(first, sizeof(first), "%s/%s", mounted, c->name);
	for (const char *line = text; *line;) {
		size_t len = strcspn(line, "\n");
		const char *names = memchr(line, ':', len);
		const char *group =
			names ? memchr(names + 1, ':', len - (size_t)(names + 1 - line)) : NULL;
		size_t group_len = group ? len - (size_t)(group + 1 - line) : 0;

		/* NUMBER:CONTROLLERS:PATH; CONTROLLERS is empty for the unified hierarchy */
		if (group && group == names + 1)
			lowest = MIN(lowest,
				     lowest_above(mounted, group + 1, group_len, c->unified));
		else if (group && is_name(names + 1, (size_t)(group - names - 1), c->name))
			lowest = MIN(lowest, lowest_above(first, group + 1, group_len, c->own));
		line += len + (line[len] == '\n');
	}
	return lowest;
}

uint64_t limit__cgroup_memory(const char *mounted, const char *text)
{
	return cgroup_limit(&memory, mounted, text);
}

uint64_t limit__cgroup_processes(const char *mounted, const char *text)
{
	return cgroup_limit(&processes, mounted, text);
}

/* That of the control group that this process is in. */
static uint64_t own_cgroup_limit(const struct controller *c)
{
	uint64_t limit = UINT64_MAX;
	char *text = NULL;

	if (read_text("/proc/self/cgroup", &text) == 0 && text)
		limit = cgroup_limit(c, "/sys/fs/cgroup", text);
	free(text);
	return limit;
}

uint64_t limit__memory(const char **ret_name)
{
	static const struct {
		int which;
		const char *name;
	} limits[] = {{RLIMIT_AS, "RLIMIT_AS"}, {RLIMIT_DATA, "RLIMIT_DATA"}};
	uint64_t lowest = UINT64_MAX, group;
	struct rlimit limit;

	*ret_name = "";
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		if (!getrlimit(limits[i].which, &limit) && limit.rlim_cur != RLIM_INFINITY &&
		    limit.rlim_cur < lowest) {
			lowest = limit.rlim_cur;
			*ret_name = limits[i].name;
		}
	group = own_cgroup_limit(&memory);
	if (group < lowest) {
		lowest = group;
		*ret_name = "MemoryMax of its control group";
	}
	return lowest;
}

static void describe_fds(struct limit_text *ret_text)
{
	uint64_t limit = fd__limit();
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t needed = FDS_NEEDED + FDS_NEEDED_BY_CPU * (uint64_t)MAX(cpus, 1L);
	int n = snprintf(ret_text->text, sizeof(ret_text->text),
			 ": no more than %llu descriptors may be open (RLIMIT_NOFILE)",
			 (unsigned long long)limit);

	if (limit < needed)
		snprintf(ret_text->text + n, sizeof(ret_text->text) - (size_t)n,
			 "; safescoped needs %llu or more", (unsigned long long)needed);
}

struct limit_text limit__why(int err)
{
	struct limit_text why = {.text = ""};
	const char *name;
	uint64_t bytes;

	if (err == -EMFILE) {
		describe_fds(&why);
	} else if (err == -ENOMEM) {
		bytes = limit__memory(&name);
		if (*name)
			snprintf(why.text, sizeof(why.text),
				 ": no more than %s of memory may be used (%s)",
				 human__bytes(bytes).s, name);
	}
	return why;
}

struct limit_text limit__why_no_process(int err)
{
	const char *what = "processes and threads of this user may run (RLIMIT_NPROC)";
	uint64_t lowest = UINT64_MAX, group;
	struct limit_text why = {.text = ""};
	struct rlimit limit;

	if (err != -EAGAIN)
		return limit__why(err);
	/* root has no such limit (fork(2)) */
	if (getuid() && !getrlimit(RLIMIT_NPROC, &limit) && limit.rlim_cur != RLIM_INFINITY)
		lowest = limit.rlim_cur;
	group = own_cgroup_limit(&processes);
	if (group < lowest) {
		lowest = group;
		what = "processes and threads may run (TasksMax of its control group)";
	}
	if (lowest != UINT64_MAX)
		snprintf(why.text, sizeof(why.text), ": no more than %llu %s",
			 (unsigned long long)lowest, what);
	return why;
}
