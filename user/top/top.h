/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * top: a live screen of a session, or of one that is replayed. The session runs in a child, as one
 * in windows whose only format is export_top, on its standard output: of each window a frame comes
 * by a pipe. This process has the terminal, and gives it back as it was however either of them
 * ends.
 */
#ifndef SAFESCOPED_TOP_H
#define SAFESCOPED_TOP_H

#include <stdbool.h>
#include <stdint.h>

#include "export/export.h"

/* A window as a frame; for a child of top__run only. */
extern const struct export_format export_top;

struct top_opts {
	/* Runs the session, in the child; returns its exit code. */
	int (*run)(void *ctx);
	/* Writes a window's report to files, in a process of the child's, when the user wants it.
	 */
	int (*report)(void *ctx, const struct picture *pic);
	void *ctx;
	uint64_t every_ns; /* a window's length */
	bool replay;	   /* windows come as fast as they are taken: one is shown for so long */
	bool stay;	   /* when the session has ended, until a key is pressed */
	bool colour;
};

/*
 * Needs a terminal at standard input and output. Returns the exit code of `run`, EXIT_FAILED if it
 * died. What it printed to standard error is on the screen, the last of it, and is printed at the
 * end.
 */
int top__run(const struct top_opts *opts);

#endif
