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
	/* Of the process, as struct intake_log_join has it. */
	uint64_t start_ns, suspended_ns;
	uint64_t shift_ns; /* the system is taken to have been suspended so long since the start */
	/* CLOCK_MONOTONIC - the log's time: what is likely, and what it may be else, or the same */
	int64_t guess_ns, other_ns;
	bool guessed;
	bool wall_seen; /* the log has its wall clock, be there a guess or not */
	bool unsure;  /* the wall clock alone does not place it: without a match it is not joined */
	bool early;   /* it would end before the session, but the system was suspended meanwhile */
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
