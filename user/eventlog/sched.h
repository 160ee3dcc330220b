/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sched: the scheduler model's own state; sched.c moves it, sched_read.c makes, frees and shows
 * it. Not for other rooms.
 */
#ifndef SAFESCOPED_EVENTLOG_SCHED_H
#define SAFESCOPED_EVENTLOG_SCHED_H

#include "eventlog.h"
#include "u64map.h"

#define SCHED_CAPS     512
#define THREADS_MAX    (1u << 18)
#define LABELS_MAX     (16u << 20) /* bytes of all threads' labels */
#define LABEL_MAX      4096u
#define THREAD_CHUNK   1024
#define TASKS_MAX      (1u << 20)
#define RECENT_THREADS 256
#define GC_RING	       8
#define GCS_MAX	       (1u << 17)

struct gc_span {
	uint64_t start, end;
};

/* What a capability and a thread have done since they began to go back and forth: sched_pair.h. */
struct pair_sums {
	uint64_t stops, runs, run_ns, call_ns;
};

struct pair {
	struct thread_state *thread; /* NULL: they do not */
	uint32_t tid;
	uint16_t next;	       /* RUN_THREAD or STOP_THREAD */
	uint64_t since, until; /* their last event; from here on a lane begins a new stretch */
	struct pair_sums sums;
	uint64_t call_min, call_max;
	struct pair_lane {
		struct el_lane *lane;
		uint64_t run_key, call_key, until;
		struct pair_sums in; /* of the sums: what the lane has already */
	} lanes[2];
};

struct cap_state {
	struct pair pair;
	struct el_cap pub;
	uint32_t thread; /* that runs; 0: none */
	uint64_t since, gc_start, gc_request;
	uint64_t gc_over; /* its leader ended the collection that this one is still in; 0 */
	uint8_t state;	  /* enum el_cap_state */
	bool seen, leads;
	uint16_t gen;
	struct gc_span gcs[GC_RING]; /* the last ones */
	unsigned n_gcs;
	uint64_t sparks[7];
};

struct thread_state {
	struct el_thread pub;
	struct cap_state *paired; /* whose pair's sums are to be added; NULL */
};

struct el_sched {
	struct el_sched_opts opts;
	struct el_sched_info info;
	struct cap_state *by_cap[SCHED_CAPS], *caps[SCHED_CAPS];
	size_t n_caps;
	struct thread_state *thread_chunks[THREADS_MAX / THREAD_CHUNK];
	struct thread_state *recent[RECENT_THREADS]; /* by tid, of those seen lately */
	size_t n_threads, label_bytes;
	struct u64map by_tid, by_task;
	struct el_task *tasks;
	size_t n_tasks, tasks_cap;
	struct el_gc *all_gcs;
	size_t gcs_cap;
	uint64_t gc_request; /* not begun yet; 0: none */
};

/* sched_read.c: NULL beyond the limits, and without memory. */
struct cap_state *sched__cap(struct el_sched *s, uint16_t no);
/* Made if it is not there. */
struct thread_state *sched__thread(struct el_sched *s, uint32_t tid, uint64_t time);
struct thread_state *sched__find(const struct el_sched *s, uint32_t tid);
struct thread_state *sched__thread_at(const struct el_sched *s, size_t i);

#endif
