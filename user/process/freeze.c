/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The child that holds a process stopped. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "confine/confine.h"
#include "freeze.h"

#define MAX_THREADS 65536
/* Rounds of looking for threads that were created before their creator was stopped. */
#define MAX_ROUNDS 64

struct order {
	pid_t pid;
	int most_ms;
};

/* The only message that the child sends. */
struct answer {
	int32_t err;
	uint32_t n_threads;
	uint64_t stopped_ns;
};

struct freeze {
	struct confine_peer *peer;
	uint64_t began_ns, stopped_ns, most_ns;
};

/* ── in the child ────────────────────────────────────────────────────────────────────────── */

struct threads {
	pid_t *tids;
	size_t n, cap;
};

static bool is_known(const struct threads *t, pid_t tid)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->tids[i] == tid)
			return true;
	return false;
}

static int seize(struct threads *t, pid_t tid)
{
	int err = ARRAY_RESERVE(t->tids, t->cap, t->n + 1, MAX_THREADS);

	if (err)
		return err;
	/* ESRCH: it has ended meanwhile */
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) || ptrace(PTRACE_INTERRUPT, tid, NULL, NULL))
		return errno == ESRCH ? 0 : -errno;
	t->tids[t->n++] = tid;
	return 0;
}

/* Seizes the threads that are not known yet. */
static int seize_new(struct threads *t, const char *tasks)
{
	DIR *dir = opendir(tasks);
	const struct dirent *e;
	int err = 0;

	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while (!err && (e = readdir(dir))) {
		pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);

		if (isdigit((unsigned char)e->d_name[0]) && !is_known(t, tid))
			err = seize(t, tid);
	}
	closedir(dir);
	return err;
}

/*
 * Waits until the thread has stopped for any reason, including delivery of a signal, or has ended.
 * WNOWAIT leaves the stop unread: once a signal-delivery-stop has been read, the kernel leaves the
 * signal to the tracer (ptrace(2)), and the thread, which we never restart explicitly, would not
 * receive it.
 */
static int wait_for_stop(pid_t tid)
{
	const int what = WSTOPPED | WEXITED | WNOWAIT | __WALL;
	siginfo_t info;

	while (waitid(P_PID, (id_t)tid, &info, what)) {
		/* it has ended, and somebody else has waited for it */
		if (errno == ECHILD)
			return 0;
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

/* Stops all threads of a process; done after a round that finds no further thread. */
static int stop_all(pid_t pid, uint32_t *ret_n)
{
	struct threads t = {0};
	size_t stopped = 0;
	char tasks[64];
	int err;

	snprintf(tasks, sizeof(tasks), "/proc/%d/task", pid);
	err = seize_new(&t, tasks);
	for (int round = 0; !err && stopped < t.n; round++) {
		for (; !err && stopped < t.n; stopped++)
			err = wait_for_stop(t.tids[stopped]);
		if (!err)
			err = round < MAX_ROUNDS ? seize_new(&t, tasks) : -ETIMEDOUT;
	}
	if (!err && !t.n)
		err = -ESRCH;
	*ret_n = (uint32_t)t.n;
	free(t.tids);
	return err;
}

/* Holds them until the daemon closes its end, or the timer expires. */
static void hold(void *ctx, int in, int out)
{
	const struct order *order = ctx;
	const struct itimerval timer = {.it_value = {.tv_sec = order->most_ms / 1000,
						     .tv_usec = order->most_ms % 1000 * 1000L}};
	struct pollfd p = {.fd = in, .events = POLLIN};
	struct answer a = {0};

	if (setitimer(ITIMER_REAL, &timer, NULL))
		a.err = -errno;
	else
		a.err = stop_all(order->pid, &a.n_threads);
	a.stopped_ns = time__monotonic_ns();
	if (write(out, &a, sizeof(a)) != sizeof(a) || a.err)
		return;
	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
}

/* ── outside ─────────────────────────────────────────────────────────────────────────────── */

static int await(const struct freeze *f, int timeout_ms, struct answer *ret_answer)
{
	struct pollfd p = {.fd = confine_peer__fd(f->peer), .events = POLLIN};
	int n = poll(&p, 1, timeout_ms);

	if (n <= 0)
		return n ? -errno : -ETIMEDOUT;
	/* it could not be confined, or its time was up */
	if (confine_peer__take(f->peer, ret_answer, sizeof(*ret_answer)))
		return -EIO;
	return ret_answer->err < 0 && ret_answer->err > -4096 ? ret_answer->err : 0;
}

int freeze__start(pid_t pid, int most_ms, struct freeze **ret_freeze)
{
	const struct confine how = {.name = "safescoped:hold",
				    .keep = CONFINE_PROC | CONFINE_TRACE,
				    .user = CONFINE_NOBODY};
	struct order order = {.pid = pid, .most_ms = most_ms};
	struct freeze *f = calloc(1, sizeof(*f));
	struct answer answer;
	int err;

	if (!f)
		return -ENOMEM;
	f->began_ns = time__monotonic_ns();
	f->most_ns = (uint64_t)most_ms * 1000000ULL;
	err = confine_peer__start(&how, hold, &order, &f->peer);
	if (!err)
		err = await(f, MIN(most_ms, FREEZE_WAIT_MS), &answer);
	if (err) {
		freeze__free(f);
		return err;
	}
	f->stopped_ns = MAX(answer.stopped_ns, f->began_ns);
	*ret_freeze = f;
	return 0;
}

void freeze__end(struct freeze *f, uint64_t *ret_ns, bool *ret_until_now)
{
	uint64_t now, until;
	struct pollfd p;

	if (!f)
		return;
	p = (struct pollfd){.fd = confine_peer__fd(f->peer), .events = POLLIN};
	/* it sends no other message: readable means that it has ended */
	*ret_until_now = poll(&p, 1, 0) == 0;
	confine_peer__free(f->peer);
	f->peer = NULL;
	now = time__monotonic_ns();
	until = MIN(now, f->began_ns + f->most_ns);
	*ret_ns = until - MIN(until, f->stopped_ns);
	freeze__free(f);
}

void freeze__free(struct freeze *f)
{
	if (!f)
		return;
	confine_peer__free(f->peer);
	free(f);
}
