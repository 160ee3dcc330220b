/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The steps of starting a confined process. Shared by the files of this room only. */
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

/* The child's descriptors to the daemon; -1: none. */
struct confine_ends {
	int in, out;
};

/*
 * Gives up everything but what `how` lists, `ends`, and the shared memory `own`. 0, or a negative
 * errno, on which the child must exit.
 */
int confine_child__enter(const struct confine *how, pid_t parent, struct confine_ends ends,
			 struct confine_memory own);
/* True if this process is confined, or acts as if it were (confine__run_inside()). */
bool confine_child__inside(void);

/* ── job.c ───────────────────────────────────────────────────────────────────────────────── */

/* Allocates the memory that a job writes to, without a job. *ret_out is NULL on failure. */
int confine_job__new_out(size_t size, void **ret_out);

/* ── filter.c ────────────────────────────────────────────────────────────────────────────── */

/*
 * The seccomp program for these rights (enum confine_keep). Built once for each combination, in the
 * daemon, and kept.
 */
int confine_filter__get(unsigned int keep, const struct sock_fprog **ret_program);

/* ── users.c ─────────────────────────────────────────────────────────────────────────────── */

/* A job of this user has taken this much of the turn, honest or not. */
void confine_users__took(uid_t user, uint64_t took_ns);

/* ── server.c ────────────────────────────────────────────────────────────────────────────── */

/* Reaps the children of servers that ended while idle. */
void confine_servers__reap(void);

/* fork(), or a negative errno. -EBUSY: no process can be created at the moment, but maybe soon. */
static inline pid_t confine_fork(void)
{
	pid_t pid = fork();

	if (pid >= 0)
		return pid;
	return errno == EAGAIN || errno == ENOMEM ? -EBUSY : -errno;
}

/* ── children.c: those that run, and those that do not die ───────────────────────────────── */

/* Forks; in the child *ret_pid is 0. -EBUSY: too many children, or no process can be created at the
 * moment. */
int confine_children__fork(const struct confine *how, pid_t *ret_pid);
/* The child has been waited for. */
void confine_children__gone(pid_t pid);
/* The CPU time that it has used so far; 0: not known. */
uint64_t confine_children__cpu_ns(pid_t pid);
/* Kills it and writes it off. */
void confine_children__kill(pid_t pid);

#endif
