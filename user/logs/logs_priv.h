/* SPDX-License-Identifier: GPL-2.0-or-later */
/* logs_priv: the models of one log. Not for other rooms. */
#ifndef SAFESCOPED_LOGS_PRIV_H
#define SAFESCOPED_LOGS_PRIV_H

#include "eventlog/eventlog.h"
#include "logs.h"

/* What may be handed over of one log: by the models' limits it is 340 MB. Untouched, it is none. */
#define LOG_PACKED_MAX ((size_t)448 << 20)

struct log_models {
	struct eventlog *log;	     /* NULL: another process has read it */
	struct eventlog_stats stats; /* without `log` */
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
	size_t bytes; /* what the heap has grown by; until it is read: what was in use before */
};

struct pack;
struct unpack;

/* models.c: bytes of the heap that are in use. */
size_t log_models__heap_in_use(void);

/* handed_over.c: finished models, as bytes and back (eventlog/pack.h). */
void log_models__pack(const struct log_models *models, struct pack *p);
/* -EBADMSG: refused. `part`: of a log alone; NULL: a joined one. */
int log_models__unpack(struct unpack *u, const struct log_part *part,
		       struct log_models **ret_models);

#endif
