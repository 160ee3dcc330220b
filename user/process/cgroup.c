/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cgroup: reads /proc/PID/cgroup, and the names that container engines and systemd give. */
#include "cgroup.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "proc.h"

#define MAX_TEXT      65536
#define CONTAINER_LEN 64
#define POD_LEN	      36

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* The last run of exactly 64 digits: a container in a container is the inner one. */
static void find_container(struct cgroup *g)
{
	size_t run = 0;

	for (const char *p = g->path;; p++) {
		if (is_hex(*p)) {
			run++;
			continue;
		}
		if (run == CONTAINER_LEN) {
			memcpy(g->container, p - CONTAINER_LEN, CONTAINER_LEN);
			g->container[CONTAINER_LEN] = '\0';
		}
		if (!*p)
			return;
		run = 0;
	}
}

/* "…/pod0f9c…" (cgroupfs), or "…-pod0f9c_….slice" (systemd, whose dashes mean something else). */
static void find_pod(struct cgroup *g)
{
	static const char shape[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

	for (const char *p = g->path; (p = strstr(p, "pod")); p++) {
		const char *uid = p + 3;
		size_t i = 0;

		while (i < POD_LEN &&
		       (shape[i] == 'x' ? is_hex(uid[i]) : uid[i] == '-' || uid[i] == '_'))
			i++;
		if (i < POD_LEN)
			continue;
		for (i = 0; i < POD_LEN; i++)
			g->pod[i] = uid[i] == '_' ? '-' : uid[i];
		g->pod[POD_LEN] = '\0';
	}
}

/* The innermost part of the path that ends so. */
static void find_service(struct cgroup *g)
{
	static const char suffix[] = ".service";
	const char *from = g->path, *to;

	for (; *from; from = *to ? to + 1 : to) {
		size_t len;

		to = from + strcspn(from, "/");
		len = (size_t)(to - from);
		if (len < sizeof(suffix) || len >= sizeof(g->service) ||
		    strncmp(to - (sizeof(suffix) - 1), suffix, sizeof(suffix) - 1) != 0)
			continue;
		memcpy(g->service, from, len);
		g->service[len] = '\0';
	}
}

/* The path in a line "ID:CONTROLLERS:PATH"; *ret_rank: how much it says. False: it is none. */
static bool parse_line(const char *line, size_t len, const char **ret_path, unsigned *ret_rank)
{
	const char *controllers = memchr(line, ':', len), *path;

	if (!controllers)
		return false;
	controllers++;
	path = memchr(controllers, ':', len - (size_t)(controllers - line));
	if (!path)
		return false;
	/*
	 * cgroups(7): the unified hierarchy is number 0 and has no controllers here. Where another
	 * one is used beside it, a process may be in the unified one's root and in a container by
	 * the other.
	 */
	if (line + len - path == 2 && path[1] == '/')
		*ret_rank = 1;
	else if (path == controllers)
		*ret_rank = 4;
	else
		*ret_rank = strncmp(controllers, "name=systemd:", 13) == 0 ? 3 : 2;
	*ret_path = path + 1;
	return true;
}

int cgroup__parse(const char *text, size_t len, struct cgroup *ret_cgroup)
{
	struct cgroup g = {.path = ""};
	const char *end = text + len, *line = text, *best = NULL;
	size_t best_len = 0;
	unsigned best_rank = 0;

	while (line < end) {
		const char *nl = memchr(line, '\n', (size_t)(end - line)), *path;
		const char *line_end = nl ? nl : end;
		unsigned rank;

		if (parse_line(line, (size_t)(line_end - line), &path, &rank) && rank > best_rank) {
			best = path;
			best_len = (size_t)(line_end - path);
			best_rank = rank;
		}
		line = nl ? nl + 1 : end;
	}
	if (!best)
		return -ENOENT;
	if (best_len >= sizeof(g.path))
		return -ENAMETOOLONG;
	memcpy(g.path, best, best_len);
	find_container(&g);
	find_pod(&g);
	find_service(&g);
	*ret_cgroup = g;
	return 0;
}

int cgroup__of(pid_t pid, struct cgroup *ret_cgroup)
{
	char path[32];
	char *text;
	size_t len;
	int err;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	err = proc__text(path, MAX_TEXT, &text, &len);
	if (err)
		return err;
	err = cgroup__parse(text, len, ret_cgroup);
	free(text);
	return err;
}
