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
	bool any;		   /* an event has been written */
	int err;
};

/* Tracks of a group: a capability's track is its number + 1, as viewers take 0 for the idle
 * task. */
#define CHROME_TID_GC 1000000000

/*
 * Each group of a target's lanes is a process of the trace; OS threads have the process's own pid.
 * If a pid recurs in a session, later processes get another number.
 */
enum chrome_group {
	GROUP_CAPABILITIES = LANE_CAPABILITY,
	GROUP_THREADS = LANE_THREAD,
	GROUP_HASKELL = LANE_HASKELL,
	GROUP_IDLE, /* housekeeping OS threads */
	GROUPS,
};
struct chrome_track {
	uint64_t pid, tid;
};
uint64_t chrome__pid(const struct chrome *w, uint32_t target_no, enum chrome_group group);

/*
 * Writes an event up to its arguments: its name, the literal `head`, the time (CHROME_NO_TS: none).
 * Times are microseconds on the axis, with three digits of nanoseconds; earlier ones are moved to
 * its start. The caller writes the closing brace.
 */
#define CHROME_NO_TS UINT64_MAX
void chrome__begin(struct chrome *w, char phase, struct chrome_track at, const char *name,
		   const char *head, uint64_t ns);
/*
 * Writes a complete event up to its arguments, at least one nanosecond long. The digits are chosen
 * so that a reader that truncates below a nanosecond gets the same value as one that rounds.
 */
void chrome__slice(struct chrome *w, struct chrome_track at, const char *name, uint64_t start_ns,
		   uint64_t end_ns);
/* Writes `cname`; nothing if `colour` is NULL. */
void chrome__put_colour(struct chrome *w, const char *colour);
/* The colour of a state (Perfetto derives its own from the name); NULL: the state is not drawn. */
const char *chrome__colour(enum lane_kind kind, unsigned state);
/* Metadata events that name, label or order a track or a group. */
void chrome__name(struct chrome *w, struct chrome_track at, const char *kind, const char *name);
void chrome__labels(struct chrome *w, struct chrome_track at, const char *labels);
void chrome__order(struct chrome *w, struct chrome_track at, const char *kind, int64_t index);

/* ── stacks (stacks.c) ───────────────────────────────────────────────────────────────────── */

#define CHROME_MAX_NODES (UINT32_C(1) << 20)

/* Writes the `sf` of an event with that stack; nothing if there are too many frames. On allocation
 * failure w->err is set. */
void chrome__put_stack(struct chrome *w, struct pic_stack stack);
/* The number of callers that an event's argument names, from the innermost on. */
#define CHROME_CALLERS 10
/* Writes that argument, `called_from`. */
void chrome__put_callers(struct chrome *w, struct pic_stack stack);
/* Writes all stacks used so far, as a member of the trace's object. */
void chrome__put_stacks(struct chrome *w);
void chrome__free_stacks(struct chrome *w);

/* ── memory (memory.c) ───────────────────────────────────────────────────────────────────── */

/*
 * Writes the counters of the heap and of allocation, and a mark for each of the `most` largest
 * samples of allocation, on the capability's track (or, without `capabilities`, on that of the
 * collections). -ENOMEM.
 */
int chrome__put_memory(struct chrome *w, uint32_t target_no, size_t most, bool capabilities);
/* The approximate size of that in bytes. */
uint64_t chrome__memory_bytes(const struct pic_target *target, size_t most);

/* ── what is no slice of a lane (marks.c) ────────────────────────────────────────────────── */

/* Sets *ret_least to the smallest of the `max` largest of n durations or other sizes; 0: all are
 * kept. -ENOMEM. */
int chrome__least_kept(const struct pic_target *target, size_t n, size_t max,
		       uint64_t (*size_of)(const struct pic_target *target, size_t i),
		       uint64_t *ret_least);
/* Writes collections, the program's marks, findings, counters, memory, and, if the capabilities are
 * drawn, safe calls as flows between them. */
int chrome__put_marks(struct chrome *w, uint32_t target_no, bool capabilities);
/* The approximate size of all that for all processes, in bytes. */
uint64_t chrome__marks_bytes(const struct chrome *w, bool capabilities);

#endif
