/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A child process that reads memory which may hang, and can be written off. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "mem.h"
#include "patience.h"

/* How long a wait goes on after something else came up. */
#define HURRY_MS 200
/* With an end set for all: of what is left, the part that one guard gets; and the least. */
#define SHARE	   4
#define LEAST_MS   20
/* A killed child is usually gone at once, and then there is no need to remember it. */
#define KILL_WAIT_MS 20
/* Children that could not be killed and have not ended yet. */
#define STUCK_MAX 256
/* In front of `out`: keeps it aligned, and takes fn's result. */
#define HEAD 16

struct guard {
	pid_t child, of;
	int pidfd;
	uint64_t began_ns, due_ns;
	char *base;
	size_t size;
};

/* Children are the process's, and so is what is known of them. */
static struct {
	struct patience patience;
	struct {
		pid_t child, of;
	} stuck[STUCK_MAX];
	size_t n_stuck;
	int hurry_fd;
	uint64_t all_until_ns;
} all = {.hurry_fd = -1};

void guard__hurry_by(int fd)
{
	all.hurry_fd = fd;
}

void guard__all_until(uint64_t ns)
{
	all.all_until_ns = ns;
}

/* ── those that were written off ─────────────────────────────────────────────────────────── */

static void collect_stuck(void)
{
	for (size_t i = 0; i < all.n_stuck;) {
		if (waitpid(all.stuck[i].child, NULL, WNOHANG) == 0)
			i++;
		else
			all.stuck[i] = all.stuck[--all.n_stuck];
	}
}

/* One child that cannot be killed is enough of a process. */
static bool hangs(pid_t of)
{
	for (size_t i = 0; i < all.n_stuck; i++)
		if (all.stuck[i].of == of)
			return true;
	return all.n_stuck == STUCK_MAX;
}

/* ── the child ───────────────────────────────────────────────────────────────────────────── */

/*
 * Nothing of the daemon's: a probe lives as long as anyone holds its link, and whoever reads our
 * output waits as long as anyone may write to it.
 */
static void close_all(void)
{
	if (syscall(SYS_close_range, 0, ~0U, 0)) {
		long max = sysconf(_SC_OPEN_MAX);

		for (int i = 0; i < max; i++)
			close(i);
	}
	/* what is printed here goes nowhere */
	for (int i = 0; i < 3; i++)
		if (open("/dev/null", O_RDWR) < 0)
			_exit(1);
	/* the daemon's own folder is somebody's file system too */
	if (chdir("/"))
		_exit(1);
}

static void child_main(pid_t parent, guard_fn fn, void *ctx, char *base)
{
	struct sigaction dfl = {.sa_handler = SIG_DFL};
	sigset_t none;

	close_all();
	/* The daemon's handlers are not for the child, and it must not outlive the daemon. */
	sigaction(SIGINT, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	sigaction(SIGTERM, &dfl, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	/* the exit status has 8 bits */
	*(volatile int *)base = fn(ctx, base + HEAD);
	_exit(0);
}

/* ── its life ────────────────────────────────────────────────────────────────────────────── */

/* -EBUSY: no time for it. */
static int time_for(pid_t of, int timeout_ms, uint64_t now, int *ret_ms)
{
	uint64_t left;
	int ms, err = patience__ask(&all.patience, of, timeout_ms, now, &ms);

	if (err)
		return err;
	if (all.all_until_ns) {
		left = all.all_until_ns > now ? (all.all_until_ns - now) / 1000000ULL : 0;
		if (!left)
			return -EBUSY;
		ms = (int)MIN((uint64_t)ms, MAX(left / SHARE, (uint64_t)LEAST_MS));
	}
	*ret_ms = ms;
	return 0;
}

static int map_out(struct guard *g, size_t size)
{
	void *base;

	if (size + HEAD < size)
		return -EINVAL;
	base = mmap(NULL, size + HEAD, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		return -errno;
	g->base = base;
	g->size = size;
	return 0;
}

int guard__start(pid_t of, int timeout_ms, guard_fn fn, void *ctx, size_t size,
		 struct guard **ret_guard)
{
	uint64_t now = time__monotonic_ns();
	pid_t parent = getpid();
	struct guard *g;
	int ms, err;

	collect_stuck();
	err = hangs(of) ? -EBUSY : time_for(of, timeout_ms, now, &ms);
	if (err)
		return err;
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->pidfd = -1;
	g->of = of;
	g->began_ns = now;
	g->due_ns = now + (uint64_t)MAX(ms, 0) * 1000000ULL;
	err = map_out(g, size);
	if (!err) {
		g->child = fork();
		if (g->child < 0)
			err = -errno;
	}
	if (err) {
		g->child = 0;
		guard__free(g);
		return err;
	}
	if (g->child == 0)
		child_main(parent, fn, ctx, g->base);
	g->pidfd = (int)syscall(SYS_pidfd_open, g->child, 0);
	*ret_guard = g;
	return 0;
}

int guard__fd(const struct guard *g)
{
	return g->pidfd;
}

uint64_t guard__due_ns(const struct guard *g)
{
	return g->due_ns;
}

/* Waits until there may be something to take; `ms`: at most. */
static void wait_a_while(const struct guard *g, int hurry_fd, int ms)
{
	struct pollfd fds[] = {{.fd = g->pidfd, .events = POLLIN},
			       {.fd = hurry_fd, .events = POLLIN}};

	poll(fds, ARRAY_SIZE(fds), g->pidfd < 0 ? MIN(ms, 1) : ms);
}

/* What the kernel does not let die stays our child, and is collected when it ends. */
static void kill_child(struct guard *g)
{
	kill(g->child, SIGKILL);
	wait_a_while(g, -1, KILL_WAIT_MS);
	if (waitpid(g->child, NULL, WNOHANG) == 0 && all.n_stuck < STUCK_MAX) {
		log_verbose("helper process %d: cannot be killed while it reads pid %d's memory; "
			    "it is left behind",
			    g->child, g->of);
		all.stuck[all.n_stuck].child = g->child;
		all.stuck[all.n_stuck++].of = g->of;
	}
	g->child = 0;
}

void guard__free(struct guard *g)
{
	if (!g)
		return;
	if (g->child)
		kill_child(g);
	fd__close(&g->pidfd);
	if (g->base)
		munmap(g->base, g->size + HEAD);
	free(g);
}

int guard__take(struct guard *g, void **ret_out)
{
	uint64_t now = time__monotonic_ns();
	int status = 0, err;
	pid_t got = waitpid(g->child, &status, WNOHANG);

	if (got == 0 && now < g->due_ns)
		return -EINPROGRESS;
	if (got == 0) {
		patience__hung(&all.patience, g->of, now - g->began_ns, now);
		err = -ETIMEDOUT;
	} else {
		g->child = 0;
		patience__well(&all.patience, g->of);
		err = got > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? *(int *)g->base
									       : -EIO;
	}
	if (!err) {
		*ret_out = g->base + HEAD;
		g->base = NULL;
	}
	guard__free(g);
	return err;
}

/* ── waiting for one ─────────────────────────────────────────────────────────────────────── */

static bool is_readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return fd >= 0 && poll(&p, 1, 0) > 0;
}

int mem__guard(pid_t of, int timeout_ms, guard_fn fn, void *ctx, size_t size, void **ret_out)
{
	int hurry_fd = all.hurry_fd;
	struct guard *g;
	int err = guard__start(of, timeout_ms, fn, ctx, size, &g);

	while (!err) {
		uint64_t now;

		err = guard__take(g, ret_out);
		if (err != -EINPROGRESS)
			break;
		err = 0;
		now = time__monotonic_ns();
		if (is_readable(hurry_fd)) {
			g->due_ns = MIN(g->due_ns, now + HURRY_MS * 1000000ULL);
			hurry_fd = -1;
		}
		if (now < g->due_ns)
			wait_a_while(g, hurry_fd, (int)((g->due_ns - now) / 1000000ULL) + 1);
	}
	return err;
}

void mem__guard_free(void *out, size_t size)
{
	if (out)
		munmap((char *)out - HEAD, size + HEAD);
}
