/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cgroup: parses /proc/PID/cgroup, and the names that container engines and systemd give. */
#include "cgroup.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "proc.h"

#define MAX_TEXT       65536
#define CONTAINER_LEN  64
#define POD_LEN	       36
#define STATIC_POD_LEN 32

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* ── the path's parts ────────────────────────────────────────────────────────────────────── */

struct part {
	const char *at, *end;
};

/* Advances *path to the end of the part. False: there is none left. */
static bool next_part(const char **path, struct part *ret_part)
{
	*path += strspn(*path, "/");
	ret_part->at = *path;
	*path += strcspn(*path, "/");
	ret_part->end = *path;
	return ret_part->end > ret_part->at;
}

/* Requires something before the suffix. */
static bool has_suffix(const struct part *part, const char *suffix)
{
	size_t len = strlen(suffix);

	return (size_t)(part->end - part->at) > len && strncmp(part->end - len, suffix, len) == 0;
}

static bool is_service(const struct part *part)
{
	return has_suffix(part, ".service");
}

/* A user's own service manager: "user@1000.service". */
static bool is_users_manager(const struct part *part)
{
	static const char *const prefixes[] = {"user@", "capsule@"};
	bool is = false;

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		is |= strncmp(part->at, prefixes[i], strlen(prefixes[i])) == 0;
	return is && is_service(part);
}

/* Skips slices, below which a manager runs its units, and the ".." seen from within another control
 * group namespace: finds the first other part. */
static bool next_unit(const char **path, struct part *ret_part)
{
	while (next_part(path, ret_part))
		if (!has_suffix(ret_part, ".slice") && strncmp(ret_part->at, "../", 3) != 0)
			return true;
	return false;
}

/* ── what it names ───────────────────────────────────────────────────────────────────────── */

/*
 * Whoever owns a group can create others below it, with any name. So of several names only the
 * outermost can be trusted, and a name below a user's manager or within a container is prefixed
 * with the name of that manager or container: it can never pass for one of the system's.
 */
struct place {
	struct part manager;   /* a user's manager above all the rest; `at` NULL: none */
	const char *rest;      /* the path below it, or the whole path */
	const char *container; /* within the path; NULL: none */
};

/* The first run of exactly 64 digits; NULL if there is none. */
static const char *find_container(const char *path)
{
	size_t run = 0;

	for (const char *p = path;; p++) {
		if (is_hex(*p)) {
			run++;
			continue;
		}
		if (run == CONTAINER_LEN)
			return p - CONTAINER_LEN;
		if (!*p)
			return NULL;
		run = 0;
	}
}

static struct place find_place(const char *path)
{
	struct place place = {.rest = path, .container = find_container(path)};
	const char *rest = path;
	struct part unit;

	if (next_unit(&rest, &unit) && is_users_manager(&unit) &&
	    (!place.container || place.container > unit.end)) {
		place.manager = unit;
		place.rest = rest;
	}
	return place;
}

struct name {
	char s[CGROUP_NAME_SIZE];
	size_t len; /* CGROUP_NAME_SIZE: it did not fit */
};

/* Separated by a slash from what is there. */
static void add_name(struct name *name, const char *at, const char *end)
{
	size_t len = (size_t)(end - at), slash = name->len > 0;

	if (name->len + slash + len >= sizeof(name->s)) {
		name->len = sizeof(name->s);
		return;
	}
	if (slash)
		name->s[name->len++] = '/';
	memcpy(name->s + name->len, at, len);
	name->len += len;
}

static struct name begin_name(const struct place *place)
{
	struct name name = {.len = 0};

	if (place->manager.at)
		add_name(&name, place->manager.at, place->manager.end);
	return name;
}

/* No name is better than a truncated one, which might be another group's. */
static void end_name(const struct name *name, char *ret_name)
{
	size_t len = name->len < sizeof(name->s) ? name->len : 0;

	memcpy(ret_name, name->s, len);
	ret_name[len] = '\0';
}

static void name_container(struct cgroup *g, const struct place *place)
{
	struct name name = begin_name(place);

	if (!place->container)
		return;
	add_name(&name, place->container, place->container + CONTAINER_LEN);
	end_name(&name, g->container);
}

/*
 * The length of the uid of a pod at the start of `s`; 0: it is none. The kubelet's static pods have
 * a hash of their configuration, without dashes (pkg/kubelet/config/common.go, applyDefaults).
 */
static size_t pod_uid_len(const char *s)
{
	static const char shape[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
	size_t digits = 0, n = 0;

	while (is_hex(s[digits]))
		digits++;
	if (digits == STATIC_POD_LEN)
		return digits;
	while (n < POD_LEN && (shape[n] == 'x' ? is_hex(s[n]) : s[n] == '-' || s[n] == '_'))
		n++;
	return n == POD_LEN ? n : 0;
}

/*
 * "…/pod0f9c…" (cgroupfs), or "…-pod0f9c_….slice" (systemd, where a dash separates slices). Names
 * below a user's manager or within a container are not the host's pods.
 */
static void name_pod(struct cgroup *g, const struct place *place)
{
	const char *p = place->manager.at ? NULL : strstr(g->path, "pod");

	for (; p && (!place->container || p < place->container); p = strstr(p + 1, "pod")) {
		const char *uid = p + 3;
		size_t len = pod_uid_len(uid);

		if (!len)
			continue;
		for (size_t i = 0; i < len; i++)
			g->pod[i] = uid[i] == '_' ? '-' : uid[i];
		g->pod[len] = '\0';
		return;
	}
}

/*
 * A container's group normally lies below its engine's service
 * ("containerd.service/…:cri-containerd:ID"), which is not the container's own. Podman has no
 * engine: it creates "libpod-payload-ID" within the service that is the container's own.
 */
static bool has_own_container(const struct part *unit, const char *container)
{
	static const char payload[] = "/libpod-payload-";

	return !container || container < unit->end ||
	       (container == unit->end + sizeof(payload) - 1 &&
		strncmp(unit->end, payload, sizeof(payload) - 1) == 0);
}

/*
 * Finds a service that somebody runs within a unit or container, which `from` follows. False: none.
 */
static bool add_inner(struct name *name, const char *from)
{
	struct part part;

	while (next_part(&from, &part)) {
		if (!is_service(&part))
			continue;
		add_name(name, part.at, part.end);
		if (!is_users_manager(&part))
			return true;
	}
	return false;
}

static void name_service(struct cgroup *g, const struct place *place)
{
	struct name name = begin_name(place);
	const char *rest = place->rest, *container = place->container;
	struct part unit;

	if (!next_unit(&rest, &unit))
		return;
	if (is_service(&unit) && has_own_container(&unit, container)) {
		add_name(&name, unit.at, unit.end);
		end_name(&name, g->service);
		return;
	}
	if (container) {
		add_name(&name, container, container + CGROUP_SHORT_ID);
		rest = container + strcspn(container, "/");
	} else {
		add_name(&name, unit.at, unit.end);
	}
	if (add_inner(&name, rest))
		end_name(&name, g->service);
}

/* ── the file ────────────────────────────────────────────────────────────────────────────── */

/* Finds the path in a line "ID:CONTROLLERS:PATH"; *ret_rank, from 1 to 4, is how informative it is.
 * False: not such a line. */
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

/* Takes the path and its names if it ranks above what was taken so far. */
static void take_path(struct cgroup *best, unsigned *best_rank, const char *path, size_t len,
		      unsigned rank)
{
	struct cgroup g = {.path = ""};
	struct place place;

	memcpy(g.path, path, len);
	place = find_place(g.path);
	name_container(&g, &place);
	name_pod(&g, &place);
	/*
	 * Where the unified hierarchy is used beside another one, an engine may keep its containers
	 * only in the other: in the unified one their processes are in the root, or in the engine's
	 * own service, which started them.
	 */
	if ((*g.container || *g.pod) && !place.manager.at)
		rank += 4;
	if (rank <= *best_rank)
		return;
	name_service(&g, &place);
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
