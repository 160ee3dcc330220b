/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probes, keyed by the instruction that they are on. In a session on single targets each process
 * has its own, filtered by the kernel; in a session on the whole host each file has one set, and
 * the programs look the process up.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "keeper_priv.h"
#include "kernel_priv.h"
#include "safescope.skel.h"

/* How often unused probes are checked. */
#define UNUSED_TURN_NS 60000000000ULL

#define PROBES_MAX (PROBE_MAX * KERNEL_MAX_TARGETS + PROBES_MAX_UNUSED)

static struct bpf_program *program_of(struct kernel *kernel, enum probe_kind kind)
{
	switch (kind) {
	case PROBE_SUSPEND:
		return kernel->skel->progs.on_suspend;
	case PROBE_RESUME:
		return kernel->skel->progs.on_resume;
	case PROBE_TICK:
		return kernel->skel->progs.on_tick;
	case PROBE_GC_SYNC:
		return kernel->skel->progs.on_gc_sync;
	case PROBE_GC_START:
		return kernel->skel->progs.on_gc_start;
	case PROBE_GC_END:
		return kernel->skel->progs.on_gc_end;
	case PROBE_MAX:
		break;
	}
	return NULL;
}

bool probe__may_be_on(const struct kernel *kernel, const struct probe *p)
{
	return p->on || keeper__is_done(kernel->keeper, p->off_number);
}

int probe__on(struct kernel *kernel, struct probe *p)
{
	char path[32];
	int err, fd;

	if (p->on)
		return 0;
	if (p->stale)
		return -ESTALE;
	/* two probes on one instruction would count twice */
	if (!probe__may_be_on(kernel, p))
		return -EBUSY;
	/* a probe of a single process needs no lease: the kernel puts it nowhere else */
	err = p->key.pid ? 0 : leases__get(kernel, p);
	if (err)
		return err;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", p->file);
	err = uprobe__attach(program_of(kernel, (enum probe_kind)p->key.kind), kernel->multi, path,
			     p->key.offset, p->key.pid, &fd);
	if (!err)
		err = keeper__hold(kernel->keeper, KEEP_PROBE, fd, &p->link);
	p->on = !err;
	if (p->on)
		p->on_ns = time__monotonic_ns();
	p->held_up &= !p->on;
	return err;
}

void probe__off(struct kernel *kernel, struct probe *p)
{
	keeper__drop(kernel->keeper, p->link, &p->off_number);
	p->link = 0;
	p->on = p->held_up = false;
}

/* True if the file has been unlinked, so that nobody can open it any more. */
static bool file_is_removed(const struct probe *p)
{
	struct statx st;

	/* DONT_SYNC: does not ask a file server */
	return statx(p->file, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_NLINK, &st) == 0 &&
	       st.stx_mask & STATX_NLINK && !st.stx_nlink;
}

static void probe__free(struct kernel *kernel, struct probe *p)
{
	/* a file that may still be written to keeps its lease until the probe is off */
	if (p->lease && !file_is_removed(p))
		probe__off(kernel, p);
	else
		keeper__drop(kernel->keeper, p->link, NULL);
	leases__put(p);
	fd__close(&p->file);
	free(p);
}

static void remove_probe(struct kernel *kernel, struct probe *p)
{
	if (p->key.kind == PROBE_SUSPEND || p->key.kind == PROBE_RESUME)
		programs__probe_gone(kernel->programs, p);
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it loses track of uthash */
	HASH_DEL(kernel->probes, p);
	probe__free(kernel, p);
}

void probe__rest(struct kernel *kernel, struct probe *p)
{
	if (!p->on)
		return;
	if (p->key.kind == PROBE_SUSPEND || p->key.kind == PROBE_RESUME)
		programs__probe_gone(kernel->programs, p);
	probe__off(kernel, p);
}

static struct probe *find(const struct kernel *kernel, const struct probe_key *key)
{
	struct probe *p;

	HASH_FIND(hh, kernel->probes, key, sizeof(*key), p);
	return p;
}

static int add(struct kernel *kernel, const struct probe_key *key, int file,
	       struct probe **ret_probe)
{
	struct probe *p;
	int err;

	if (HASH_COUNT(kernel->probes) >= PROBES_MAX)
		return -E2BIG;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->key = *key;
	p->file = fcntl(file, F_DUPFD_CLOEXEC, 3);
	err = p->file < 0 ? -errno : probe__on(kernel, p);
	if (!err) {
		HASH_ADD(hh, kernel->probes, key, sizeof(p->key), p);
		if (p->hh.tbl) {
			*ret_probe = p;
			return 0;
		}
		/* uthash ran out of memory */
		err = -ENOMEM;
	}
	probe__free(kernel, p);
	return err;
}

int probes__get(struct kernel *kernel, enum probe_kind kind, const struct target_probe *at,
		int file, pid_t pid, struct probe **ret_probe, bool *ret_was_on)
{
	const struct probe_key key = {
		.dev = at->dev, .ino = at->ino, .offset = at->offset, .kind = kind, .pid = pid};
	struct probe *p = find(kernel, &key);
	int err = 0;

	*ret_was_on = p && p->on;
	if (p) {
		/* it was taken off, and its targets have ended since */
		if (!p->refs) {
			keeper__await(kernel->keeper, p->off_number);
			err = probe__on(kernel, p);
			if (err)
				return err;
		}
		kernel->n_unused -= !p->refs;
	} else {
		err = add(kernel, &key, file, &p);
		if (err)
			return err;
	}
	p->refs++;
	p->last_used = ++kernel->probe_uses;
	*ret_probe = p;
	return 0;
}

static void remove_unused(struct kernel *kernel, struct probe *p)
{
	remove_probe(kernel, p);
	kernel->n_unused--;
}

static void drop_oldest(struct kernel *kernel)
{
	struct probe *p, *oldest = NULL;

	for (p = kernel->probes; p; p = p->hh.next)
		if (!p->refs && (!oldest || p->last_used < oldest->last_used))
			oldest = p;
	if (oldest)
		remove_unused(kernel, oldest);
}

void probes__put(struct kernel *kernel, struct probe **probe)
{
	struct probe *p = *probe;

	*probe = NULL;
	if (!p || --p->refs)
		return;
	/* a probe of a single process is useless to the next process that runs the file */
	if (!kernel->all || p->key.pid || p->stale || file_is_removed(p)) {
		remove_probe(kernel, p);
		return;
	}
	kernel->n_unused++;
	p->unused_ns = time__monotonic_ns();
	if (kernel->n_unused > PROBES_MAX_UNUSED)
		drop_oldest(kernel);
}

void probes__turn(struct kernel *kernel, uint64_t now_ns)
{
	struct probe *p, *next;

	if (now_ns - kernel->unused_turn_ns < UNUSED_TURN_NS)
		return;
	kernel->unused_turn_ns = now_ns;
	for (p = kernel->n_unused ? kernel->probes : NULL; p; p = next) {
		next = p->hh.next;
		if (!p->refs && (now_ns > p->unused_ns + PROBES_UNUSED_NS || file_is_removed(p)))
			remove_unused(kernel, p);
	}
}

void probes__free(struct kernel *kernel)
{
	struct probe *p = kernel->probes, *next;

	/* frees the table only; the linked list stays intact */
	HASH_CLEAR(hh, kernel->probes);
	for (; p; p = next) {
		next = p->hh.next;
		probe__free(kernel, p);
	}
}
