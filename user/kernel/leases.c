/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * leases: keeps a file from being written to while it contains probes that all of its processes
 * share. The kernel reads the instruction under a probe once, and puts a breakpoint there in each
 * process that maps the file later (kernel/events/uprobes.c, UPROBE_COPY_INSN, Linux 6.1 to 7.2):
 * if the file has been overwritten in place meanwhile, the breakpoint is in the middle of other
 * code. A running program's file cannot be written to (ETXTBSY), but probes outlive the last
 * process of a file. So the daemon holds a read lease (fcntl(2), F_SETLEASE) on the file: whoever
 * opens it for writing waits until the probes are off and the lease is given up. Where no lease can
 * be had, each process gets probes of its own, which the kernel puts nowhere else.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "keeper_priv.h"
#include "kernel_priv.h"

/* How often leases are checked. */
#define LEASES_TURN_NS 50000000ULL
/*
 * When a program ends, its probes are released within this time; if probes are still in use after
 * it, the file is one that can be overwritten while it runs: a library. The kernel would wait for
 * 45 s (/proc/sys/fs/lease-break-time).
 */
#define IN_USE_NS 1000000000ULL

struct lease_key {
	uint64_t dev, ino;
};

struct lease {
	struct lease_key key;
	int fd;
	uint32_t refs;	     /* number of probes */
	uint64_t off_number; /* of its probe that was dropped last; see keeper__drop() */
	uint64_t broken_ns;  /* since when somebody has been waiting to write; 0: nobody is */
	UT_hash_handle hh;   /* of kernel.leases, by key */
};

/* -EACCES: the file is not ours and there is no CAP_LEASE; -EAGAIN: it is open for writing. */
static int open_lease(int file, int *ret_fd)
{
	char path[32];
	int fd, err;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* SIGURG is ignored by default; SIGIO would kill us */
	if (fcntl(fd, F_SETSIG, SIGURG) || fcntl(fd, F_SETLEASE, F_RDLCK)) {
		err = -errno;
		close(fd);
		return err;
	}
	*ret_fd = fd;
	return 0;
}

/* Unlocks first: a child that has just been forked may still have the file open. */
static void end_lease(struct lease *l)
{
	fcntl(l->fd, F_SETLEASE, F_UNLCK);
	close(l->fd);
	free(l);
}

int leases__get(struct kernel *kernel, struct probe *p)
{
	const struct lease_key key = {.dev = p->key.dev, .ino = p->key.ino};
	struct lease *l;
	int err;

	if (p->lease)
		return p->lease->broken_ns ? -EBUSY : 0;
	HASH_FIND(hh, kernel->leases, &key, sizeof(key), l);
	if (l && l->broken_ns)
		return -EBUSY;
	if (!l) {
		l = calloc(1, sizeof(*l));
		if (!l)
			return -ENOMEM;
		l->key = key;
		err = open_lease(p->file, &l->fd);
		if (err) {
			free(l);
			return err;
		}
		HASH_ADD(hh, kernel->leases, key, sizeof(l->key), l);
		if (!l->hh.tbl) {
			/* uthash ran out of memory */
			end_lease(l);
			return -ENOMEM;
		}
	}
	l->refs++;
	p->lease = l;
	return 0;
}

void leases__put(struct probe *p)
{
	struct lease *l = p->lease;

	if (!l)
		return;
	l->off_number = MAX(l->off_number, p->off_number);
	l->refs--;
	p->lease = NULL;
}

/* Takes off the probes in the file that nobody uses. */
static void take_off_unused(struct kernel *kernel, const struct lease *l, bool *ret_used)
{
	*ret_used = false;
	for (struct probe *p = kernel->probes; p; p = p->hh.next) {
		if (p->lease != l)
			continue;
		if (p->refs)
			*ret_used = true;
		else
			probe__rest(kernel, p);
	}
}

/* Writing to a file that is in use cannot be prevented, so the processes that run it lose their
 * probes. */
static void take_off_used(struct kernel *kernel, const struct lease *l, uint64_t now)
{
	struct attached *a = NULL;
	bool reported = false;

	for (struct probe *p = kernel->probes; p; p = p->hh.next)
		if (p->lease == l)
			p->stale = true;
	while ((a = kernel__next(kernel, a)))
		for (int i = 0; i < PROBE_MAX; i++) {
			if (!a->probes[i] || a->probes[i]->lease != l || !a->probes[i]->on)
				continue;
			if (!reported)
				log_warn("pid %d: a file that it runs is being overwritten in "
					 "place: removing the probes in that file",
					 a->pid);
			reported = true;
			budget__stop(kernel, a, (enum probe_kind)i, now);
		}
}

/* Gives up the lease once all probes of the file are off. */
static void give_up(struct kernel *kernel, struct lease *l)
{
	uint64_t number = l->off_number;

	for (struct probe *p = kernel->probes; p; p = p->hh.next) {
		if (p->lease != l)
			continue;
		if (p->on)
			return;
		number = MAX(number, p->off_number);
	}
	if (!keeper__is_done(kernel->keeper, number))
		return;
	for (struct probe *p = kernel->probes; p; p = p->hh.next) {
		if (p->lease != l)
			continue;
		p->lease = NULL;
		/* a probe that happens to be off must not come on again in other code */
		p->stale |= l->broken_ns && p->refs;
	}
	HASH_DEL(kernel->leases, l);
	end_lease(l);
}

static void look_at(struct kernel *kernel, struct lease *l, uint64_t now)
{
	bool used;

	/* while a lease is being broken, F_GETLEASE returns its future type (fcntl(2)) */
	if (!l->broken_ns && l->refs && fcntl(l->fd, F_GETLEASE) == F_RDLCK)
		return;
	if (!l->broken_ns && l->refs)
		l->broken_ns = now;
	if (l->broken_ns) {
		take_off_unused(kernel, l, &used);
		if (used && now - l->broken_ns >= IN_USE_NS)
			take_off_used(kernel, l, now);
	}
	give_up(kernel, l);
}

void leases__turn(struct kernel *kernel, uint64_t now_ns)
{
	struct lease *l, *next;

	if (now_ns - kernel->leases_ns < LEASES_TURN_NS)
		return;
	kernel->leases_ns = now_ns;
	for (l = kernel->leases; l; l = next) {
		next = l->hh.next;
		look_at(kernel, l, now_ns);
	}
}

void leases__free(struct kernel *kernel)
{
	struct lease *l = kernel->leases, *next;

	HASH_CLEAR(hh, kernel->leases);
	for (; l; l = next) {
		next = l->hh.next;
		end_lease(l);
	}
}
