/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * metrics: what a session has seen so far as numbers that only grow, in Prometheus' text format
 * (https://prometheus.io/docs/instrumenting/exposition_formats/, version 0.0.4).
 *
 * Figures of processes come in parts (picture/figures.h): parts that are over are added up; of the
 * part that goes on each new reading replaces the one before. A reading may be lower than the one
 * before, where an estimate turned out otherwise; a counter then stands still until the sums have
 * caught up. Of states on the CPU the others grow by that much less: together they are exact.
 *
 * There are only so many series: METRICS_MAX_TARGETS processes, of each the busiest
 * METRICS_MAX_SITES places of safe calls and the sum of all others, and states by name. A process
 * that has ended stays for METRICS_STALE_NS, so that its last values are scraped once more. Where
 * there is no room, the user with the most processes gives way to one with less than that; how many
 * are not shown is a number of its own.
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
#define METRICS_STALE_NS    300000000000ULL /* five minutes, as long as Prometheus looks back */
/* The text of all of these at their longest. */
#define METRICS_MAX_TEXT (32U << 20)

int metrics__new(struct metrics **ret_metrics);
void metrics__free(struct metrics *metrics);

/* ── processes ───────────────────────────────────────────────────────────────────────────── */

/*
 * Takes the figures of one process for the part of the session that goes on, or for one that is
 * over (`closed`). As timeline.h has its callback; `metrics` is a struct metrics.
 */
void metrics__take(void *metrics, const struct figures *figures, bool closed);
/* For how long the probes on the process's safe calls have been off so far. */
void metrics__set_probes_off(struct metrics *metrics, pid_t pid, uint64_t ns);
/* Lets go of processes that ended METRICS_STALE_NS ago. To be called before each text. */
void metrics__forget_stale(struct metrics *metrics, uint64_t now_ns);

/* Where a process runs; "": not known. Strings are copied. */
struct metrics_place {
	const char *container, *pod, *service;
};
/* Asked once for each process, as it is first shown. */
typedef void (*metrics_place_fn)(void *ctx, pid_t pid, struct metrics_place *ret_place);
/* On whose account it runs; asked often. */
typedef uid_t (*metrics_user_fn)(void *ctx, pid_t pid);
void metrics__set_places(struct metrics *metrics, metrics_place_fn place, metrics_user_fn user,
			 void *ctx);

/* ── the daemon ──────────────────────────────────────────────────────────────────────────── */

/*
 * Numbers of the daemon: what each is called and means is in daemon.c's table, which has an entry
 * for each of these. One that is never set is not in the text.
 */
enum metrics_value {
	METRICS_TARGETS,	  /* processes that are profiled now */
	METRICS_TARGETS_STARTING, /* of them, whose runtime is not initialised yet */
	METRICS_TARGETS_JOINED,	  /* so far */
	METRICS_TARGETS_LEFT_OUT, /* for want of room */
	METRICS_TARGETS_MISSED,	  /* that ended before they could be looked at */
	METRICS_TARGETS_HIDDEN,	  /* set by metrics__forget_stale() */
	METRICS_RECORDS,
	METRICS_SAMPLES,
	METRICS_SAMPLE_EVERY, /* one in so many is taken */
	METRICS_PROBE_HITS,
	METRICS_BPF_NS,
	METRICS_CPU_NS,	    /* of the daemon itself */
	METRICS_HELPERS_NS, /* of its helper processes that have ended */
	METRICS_RESIDENT_BYTES,
	METRICS_START_UNIX_NS,
	METRICS_READ_UNIX_NS, /* when the figures were read */
	METRICS_WINDOWS,
	METRICS_WINDOWS_DROPPED,
	METRICS_WINDOW_LAG_NS,
	METRICS_SWITCHED_OFF, /* 1: by the off file, and then all other numbers are left out */
	METRICS_VALUES,
};
void metrics__set(struct metrics *metrics, enum metrics_value which, uint64_t value);

/* Numbers of the daemon that there are several of, by a label, as daemon.c has it. */
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
/* The label is copied; there are so many of all groups together, and more are left out. So is a
 * label of METRICS_MAX_LABEL bytes or more. */
#define METRICS_MAX_LABELLED 128
#define METRICS_MAX_LABEL    256
void metrics__set_labelled(struct metrics *metrics, enum metrics_group which, const char *label,
			   uint64_t value);

/* ── the text ────────────────────────────────────────────────────────────────────────────── */

/* Adds all of it to `out`. -ENOMEM, -E2BIG: beyond the buffer's maximum. */
int metrics__write(const struct metrics *metrics, struct buf *out);

#endif
