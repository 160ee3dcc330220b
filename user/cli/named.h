/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * named: the processes of --pid, from the start of a service on. A service has several sessions,
 * one after the other. A process that has ended is not looked for in later sessions, nor is another
 * one that has reused its pid mistaken for it.
 */
#ifndef SAFESCOPED_CLI_NAMED_H
#define SAFESCOPED_CLI_NAMED_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "options.h"

struct named {
	size_t n;
	pid_t pids[OPTIONS_MAX_PIDS];
	int fds[OPTIONS_MAX_PIDS]; /* pidfd; -1: unknown whether the process has ended */
};

/* Replaces the processes with those of the options; those that were already known keep their
 * identity. */
void named__take(struct named *named, const struct options *o);
void named__close(struct named *named);
/* True if each process of the options exists, or was already known. Prints a line if not. */
bool named__has_or_finds(const struct named *named, const struct options *o);
/* Those that have not ended; if all have, all of them, with which no session can begin. */
size_t named__running(const struct named *named, pid_t ret_pids[OPTIONS_MAX_PIDS]);

#endif
