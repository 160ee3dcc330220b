/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ccs_target: cost-centre stacks of a target, read in a killable child and kept. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/retry.h"
#include "base/base.h"
#include "base/hash.h"
#include "names/ccs.h"
#include "process/mem.h"
#include "names/names.h"
#include "target_priv.h"

#define MAX_KEPT	   (1U << 18)
#define READ_TIMEOUT_MS	   1000
#define WHOLE_TREE_NS	   100000000ULL	 /* the child's limit for what was not asked for */
#define WHOLE_TREE_EACH_NS 2000000000ULL /* how often */
/* After this many timeouts in a row, a target whose memory hangs is not read for a while, and for
 * longer each time. */
#define MAX_TIMEOUTS	 3
#define PAUSE_NS	 60000000000ULL
#define PAUSE_LONGEST_NS 3600000000000ULL

struct kept {
	struct target_ccs ccs;
	UT_hash_handle hh;
};

struct ccs_table {
	struct kept *kept;
	struct strtab *texts; /* strings of the stacks kept */
	uint64_t whole_ns;    /* when the whole tree was last read */
	uint32_t timeouts;    /* in a row */
	struct retry pause;   /* after too many timeouts */
};

struct job {
	pid_t pid;
	const uint64_t *addrs;
	size_t n;
	bool whole;
};

static int ccs_table__new(struct ccs_table **ret_table)
{
	struct ccs_table *table = calloc(1, sizeof(*table));

	if (!table)
		return -ENOMEM;
	if (strtab__new(&table->texts)) {
		free(table);
		return -ENOMEM;
	}
	*ret_table = table;
	return 0;
}

void ccs_table__free(struct ccs_table *table)
{
	struct kept *k, *next;

	if (!table)
		return;
	HASH_ITER (hh, table->kept, k, next) {
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the analyzer loses track of next */
		HASH_DEL(table->kept, k);
		free(k);
	}
	strtab__free(table->texts);
	free(table);
}

static int read_target(void *ctx, uint64_t addr, void *buf, size_t len)
{
	return mem__read(((const struct job *)ctx)->pid, addr, buf, len);
}

static int collect(void *ctx, void *out)
{
	struct job *job = ctx;
	const struct ccs_reader reader = {.read = read_target, .ctx = job};

	return ccs__collect(&reader, job->addrs, job->n,
			    job->whole ? time__monotonic_ns() + WHOLE_TREE_NS : 0, out);
}

/* Returns "" if there is no memory. */
static const char *text_at(struct ccs_table *table, const struct ccs_found *found, uint32_t at)
{
	const char *s = found->text + MIN(at, CCS_MAX_TEXT - 1);
	uint32_t id;

	if (strtab__add(table->texts, s, strnlen(s, MIN(CCS_MAX_STRING, CCS_MAX_TEXT - at)), &id))
		return "";
	return strtab__get(table->texts, id);
}

static int keep(struct target *t, const struct ccs_found *found, const struct ccs_node *node)
{
	struct ccs_table *table = t->ccs;
	const struct ccs_centre *c;
	struct kept *k;

	HASH_FIND(hh, table->kept, &node->addr, sizeof(node->addr), k);
	if (k)
		return 0;
	if (node->centre >= found->n_centres || node->centre >= CCS_MAX_CENTRES ||
	    HASH_COUNT(table->kept) >= MAX_KEPT)
		return -ENOSPC;
	c = &found->centres[node->centre];
	k = calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	k->ccs = (struct target_ccs){
		.addr = node->addr,
		.parent = node->parent,
		.label = text_at(table, found, c->label),
		.module = text_at(table, found, c->module),
		.src_loc = text_at(table, found, c->src_loc),
	};
	HASH_ADD(hh, table->kept, ccs.addr, sizeof(k->ccs.addr), k);
	if (!k->hh.tbl) {
		free(k);
		return -ENOMEM;
	}
	return 0;
}

int target__read_ccs(struct target *t, const uint64_t *addrs, size_t n)
{
	struct job job = {.pid = t->info.pid, .addrs = addrs, .n = n};
	uint64_t now = time__monotonic_ns();
	struct ccs_found *found;
	void *out;
	int err;

	if (!t->info.profiled)
		return -ENOTSUP;
	err = t->ccs ? 0 : ccs_table__new(&t->ccs);
	if (err)
		return err;
	if (retry__waits(&t->ccs->pause, now))
		return -ETIMEDOUT;
	if (!target__alive(t))
		return -ESRCH;
	job.whole = !t->ccs->whole_ns || now - t->ccs->whole_ns >= WHOLE_TREE_EACH_NS;
	err = mem__guard(job.pid, GUARD_MEMORY, READ_TIMEOUT_MS, collect, &job,
			 sizeof(struct ccs_found), &out);
	if (err) {
		if (err == -ETIMEDOUT && ++t->ccs->timeouts >= MAX_TIMEOUTS)
			retry__begin(&t->ccs->pause, time__monotonic_ns(), PAUSE_NS,
				     PAUSE_LONGEST_NS);
		return err;
	}
	/* the target was only busy */
	t->ccs->timeouts = 0;
	retry__end(&t->ccs->pause);
	if (job.whole)
		t->ccs->whole_ns = now;
	found = out;
	for (uint32_t i = 0; !err && i < MIN(found->n_nodes, CCS_MAX_NODES); i++)
		err = keep(t, found, &found->nodes[i]);
	mem__guard_free(out, sizeof(struct ccs_found));
	return err == -ENOSPC ? 0 : err;
}

int target__ccs(const struct target *t, uint64_t addr, struct target_ccs *ret_ccs)
{
	struct kept *k = NULL;

	if (t->ccs)
		HASH_FIND(hh, t->ccs->kept, &addr, sizeof(addr), k);
	if (!k)
		return -ENOENT;
	*ret_ccs = k->ccs;
	return 0;
}
