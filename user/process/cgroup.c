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

/* The last run of exactly 64 digits: a container in a container is the inner one. Where it is in
 * the path; NULL: nowhere. */
static const char *find_container(struct cgroup *g)
{
	const char *found = NULL;
	size_t run = 0;

	for (const char *p = g->path;; p++) {
		if (is_hex(*p)) {
			run++;
			continue;
		}
		if (run == CONTAINER_LEN)
			found = p - CONTAINER_LEN;
		if (!*p)
			break;
		run = 0;
	}
	if (found) {
		memcpy(g->container, found, CONTAINER_LEN);
		g->container[CONTAINER_LEN] = '\0';
	}
	return found;
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

/*
 * The innermost part of the path that ends so. One that a container comes after is the container
 * engine ("containerd.service/…:cri-containerd:ID"), but for Podman's, which is none: it makes
 * "libpod-payload-ID" within the very service that is the container's. "user@1000.service" is a
 * user's manager, which has all that he runs below it.
 */
static void find_service(struct cgroup *g, const char *container)
{
	static const char suffix[] = ".service", payload[] = "/libpod-payload-",
			  manager[] = "user@";
	const char *from = g->path, *to;

	for (; *from; from = *to ? to + 1 : to) {
		size_t len;

		to = from + strcspn(from, "/");
		len = (size_t)(to - from);
		if (len < sizeof(suffix) || len >= sizeof(g->service) ||
		    strncmp(to - (sizeof(suffix) - 1), suffix, sizeof(suffix) - 1) != 0)
			continue;
		if (strncmp(from, manager, sizeof(manager) - 1) == 0)
			continue;
		if (container && container > to && strncmp(to, payload, sizeof(payload) - 1) != 0)
			continue;
		memcpy(g->service, from, len);
		g->service[len] = '\0';
	}
}

/* The path in a line "ID:CONTROLLERS:PATH"; *ret_rank, from 1 to 4: how much it shows. False: it is
 * none. */
static bool parse_line(const char *line, size_t len, const char **ret_path, unsigned *ret_rank)
{
	const char *controllers = memchr(line, ':', len), *path;

	if (!controllers)
		return false;
	controllers++;
	path = memchr(controllers, ':', len - (size_t)(controllers - line));
	if (!path)
		return false;
	/* cgroups(7): the unified hierarchy is number 0 and has no controllers here */
	if (line + len - path == 2 && path[1] == '/')
		*ret_rank = 1;
	else if (path == controllers)
		*ret_rank = 4;
	else
		*ret_rank = strncmp(controllers, "name=systemd:", 13) == 0 ? 3 : 2;
	*ret_path = path + 1;
	return true;
}

/* Takes the path and what it names, if it is worth more than what was taken so far. */
static void take_path(struct cgroup *best, unsigned *best_rank, const char *path, size_t len,
		      unsigned rank)
{
	struct cgroup g = {.path = ""};
	const char *container;

	memcpy(g.path, path, len);
	container = find_container(&g);
	find_pod(&g);
	/*
	 * Where the unified hierarchy is used beside another one, an engine may keep its containers
	 * in the other only: in the unified one their processes are in the root, or in the engine's
	 * own service, which started them.
	 */
	if (*g.container || *g.pod)
		rank += 4;
	if (rank <= *best_rank)
		return;
	find_service(&g, container);
	*best = g;
	*best_rank = rank;
}

int cgroup__parse(const char *text, size_t len, struct cgroup *ret_cgroup)
{
	struct cgroup best = {.path = ""};
	const char *end = text + len, *line = text;
	unsigned best_rank = 0, too_long = 0;

	while (line < end) {
		const char *nl = memchr(line, '\n', (size_t)(end - line)), *path;
		const char *line_end = nl ? nl : end;
		unsigned rank;

		if (parse_line(line, (size_t)(line_end - line), &path, &rank)) {
			if ((size_t)(line_end - path) < sizeof(best.path))
				take_path(&best, &best_rank, path, (size_t)(line_end - path), rank);
			else
				too_long = MAX(too_long, rank);
		}
		line = nl ? nl + 1 : end;
	}
	if (too_long > best_rank)
		return -ENAMETOOLONG;
	if (!best_rank)
		return -ENOENT;
	*ret_cgroup = best;
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
