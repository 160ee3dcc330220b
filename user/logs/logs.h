/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * logs: whole eventlogs for a timeline: a reader with every model attached to it, the log that
 * comes by a FIFO or a socket while a session runs, and the logs of a capture.
 */
#ifndef SAFESCOPED_LOGS_H
#define SAFESCOPED_LOGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cctree;
struct el_annot;
struct el_window;
struct eventlog;
struct eventlog_stats;
struct prof_info;
struct timeline;
struct join_log;
struct intake_log_join;

/* ── models (models.c) ───────────────────────────────────────────────────────────────────── */

/* One log's reader and models. */
struct log_models;

/* The part of a log that is wanted. All zero: the whole log. The texts must outlive the models. */
struct log_part {
	uint64_t from_ns, to_ns;	     /* in the log's own time; 0: open */
	const char *from_marker, *to_marker; /* beginnings of messages or markers; or NULL */
};

int log_models__new(const struct log_part *part, struct log_models **ret_models);
/*
 * For the log of a process that is in a timeline, to be joined with its records: only what is from
 * how->session_ns on, by the log's wall clock, is modelled.
 */
int log_models__new_joined(const struct intake_log_join *how, struct log_models **ret_models);
void log_models__free(struct log_models *models);

/* The reader: feed it, or have it read an input; then log_models__finish(). NULL: another process
 * has read the log. */
struct eventlog *log_models__reader(struct log_models *models);
/* Its accounts, whoever has read it. */
const struct eventlog_stats *log_models__stats(const struct log_models *models);
/* Closes what the log's end leaves open. */
int log_models__finish(struct log_models *models);
/*
 * Reads all of a joined log's file, and finishes. *ret_lost: the damaged bytes; what a program that
 * is `live` is just writing, at the end, is none.
 */
int log_models__read(struct log_models *models, int fd, bool live, uint64_t *ret_lost);
/*
 * The same by a process without rights (confine.h), of whose message the models are made. `user` is
 * whose log it is. -EBUSY: his files have been waited for too long; -ETIMEDOUT; -EIO: it ended
 * badly, or what it handed over was refused; -EBADMSG: the log has no beginning that can be read.
 */
int log_models__read_aside(const struct intake_log_join *how, int fd, bool live, uid_t user,
			   struct log_models **ret_models, uint64_t *ret_lost);

/* False: there is nothing to place a joined log's times by, so that they mean nothing. */
bool log_models__has_clock(const struct log_models *models);
/* False: that is so because no event with a wall clock was read. */
bool log_models__has_wall_clock(const struct log_models *models);
/* The part as the reading has found it. */
const struct el_window *log_models__window(const struct log_models *models);
const struct el_annot *log_models__annot(const struct log_models *models);
/* How many items did not fit into the models. */
uint64_t log_models__dropped(const struct log_models *models);
/*
 * The models of all joined logs are held until the picture is made. A log counts in *held, unless
 * with it they would take too much and it is one of those to blame: then false.
 */
struct logs_held {
	size_t bytes;
	size_t n_logs; /* set it first: how many there are to join */
};
bool log_models__hold(const struct log_models *models, struct logs_held *held);
/* Sets what comes of the models in *log, for the timeline. They must outlive the timeline's end. */
void log_models__fill(const struct log_models *models, struct join_log *log);

/* ── a log alone (alone.c) ───────────────────────────────────────────────────────────────── */

/*
 * What a descriptor holds: a log, or a report of GHC's, packed or not. It is read by a process
 * without rights; meanwhile the functions below are called here.
 */
struct log_alone {
	struct log_part part;
	/* True ends the reading: of a stream, as if the log ended there; else all of it. */
	bool (*stop)(void *ctx);
	/* Some times a second: bytes of the log that were read, and that there are. May be NULL. */
	void (*progress)(void *ctx, uint64_t done, uint64_t all);
	void *ctx;
};

enum log_alone_kind { LOG_ALONE_LOG, LOG_ALONE_REPORT, LOG_ALONE_EMPTY, LOG_ALONE_OTHER };

struct log_alone_read {
	enum log_alone_kind kind;
	bool unreadable; /* begins as what it is, and cannot be read */
	bool stopped;	 /* before its end */
	bool damaged;	 /* packed data that make no sense: read as far as they go */
	/* the caller's; NULL unless it is of that kind */
	struct log_models *models;
	struct cctree *report;
	struct prof_info *report_info;
};

/*
 * -ECANCELED: stopped, and it is no stream; -EIO: the process that read it ended badly, or what it
 * handed over was refused; else the reading's errors. `fd` stays the caller's.
 */
int log_alone__read(const struct log_alone *how, int fd, struct log_alone_read *ret_read);
void log_alone__free(struct log_alone_read *read);

/* ── streams (stream.c) ──────────────────────────────────────────────────────────────────── */

/*
 * A log that comes by a FIFO or a Unix socket: a thread puts it into a file without a name, so that
 * the program never waits for its reader; whoever wants it reads the file.
 */
struct log_stream;

/* -EINVAL: neither a FIFO nor a socket. *ret_fd: the file that grows; the caller closes it. */
int log_stream__open(const char *path, struct log_stream **ret_stream, int *ret_fd);
/*
 * Takes what has come so far; if the program has `ended`, all that it wrote. Nothing comes into the
 * file afterwards. Frees the stream. NULL is fine.
 */
void log_stream__finish(struct log_stream *stream, bool ended);

/* ── the logs of a capture (joined.c) ────────────────────────────────────────────────────── */

/* The models of all logs that were joined at a replay. Zero it first. */
struct joined_logs {
	struct log_models **v;
	size_t n, cap;
};

/* The join of struct replay_hooks (capture.h), the same as the session's; ctx: struct joined_logs.
 */
int joined_logs__join(void *ctx, struct timeline *tl, pid_t pid, const char *path, int fd,
		      const struct intake_log_join *how);
/* After the timeline is freed or finished. */
void joined_logs__free(struct joined_logs *logs);

#endif
