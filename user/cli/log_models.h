/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The models that are made of a log, all of them. Private to the cli room. */
#ifndef SAFESCOPED_CLI_LOG_MODELS_H
#define SAFESCOPED_CLI_LOG_MODELS_H

#include "eventlog/eventlog.h"
#include "options.h"
#include "timeline/tap.h"
#include "timeline/timeline.h"

struct log_models {
	struct eventlog *log;
	struct el_window window;
	struct el_info *info;
	struct el_sched *sched;
	struct el_profile *profile;
	struct el_annot *annot;
	struct el_heap *heap;
	/* of a log that is joined with a process's records */
	struct el_match *match;
	uint64_t session_ns; /* CLOCK_MONOTONIC: what is older is left out; 0: nothing is */
	uint64_t now_ns, now_wall_ns; /* both clocks when it is read */
	int64_t guess_ns;	      /* CLOCK_MONOTONIC - the log's time, by its wall clock */
	bool guessed;
};

/* Makes them and attaches them to a reader of their own; `m` must not move afterwards. */
int log_models__new(struct log_models *m, const struct options *options);
/* The same for the part of a log from how->session_ns on. */
int log_models__new_joined(struct log_models *m, const struct tl_log_join *how);
void log_models__free(struct log_models *m);
/*
 * Reads all of a joined log's file, and finishes. *ret_lost: the damaged bytes; what a program that
 * is `live` is just writing, at the end, is none.
 */
int log_models__read(struct log_models *m, int fd, bool live, uint64_t *ret_lost);
/* After the reading. */
int log_models__finish(struct log_models *m);
/* What the timeline takes; the rest of *ret_log is left as it is. */
void log_models__tell(const struct log_models *m, struct tl_log *ret_log);
/* What did not fit into the models. */
uint64_t log_models__dropped(const struct log_models *m);

#endif
