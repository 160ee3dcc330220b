/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The program of `safescoped -- COMMAND`: a child that waits until its probes are set, then
 * becomes the program, as the user who ran sudo. Private to the cli room.
 */
#ifndef SAFESCOPED_CLI_COMMAND_H
#define SAFESCOPED_CLI_COMMAND_H

#include <limits.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "target/target.h"

struct command {
	pid_t pid; /* 0: none was started */
	int pidfd; /* readable when it has ended */
	int go_fd; /* closing it without a word ends a child that still waits */
	int failed_fd;
	int file_fd; /* of the program */
	char path[PATH_MAX];
	bool armed;		     /* the program's probes were set before it began, … */
	struct target_probe suspend; /* … this one among them */
	bool ended;
	int status;	     /* as wait() tells it, once it has ended */
	struct rusage usage; /* and what it used */
};

/* All descriptors -1: nothing is started. */
void command__init(struct command *c);
/* Finds the program as a shell does, and forks the child, which waits. Prints a line on failure. */
int command__start(char *const *argv, struct command *c);
/* The child becomes the program. Prints a line if it could not. */
int command__go(struct command *c, const char *name);
/* True once it has ended; collects it then. */
bool command__ended(struct command *c);
/* Closes what is open; a child that still waits ends, a program goes on. */
void command__close(struct command *c);

#endif
