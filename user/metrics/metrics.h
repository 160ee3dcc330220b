/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * metrics: what a session has seen so far, as numbers that only grow, in Prometheus' text format
 * (https://prometheus.io/docs/instrumenting/exposition_formats/, version 0.0.4).
 *
 * Figures of processes come in parts (picture/figures.h): completed parts are added up; for the
 * current part each new reading replaces the previous one. A reading may be lower than the previous
 * one if an estimate turned out differently; a counter then stands still until the sums have caught
 * up. For states on the CPU the others grow by that much less, so that their total is exact.
 *
 * The number of series is limited: METRICS_MAX_TARGETS processes, for each of them the busiest
 * METRICS_MAX_SITES places of safe calls and the sum of all others, and a fixed set of states. A
 * process that has ended stays for METRICS_STALE_NS, so that its last values are scraped once more.
 * When there is no room, a process of the user with the most gives way to one of a user with fewer;
 * the number of processes not shown is a metric of its own.
 */
#ifndef SAFESCOPED_METRICS_H
#define SAFESCOPED_METRICS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct buf;
struct figures;
struct metrics;

#define METRICS_MAX_TARGETS 256
#define METRICS_MAX_SITES   8
#define METRICS_STALE_NS    300000000000ULL /* five minutes, Prometheus' lookback period */
/* The maximum length of the text. */
#define METRICS_MAX_TEXT (32U << 20)

int metrics__new(struct metrics **ret_metrics);
void metrics__free(struct metrics *metrics);

/* ── processes ───────────────────────────────────────────────────────────────────────────── */

/*
 * Takes the figures of one process for the current part of the session, or for a completed one
 * (`closed`). Has the type of timeline.h's callback; `metrics` is a struct metrics.
 */
void metrics__take(void *metrics, const struct figures *figures, bool closed);
/* Sets for how long the probes on the process's safe calls have been off so far, and the time that
 * all probes and programs have taken from it. */
void metrics__set_probes(struct metrics *metrics, pid_t pid, uint64_t off_ns, uint64_t cost_ns);
/* Forgets processes that ended METRICS_STALE_NS ago. To be called before each metrics__write(). */
void metrics__forget_stale(struct metrics *metrics, uint64_t now_ns);

/* Where a process runs; "": unknown. Strings are copied. */
struct metrics_place {
	const char *container, *pod, *service;
};
/* Called once for each process, when it is first shown. */
typedef void (*metrics_place_fn)(void *ctx, pid_t pid, struct metrics_place *ret_place);
/* The user whose account the process is on; called often. */
typedef uid_t (*metrics_user_fn)(void *ctx, pid_t pid);
void metrics__set_places(struct metrics *metrics, metrics_place_fn place, metrics_user_fn user,
			 void *ctx);

/* ── the daemon ──────────────────────────────────────────────────────────────────────────── */

/*
 * The daemon's own metrics; daemon.c's table has a row with the name and meaning of each. Metrics
 * that were never set are not in the text.
 */
enum metrics_value {
	METRICS_TARGETS,	  /* processes being profiled */
	METRICS_TARGETS_STARTING, /* of these, those whose runtime is not initialised yet */
	METRICS_TARGETS_WAITING,  /* not profiled yet, and looked at again */
	METRICS_TARGETS_JOINED,	  /* so far */
	METRICS_TARGETS_LEFT_OUT, /* for lack of room, or because they cannot be profiled */
	METRICS_TARGETS_MISSED,	  /* ended before they could be examined */
	METRICS_TARGETS_HIDDEN,	  /* set by metrics__forget_stale() */
	METRICS_RECORDS,
	METRICS_SAMPLES,
	METRICS_SAMPLE_EVERY, /* one sample in this many is taken */
	METRICS_PROBE_HITS,
	METRICS_BPF_NS,
	METRICS_CPU_NS,	    /* of the daemon itself */
	METRICS_HELPERS_NS, /* of its helper processes that have ended */
	METRICS_RESIDENT_BYTES,
	METRICS_START_UNIX_NS,
	METRICS_READ_UNIX_NS, /* when these figures were read */
	METRICS_WINDOWS,
	METRICS_WINDOWS_DROPPED,
	METRICS_WINDOW_LAG_NS,
	METRICS_SWITCHED_OFF, /* 1: by the off file; no other metrics are set then */
	METRICS_VALUES,
};
void metrics__set(struct metrics *metrics, enum metrics_value which, uint64_t value);

/* The daemon's metrics with a label; see daemon.c. */
enum metrics_group {
	METRICS_LOST,		/* by cause */
	METRICS_PUSH_DELIVERED, /* these by URL: struct push_stats */
	METRICS_PUSH_FAILURES,
	METRICS_PUSH_REFUSED,
	METRICS_PUSH_REJECTED,
	METRICS_PUSH_DROPPED,
	METRICS_PUSH_QUEUED,
	METRICS_PUSH_QUEUED_BYTES,
	METRICS_PUSH_LAG_NS,
	METRICS_GROUPS,
};
/* Copies the label. There is room for METRICS_MAX_LABELLED in all groups together; more are left
 * out, as are labels of METRICS_MAX_LABEL bytes or more. */
#define METRICS_MAX_LABELLED 128
#define METRICS_MAX_LABEL    256
void metrics__set_labelled(struct metrics *metrics, enum metrics_group which, const char *label,
			   uint64_t value);

/* ── the text ────────────────────────────────────────────────────────────────────────────── */

/* Appends the whole text to `out`. -ENOMEM, -E2BIG: beyond the buffer's maximum. */
int metrics__write(const struct metrics *metrics, struct buf *out);

#endif
