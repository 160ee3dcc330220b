/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which format goes where, and writing them. Private to the cli room. */
#ifndef SAFESCOPED_CLI_OUTPUT_H
#define SAFESCOPED_CLI_OUTPUT_H

#include <limits.h>

#include "options.h"

struct output {
	const struct export_format *format;
	char path[PATH_MAX]; /* "-": standard output */
};

struct outputs {
	struct output each[OPTIONS_MAX_FORMATS];
	size_t n;
	uid_t owner; /* who ran sudo; -1: nobody did */
	gid_t group;
};

/* Who files shall belong to: the user who ran sudo; -1: nobody did. */
void outputs__owner(uid_t *ret_owner, gid_t *ret_group);

/* Width of the terminal that fd is; 0: it is none. */
unsigned output__terminal_width(int fd);

/*
 * Decides the paths for a session of this program and pid (0: several), and tries whether each
 * can be written, before anything is attached. Prints a line on failure.
 */
int outputs__plan(const struct options *options, const char *comm, pid_t pid,
		  struct outputs *ret_outputs);

/* Writes all. `stop` is asked before each; -ECANCELED if it says so. Prints a line on failure. */
int outputs__write(const struct outputs *outputs, const struct options *options,
		   const struct timeline *tl, bool (*stop)(void *ctx), void *ctx);

#endif
