/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probes, by the instruction that they are on. With one target each process has its own, filtered
 * by the kernel; for a whole host each file has one, and the programs look the process up.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "kernel_priv.h"
#include "safescope.skel.h"

struct bpf_program *kernel__program(struct kernel *kernel, enum probe_kind kind)
{
	switch (kind) {
	case PROBE_SUSPEND:
		return kernel->skel->progs.on_suspend;
	case PROBE_RESUME:
		return kernel->skel->progs.on_resume;
	case PROBE_TICK:
		return kernel->skel->progs.on_tick;
	case PROBE_GC_START:
		return kernel->skel->progs.on_gc_start;
	case PROBE_GC_END:
		return kernel->skel->progs.on_gc_end;
	case PROBE_MAX:
		break;
	}
	return NULL;
}

int probe__on(struct kernel *kernel, struct probe *p)
{
	int err = 0;

	if (!p->on)
		err = uprobe__attach(kernel__program(kernel, (enum probe_kind)p->key.kind),
				     kernel->multi, p->at.path, p->at.offset, p->key.pid,
				     &p->uprobe);
	p->on = !err;
	return err;
}

/* Not in the background: it may come on again, and two on one instruction would count twice. */
void probe__off(struct probe *p)
{
	uprobe__detach(&p->uprobe);
	p->on = false;
}

static void probe__free(struct kernel *kernel, struct probe *p)
{
	HASH_DEL(kernel->probes, p);
	reaper__add(kernel->reaper, &p->uprobe);
	free(p);
}

int probes__get(struct kernel *kernel, enum probe_kind kind, const struct target_probe *at,
		pid_t pid, struct probe **ret_probe)
{
	struct probe_key key;
	struct probe *p;
	int err;

	/* the hash is over all bytes */
	memset(&key, 0, sizeof(key));
	key.dev = at->dev;
	key.ino = at->ino;
	key.offset = at->offset;
	key.kind = kind;
	key.pid = pid;
	HASH_FIND(hh, kernel->probes, &key, sizeof(key), p);
	if (p) {
		kernel->n_unused -= !p->refs;
		/* the path of a process that has ended leads nowhere */
		p->at = *at;
	} else {
		p = calloc(1, sizeof(*p));
		if (!p)
			return -ENOMEM;
		p->key = key;
		p->at = *at;
		p->uprobe.fd = -1;
		err = probe__on(kernel, p);
		if (err) {
			free(p);
			return err;
		}
		HASH_ADD(hh, kernel->probes, key, sizeof(key), p);
		if (!p->hh.tbl) {
			probe__off(p);
			free(p);
			return -ENOMEM;
		}
	}
	p->refs++;
	p->last_used = ++kernel->probe_uses;
	*ret_probe = p;
	return 0;
}

static void drop_oldest(struct kernel *kernel)
{
	struct probe *p, *next, *oldest = NULL;

	HASH_ITER (hh, kernel->probes, p, next)
		if (!p->refs && (!oldest || p->last_used < oldest->last_used))
			oldest = p;
	if (!oldest)
		return;
	probe__free(kernel, oldest);
	kernel->n_unused--;
}

void probes__put(struct kernel *kernel, struct probe **probe)
{
	struct probe *p = *probe;

	*probe = NULL;
	if (!p || --p->refs)
		return;
	if (!kernel->all) {
		probe__free(kernel, p);
		return;
	}
	kernel->n_unused++;
	if (kernel->n_unused > PROBES_MAX_UNUSED)
		drop_oldest(kernel);
}

void probes__free(struct kernel *kernel)
{
	struct probe *p, *next;

	HASH_ITER (hh, kernel->probes, p, next)
		probe__free(kernel, p);
	reaper__free(kernel->reaper);
	kernel->reaper = NULL;
}
