/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Targets come and go: what is attached to them, and what they share. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "base/base.h"
#include "kernel_priv.h"
#include "process/proc.h"
#include "safescope.skel.h"

/* bpf/maps.bpf.h, enum follow */
#define FOLLOW_FAMILY 1
#define FOLLOW_ALL    2

/* Takes over the state of other targets that share its file's probes. */
static void join_group(struct kernel *kernel, struct attached *a)
{
	const struct attached *b = NULL;

	while ((b = kernel__next(kernel, b))) {
		if (b == a || !attached__share(a, b) || b->state == PROBES_ABSENT)
			continue;
		a->state = b->state;
		if (b->state == PROBES_OFF || b->state == PROBES_HELD_UP) {
			a->wire.flags |= WIRE_TARGET_PROBES_OFF;
			a->retry_ns = UINT64_MAX;
		}
		return;
	}
}

/* True if the thread has ended; tid 0: the process. */
static bool has_ended(pid_t pid, pid_t tid)
{
	struct proc_stat st = {0};

	return proc__stat(pid, tid, &st) == -ESRCH || st.state == 'Z' || st.state == 'X';
}

static void note_lacking(struct kernel_lacking *lacking, enum probe_kind kind, int err)
{
	lacking->err = err;
	switch (kind) {
	case PROBE_SUSPEND:
	case PROBE_RESUME:
		lacking->calls = true;
		break;
	case PROBE_GC_END:
		lacking->gc = true;
		break;
	case PROBE_GC_SYNC:
	case PROBE_GC_START:
		lacking->gc_parts = true;
		break;
	case PROBE_TICK:
	case PROBE_MAX:
		break;
	}
}

/*
 * 0: the probes are to be on for all processes that map the file. The kernel puts them into the
 * overlay's underlying file. Containers of one image share that file, each through an overlay of
 * its own, so every call would hit the probes of all of them.
 */
static pid_t probes_are_for(const struct kernel *kernel, const struct target_info *info)
{
	return kernel->all && info->reach == ORIGIN_OWNED && !info->in_overlay ? 0 : info->pid;
}

static int add_probes(struct kernel *kernel, struct attached *a, const struct target_info *info)
{
	const struct {
		const struct target_probe *at;
		const char *what;
	} all[PROBE_MAX] = {
		[PROBE_SUSPEND] = {&info->suspend, "suspendThread"},
		[PROBE_RESUME] = {&info->resume, "resumeThread"},
		[PROBE_TICK] = {&info->tick, "the RTS's timer"},
		[PROBE_GC_SYNC] = {&info->gc_sync, "GC synchronisation"},
		[PROBE_GC_START] = {&info->gc_start, "GC start"},
		[PROBE_GC_END] = {&info->gc_end, "GC end"},
	};
	bool calls = all[PROBE_SUSPEND].at->found != FOUND_NONE &&
		     all[PROBE_RESUME].at->found != FOUND_NONE;
	pid_t pid = probes_are_for(kernel, info);
	bool was_on = false;
	int err;

	a->covered_ns = calls ? 0 : UINT64_MAX;
	for (int i = 0; i < PROBE_MAX; i++) {
		const struct target_probe *at = all[i].at;

		/* these two are useful only together */
		if (at->found == FOUND_NONE || at->found == FOUND_TICKER ||
		    (i <= PROBE_RESUME && !calls))
			continue;
		err = probes__get(kernel, (enum probe_kind)i, at, info->probe_file, pid,
				  &a->probes[i], &was_on);
		/* no lease: a writer cannot be made to wait, so the process gets probes of its
		 * own */
		if (err && err != -EBUSY && !pid) {
			pid = info->pid;
			err = probes__get(kernel, (enum probe_kind)i, at, info->probe_file, pid,
					  &a->probes[i], &was_on);
		}
		if (i <= PROBE_RESUME)
			a->covered_ns =
				was_on ? MAX(a->covered_ns, a->probes[i]->on_ns) : UINT64_MAX;
		/* each probe only adds to the picture: a failure is reported, and the others go
		 * on */
		/* if the process has ended, its end is all there is to report */
		if (err && !has_ended(info->pid, 0)) {
			log_warn("pid %d: no probe on %s (%s+0x%llx): %s", info->pid, all[i].what,
				 at->path, (unsigned long long)at->offset, strerror(-err));
			note_lacking(&a->lacking, (enum probe_kind)i, err);
		}
		if (err && i <= PROBE_RESUME)
			calls = false;
	}
	if (!calls) {
		probes__put(kernel, &a->probes[PROBE_SUSPEND]);
		probes__put(kernel, &a->probes[PROBE_RESUME]);
	}
	return calls ? 0 : -ENOENT;
}

static __u32 own_probes(const struct attached *a)
{
	static const __u32 own[PROBE_MAX] = {
		[PROBE_SUSPEND] = WIRE_TARGET_OWN_SUSPEND,
		[PROBE_RESUME] = WIRE_TARGET_OWN_RESUME,
		[PROBE_TICK] = WIRE_TARGET_OWN_TICK,
		[PROBE_GC_SYNC] = WIRE_TARGET_OWN_GC_SYNC,
		[PROBE_GC_START] = WIRE_TARGET_OWN_GC_START,
		[PROBE_GC_END] = WIRE_TARGET_OWN_GC_END,
	};
	__u32 flags = 0;

	for (int i = 0; i < PROBE_MAX; i++)
		flags |= a->probes[i] && a->probes[i]->key.pid ? own[i] : 0;
	return flags;
}

/* Sets the probes, and the fields of the map entry that depend on them. */
static void begin_probes(struct kernel *kernel, struct attached *a, const struct target_info *info)
{
	struct kernel_held_up held_up;

	kernel__held_up(kernel, &held_up);
	a->held_up_before_ns = held_up.ns;
	/* epoch 1 means that the probes have never been off */
	a->wire.epoch = kernel->held_up_until_ns ? 2 : 1;
	if (add_probes(kernel, a, info) == 0) {
		a->state = PROBES_ON;
		a->wire.flags &= ~(__u32)WIRE_TARGET_PROBES_OFF;
		join_group(kernel, a);
	} else {
		a->wire.flags |= WIRE_TARGET_PROBES_OFF;
	}
	a->wire.flags |= own_probes(a);
	/* shares its probes with a target for which they cost too much */
	a->gc_off = gc_probes__are_off(a);
	kernel->gc_off_new |= a->gc_off;
	a->since_ns = a->checked_ns = a->gc_checked_ns = time__monotonic_ns();
}

/*
 * A file that its user can write to at any time is probed only once the process has shown that
 * there is a runtime in it. Our own child, which is stopped at its exec, is exempt.
 */
static bool must_wait(const struct target_info *info, __u32 flags)
{
	return info->wire.flags & WIRE_TARGET_UNCONFIRMED && info->reach != ORIGIN_OWNED &&
	       !(flags & WIRE_TARGET_ARMED);
}

static int add_target(struct kernel *kernel, const struct target_info *info,
		      struct attached **ret_attached)
{
	struct attached *a;

	if (HASH_COUNT(kernel->targets) >= KERNEL_MAX_TARGETS)
		return -E2BIG;
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	a->pid = info->pid;
	a->wire = info->wire;
	/* a target that waits for its probes is without them from here on */
	a->since_ns = time__monotonic_ns();
	a->covered_ns = UINT64_MAX;
	HASH_ADD(hh, kernel->targets, pid, sizeof(a->pid), a);
	if (!a->hh.tbl) { /* uthash ran out of memory */
		free(a);
		return -ENOMEM;
	}
	*ret_attached = a;
	return 0;
}

/* Hands the task of retrying over to another target that shares the probes. */
static void hand_over(struct kernel *kernel, const struct attached *a)
{
	struct attached *b = NULL;

	if (a->state != PROBES_OFF || a->retry_ns == UINT64_MAX)
		return;
	while ((b = kernel__next(kernel, b))) {
		if (b == a || !attached__share(a, b) || b->state != PROBES_OFF)
			continue;
		b->retry_ns = a->retry_ns;
		return;
	}
}

/* Removes its probes; its entries in the maps stay. */
static void remove_target(struct kernel *kernel, struct attached *a)
{
	hand_over(kernel, a);
	for (int i = 0; i < PROBE_MAX; i++)
		probes__put(kernel, &a->probes[i]);
	HASH_DEL(kernel->targets, a);
	free(a);
}

/* Forgets what the BPF side keeps of a process besides its entry. */
static void forget_state(struct kernel *kernel, __u32 key)
{
	bpf_map_delete_elem(bpf_map__fd(kernel->skel->maps.heaps), &key);
	bpf_map_delete_elem(bpf_map__fd(kernel->skel->maps.off_tsos), &key);
}

static int attach(struct kernel *kernel, const struct target_info *info, uid_t account, __u32 flags,
		  uint64_t *ret_since_ns)
{
	int costs = bpf_map__fd(kernel->skel->maps.costs);
	struct wire_cost cost = {};
	__u32 key = (__u32)info->pid;
	struct attached *a;
	uint64_t since;
	int err;

	a = kernel__find(kernel, info->pid);
	/* an earlier program of the same process */
	if (a)
		remove_target(kernel, a);
	err = add_target(kernel, info, &a);
	if (err)
		return err;
	a->wire.flags |= flags;
	a->wire.user = users__slot(kernel, account);
	/* probes before the map entry, which makes counting begin with all of them at once */
	a->waits = must_wait(info, flags);
	if (a->waits)
		a->wire.flags |= WIRE_TARGET_PROBES_OFF;
	else
		begin_probes(kernel, a, info);
	/* it has not started yet */
	if (flags & WIRE_TARGET_ARMED)
		a->covered_ns = 0;
	/* a process adopted by the BPF side already has its entry, with hits in it */
	err = bpf_map_update_elem(costs, &key, &cost, BPF_NOEXIST);
	/* a probe in flight when an earlier process with this pid ended may have recreated it */
	if (!err)
		forget_state(kernel, key);
	since = time__monotonic_ns();
	if (!err || err == -EEXIST)
		err = target__put(kernel, a, BPF_ANY);
	if (err) {
		if (!has_ended(info->pid, 0))
			log_error("pid %d: cannot be followed: %s", info->pid, strerror(-err));
		kernel__detach(kernel, info->pid);
		return err;
	}
	/* so that calibration does not delay the attachment of the first target */
	if (!kernel->trap_ns) {
		held_up__begin(kernel);
		kernel->trap_ns = calibrate__trap_ns(kernel->skel->progs.on_calibrate,
						     kernel->multi, kernel->keeper);
		held_up__begin(kernel);
	}
	*ret_since_ns = since;
	return 0;
}

int kernel__attach(struct kernel *kernel, const struct target_info *info, uid_t account,
		   uint64_t *ret_since_ns)
{
	return attach(kernel, info, account, 0, ret_since_ns);
}

void kernel__follow(struct kernel *kernel, pid_t pid)
{
	__u32 key = (__u32)pid, one = 1;

	if (!kernel->all &&
	    bpf_map_update_elem(bpf_map__fd(kernel->skel->maps.family), &key, &one, BPF_ANY))
		log_warn("pid %d: the processes it starts are not followed: %s", pid,
			 strerror(errno));
	kernel->skel->bss->follow = kernel->all ? FOLLOW_ALL : FOLLOW_FAMILY;
}

void kernel__lacking(const struct kernel *kernel, pid_t pid, struct kernel_lacking *ret_lacking)
{
	const struct attached *a = kernel__find(kernel, pid);

	*ret_lacking = a ? a->lacking : (struct kernel_lacking){0};
}

bool kernel__covers(const struct kernel *kernel, pid_t pid, uint64_t begun_ns)
{
	const struct attached *a = kernel__find(kernel, pid);

	return a && a->covered_ns <= begun_ns;
}

bool kernel__follows(const struct kernel *kernel, pid_t pid)
{
	__u32 key = (__u32)pid, one;

	return kernel->all ||
	       bpf_map_lookup_elem(bpf_map__fd(kernel->skel->maps.family), &key, &one) == 0;
}

int kernel__arm(struct kernel *kernel, const struct target_info *info, uid_t account)
{
	uint64_t since;

	kernel__follow(kernel, info->pid);
	return attach(kernel, info, account, WIRE_TARGET_ARMED, &since);
}

int kernel__update(struct kernel *kernel, const struct target_info *info)
{
	struct attached *a = kernel__find(kernel, info->pid);
	__u32 epoch, off, user;

	if (!a)
		return -ENOENT;
	epoch = a->wire.epoch;
	off = a->wire.flags & WIRE_TARGET_PROBES_OFF;
	user = a->wire.user;
	a->wire = info->wire;
	a->wire.epoch = epoch;
	a->wire.user = user;
	a->wire.flags |= off | own_probes(a);
	if (a->waits && !must_wait(info, 0)) {
		a->waits = false;
		begin_probes(kernel, a, info);
	}
	return target__put(kernel, a, BPF_EXIST);
}

void kernel__learn(struct kernel *kernel, const struct wire_proc_new *program,
		   const struct target_info *info, uid_t account)
{
	struct wire_program_key key = {.ino = program->ino, .dev = program->dev};
	struct attached *a = kernel__find(kernel, info->pid);
	struct wire_target wire = info->wire;
	int err;

	if (!kernel->all || !program->ino || !a || a->state != PROBES_ON ||
	    a->probes[PROBE_SUSPEND]->key.pid)
		return;
	/* addresses differ between processes; offsets and probes do not */
	wire.flags &= WIRE_TARGET_THREADED | WIRE_TARGET_PROFILED | WIRE_TARGET_UPDATEES;
	wire.flags |= WIRE_TARGET_UNCONFIRMED;
	wire.main_cap = wire.capabilities = wire.n_capabilities = wire.stgrun_ret = 0;
	wire.epoch = 1;
	wire.user = 0;
	err = programs__learn(kernel->programs, &key, &wire, account, a->probes[PROBE_SUSPEND],
			      a->probes[PROBE_RESUME]);
	if (err)
		log_debug("%s: cannot remember its program: %s", info->comm, strerror(-err));
}

void kernel__unlearn(struct kernel *kernel, const struct wire_proc_new *program)
{
	struct wire_program_key key = {.ino = program->ino, .dev = program->dev};

	if (program->ino)
		programs__unlearn(kernel->programs, &key);
}

void kernel__detach(struct kernel *kernel, pid_t pid)
{
	struct attached *a = kernel__find(kernel, pid);
	__u32 key = (__u32)pid;
	bool deleted;

	/* a process adopted by the BPF programs has nothing but a map entry */
	unwind__forget(kernel, pid);
	__atomic_fetch_and(target__word(kernel, key), ~(1ULL << (key % 64)), __ATOMIC_SEQ_CST);
	deleted = bpf_map_delete_elem(bpf_map__fd(kernel->skel->maps.targets), &key) == 0;
	if (deleted)
		__atomic_fetch_sub(&kernel->skel->bss->all_targets, 1, __ATOMIC_SEQ_CST);
	users__threads_left(kernel, deleted);
	bpf_map_delete_elem(bpf_map__fd(kernel->skel->maps.costs), &key);
	forget_state(kernel, key);
	if (a)
		remove_target(kernel, a);
}

int kernel__open_call(struct kernel *kernel, pid_t pid, pid_t tid, uint64_t start_ns, uint64_t site,
		      uint64_t incall)
{
	struct wire_open_at_start open = {.start_ns = start_ns, .site = site, .incall = incall};
	const struct attached *a = kernel__find(kernel, pid);
	int fd = bpf_map__fd(kernel->skel->maps.open_at_start), err;
	__u32 key = (__u32)tid;
	struct wire_thread_entry entry;

	if (!a)
		return -ENOENT;
	open.epoch = a->wire.epoch;
	open.user = a->wire.user;
	if (bpf_map_lookup_elem(bpf_map__fd(kernel->skel->maps.threads), &key, &entry) == 0 &&
	    entry.th.depth)
		return -EEXIST;
	err = users__add_open(kernel, open.user);
	if (!err)
		err = bpf_map_update_elem(fd, &key, &open, BPF_ANY);
	/* from here on the thread's exit removes the entry; an earlier exit would not have found
	 * it */
	if (!err && has_ended(pid, tid)) {
		bpf_map_delete_elem(fd, &key);
		err = -ESRCH;
	}
	return err;
}
