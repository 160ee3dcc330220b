/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * logs: the eventlogs that the members of a session write. A log is opened while its process lives,
 * so that it can be read after the process has ended, even if it was renamed or removed. It is read
 * when the session ends, and only the part within the session is used. A log that comes through a
 * FIFO or a socket is copied to a file until then.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "eventlog/eventlog.h"
#include "join/join.h"
#include "logs/logs.h"
#include "picture/lost.h"
#include "process/openfile.h"
#include "session_priv.h"

#define SUFFIX	  ".eventlog"
#define MAX_FDS	  4096
#define MAX_TRIES 4 /* a program writes one log: further files with such names only cost time */
#define MAX_LOOKS 5 /* the RTS opens its log at its start; a later one is the program's own */

struct member_log {
	uint64_t start_ns; /* CLOCK_MONOTONIC when its process started; 0: not known */
	int fd;
	struct log_stream *stream; /* the stream that it is read from; NULL: it is a file */
	char path[256];
	struct log_models *models; /* NULL: it has not been read */
};

/* ── finding it ──────────────────────────────────────────────────────────────────────────── */

static bool ends_as_log(const char *path)
{
	size_t len = strlen(path), suffix = sizeof(SUFFIX) - 1;

	return path[0] == '/' && len > suffix && !strcmp(path + len - suffix, SUFFIX);
}

struct search {
	pid_t pid;
	char *path;
	size_t size;
	unsigned tries;
	int fd, err;
};

static int take_log(void *ctx, int number, const char *path)
{
	struct search *s = ctx;

	if (!ends_as_log(path))
		return 0;
	snprintf(s->path, s->size, "%s", path);
	s->err = open_file__own(s->pid, number, &s->fd);
	return !s->err || ++s->tries == MAX_TRIES;
}

/* The first log that is the process's own file; if there is none, the error for the last one. */
static int find(pid_t pid, char *ret_path, size_t size, int *ret_fd)
{
	struct search s = {.pid = pid, .path = ret_path, .size = size, .fd = -1, .err = -ENOENT};
	int ret = open_files__each(pid, MAX_FDS, take_log, &s);

	if (ret < 0)
		return ret;
	if (!s.err)
		*ret_fd = s.fd;
	return s.err;
}

/* Finds a log with any name, by its first bytes. A child process reads them, which takes time. */
static int find_by_content(struct member *m, char *ret_path, size_t size, int *ret_fd)
{
	struct target_traits traits;

	target__traits(m->target, SNAPSHOT_TIMEOUT_MS, &traits);
	if (!traits.eventlog[0])
		return -ENOENT;
	snprintf(ret_path, size, "%s", traits.eventlog);
	return open_file__own(m->pid, traits.eventlog_number, ret_fd);
}

/* A stream can be read only once: its log is assigned to the session's first member. */
static int open_stream(const struct session *s, const char *path, struct log_stream **ret_stream,
		       int *ret_fd)
{
	for (size_t i = 0; i < members__count(s->members); i++) {
		const struct member_log *log = members__at(s->members, i)->log;

		if (log && log->stream)
			return -EBUSY;
	}
	return log_stream__open(path, ret_stream, ret_fd);
}

void logs__look(struct session *s, struct member *m)
{
	const char *wanted = s->opts->eventlog;
	struct log_stream *stream = NULL;
	struct member_log *log;
	char path[256];
	int fd = -1, err;

	if (m->log || !m->live || m->log_looks >= MAX_LOOKS || s->opts->no_eventlogs)
		return;
	m->log_looks++;
	if (wanted) {
		snprintf(path, sizeof(path), "%s", wanted);
		err = fd__open_regular(wanted, &fd);
		if (err == -EINVAL)
			err = open_stream(s, wanted, &stream, &fd);
	} else {
		err = find(m->pid, path, sizeof(path), &fd);
		m->log_refused = err;
		if (err && m->log_looks == 1 && s->opts->kind != SESSION_SYSTEM)
			err = find_by_content(m, path, sizeof(path), &fd);
	}
	if (err || fd < 0)
		return;
	log = calloc(1, sizeof(*log));
	if (!log) {
		log_stream__finish(stream, false);
		close(fd);
		return;
	}
	log->fd = fd;
	log->stream = stream;
	/* taken now: the system may be suspended during the session, and the process may end before
	 * it */
	log->start_ns = time__of_boottime_ns(target__info(m->target)->start_time_ns);
	memcpy(log->path, path, sizeof(log->path));
	m->log = log;
	log_verbose("pid %d: writes the eventlog %s", m->pid, path);
}

/* ── reading it ──────────────────────────────────────────────────────────────────────────── */

static void set_losses(struct session *s, const struct member *m, uint64_t damaged)
{
	uint64_t dropped = log_models__dropped(m->log->models);

	if (damaged)
		intake__set_lost(s->in, m->pid, PIC_LOST_OF_LOG "damaged_bytes", damaged);
	if (dropped)
		intake__set_lost(s->in, m->pid, PIC_LOST_OF_LOG "beyond_the_memory_limit", dropped);
	if (damaged || dropped)
		intake__set_exit_code(s->in, EXIT_PARTIAL);
}

static int join(struct session *s, struct member *m, struct logs_held *held)
{
	struct member_log *log = m->log;
	struct join_log in = {.path = log->path, .observed_ns = m->probed_ns};
	const struct intake_log_join how = {.session_ns = m->attach_ns,
					    .observed_ns = m->probed_ns,
					    .now_ns = time__monotonic_ns(),
					    .now_wall_ns = time__realtime_ns(),
					    .start_ns = log->start_ns,
					    .suspended_ns = time__suspended_ns()};
	uint64_t lost = 0;
	int err;

	log_stream__finish(log->stream, !m->live);
	log->stream = NULL;
	err = log_models__read_aside(&how, log->fd, m->live, m->account, &log->models, &lost);
	if (err)
		return err;
	if (!log_models__has_clock(log->models)) {
		intake__add_missing(s->in, m->pid,
				    log_models__has_wall_clock(log->models)
					    ? "the eventlog: " LOG_CLOCKS_DIFFER
					    : "the eventlog: it has no wall-clock event yet (it is "
					      "empty: GHC writes a buffer only when it is full)");
		return 0;
	}
	if (!log_models__hold(log->models, held)) {
		log_models__free(log->models);
		log->models = NULL;
		intake__add_missing(s->in, m->pid,
				    "the eventlog: the logs of all processes together exceed the "
				    "limit, and this is one of the largest");
		intake__set_exit_code(s->in, EXIT_PARTIAL);
		return 0;
	}
	log_models__fill(log->models, &in);
	err = timeline__join_log(s->tl, m->pid, &in);
	if (err)
		return err;
	if (s->capture)
		capture__take_log(s->capture, m->pid, log->path, log->fd,
				  log_models__stats(log->models)->bytes_in, &how);
	set_losses(s, m, lost);
	return 0;
}

/* Why a log that was found was not opened, as a text for `missing`; NULL: no such reason. */
static const char *refusal(int err)
{
	if (err == -EPERM)
		return "no eventlog: the program has one open, but not as a file of its own (open "
		       "for writing, and owned by its user); --eventlog FILE would join it";
	if (err == -EREMOTE)
		return "no eventlog: the program's eventlog is on a file system that may block its "
		       "readers; --eventlog FILE would join it";
	return NULL;
}

static void note_none(struct session *s, const struct member *m)
{
	const char *wanted = s->opts->eventlog;

	if (s->opts->no_eventlogs)
		return;
	if (!wanted && refusal(m->log_refused)) {
		intake__add_missing(s->in, m->pid, refusal(m->log_refused));
		return;
	}
	if (!wanted) {
		if (s->opts->eventlog_asked && m->ready && !m->only_sampled)
			intake__add_missing(s->in, m->pid,
					    "no eventlog: the program writes none; +RTS -l would "
					    "add its marks and the labels of its threads (before "
					    "GHC 9.4 it must be linked with -eventlog)");
		return;
	}
	log_error("--eventlog %s: not a readable file, FIFO or Unix socket; the session goes on "
		  "without it",
		  wanted);
	intake__add_missing(s->in, m->pid, "the eventlog given with --eventlog");
	intake__set_exit_code(s->in, EXIT_PARTIAL);
}

/* Why a log cannot be joined: for the log, and for `missing`. */
struct reason {
	const char *logged, *missing;
};

static struct reason unreadable(int err)
{
	switch (err) {
	case -EBADMSG:
		return (struct reason){"its beginning cannot be read",
				       "the eventlog: it cannot be read"};
	case -EIO:
		return (struct reason){"the process that read it failed",
				       "the eventlog: the process that read it failed"};
	case -ETIMEDOUT:
	case -EBUSY:
		return (struct reason){"reading it took too long",
				       "the eventlog: reading it took too long"};
	default:
		return (struct reason){strerror(-err), "the eventlog: it cannot be read"};
	}
}

/* True if a later member has the same pid, after an exec or because the pid was reused. */
static bool is_succeeded(const struct session *s, size_t i)
{
	pid_t pid = members__at(s->members, i)->pid;

	for (size_t k = i + 1; k < members__count(s->members); k++)
		if (members__at(s->members, k)->pid == pid)
			return true;
	return false;
}

void logs__join(struct session *s)
{
	struct logs_held held = {.n_logs = 0};

	for (size_t i = 0; i < members__count(s->members); i++)
		held.n_logs += members__at(s->members, i)->log != NULL;
	for (size_t i = 0; i < members__count(s->members); i++) {
		struct member *m = members__at(s->members, i);
		struct reason why;
		int err;

		if (!m->log && !m->forgotten && !m->log_left_out)
			note_none(s, m);
		if (!m->log || is_succeeded(s, i))
			continue;
		err = join(s, m, &held);
		if (!err)
			continue;
		why = unreadable(err);
		log_warn("pid %d: its eventlog %s cannot be joined: %s", m->pid, m->log->path,
			 why.logged);
		intake__add_missing(s->in, m->pid, why.missing);
	}
}

static void free_log(struct member *m)
{
	struct member_log *log = m->log;

	m->log = NULL;
	if (!log)
		return;
	log_stream__finish(log->stream, false);
	log_models__free(log->models);
	fd__close(&log->fd);
	free(log);
}

void logs__ended(struct session *s, struct member *m)
{
	if (!m->log || s->n_ended_logs++ < SESSION_MAX_ENDED_LOGS)
		return;
	free_log(m);
	m->log_left_out = true;
	intake__add_missing(
		s->in, m->pid,
		"the eventlog: too many eventlogs of processes that have ended are already open");
}

void logs__free(struct session *s)
{
	for (size_t i = 0; s->members && i < members__count(s->members); i++)
		free_log(members__at(s->members, i));
}
