/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process without rights that answers questions, over a pair of SOCK_SEQPACKET sockets. */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "confine_priv.h"

struct confine_server {
	struct confine_service service;
	void *ctx;
	pid_t pid; /* 0: not running */
	int fd;
	struct confine_server *next; /* list of all servers */
};

/* Process-wide, as children are: those that ended are reaped together. */
static struct confine_server *servers;

int confine_server__new(const struct confine_service *service, void *ctx,
			struct confine_server **ret_server)
{
	struct confine_server *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->service = *service;
	s->ctx = ctx;
	s->fd = -1;
	s->next = servers;
	servers = s;
	*ret_server = s;
	return 0;
}

/* ── the child ───────────────────────────────────────────────────────────────────────────── */

/* How long the child waits for a question; -1: for ever. */
static int idle_ms(const struct confine_service *of)
{
	int64_t ms;

	if (of->idle_ms <= 0)
		return -1;
	ms = (int64_t)(time__cpu_ns() / 1000000) * CONFINE_IDLE_PER_CPU;
	return MAX(of->idle_ms, (int)MIN(ms, (int64_t)CONFINE_IDLE_MAX_MS));
}

static void serve(const struct confine_server *s, int fd, void *question, void *answer)
{
	const struct confine_service *of = &s->service;

	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		int n = poll(&p, 1, idle_ms(of));
		ssize_t got;
		size_t len;

		if (n == 0)
			return;
		got = n > 0 ? read(fd, question, of->max_question) : -1;
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return;
		len = of->answer(s->ctx, question, (size_t)got, answer);
		if (len > of->max_answer || write(fd, answer, len) != (ssize_t)len)
			_exit(1);
	}
}

static void child(const struct confine_server *s, int fd, pid_t parent)
{
	/* before the memory limit applies */
	void *question = malloc(s->service.max_question), *answer = malloc(s->service.max_answer);

	if (!question || !answer ||
	    confine_child__enter(&s->service.how, parent, (struct confine_ends){fd, -1},
				 (struct confine_memory){0}))
		_exit(2);
	if (s->service.begin && s->service.begin(s->ctx) < 0)
		_exit(3);
	serve(s, fd, question, answer);
	_exit(0);
}

/* ── the daemon ──────────────────────────────────────────────────────────────────────────── */

static int start(struct confine_server *s)
{
	const struct sock_fprog *program;
	pid_t parent = getpid();
	int fds[2], err;

	if (s->service.how.n_fds > CONFINE_MAX_FDS)
		return -EINVAL;
	err = confine_filter__get(s->service.how.keep, &program);
	if (err)
		return err;
	/* descriptors may become available soon */
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return errno == EMFILE || errno == ENFILE ? -EBUSY : -errno;
	err = confine_children__fork(&s->service.how, &s->pid);
	if (err) {
		close(fds[0]);
		close(fds[1]);
		s->pid = 0;
		return err;
	}
	if (s->pid == 0)
		child(s, fds[1], parent);
	close(fds[1]);
	s->fd = fds[0];
	return 0;
}

void confine_server__stop(struct confine_server *s)
{
	if (s->pid > 0)
		confine_children__kill(s->pid);
	s->pid = 0;
	fd__close(&s->fd);
}

/* The child has been reaped. */
static void gone(struct confine_server *s)
{
	confine_children__gone(s->pid);
	s->pid = 0;
	fd__close(&s->fd);
}

void confine_servers__reap(void)
{
	for (struct confine_server *s = servers; s; s = s->next)
		if (s->pid > 0 && waitpid(s->pid, NULL, WNOHANG) == s->pid)
			gone(s);
}

/* Whether the child exited by itself because it was idle for too long. */
static bool was_idle(struct confine_server *s)
{
	int status = 0;
	pid_t got = waitpid(s->pid, &status, WNOHANG);

	/* its socket is closed slightly before it can be reaped */
	for (int i = 0; got == 0 && i < 100; i++) {
		poll(NULL, 0, 1);
		got = waitpid(s->pid, &status, WNOHANG);
	}
	if (got != s->pid)
		return false;
	gone(s);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int wait_answer(const struct confine_server *s, int timeout_ms)
{
	uint64_t now = time__monotonic_ns();
	uint64_t until = now + (uint64_t)MAX(timeout_ms, 0) * 1000000ULL * machine__slowness();

	for (;;) {
		struct pollfd p = {.fd = s->fd, .events = POLLIN};
		int n = poll(&p, 1, now < until ? (int)((until - now) / 1000000ULL) + 1 : 0);

		if (n > 0)
			return 0;
		now = time__monotonic_ns();
		if (now >= until)
			return -ETIMEDOUT;
	}
}

/* -EPIPE: the child is gone, and did not answer. */
static int ask_once(struct confine_server *s, const void *question, size_t len, int timeout_ms,
		    void *answer, size_t *ret_len)
{
	struct iovec iov = {.iov_base = answer, .iov_len = s->service.max_answer};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	int err = s->pid ? 0 : start(s);
	ssize_t n;

	if (err)
		return err;
	n = send(s->fd, question, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n != (ssize_t)len)
		return n < 0 && (errno == EPIPE || errno == ECONNRESET) ? -EPIPE : -EIO;
	err = wait_answer(s, timeout_ms);
	if (err)
		return err;
	n = recvmsg(s->fd, &msg, MSG_DONTWAIT);
	if (n == 0 || (n < 0 && errno == ECONNRESET))
		return -EPIPE;
	if (n < 0 || (msg.msg_flags & MSG_TRUNC))
		return -EIO;
	*ret_len = (size_t)n;
	return 0;
}

int confine_server__ask(struct confine_server *s, const void *question, size_t len, int timeout_ms,
			void *answer, size_t *ret_len)
{
	bool ran = s->pid != 0;
	int err;

	if (len == 0 || len > s->service.max_question)
		return -EINVAL;
	confine__reap();
	err = ask_once(s, question, len, timeout_ms, answer, ret_len);
	if (err == -EPIPE && was_idle(s) && ran)
		err = ask_once(s, question, len, timeout_ms, answer, ret_len);
	if (err == -EPIPE)
		err = -EIO;
	if (err)
		confine_server__stop(s);
	return err;
}

pid_t confine_server__pid(const struct confine_server *s)
{
	return s->pid;
}

void confine_server__free(struct confine_server *s)
{
	struct confine_server **at = &servers;

	if (!s)
		return;
	confine_server__stop(s);
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	free(s);
}
