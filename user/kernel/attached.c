/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Attached targets: their entries in the kernel's map, and switching their probes on and off. */
#include <string.h>

#include <bpf/bpf.h>

#include "base/base.h"
#include "kernel_priv.h"
#include "safescope.skel.h"

struct attached *kernel__find(const struct kernel *kernel, pid_t pid)
{
	struct attached *a;

	HASH_FIND(hh, kernel->targets, &pid, sizeof(pid), a);
	return a;
}

struct attached *kernel__next(const struct kernel *kernel, const struct attached *prev)
{
	return prev ? prev->hh.next : kernel->targets;
}

__u64 *target__word(struct kernel *kernel, __u32 tgid)
{
	return &kernel->skel->bss->target_bits[tgid % WIRE_MAX_PIDS / 64];
}

int target__put(struct kernel *kernel, const struct attached *a, __u64 how)
{
	int fd = bpf_map__fd(kernel->skel->maps.targets), err;
	const struct wire_target_entry entry = {.t = a->wire};
	__u32 key = (__u32)a->pid;

	err = how == BPF_ANY ? bpf_map_update_elem(fd, &key, &entry, BPF_NOEXIST) : -EEXIST;
	if (!err)
		__atomic_fetch_add(&kernel->skel->bss->all_targets, 1, __ATOMIC_SEQ_CST);
	else if (err == -EEXIST)
		err = bpf_map_update_elem(fd, &key, &entry, BPF_EXIST);
	if (!err)
		__atomic_fetch_or(target__word(kernel, key), 1ULL << (key % 64), __ATOMIC_SEQ_CST);
	return err;
}

bool attached__share(const struct attached *a, const struct attached *b)
{
	return a == b ||
	       (a->probes[PROBE_SUSPEND] && a->probes[PROBE_SUSPEND] == b->probes[PROBE_SUSPEND]);
}

/* BPF_EXIST: a process that is gone has no entry any more, and must not get one. */
void target__put_seen(struct kernel *kernel, struct attached *a, bool seen)
{
	if (seen) {
		a->wire.flags &= ~(__u32)WIRE_TARGET_PROBES_OFF;
		a->wire.epoch++;
	} else {
		a->wire.flags |= WIRE_TARGET_PROBES_OFF;
	}
	if (target__put(kernel, a, BPF_EXIST))
		log_debug("pid %d: gone while its probes were changed", a->pid);
}

static void put_group(struct kernel *kernel, struct attached *a, bool on)
{
	struct attached *b = NULL;

	while ((b = kernel__next(kernel, b))) {
		if (attached__share(a, b))
			target__put_seen(kernel, b, on);
	}
}

int call_probes__on(struct kernel *kernel, struct attached *a)
{
	struct probe *suspend = a->probes[PROBE_SUSPEND], *resume = a->probes[PROBE_RESUME];
	int err;

	if (!suspend || !resume)
		return -ENOENT;
	if (!probe__may_be_on(kernel, suspend) || !probe__may_be_on(kernel, resume))
		return -EBUSY;
	err = probe__on(kernel, suspend);
	if (!err)
		err = probe__on(kernel, resume);
	if (!err)
		put_group(kernel, a, true);
	if (err) {
		log_warn("pid %d: cannot switch its call probes back on: %s", a->pid,
			 strerror(-err));
		call_probes__off(kernel, a);
	}
	return err;
}

void call_probes__off(struct kernel *kernel, struct attached *a)
{
	put_group(kernel, a, false);
	if (a->probes[PROBE_SUSPEND])
		probe__off(kernel, a->probes[PROBE_SUSPEND]);
	if (a->probes[PROBE_RESUME])
		probe__off(kernel, a->probes[PROBE_RESUME]);
}

bool attached__has_gc(const struct attached *a)
{
	for (int i = PROBE_GC_SYNC; i <= PROBE_GC_END; i++)
		if (a->probes[i] && a->probes[i]->on)
			return true;
	return false;
}

enum gc_probes gc_probes__set_now(const struct attached *a)
{
	const struct probe *start = a->probes[PROBE_GC_START], *sync = a->probes[PROBE_GC_SYNC];

	if (!start || start->on)
		return GC_PROBES_ALL;
	return sync && sync->on ? GC_PROBES_REQUESTS : GC_PROBES_ENDS;
}

void gc_probes__set(struct kernel *kernel, struct attached *a, enum gc_probes probes)
{
	int err = 0;

	for (int i = PROBE_GC_SYNC; i <= PROBE_GC_START; i++) {
		enum gc_probes least = i == PROBE_GC_SYNC ? GC_PROBES_REQUESTS : GC_PROBES_ALL;
		struct probe *p = a->probes[i];

		if (p && probes > least)
			probe__off(kernel, p);
		else if (p && !err)
			err = probe__on(kernel, p);
	}
	if (err)
		log_debug("pid %d: cannot switch its probes on collections back on: %s", a->pid,
			  strerror(-err));
}

bool gc_probes__are_off(const struct attached *a)
{
	const struct probe *p = a->probes[PROBE_GC_END];

	return p && !p->on && !p->held_up;
}

void gc_probes__off(struct kernel *kernel, struct attached *a)
{
	struct attached *b = NULL;

	for (int i = PROBE_GC_SYNC; i <= PROBE_GC_END; i++)
		if (a->probes[i])
			probe__off(kernel, a->probes[i]);
	/* targets that share the probes have lost them too */
	while ((b = kernel__next(kernel, b)))
		b->gc_off |= gc_probes__are_off(b);
	kernel->gc_off_new = true;
}
