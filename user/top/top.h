/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * top: a live screen of a session, or of a replay. The session runs in a child as a session in
 * windows, whose only format is export_top on its standard output: each window arrives as a frame
 * through a pipe. This process owns the terminal, and restores it however either of them ends.
 */
#ifndef SAFESCOPED_TOP_H
#define SAFESCOPED_TOP_H

#include <stdbool.h>
#include <stdint.h>

#include "export/export.h"

/* Writes a window as a frame; only for a child of top__run. */
extern const struct export_format export_top;

struct top_opts {
	/* Runs the session in the child; returns its exit code. */
	int (*run)(void *ctx);
	/* Writes a window's report to files on the user's request, in a process of the child's. */
	int (*report)(void *ctx, const struct picture *pic);
	void *ctx;
	uint64_t every_ns; /* the length of a window */
	bool replay;	   /* windows arrive as fast as they are read: show each for every_ns */
	bool stay;	   /* after the session has ended, stay until the user leaves */
	bool colour;
};

/*
 * Needs a terminal at standard input and output. Returns the exit code of `run`; EXIT_FAILED if it
 * died. The latest line that it prints to standard error is shown on the screen, and the last of
 * its output is printed at the end.
 */
int top__run(const struct top_opts *opts);

#endif
