/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sched: the state of the scheduler model; sched.c updates it, sched_read.c makes, frees and reads
 * it. Not for other rooms.
 */
#ifndef SAFESCOPED_EVENTLOG_SCHED_PRIV_H
#define SAFESCOPED_EVENTLOG_SCHED_PRIV_H

#include "eventlog.h"
#include "lane_priv.h"
#include "u64map_priv.h"

#define SCHED_CAPS     512
#define CAP_SLICES     ((size_t)1 << 19) /* of all capabilities' lanes */
#define THREAD_SLICES  ((size_t)1 << 19) /* of all Haskell threads' lanes */
#define THREADS_MAX    (1u << 18)
#define LABELS_MAX     (16u << 20) /* bytes of all threads' labels */
#define LABEL_MAX      4096u
#define THREAD_CHUNK   1024
#define RECENT_THREADS 256
#define GC_RING	       8
#define GCS_MAX	       (1u << 17)

struct gc_span {
	uint64_t start, end;
};

/* What a capability and a thread have done since they began to alternate: sched_pair_priv.h. */
enum pair_what { PAIR_RUN, PAIR_CALL };

struct pair_sums {
	uint64_t n[2], ns[2]; /* by enum pair_what */
};

struct pair {
	struct sched_thread *thread; /* NULL: they do not alternate */
	uint32_t tid;
	uint16_t next;	       /* RUN_THREAD or STOP_THREAD */
	uint64_t since, until; /* their last event; from `until` on a lane begins a new slice */
	struct pair_sums sums;
	struct pair_lane {
		struct lane *lane;
		uint64_t until;
		struct pair_sums in; /* the part of the sums that the lane has already */
	} lanes[2];
};

struct sched_cap {
	struct pair pair;
	struct el_cap pub;
	struct lane lane;
	uint32_t thread; /* the one running; 0: none */
	uint64_t since, gc_start, gc_request;
	uint64_t request; /* when it requested a collection that has not begun; 0 */
	uint64_t gc_over; /* when the leader ended the collection that this one is still in; 0 */
	uint8_t state;	  /* enum cap_state */
	bool seen, leads;
	uint16_t gen;
	struct gc_span gcs[GC_RING]; /* the last ones */
	unsigned n_gcs;
};

struct sched_thread {
	struct el_thread pub;
	struct lane *lane;	   /* NULL: only its sums are kept */
	struct sched_cap *paired;  /* its capability, whose pair still has sums to add; NULL */
	struct sched_thread *next; /* in the list that it is in */
	bool listed;
	bool inside; /* a part of it is in the window: it has its lane, or will get none */
};

/* Threads may run again while they are in a list. */
struct thread_list {
	struct sched_thread *first, **end;
};

struct el_sched {
	struct el_sched_opts opts;
	struct el_sched_info info;
	struct lane_room cap_room, thread_room;
	struct sched_cap *by_cap[SCHED_CAPS], *caps[SCHED_CAPS];
	size_t n_caps;
	struct sched_thread *thread_chunks[THREADS_MAX / THREAD_CHUNK];
	struct sched_thread *recent[RECENT_THREADS]; /* by tid, those seen recently */
	size_t n_threads, label_bytes;
	size_t n_lanes; /* of threads */
	/* Threads that ended, in that order: */
	struct thread_list over;   /* not in the window, or given up: their places can be reused */
	struct thread_list unsure; /* within the margin of the window: their lanes can be reused */
	struct u64map by_tid;
	/* there are more threads than places: those that ended and ran for this long at most are
	 * given up */
	bool crowded;
	uint64_t gives_way_ns;
	size_t n_ended; /* threads that ended since crowd() last looked for some to give up */
	struct el_gc *all_gcs;
	size_t gcs_cap;
	/* by capability, in a log that was cut off: later events were not written; 0: all were */
	uint64_t cut_after[SCHED_CAPS];
};

/* A slice of a capability's lane, without its times. */
static inline struct pic_slice cap_slice(uint8_t state, uint32_t thread, uint16_t stop)
{
	return (struct pic_slice){.tso = thread, .stack = stop, .state = state, .exact = 1};
}

static inline struct pic_slice thread_slice(const struct sched_thread *t, uint8_t state)
{
	return (struct pic_slice){.tso = t->pub.tid,
				  .cap = state == HS_RUNNING ? t->pub.cap : NO_CAP,
				  .state = state,
				  .exact = 1};
}

/* sched_read.c: NULL beyond the limits, or without memory. */
struct sched_cap *sched__cap(struct el_sched *s, uint16_t no);
/* Finds or makes it. */
struct sched_thread *sched__thread(struct el_sched *s, uint32_t tid, uint64_t time);
/* Called when a part of the thread is in the window: gives it a lane, if one is left. */
int sched__begin_lane(struct el_sched *s, struct sched_thread *t);
void sched__drop_label(struct el_sched *s, struct sched_thread *t);
/* The thread has ended: others may reuse what it does not need any more. */
void sched__over(struct el_sched *s, struct sched_thread *t);
struct sched_thread *sched__find(const struct el_sched *s, uint32_t tid);
struct sched_thread *sched__thread_at(const struct el_sched *s, size_t i);

#endif
