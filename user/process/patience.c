/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How long to wait for a process whose memory may hang. */
#include "patience_priv.h"

#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/retry.h"

/* Beyond this, the process whose first hang is the longest ago is forgotten. */
#define ENTRIES_MAX 4096
#define FORGIVE	    4

struct patience_entry {
	pid_t pid;
	struct retry retry; /* when it may be waited for again */
	UT_hash_handle hh;  /* iterates in order of the first hang */
};

static struct patience_entry *find(const struct patience *p, pid_t pid)
{
	struct patience_entry *e;

	HASH_FIND(hh, p->entries, &pid, sizeof(pid), e);
	return e;
}

static void drop(struct patience *p, struct patience_entry *e)
{
	HASH_DEL(p->entries, e);
	free(e);
}

static void forgive(struct patience *p, uint64_t now)
{
	uint64_t passed = now > p->forgiven_ns ? now - p->forgiven_ns : 0;

	p->waited_ns -= MIN(p->waited_ns, passed / FORGIVE);
	p->forgiven_ns = now;
}

int patience__ask(struct patience *p, pid_t pid, int timeout_ms, uint64_t now_ns, int *ret_ms)
{
	const struct patience_entry *e = find(p, pid);
	uint64_t left;

	if (e && retry__waits(&e->retry, now_ns))
		return -EBUSY;
	forgive(p, now_ns);
	left = PATIENCE_WAITED_NS - MIN(p->waited_ns, PATIENCE_WAITED_NS);
	*ret_ms = MIN(timeout_ms, MAX((int)(left / 1000000ULL), PATIENCE_SHORT_MS));
	return 0;
}

static struct patience_entry *add(struct patience *p, pid_t pid)
{
	struct patience_entry *e;

	if (HASH_COUNT(p->entries) >= ENTRIES_MAX)
		drop(p, p->entries);
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->pid = pid;
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the analyzer loses track of entries */
	HASH_ADD(hh, p->entries, pid, sizeof(e->pid), e);
	if (!e->hh.tbl) { /* out of memory in uthash */
		free(e);
		return NULL;
	}
	return e;
}

void patience__hung(struct patience *p, pid_t pid, uint64_t waited_ns, uint64_t now_ns)
{
	struct patience_entry *e = find(p, pid);

	forgive(p, now_ns);
	p->waited_ns += waited_ns;
	if (!e)
		e = add(p, pid);
	if (!e)
		return;
	retry__begin(&e->retry, now_ns, PATIENCE_FIRST_NS, PATIENCE_LONGEST_NS);
}

void patience__well(struct patience *p, pid_t pid)
{
	struct patience_entry *e = find(p, pid);

	if (e)
		drop(p, e);
}
