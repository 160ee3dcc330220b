/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The thread that copies a FIFO or a socket into a file. */
#include "logs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "eventlog/eventlog.h"

#define PIECE (256u << 10)
/* An eventlog of 10 GB takes half a minute to read; nobody wants more than this. */
#define SPOOL_MAX (UINT64_C(16) << 30)
/* After the end: waits for what a forwarding process in between has not sent yet. */
#define LAST_WAIT_MS 2000
#define LAST_ALL_NS  UINT64_C(5000000000)

struct log_stream {
	pthread_t thread;
	char path[256];
	int in, out, asked; /* asked: an eventfd by which log_stream__finish() asks for the end */
	uint64_t wait_ms;   /* once asked: how long to wait for more bytes */
	uint64_t taken;
	uint8_t piece[PIECE];
};

static bool put(struct log_stream *s, const uint8_t *p, size_t n)
{
	s->taken += n;
	if (s->taken > SPOOL_MAX) {
		log_warn("%s: more than %llu GB of eventlog: the rest is not read", s->path,
			 (unsigned long long)(SPOOL_MAX >> 30));
		return false;
	}
	while (n) {
		ssize_t done = write(s->out, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			log_warn("%s: the eventlog cannot be kept: %s: the rest is not read",
				 s->path, strerror(done ? errno : EIO));
			return false;
		}
		p += done;
		n -= (size_t)done;
	}
	return true;
}

/* Keeps reading even when nothing is kept any more: the program must not block. */
static void *run(void *arg)
{
	struct log_stream *s = arg;
	struct pollfd fds[] = {{.fd = s->in, .events = POLLIN}, {.fd = s->asked, .events = POLLIN}};
	bool kept = true, asked = false;
	uint64_t end = UINT64_MAX;

	for (;;) {
		ssize_t n;
		int ready = poll(fds, asked ? 1 : 2, asked ? (int)s->wait_ms : -1);

		if (ready < 0 && errno != EINTR)
			return NULL;
		if (ready < 0)
			continue;
		if (!asked && fds[1].revents) {
			uint64_t ms;

			asked = read(s->asked, &ms, sizeof(ms)) == sizeof(ms);
			s->wait_ms = ms - 1;
			end = time__monotonic_ns() + LAST_ALL_NS;
			continue;
		}
		if (asked && (!ready || time__monotonic_ns() > end))
			return NULL;
		n = read(s->in, s->piece, sizeof(s->piece));
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return NULL;
		kept = kept && put(s, s->piece, (size_t)n);
	}
}

/* Does not wait for a writer. */
static int open_stream(const char *path)
{
	struct stat st;
	int fd;

	if (stat(path, &st))
		return -errno;
	if (S_ISSOCK(st.st_mode))
		return el_input__connect(path);
	if (!S_ISFIFO(st.st_mode))
		return -EINVAL;
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

static int open_spool(void)
{
	const char *dir = getenv("TMPDIR");
	int fd = open(dir && *dir ? dir : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

static int start(struct log_stream *s)
{
	sigset_t all, before;
	int err;

	/* signals are for the session's thread */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&s->thread, NULL, run, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

static void stream_free(struct log_stream *s)
{
	fd__close(&s->in);
	fd__close(&s->asked);
	free(s);
}

int log_stream__open(const char *path, struct log_stream **ret_stream, int *ret_fd)
{
	struct log_stream *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	snprintf(s->path, sizeof(s->path), "%s", path);
	s->asked = s->out = -1;
	s->in = open_stream(path);
	err = MIN(s->in, 0);
	if (!err) {
		s->out = open_spool();
		err = MIN(s->out, 0);
	}
	if (!err) {
		s->asked = eventfd(0, EFD_CLOEXEC);
		err = s->asked < 0 ? -errno : start(s);
	}
	if (err) {
		fd__close(&s->out);
		stream_free(s);
		return err;
	}
	*ret_stream = s;
	*ret_fd = s->out;
	return 0;
}

void log_stream__finish(struct log_stream *s, bool ended)
{
	uint64_t ms = 1 + (ended ? LAST_WAIT_MS : 0);

	if (!s)
		return;
	if (write(s->asked, &ms, sizeof(ms)) != sizeof(ms))
		pthread_cancel(s->thread);
	pthread_join(s->thread, NULL);
	stream_free(s);
}
