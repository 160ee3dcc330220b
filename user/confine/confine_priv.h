/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of a confined process's start. Shared by the files of this room only. */
#ifndef SAFESCOPED_CONFINE_PRIV_H
#define SAFESCOPED_CONFINE_PRIV_H

#include <errno.h>
#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "confine.h"

/* ── child.c: in the child ───────────────────────────────────────────────────────────────── */

struct confine_memory {
	const void *start; /* NULL: none */
	size_t size;
};

/* Descriptors to the daemon; -1: none. */
struct confine_ends {
	int in, out;
};

/*
 * Gives up everything but what `how` lists, `ends`, and the shared memory `own`. 0, or a negative
 * errno: the child must end then.
 */
int confine_child__enter(const struct confine *how, pid_t parent, struct confine_ends ends,
			 struct confine_memory own);
/* This process is confined, or does as if (confine__run_inside). */
bool confine_child__inside(void);

/* ── job.c ───────────────────────────────────────────────────────────────────────────────── */

/* What a job writes to, without a job. *ret_out is NULL on failure. */
int confine_job__new_out(size_t size, void **ret_out);

/* ── filter.c ────────────────────────────────────────────────────────────────────────────── */

/*
 * The seccomp program for these rights (enum confine_keep). Made once for each, in the daemon, and
 * kept.
 */
int confine_filter__get(unsigned int keep, const struct sock_fprog **ret_program);

/* ── users.c ─────────────────────────────────────────────────────────────────────────────── */

/* A job of his has taken so much of the turn, honest or not. */
void confine_users__took(uid_t user, uint64_t took_ns);

/* ── server.c ────────────────────────────────────────────────────────────────────────────── */

/* Waits for the children of servers that have ended while nobody asked them. */
void confine_servers__reap(void);

/* fork(), or a negative errno. -EBUSY: there can be no other process now; there may be soon. */
static inline pid_t confine_fork(void)
{
	pid_t pid = fork();

	if (pid >= 0)
		return pid;
	return errno == EAGAIN || errno == ENOMEM ? -EBUSY : -errno;
}

/* ── children.c: those that run, and those that do not die ───────────────────────────────── */

/* Forks; in the child *ret_pid is 0. -EBUSY: there are too many children, or there can be no other
 * process now. */
int confine_children__fork(const struct confine *how, pid_t *ret_pid);
/* It has been waited for. */
void confine_children__gone(pid_t pid);
/* The processor's time that it has had so far; 0: not known. */
uint64_t confine_children__cpu_ns(pid_t pid);
/* Kills it and writes it off. */
void confine_children__kill(pid_t pid);

#endif
