/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the Chrome trace format share: chrome.c, chrome_marks.c. */
#ifndef SAFESCOPED_EXPORT_CHROME_H
#define SAFESCOPED_EXPORT_CHROME_H

#include "view.h"

struct chrome {
	FILE *out;
	const struct timeline *tl;
	struct views views;
	uint64_t grain_ns; /* shorter neighbours are merged */
	bool any;	   /* an event was written */
};

/* Tracks of a group: a capability's is its number + 1, as viewers take 0 for the idle task. */
#define CHROME_TID_GC 1000000000

/*
 * The three groups of lanes of a target are processes of the trace: OS threads have the process's
 * own pid. A pid that comes again in a session gets another number.
 */
uint64_t chrome__pid(const struct chrome *w, uint32_t target_no, enum lane_kind kind);
uint64_t chrome__tid(const struct lane_view *view);

/* An event up to its name, which is put as JSON; open: the closing brace is the caller's. */
void chrome__begin(struct chrome *w, char phase, uint64_t pid, uint64_t tid, const char *name);
void chrome__end(struct chrome *w);
/*
 * ,"ts":MICROSECONDS on the axis, with three digits of nanoseconds; what lies before its start is
 * at its start.
 */
void chrome__put_ts(struct chrome *w, uint64_t ns);

/* Collections, marks of the program, safe calls as flows, counters. */
int chrome__put_marks(struct chrome *w, uint32_t target_no);

#endif
