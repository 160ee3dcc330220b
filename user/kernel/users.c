/* SPDX-License-Identifier: GPL-2.0-or-later */
/* users: each user's share of the kernel side's maps. */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "kernel_priv.h"
#include "process/proc.h"
#include "safescope.skel.h"

/* Calls that were open at the start end without a report, so they are recounted this often. */
#define RECOUNT_NS 1000000000ULL
/* Leftover entries of the threads of ended processes are rare, so the sweep may come this late. */
#define SWEEP_LATE_NS 1000000000ULL

struct users {
	uid_t uid[WIRE_MAX_USERS]; /* of each slot in use */
	bool used[WIRE_MAX_USERS];
	struct kernel_refused before;		 /* totals of users whose slots were reused */
	uint32_t open[WIRE_MAX_USERS], all_open; /* entries of open_at_start */
	uint64_t recount_ns;
};

int users__new(struct users **ret_users)
{
	*ret_users = calloc(1, sizeof(**ret_users));
	return *ret_users ? 0 : -ENOMEM;
}

void users__free(struct users *users)
{
	free(users);
}

/* ── slots ───────────────────────────────────────────────────────────────────────────────── */

static bool has_targets(const struct kernel *kernel, uint32_t slot)
{
	const struct attached *a = NULL;

	while ((a = kernel__next(kernel, a)))
		if (a->wire.user == slot)
			return true;
	return false;
}

/* A slot that is unused, or that nobody needs any more. 0: there is none. */
static uint32_t free_slot(const struct kernel *kernel)
{
	const struct wire_user *users = kernel->skel->bss->users;

	for (uint32_t i = 1; i < WIRE_MAX_USERS; i++)
		if (!kernel->users->used[i])
			return i;
	for (uint32_t i = 1; i < WIRE_MAX_USERS; i++)
		if (!users[i].threads && !users[i].sites && !has_targets(kernel, i))
			return i;
	return 0;
}

static uint32_t find_slot(const struct kernel *kernel, uid_t uid)
{
	for (uint32_t i = 1; i < WIRE_MAX_USERS; i++)
		if (kernel->users->used[i] && kernel->users->uid[i] == uid)
			return i;
	return 0;
}

static void add_refused(struct kernel_refused *sum, const struct wire_user *user)
{
	sum->threads += user->refused_threads;
	sum->calls += user->refused_calls;
}

uint32_t users__slot(struct kernel *kernel, uid_t uid)
{
	uint32_t slot = find_slot(kernel, uid);

	if (slot)
		return slot;
	slot = free_slot(kernel);
	if (slot) {
		kernel->users->used[slot] = true;
		kernel->users->uid[slot] = uid;
		add_refused(&kernel->users->before, &kernel->skel->bss->users[slot]);
		kernel->skel->bss->users[slot] = (struct wire_user){0};
	}
	return slot;
}

void kernel__refused(const struct kernel *kernel, uid_t uid, struct kernel_refused *ret_refused)
{
	const struct wire_user *user = &kernel->skel->bss->users[find_slot(kernel, uid)];

	*ret_refused = (struct kernel_refused){.threads = user->refused_threads,
					       .calls = user->refused_calls};
}

void kernel__all_refused(const struct kernel *kernel, struct kernel_refused *ret_refused)
{
	*ret_refused = kernel->users->before;
	for (uint32_t i = 0; i < WIRE_MAX_USERS; i++)
		add_refused(ret_refused, &kernel->skel->bss->users[i]);
}

/* ── what user space removes ─────────────────────────────────────────────────────────────── */

static void leave(__u32 *all, __u32 *his)
{
	__atomic_fetch_sub(all, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_sub(his, 1, __ATOMIC_SEQ_CST);
}

void users__site_removed(struct kernel *kernel, const struct wire_site *site)
{
	struct wire_user *user = &kernel->skel->bss->users[site->user % WIRE_MAX_USERS];

	leave(&kernel->skel->bss->all_sites, &user->sites);
}

void users__threads_left(struct kernel *kernel, bool go_on)
{
	uint64_t now = time__monotonic_ns();

	/* the ends of its threads are not reported, and it may soon be a target again */
	if (go_on)
		kernel->threads_due_ns = now;
	else if (!kernel->threads_due_ns)
		kernel->threads_due_ns = now + SWEEP_LATE_NS;
}

static int sweep_thread(void *ctx, const void *key, void *value)
{
	struct kernel *kernel = ctx;
	const struct wire_thread *thread = &((struct wire_thread_entry *)value)->th;
	struct wire_target_entry target;

	/* the entry is just being made: its process is not known yet */
	if (!thread->tgid) {
		kernel->threads_due_ns = time__monotonic_ns();
		return 0;
	}
	if (kernel__find(kernel, (pid_t)thread->tgid) ||
	    bpf_map_lookup_elem(bpf_map__fd(kernel->skel->maps.targets), &thread->tgid, &target) ==
		    0)
		return 0;
	if (bpf_map_delete_elem(bpf_map__fd(kernel->skel->maps.threads), key) == 0)
		leave(&kernel->skel->bss->all_threads,
		      &kernel->skel->bss->users[thread->user % WIRE_MAX_USERS].threads);
	bpf_map_delete_elem(bpf_map__fd(kernel->skel->maps.off_stacks), key);
	bpf_map_delete_elem(bpf_map__fd(kernel->skel->maps.open_at_start), key);
	return 0;
}

void users__sweep_threads(struct kernel *kernel)
{
	uint64_t now = time__monotonic_ns();

	if (!kernel->threads_due_ns || now < kernel->threads_due_ns)
		return;
	kernel->threads_due_ns = 0;
	if (map__each(bpf_map__fd(kernel->skel->maps.threads), sizeof(__u32),
		      sizeof(struct wire_thread_entry), sweep_thread, kernel))
		kernel->threads_due_ns = now + SWEEP_LATE_NS;
}

/* ── calls that were open at the start ───────────────────────────────────────────────────── */

/* Also removes entries of threads that are gone, whose ends were not reported. */
static int count_open(void *ctx, const void *key, void *value)
{
	struct kernel *kernel = ctx;
	struct users *users = kernel->users;
	const struct wire_open_at_start *open = value;
	pid_t tid = *(const pid_t *)key;
	struct proc_stat st;

	if (proc__stat(tid, tid, &st) == -ESRCH) {
		bpf_map_delete_elem(bpf_map__fd(kernel->skel->maps.open_at_start), key);
		return 0;
	}
	users->open[open->user % WIRE_MAX_USERS]++;
	users->all_open++;
	return 0;
}

static void recount_open(struct kernel *kernel)
{
	struct users *users = kernel->users, before = *users;

	users->all_open = 0;
	for (size_t i = 0; i < WIRE_MAX_USERS; i++)
		users->open[i] = 0;
	if (map__each(bpf_map__fd(kernel->skel->maps.open_at_start), sizeof(__u32),
		      sizeof(struct wire_open_at_start), count_open, kernel))
		*users = before;
}

static bool has_room(const struct users *users, uint32_t slot)
{
	return wire_share_fits(WIRE_MAX_OPEN, users->all_open, users->open[slot], 1);
}

int users__add_open(struct kernel *kernel, uint32_t slot)
{
	struct users *users = kernel->users;
	uint64_t now = time__monotonic_ns();

	slot %= WIRE_MAX_USERS;
	if (!has_room(users, slot) && now >= users->recount_ns) {
		recount_open(kernel);
		users->recount_ns = now + RECOUNT_NS;
	}
	if (!has_room(users, slot))
		return -EDQUOT;
	users->all_open++;
	users->open[slot]++;
	return 0;
}
