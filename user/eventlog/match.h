/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * match: the events of a log that others may have seen, too: safe calls, profiler ticks,
 * collections. Part of the room's public interface; include eventlog.h.
 */
#ifndef SAFESCOPED_EVENTLOG_MATCH_H
#define SAFESCOPED_EVENTLOG_MATCH_H

#include <stddef.h>
#include <stdint.h>

struct eventlog;
struct el_window;

/* A safe call that returned: from STOP_THREAD to RUN_THREAD. */
struct el_match_call {
	uint64_t start, end;
	uint32_t thread;
	uint16_t cap, cap_after;
};

/* What a tick of the profiler's timer found on one capability. */
struct el_match_tick {
	uint64_t time;
	uint32_t centre; /* the innermost cost centre's id; EL_MATCH_MAIN: MAIN itself */
	uint16_t cap;
};
#define EL_MATCH_MAIN UINT32_MAX

struct el_match_info {
	uint64_t calls; /* all that began in the window */
	size_t n_calls, n_ticks, n_gcs;
	uint64_t dropped; /* beyond the limit for its kind, or too late */
};

/* No time in it exceeds INT64_MAX / 2. */
struct el_match;
/* `window` NULL: the whole log. */
int el_match__new(const struct el_window *window, struct el_match **ret_m);
void el_match__free(struct el_match *m);
/* Subscribes to ticks and collections. */
int el_match__attach(struct el_match *m, struct eventlog *log);
/* For safe calls: set it as on_call in struct el_sched_opts, with the model as ctx. */
int el_match__on_call(void *ctx, uint32_t thread, uint64_t start, uint64_t end, uint16_t cap,
		      uint16_t cap_after);
struct el_match_info el_match__info(const struct el_match *m);
/* In the order in which they ended. */
const struct el_match_call *el_match__calls(const struct el_match *m);
/* In time order. */
const struct el_match_tick *el_match__ticks(const struct el_match *m);
const uint64_t *el_match__gcs(const struct el_match *m);

#endif
