/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * logs: the eventlogs that the members of a session write. One is opened while its process lives,
 * so that it can be read after its end, under whatever name; it is read when the session ends,
 * and then only what is of the session goes further. One that comes by a FIFO or a socket is put
 * into a file until then.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "log_models.h"
#include "log_stream.h"
#include "session_priv.h"

#define SUFFIX	  ".eventlog"
#define MAX_FDS	  4096
#define MAX_LOOKS 5 /* one that begins later than that was begun by the program itself */

struct member_log {
	int fd;
	struct log_stream *stream; /* that brings it; NULL: it is a file */
	char path[256];
	struct log_models models;
	bool read;
};

/* ── finding it ──────────────────────────────────────────────────────────────────────────── */

/* A regular file, opened to read without doing anything to what else it may be. */
static int open_regular(const char *path, int *ret_fd)
{
	char again[32];
	struct stat st;
	int fd = open(path, O_PATH | O_CLOEXEC), real;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return -EINVAL;
	}
	snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
	real = open(again, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	close(fd);
	if (real < 0)
		return -errno;
	*ret_fd = real;
	return 0;
}

static bool ends_as_log(const char *path)
{
	size_t len = strlen(path), suffix = sizeof(SUFFIX) - 1;

	return path[0] == '/' && len > suffix && !strcmp(path + len - suffix, SUFFIX);
}

/* Reading links of /proc never blocks, whatever they lead to. */
static int find(pid_t pid, char *ret_path, size_t size, int *ret_fd)
{
	char dir_path[64], link[sizeof(dir_path) + 32];
	struct dirent *ent;
	int seen = 0, err = -ENOENT;
	DIR *dir;

	snprintf(dir_path, sizeof(dir_path), "/proc/%d/fd", pid);
	dir = opendir(dir_path);
	if (!dir)
		return -errno;
	while (err && seen++ < MAX_FDS && (ent = readdir(dir))) {
		ssize_t len;

		if (ent->d_name[0] < '0' || ent->d_name[0] > '9')
			continue;
		snprintf(link, sizeof(link), "%s/%.20s", dir_path, ent->d_name);
		len = readlink(link, ret_path, size - 1);
		if (len <= 0)
			continue;
		ret_path[len] = '\0';
		if (ends_as_log(ret_path))
			err = open_regular(link, ret_fd);
	}
	closedir(dir);
	return err;
}

/* A log by any name: its first bytes tell it. That may take a child's time. */
static int find_by_content(struct member *m, char *ret_path, size_t size, int *ret_fd)
{
	struct target_traits traits;
	char path[sizeof(traits.eventlog) + 32];

	target__traits(m->target, SNAPSHOT_TIMEOUT_MS, &traits);
	if (!traits.eventlog[0])
		return -ENOENT;
	snprintf(path, sizeof(path), "/proc/%d/root%s", m->pid, traits.eventlog);
	snprintf(ret_path, size, "%s", traits.eventlog);
	return open_regular(path, ret_fd);
}

/* What a stream brings can be had once: the first member of the session has it. */
static int open_stream(const struct session *s, const char *path, struct log_stream **ret_stream,
		       int *ret_fd)
{
	for (size_t i = 0; i < s->n_members; i++)
		if (s->members[i].log && s->members[i].log->stream)
			return -EBUSY;
	return log_stream__open(path, ret_stream, ret_fd);
}

void logs__look(struct session *s, struct member *m)
{
	const char *wanted = s->options->eventlog;
	struct log_stream *stream = NULL;
	struct member_log *log;
	char path[256];
	int fd = -1, err;

	if (m->log || !m->live || m->log_looks >= MAX_LOOKS || (wanted && !strcmp(wanted, "none")))
		return;
	m->log_looks++;
	if (wanted && strcmp(wanted, "auto") != 0) {
		snprintf(path, sizeof(path), "%s", wanted);
		err = open_regular(wanted, &fd);
		if (err == -EINVAL)
			err = open_stream(s, wanted, &stream, &fd);
	} else {
		err = find(m->pid, path, sizeof(path), &fd);
		if (err && m->log_looks == 1 && s->options->mode != MODE_SYSTEM)
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
	memcpy(log->path, path, sizeof(log->path));
	m->log = log;
	log_verbose("pid %d: writes the eventlog %s", m->pid, path);
}

/* ── reading it ──────────────────────────────────────────────────────────────────────────── */

static void tell(struct session *s, struct member *m, uint64_t lost)
{
	uint64_t dropped = log_models__dropped(&m->log->models);

	if (lost)
		timeline__set_lost(s->tl, m->pid, "eventlog_damaged_bytes", lost);
	if (dropped)
		timeline__set_lost(s->tl, m->pid, "eventlog_beyond_the_memory_limit", dropped);
	if (lost || dropped)
		timeline__set_exit_code(s->tl, EXIT_PARTIAL);
}

static int join(struct session *s, struct member *m)
{
	struct member_log *log = m->log;
	struct tl_log in = {.path = log->path, .observed_ns = m->probed_ns};
	const struct tl_log_join how = {.session_ns = m->attach_ns,
					.observed_ns = m->probed_ns,
					.now_ns = time__monotonic_ns(),
					.now_wall_ns = time__realtime_ns()};
	uint64_t lost = 0;
	int err;

	log_stream__finish(log->stream, !m->live);
	log->stream = NULL;
	err = log_models__new_joined(&log->models, &how);
	if (err)
		return err;
	log->read = true;
	err = log_models__read(&log->models, log->fd, m->live, &lost);
	if (err)
		return err;
	if (!log->models.guessed) {
		timeline__add_missing(s->tl, m->pid,
				      "the eventlog: nothing in it tells its clock (it is empty: "
				      "GHC writes a buffer when it is full)");
		return 0;
	}
	log_models__tell(&log->models, &in);
	err = timeline__join_log(s->tl, m->pid, &in);
	if (err)
		return err;
	if (s->capture)
		capture__take_log(s->capture, m->pid, log->path, log->fd,
				  eventlog__stats(log->models.log)->bytes_in, &how);
	tell(s, m, lost);
	return 0;
}

static void tell_none(struct session *s, const struct member *m)
{
	const char *wanted = s->options->eventlog;

	if (wanted && !strcmp(wanted, "none"))
		return;
	if (!wanted || !strcmp(wanted, "auto")) {
		if (m->ready && !target__info(m->target)->only_sampled)
			timeline__add_missing(
				s->tl, m->pid,
				"no eventlog: the program writes none; +RTS -l would "
				"bring its marks and the labels of its threads (before "
				"GHC 9.4 it must be linked with -eventlog)");
		return;
	}
	log_error("--eventlog %s: neither a file nor a FIFO or Unix socket that can be read; the "
		  "session goes on without it",
		  wanted);
	timeline__add_missing(s->tl, m->pid, "the eventlog that was asked for");
	timeline__set_exit_code(s->tl, EXIT_PARTIAL);
}

void logs__join(struct session *s)
{
	for (size_t i = 0; i < s->n_members; i++) {
		struct member *m = &s->members[i];
		bool newest = true;
		int err;

		for (size_t k = i + 1; newest && m->log && k < s->n_members; k++)
			newest = s->members[k].pid != m->pid;
		if (!m->log && !m->forgotten)
			tell_none(s, m);
		if (!m->log || !newest)
			continue;
		err = join(s, m);
		if (!err)
			continue;
		log_warn("pid %d: its eventlog %s cannot be joined: %s", m->pid, m->log->path,
			 err == -EBADMSG ? "its beginning cannot be read" : strerror(-err));
		timeline__add_missing(s->tl, m->pid, "the eventlog: it cannot be read");
	}
}

void logs__free(struct session *s)
{
	for (size_t i = 0; i < s->n_members; i++) {
		struct member_log *log = s->members[i].log;

		if (!log)
			continue;
		log_stream__finish(log->stream, false);
		if (log->read)
			log_models__free(&log->models);
		fd__close(&log->fd);
		free(log);
		s->members[i].log = NULL;
	}
}
