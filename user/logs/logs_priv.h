/* SPDX-License-Identifier: GPL-2.0-or-later */
/* logs_priv: the models of one log. For the files of this room only. */
#ifndef SAFESCOPED_LOGS_PRIV_H
#define SAFESCOPED_LOGS_PRIV_H

#include "eventlog/eventlog.h"
#include "logs.h"

/* The limit for one log's packed models, whose own limits add up to 340 MB. Untouched memory
 * costs nothing. */
#define LOG_PACKED_MAX ((size_t)448 << 20)

struct log_models {
	struct eventlog *log;	     /* NULL: read by another process */
	struct eventlog_stats stats; /* used without `log` */
	struct el_window window;
	struct el_info *info;
	struct el_sched *sched;
	struct el_profile *profile;
	struct el_annot *annot;
	struct el_heap *heap;
	/* for a log that is joined with a process's records */
	struct el_match *match;
	uint64_t session_ns;	      /* CLOCK_MONOTONIC: older events are left out; 0: none are */
	uint64_t now_ns, now_wall_ns; /* both clocks at the time of reading */
	/* about the process, see struct intake_log_join */
	uint64_t start_ns, suspended_ns;
	uint64_t shift_ns; /* for how long the system is assumed to have been suspended since the
			      start */
	/* CLOCK_MONOTONIC minus the log's time: the likely value, and an alternative, or the
	 * same */
	int64_t guess_ns, other_ns;
	bool guessed;
	bool wall_seen; /* the log has its wall clock, whether or not there is a guess */
	bool unsure;	/* not placed by the wall clock alone: joined only with a match */
	bool early;	/* would end before the session, but the system was suspended */
	size_t bytes;	/* growth of the heap; until the log is read: the heap in use before */
};

struct pack;
struct unpack;

/* models.c: bytes of the heap in use. */
size_t log_models__heap_in_use(void);

/* handed_over.c: converts finished models to bytes and back (eventlog/pack.h). */
void log_models__pack(const struct log_models *models, struct pack *p);
/* -EBADMSG: refused. `part`: for a log alone; NULL: for a joined one. */
int log_models__unpack(struct unpack *u, const struct log_part *part,
		       struct log_models **ret_models);

#endif
