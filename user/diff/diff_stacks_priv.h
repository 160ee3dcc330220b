/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by stacks.c and page.c: both sessions' stacks in one list. */
#ifndef SAFESCOPED_DIFF_STACKS_PRIV_H
#define SAFESCOPED_DIFF_STACKS_PRIV_H

#include "diff.h"

struct diff_stack {
	const char *path; /* "COMM;root;…;leaf" */
	double sum[2];	  /* of both sessions, the first one's scaled to the second one's work: µs,
			     bytes */
};

struct entry;

struct diff_stacks {
	struct entry *entries;
	struct diff_stack *v; /* sorted by path */
	size_t n;
	bool alloc;	 /* sums are bytes */
	char **programs; /* for each pair, the frame that its stacks begin with */
	size_t n_programs;
};

#endif
