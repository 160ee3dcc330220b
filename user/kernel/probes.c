/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probes, by the instruction that they are on. With one target each process has its own, filtered
 * by the kernel; for a whole host each file has one, and the programs look the process up.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "kernel_priv.h"
#include "safescope.skel.h"

#define PROBES_MAX (PROBE_MAX * KERNEL_MAX_TARGETS + PROBES_MAX_UNUSED)

struct bpf_program *kernel__program(struct kernel *kernel, enum probe_kind kind)
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

int probe__on(struct kernel *kernel, struct probe *p)
{
	char path[32];
	int err = 0;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", p->file);
	if (!p->on)
		err = uprobe__attach(kernel__program(kernel, (enum probe_kind)p->key.kind),
				     kernel->multi, path, p->key.offset, p->key.pid, &p->uprobe);
	p->on = !err;
	return err;
}

/* Not in the background: it may come on again, and two on one instruction would count twice. */
void probe__off(struct probe *p)
{
	uprobe__detach(&p->uprobe);
	p->on = false;
}

static void probe__free(struct kernel *kernel, size_t i)
{
	struct probe *p = kernel->probes[i];

	kernel->probes[i] = kernel->probes[--kernel->n_probes];
	reaper__add(kernel->reaper, &p->uprobe);
	fd__close(&p->file);
	free(p);
}

static struct probe *find(struct kernel *kernel, const struct probe_key *key)
{
	for (size_t i = 0; i < kernel->n_probes; i++) {
		const struct probe_key *k = &kernel->probes[i]->key;

		if (k->ino == key->ino && k->offset == key->offset && k->dev == key->dev &&
		    k->kind == key->kind && k->pid == key->pid)
			return kernel->probes[i];
	}
	return NULL;
}

static int add(struct kernel *kernel, const struct probe_key *key, int file,
	       struct probe **ret_probe)
{
	struct probe *p;
	int err = array__reserve((void **)&kernel->probes, &kernel->cap_probes,
				 kernel->n_probes + 1, PROBES_MAX, sizeof(struct probe *));

	if (err)
		return err;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->key = *key;
	p->uprobe.fd = -1;
	p->file = fcntl(file, F_DUPFD_CLOEXEC, 3);
	err = p->file < 0 ? -errno : probe__on(kernel, p);
	if (err) {
		fd__close(&p->file);
		free(p);
		return err;
	}
	kernel->probes[kernel->n_probes++] = p;
	*ret_probe = p;
	return 0;
}

int probes__get(struct kernel *kernel, enum probe_kind kind, const struct target_probe *at,
		int file, pid_t pid, struct probe **ret_probe)
{
	const struct probe_key key = {
		.dev = at->dev, .ino = at->ino, .offset = at->offset, .kind = kind, .pid = pid};
	struct probe *p = find(kernel, &key);
	int err;

	if (p) {
		/* one that the budget took off, and whose targets have ended since */
		err = p->refs ? 0 : probe__on(kernel, p);
		if (err)
			return err;
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

static void drop_oldest(struct kernel *kernel)
{
	size_t oldest = SIZE_MAX;

	for (size_t i = 0; i < kernel->n_probes; i++)
		if (!kernel->probes[i]->refs &&
		    (oldest == SIZE_MAX ||
		     kernel->probes[i]->last_used < kernel->probes[oldest]->last_used))
			oldest = i;
	if (oldest == SIZE_MAX)
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
		for (size_t i = 0; i < kernel->n_probes; i++)
			if (kernel->probes[i] == p)
				probe__free(kernel, i);
		return;
	}
	kernel->n_unused++;
	if (kernel->n_unused > PROBES_MAX_UNUSED)
		drop_oldest(kernel);
}

void probes__free(struct kernel *kernel)
{
	while (kernel->n_probes)
		probe__free(kernel, kernel->n_probes - 1);
	free(kernel->probes);
	kernel->probes = NULL;
	reaper__free(kernel->reaper);
	kernel->reaper = NULL;
}
