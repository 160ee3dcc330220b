/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mapped: code that processes map while the session runs. A member's new libraries get names and
 * unwind rows, and another process that maps a GHC runtime is looked at.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/keyset.h"
#include "base/retry.h"
#include "session_priv.h"

/* dlopen() maps a library and its dependencies in several steps. */
#define MAPS_SETTLE_NS 20000000ULL
/* The maps of a process that maps and unmaps all the time (a JIT) are read at most this often. */
#define MAPS_EVERY_NS	   200000000ULL
#define MAPS_EVERY_ANON_NS 1000000000ULL
/* Limits wake-ups: a build starts thousands of programs a second, each of which maps several
 * files. */
#define WAKE_EVERY_NS	     5000000ULL
#define WAKE_SPARSE_EVERY_NS 50000000ULL
/* Files that hold no runtime. A file may be replaced in place, so they are forgotten after a
 * while. */
#define PLAIN_MAX     16384U
#define PLAIN_KEEP_NS 30000000000ULL

struct file_key {
	uint64_t ino, generation;
	uint32_t dev_major, dev_minor;
};

struct mapped {
	struct keyset *plain; /* struct file_key */
	uint64_t plain_since_ns;
	uint64_t now;
	uint64_t next_ns;    /* no member's maps are due before this time */
	bool lost;	     /* some mappings were not reported */
	bool silent;	     /* no mappings are reported */
	bool busy;	     /* the last drain found something, so the next one waits a while */
	pid_t last_pid;	     /* consecutive records are often of one process */
	struct member *last; /* NULL: not a member */
};

int mapped__new(struct mapped **ret_mapped)
{
	struct mapped *m = calloc(1, sizeof(*m));
	int err = m ? keyset__new(sizeof(struct file_key), PLAIN_MAX, &m->plain) : -ENOMEM;

	if (err) {
		mapped__free(m);
		return err;
	}
	*ret_mapped = m;
	return 0;
}

void mapped__free(struct mapped *m)
{
	if (m)
		keyset__free(m->plain);
	free(m);
}

static bool is_plain(struct mapped *m, const struct file_key *key)
{
	if (m->now - m->plain_since_ns > PLAIN_KEEP_NS) {
		keyset__forget(m->plain);
		m->plain_since_ns = m->now;
	}
	return keyset__has(m->plain, key);
}

/* True for the mapping of the executable: the exec is reported by another record. */
static bool is_exe(const struct kernel_mapping *map)
{
	uint64_t ino;
	uint32_t dev;

	/* include/linux/kdev_t.h, MKDEV */
	return program__exe(map->pid, &ino, &dev) && ino == map->ino &&
	       dev == (map->dev_major << 20 | map->dev_minor);
}

static void look_at_other(struct session *s, const struct kernel_mapping *map)
{
	struct file_key key;
	int found;

	memset(&key, 0, sizeof(key));
	key.ino = map->ino;
	key.generation = map->generation;
	key.dev_major = map->dev_major;
	key.dev_minor = map->dev_minor;
	if (!map->ino || is_plain(s->mapped, &key))
		return;
	found = discover__mapping(s->cache, map->pid, map->start, map->ino);
	if (found == 0)
		keyset__add(s->mapped->plain, &key);
	/* if there was no time or descriptor for it, the process is looked at again */
	else if ((found > 0 || retry__shows_nothing(found)) && !is_exe(map))
		follow__on_mapped(s, map->pid);
}

void mapped__want(struct mapped *mapped, struct member *m, uint64_t due_ns)
{
	if (!m->maps_due_ns || due_ns < m->maps_due_ns)
		m->maps_due_ns = due_ns;
	mapped->next_ns = MIN(mapped->next_ns, due_ns);
}

static void member_mapped(struct mapped *mapped, struct member *m, const struct kernel_mapping *map)
{
	uint64_t every = map->ino ? MAPS_EVERY_NS : MAPS_EVERY_ANON_NS;
	uint64_t due = MAX(mapped->now + MAPS_SETTLE_NS, m->maps_read_ns + every);

	mapped__want(mapped, m, due);
}

static void on_mapping(void *ctx, const struct kernel_mapping *map)
{
	struct session *s = ctx;
	struct mapped *mapped = s->mapped;

	mapped->busy = true;
	if (!map) {
		mapped->lost = true;
		return;
	}
	if (map->pid != mapped->last_pid) {
		mapped->last_pid = map->pid;
		mapped->last = members__find_live(s->members, map->pid);
	}
	if (mapped->last)
		member_mapped(mapped, mapped->last, map);
	else if (follow__wants(s, map->pid))
		look_at_other(s, map);
}

static void after_loss(struct session *s, uint64_t now)
{
	struct mapped *mapped = s->mapped;
	struct member *m = NULL;

	/* members that are due soon are left to settle */
	while ((m = members__next_live(s->members, m)))
		if (!m->maps_due_ns || m->maps_due_ns > now + MAPS_EVERY_ANON_NS)
			mapped__want(mapped, m, now);
	mapped->lost = false;
	s->unseen.processes = true;
}

int mapped__fd(const struct session *s)
{
	return s->mapped->busy ? -1 : kernel__mappings_fd(s->kernel);
}

uint64_t mapped__next_due(const struct session *s)
{
	const struct mapped *mapped = s->mapped;
	uint64_t wake = kernel__is_sparse(s->kernel) ? WAKE_SPARSE_EVERY_NS : WAKE_EVERY_NS;

	return mapped->busy ? mapped->now + wake : 0;
}

bool mapped__works(const struct session *s)
{
	return !s->mapped->silent;
}

bool mapped__would_show(const struct session *s, const struct candidate *c)
{
	bool command = s->opts->kind == SESSION_COMMAND && c->pid == command__pid(s->command);

	return !s->mapped->silent && c->reported && !c->mapped && !command && !s->opts->symbols &&
	       !(c->program.flags & (WIRE_PROC_FORK | WIRE_PROC_TARGET)) &&
	       discover__is_plain(s->cache, c->pid);
}

/* Reads the maps that are due; those for which there is no time follow in the next turn. */
static void read_due(struct session *s, uint64_t now)
{
	struct mapped *mapped = s->mapped;
	struct member *m = NULL;

	mapped->next_ns = UINT64_MAX;
	while ((m = members__next_live(s->members, m))) {
		if (!m->maps_due_ns)
			continue;
		if (now < m->maps_due_ns || time__monotonic_ns() - now > TURN_NS) {
			mapped->next_ns = MIN(mapped->next_ns, m->maps_due_ns);
			continue;
		}
		m->maps_due_ns = 0;
		m->maps_read_ns = now;
		member__read_maps(s, m);
	}
}

void mapped__drain(struct session *s, uint64_t now)
{
	struct mapped *mapped = s->mapped;

	mapped->now = now;
	mapped->busy = false;
	mapped->last_pid = 0;
	mapped->last = NULL;
	mapped->silent = kernel__mappings(s->kernel, on_mapping, s) == -ENOTSUP;
	if (mapped->lost)
		after_loss(s, now);
	if (now >= mapped->next_ns)
		read_due(s, now);
}
