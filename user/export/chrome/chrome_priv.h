/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the Chrome trace format share: events.c, marks.c, lanes.c. */
#ifndef SAFESCOPED_EXPORT_CHROME_H
#define SAFESCOPED_EXPORT_CHROME_H

#include "export/lanes.h"

struct chrome {
	FILE *out;
	const struct picture *pic;
	struct views views;
	bool any; /* an event was written */
};

/* Tracks of a group: a capability's is its number + 1, as viewers take 0 for the idle task. */
#define CHROME_TID_GC 1000000000

/*
 * The groups of lanes of a target are processes of the trace: OS threads have the process's own
 * pid. A pid that comes again in a session gets another number.
 */
enum chrome_group {
	GROUP_CAPABILITIES = LANE_CAPABILITY,
	GROUP_THREADS = LANE_THREAD,
	GROUP_HASKELL = LANE_HASKELL,
	GROUP_IDLE, /* OS threads that are nothing else */
	GROUPS,
};
struct chrome_track {
	uint64_t pid, tid;
};
uint64_t chrome__pid(const struct chrome *w, uint32_t target_no, enum chrome_group group);

/*
 * An event up to its arguments: its name, the literal `head`, the time (CHROME_NO_TS: none). Times
 * are microseconds on the axis, with three digits of nanoseconds; what lies before its start is at
 * its start. The closing brace is the caller's.
 */
#define CHROME_NO_TS UINT64_MAX
void chrome__begin(struct chrome *w, char phase, struct chrome_track at, const char *name,
		   const char *head, uint64_t ns);
/* An event of metadata, which names or orders a track or a group. */
void chrome__name(struct chrome *w, struct chrome_track at, const char *kind, const char *name);
void chrome__order(struct chrome *w, struct chrome_track at, const char *kind, int64_t index);

/* Collections, marks of the program, safe calls as flows between capabilities (if those are there),
 * counters. */
int chrome__put_marks(struct chrome *w, uint32_t target_no, bool capabilities);

#endif
