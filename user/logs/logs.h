/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * logs: whole eventlogs for a timeline: a reader with all models attached to it, a log that comes
 * through a FIFO or a socket while a session runs, and the logs of a capture.
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

/* The reader and models of one log. */
struct log_models;

/* The part of a log to read. All zero: the whole log. The strings must outlive the models. */
struct log_part {
	uint64_t from_ns, to_ns;	     /* in the log's own time; 0: unlimited */
	const char *from_marker, *to_marker; /* prefixes of messages or markers; or NULL */
};

int log_models__new(const struct log_part *part, struct log_models **ret_models);
/*
 * For the log of a process that is in a timeline, to be joined with its records: models only what
 * is after how->session_ns, by the log's wall clock.
 */
int log_models__new_joined(const struct intake_log_join *how, struct log_models **ret_models);
void log_models__free(struct log_models *models);

/* The reader: feed it, or have it read an input, then call log_models__finish(). NULL: the log
 * was read by another process. */
struct eventlog *log_models__reader(struct log_models *models);
/* The reader's statistics, whichever process has read the log. */
const struct eventlog_stats *log_models__stats(const struct log_models *models);
/* Closes what is open at the end of the log. */
int log_models__finish(struct log_models *models);
/*
 * Reads all of a joined log's file, and finishes. *ret_lost: the number of damaged bytes, without
 * what a `live` program is writing at the end.
 */
int log_models__read(struct log_models *models, int fd, bool live, uint64_t *ret_lost);
/*
 * The same in a process without rights (confine.h), from whose message the models are made. `user`
 * owns the log. -EBUSY: too much time was spent on this user's files; -ETIMEDOUT; -EIO: the process
 * ended abnormally, or its message was refused; -EBADMSG: the beginning of the log is unreadable.
 */
int log_models__read_aside(const struct intake_log_join *how, int fd, bool live, uid_t user,
			   struct log_models **ret_models, uint64_t *ret_lost);

/* False: nothing relates the times of a joined log to the session's, so that they are
 * meaningless. */
bool log_models__has_clock(const struct log_models *models);
/* False: the reason is that no event with a wall clock was read. */
bool log_models__has_wall_clock(const struct log_models *models);
/* The part, with what reading has found out about it. */
const struct el_window *log_models__window(const struct log_models *models);
const struct el_annot *log_models__annot(const struct log_models *models);
/* The number of items that did not fit into the models. */
uint64_t log_models__dropped(const struct log_models *models);
/*
 * The models of all joined logs are kept until the picture is made. Adds the log to *held and
 * returns true, unless that would take too much memory and this log is larger than its share: then
 * returns false.
 */
struct logs_held {
	size_t bytes;
	size_t n_logs; /* number of logs to join; set it first */
};
bool log_models__hold(const struct log_models *models, struct logs_held *held);
/* Fills in *log for the timeline from the models, which must outlive the timeline's end. */
void log_models__fill(const struct log_models *models, struct join_log *log);

/* ── a log alone (alone.c) ───────────────────────────────────────────────────────────────── */

/*
 * Reads a descriptor that holds a log, or a report of GHC's, packed or not, in a process without
 * rights. Meanwhile the functions below are called in this process.
 */
struct log_alone {
	struct log_part part;
	/* Returning true ends the reading: of a stream, as if the log ended there; otherwise
	 * with -ECANCELED. */
	bool (*stop)(void *ctx);
	/* Called a few times a second with the bytes of the log read so far, and in all. May be
	 * NULL. */
	void (*progress)(void *ctx, uint64_t done, uint64_t all);
	void *ctx;
};

enum log_alone_kind { LOG_ALONE_LOG, LOG_ALONE_REPORT, LOG_ALONE_EMPTY, LOG_ALONE_OTHER };

struct log_alone_read {
	enum log_alone_kind kind;
	bool unreadable; /* begins like what it is, but cannot be read */
	bool stopped;	 /* before its end */
	bool damaged;	 /* the packed data is damaged: read as far as it goes */
	/* owned by the caller; NULL unless of that kind */
	struct log_models *models;
	struct cctree *report;
	struct prof_info *report_info;
};

/*
 * -ECANCELED: stopped, and not a stream; -EIO: the reading process ended abnormally, or its message
 * was refused; otherwise errors of reading. `fd` stays the caller's.
 */
int log_alone__read(const struct log_alone *how, int fd, struct log_alone_read *ret_read);
void log_alone__free(struct log_alone_read *read);

/* ── streams (stream.c) ──────────────────────────────────────────────────────────────────── */

/*
 * A log that comes through a FIFO or a Unix socket: a thread copies it into an unnamed file, so
 * that the program never waits for its reader; the log is read from the file.
 */
struct log_stream;

/* -EINVAL: neither a FIFO nor a socket. *ret_fd: the growing file; the caller closes it. */
int log_stream__open(const char *path, struct log_stream **ret_stream, int *ret_fd);
/*
 * Takes what has come so far; if the program has `ended`, everything that it wrote. Nothing is
 * added to the file afterwards. Frees the stream. NULL: does nothing.
 */
void log_stream__finish(struct log_stream *stream, bool ended);

/* ── the logs of a capture (joined.c) ────────────────────────────────────────────────────── */

/* The models of all logs joined in a replay. To be zeroed first. */
struct joined_logs {
	struct log_models **v;
	size_t n, cap;
};

/* The join callback of struct replay_hooks (capture.h), the same as the session's; ctx: struct
 * joined_logs. */
int joined_logs__join(void *ctx, struct timeline *tl, pid_t pid, const char *path, int fd,
		      const struct intake_log_join *how);
/* To be called after the timeline is freed or finished. */
void joined_logs__free(struct joined_logs *logs);

#endif
