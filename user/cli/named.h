/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * named: the processes of --pid, from when a service begins on. It has several sessions, one after
 * the other: who has ended is not looked for in the next one, nor is another process that has the
 * number by then taken for it.
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
	int fds[OPTIONS_MAX_PIDS]; /* -1: it is not known whether it has ended */
};

/* Those of the options take the place of what was there; who is among them already stays who he is.
 */
void named__take(struct named *named, const struct options *o);
void named__close(struct named *named);
/* Whether each process of the options is there, or was named before. Prints a line if not. */
bool named__has_or_finds(const struct named *named, const struct options *o);
/* Those that have not ended; where all have: all of them, which a session cannot begin with. */
size_t named__running(const struct named *named, pid_t ret_pids[OPTIONS_MAX_PIDS]);

#endif
