/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the Chrome trace format share. */
#ifndef SAFESCOPED_EXPORT_CHROME_H
#define SAFESCOPED_EXPORT_CHROME_H

#include "export/lanes.h"

struct chrome_node;

struct chrome {
	FILE *out;
	const struct picture *pic;
	struct views views;
	struct chrome_node *nodes; /* stacks.c */
	bool any;		   /* an event was written */
	int err;
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
/*
 * A complete event up to its arguments, of at least a nanosecond. The digits are chosen so that a
 * reader that cuts off what is below a nanosecond gets the same ones as a reader that rounds.
 */
void chrome__slice(struct chrome *w, struct chrome_track at, const char *name, uint64_t start_ns,
		   uint64_t end_ns);
/* `cname` of what has one; else nothing. */
void chrome__put_colour(struct chrome *w, const char *colour);
/* The colour of a state, of which Perfetto makes its own from the name; NULL: it is not drawn. */
const char *chrome__colour(enum lane_kind kind, unsigned state);
/* Events of metadata, which name, label or order a track or a group. */
void chrome__name(struct chrome *w, struct chrome_track at, const char *kind, const char *name);
void chrome__labels(struct chrome *w, struct chrome_track at, const char *labels);
void chrome__order(struct chrome *w, struct chrome_track at, const char *kind, int64_t index);

/* ── stacks (stacks.c) ───────────────────────────────────────────────────────────────────── */

#define CHROME_MAX_NODES (UINT32_C(1) << 20)

/* The `sf` of an event with that stack; nothing if there are too many frames. Without memory w->err
 * is set. */
void chrome__put_stack(struct chrome *w, struct pic_stack stack);
/* Callers that an event's argument names, from the innermost on. */
#define CHROME_CALLERS 10
/* That argument, `called_from`. */
void chrome__put_callers(struct chrome *w, struct pic_stack stack);
/* All that were asked for, as a member of the trace's object. */
void chrome__put_stacks(struct chrome *w);
void chrome__free_stacks(struct chrome *w);

/* ── memory (memory.c) ───────────────────────────────────────────────────────────────────── */

/*
 * The heap's and allocation's counters, and of the `most` largest samples of allocation a mark
 * each, on the capability's track (if there are any; else on that of the collections). -ENOMEM.
 */
int chrome__put_memory(struct chrome *w, uint32_t target_no, size_t most, bool capabilities);
/* About how many bytes that takes. */
uint64_t chrome__memory_bytes(const struct pic_target *target, size_t most);

/* ── what is no slice of a lane (marks.c) ────────────────────────────────────────────────── */

/* The shortest of n durations that is among the `max` longest, or what other sizes they have.
 * -ENOMEM. */
int chrome__least_kept(const struct pic_target *target, size_t n, size_t max,
		       uint64_t (*size_of)(const struct pic_target *target, size_t i),
		       uint64_t *ret_least);
/* Collections, marks of the program, safe calls as flows between capabilities (if those are there),
 * counters, memory. */
int chrome__put_marks(struct chrome *w, uint32_t target_no, bool capabilities);
/* About how many bytes all that takes for all processes. */
uint64_t chrome__marks_bytes(const struct chrome *w, bool capabilities);

#endif
