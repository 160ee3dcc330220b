/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Targets: their entry in the kernel's map and their probes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "base/base.h"
#include "kernel_priv.h"
#include "safescope.skel.h"

struct attached *kernel__find(struct kernel *kernel, pid_t pid)
{
	for (size_t i = 0; i < kernel->n_targets; i++)
		if (kernel->targets[i].pid == pid)
			return &kernel->targets[i];
	return NULL;
}

static int put_target(struct kernel *kernel, struct attached *a)
{
	__u32 key = (__u32)a->pid;

	return bpf_map_update_elem(bpf_map__fd(kernel->skel->maps.targets), &key, &a->wire,
				   BPF_ANY);
}

static int attach_at(struct kernel *kernel, struct bpf_program *prog, pid_t pid,
		     const struct target_probe *at, struct uprobe *probe, const char *what)
{
	int err;

	if (at->found == FOUND_NONE)
		return 0;
	err = uprobe__attach(prog, kernel->multi, at->path, at->offset, pid, probe);
	if (err)
		log_warn("pid %d: no probe on %s (%s+0x%llx): %s", pid, what, at->path,
			 (unsigned long long)at->offset, strerror(-err));
	return err;
}

int call_probes__on(struct kernel *kernel, struct attached *a)
{
	int err;

	if (a->suspend_at.found == FOUND_NONE || a->resume_at.found == FOUND_NONE)
		return -ENOENT;
	a->wire.flags &= ~(__u32)WIRE_TARGET_PROBES_OFF;
	a->wire.epoch++;
	err = put_target(kernel, a);
	if (!err)
		err = attach_at(kernel, kernel->skel->progs.on_suspend, a->pid, &a->suspend_at,
				&a->suspend, "suspendThread");
	if (!err)
		err = attach_at(kernel, kernel->skel->progs.on_resume, a->pid, &a->resume_at,
				&a->resume, "resumeThread");
	if (err)
		call_probes__off(kernel, a);
	return err;
}

void call_probes__off(struct kernel *kernel, struct attached *a)
{
	uprobe__detach(&a->suspend);
	uprobe__detach(&a->resume);
	a->wire.flags |= WIRE_TARGET_PROBES_OFF;
	if (put_target(kernel, a))
		log_debug("pid %d: gone while its probes came off", a->pid);
}

static void detach_all(struct attached *a)
{
	struct uprobe *probes[] = {&a->suspend, &a->resume, &a->tick, &a->gc_start, &a->gc_end};

	for (size_t i = 0; i < ARRAY_SIZE(probes); i++)
		uprobe__detach(probes[i]);
}

static void init_attached(struct attached *a, const struct target_info *info)
{
	memset(a, 0, sizeof(*a));
	a->pid = info->pid;
	a->suspend_at = info->suspend;
	a->resume_at = info->resume;
	a->wire = info->wire;
	a->suspend.fd = a->resume.fd = a->tick.fd = a->gc_start.fd = a->gc_end.fd = -1;
}

/* See only_tgid in bpf/maps.bpf.h. Set last when a target comes and first when one goes. */
static void tell_only(struct kernel *kernel)
{
	kernel->skel->bss->only_tgid =
		kernel->n_targets == 1 ? (__u32)kernel->targets[0].pid : 0;
}

int kernel__attach(struct kernel *kernel, const struct target_info *info)
{
	struct safescope_bpf *skel = kernel->skel;
	__u32 key = (__u32)info->pid;
	struct wire_cost cost = {};
	struct attached *a;
	int err;

	err = array__reserve((void **)&kernel->targets, &kernel->cap_targets, kernel->n_targets + 1,
			     KERNEL_MAX_TARGETS, sizeof(*kernel->targets));
	if (err)
		return err;
	a = &kernel->targets[kernel->n_targets];
	init_attached(a, info);
	err = bpf_map_update_elem(bpf_map__fd(skel->maps.costs), &key, &cost, BPF_ANY);
	if (!err)
		err = put_target(kernel, a);
	if (err) {
		log_error("pid %d: cannot be followed: %s", info->pid, strerror(-err));
		unwind__forget(kernel, info->pid);
		return err;
	}
	kernel->n_targets++;
	tell_only(kernel);
	if (call_probes__on(kernel, a) == 0)
		a->state = PROBES_ON;
	/* each of these only adds to the answer: a failure was said, and is no end */
	attach_at(kernel, skel->progs.on_tick, a->pid, &info->tick, &a->tick, "the RTS's timer");
	attach_at(kernel, skel->progs.on_gc_start, a->pid, &info->gc_start, &a->gc_start,
		  "GC start");
	attach_at(kernel, skel->progs.on_gc_end, a->pid, &info->gc_end, &a->gc_end, "GC end");
	a->since_ns = a->checked_ns = time__monotonic_ns();
	/* the first target's attach is not held up by the calibration */
	if (!kernel->trap_ns)
		kernel->trap_ns = calibrate__trap_ns(skel->progs.on_calibrate, kernel->multi);
	return 0;
}

void kernel__detach(struct kernel *kernel, pid_t pid)
{
	struct attached *a = kernel__find(kernel, pid);
	__u32 key = (__u32)pid;

	if (!a)
		return;
	detach_all(a);
	unwind__forget(kernel, pid);
	bpf_map_delete_elem(bpf_map__fd(kernel->skel->maps.targets), &key);
	bpf_map_delete_elem(bpf_map__fd(kernel->skel->maps.costs), &key);
	*a = kernel->targets[--kernel->n_targets];
	tell_only(kernel);
}

int kernel__open_call(struct kernel *kernel, pid_t tid, uint64_t start_ns, uint64_t site,
		      uint64_t incall)
{
	struct wire_open_at_start open = {.start_ns = start_ns, .site = site, .incall = incall};
	__u32 key = (__u32)tid;

	return bpf_map_update_elem(bpf_map__fd(kernel->skel->maps.open_at_start), &key, &open,
				   BPF_ANY);
}
