/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The child that becomes the command's program. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "output/output.h"

#include "command_priv.h"

/* The program is stopped for no longer than this, even if something is not ready by then. */
#define HOLD_MAX_NS 5000000000ULL
/* Limit on the wait for the dynamic linker, and how often it is checked. */
#define LOAD_MAX_NS  1000000000ULL
#define LOAD_LOOK_NS 200000
/* Until the exec a signal may stop the child, so it is checked this often. */
#define EXEC_LOOK_MS 10

enum hold {
	HOLD_OFF = 0, /* runs untraced */
	HOLD_TRACED,  /* traced; it will stop at its exec */
	HOLD_STOPPED, /* stopped at its exec, or at its entry */
	HOLD_LOADING, /* on its way from its exec to its entry */
};

struct command {
	const char *name; /* as the user gave it */
	pid_t pid;	  /* 0: the fork failed */
	int pidfd;
	int go_fd; /* closing it without writing to it ends a child that still waits */
	int failed_fd;
	int file_fd;
	char path[PATH_MAX];
	enum hold hold;
	bool let_go;	  /* it must not be stopped any longer, or at all */
	bool can_load;	  /* it can be stopped at its entry as well */
	uint64_t held_ns; /* when it was stopped */
	bool ended;
	int status;
	struct rusage usage;
};

/* ── the program ─────────────────────────────────────────────────────────────────────────── */

static bool can_run(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111);
}

/* Like execvp(): a name with a slash is a path, any other is searched for along PATH. */
static int find_program(const char *name, char out[PATH_MAX])
{
	const char *path = getenv("PATH"), *end;

	if (strchr(name, '/')) {
		if (snprintf(out, PATH_MAX, "%s", name) >= PATH_MAX)
			return -ENAMETOOLONG;
		return can_run(out) ? 0 : access(out, F_OK) ? -errno : -EACCES;
	}
	if (!name[0])
		return -ENOENT;
	for (path = path ? path : "/usr/bin:/bin"; *path; path = *end ? end + 1 : end) {
		int len;

		end = strchrnul(path, ':');
		len = snprintf(out, PATH_MAX, "%.*s%s%s", (int)(end - path), path,
			       end > path ? "/" : "./", name);
		if (len < PATH_MAX && can_run(out))
			return 0;
	}
	return -ENOENT;
}

/* ── the child ───────────────────────────────────────────────────────────────────────────── */

static void child_main(const struct command *c, char *const *argv, int go, int failed)
{
	uid_t uid;
	gid_t gid;
	char word;
	int err;

	/* the program must not inherit the blocked and ignored signals */
	signals__reset();
	fd__restore_limit();
	if (read(go, &word, 1) != 1)
		_exit(0);
	err = output__owner(&uid, &gid);
	if (!err && uid != (uid_t)-1)
		err = output__become(uid, gid);
	if (!err) {
		execv(c->path, argv);
		err = -errno;
	}
	if (write(failed, &err, sizeof(err)) != sizeof(err))
		_exit(126);
	_exit(127);
}

/* ── stopped at its exec ─────────────────────────────────────────────────────────────────── */

/*
 * The child is traced until its exec is complete, which stops it before its first instruction; then
 * it is released. SIGSTOP is not used: a ptrace stop is not visible to other processes, and ends if
 * the tracer dies. A program with set-user-id bits gets its rights although it is traced, since the
 * tracer has CAP_SYS_PTRACE (security/commoncap.c).
 */
static void hold(struct command *c)
{
	if (ptrace(PTRACE_SEIZE, c->pid, 0, PTRACE_O_TRACEEXEC)) {
		log_debug("%s: cannot be stopped at its start: %s", c->name, strerror(errno));
		return;
	}
	c->hold = HOLD_TRACED;
	c->can_load = entry__works();
	if (!c->can_load)
		log_verbose("%s: not stopped at its entry point: debug registers have no effect on "
			    "this machine",
			    c->name);
}

/* The child must be stopped. It receives the signal that stopped it (0: none). */
static void detach(struct command *c, int sig)
{
	if (c->hold != HOLD_OFF && ptrace(PTRACE_DETACH, c->pid, 0, sig) && errno != ESRCH)
		log_debug("%s: cannot be released: %s", c->name, strerror(errno));
	c->hold = HOLD_OFF;
}

/* It stays stopped at its exec and its entry; after any other stop, by a signal, it is released. */
static void on_stop(struct command *c, int status)
{
	bool at_entry = c->hold == HOLD_LOADING && status >> 8 == SIGTRAP;

	if (c->hold == HOLD_LOADING)
		entry__clear(c->pid);
	if (at_entry || status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8)) {
		c->hold = HOLD_STOPPED;
		c->held_ns = time__monotonic_ns();
	} else if (c->hold != HOLD_OFF) {
		detach(c, status >> 16 ? 0 : WSTOPSIG(status));
	}
}

static bool collect(struct command *c, int flags)
{
	int status;

	while (c->pid && !c->ended && wait4(c->pid, &status, flags, &c->usage) == c->pid) {
		if (WIFSTOPPED(status)) {
			on_stop(c, status);
			continue;
		}
		c->status = status;
		c->ended = true;
	}
	if (c->hold == HOLD_STOPPED &&
	    (c->let_go || time__monotonic_ns() - c->held_ns > HOLD_MAX_NS))
		detach(c, 0);
	return c->ended;
}

/* Waits for the stop, since the kernel reports the exec just before it. */
static bool is_at_exec(struct command *c)
{
	for (int i = 0; i < EXEC_LOOK_MS && !collect(c, WNOHANG) && c->hold == HOLD_TRACED; i++)
		poll(NULL, 0, 1);
	return c->hold == HOLD_STOPPED && !c->ended;
}

bool command__load(struct command *c)
{
	const struct timespec look = {.tv_nsec = LOAD_LOOK_NS};
	uint64_t until = time__monotonic_ns() + LOAD_MAX_NS;
	int err;

	if (!command__holds(c) || c->let_go || !c->can_load || !is_at_exec(c))
		return false;
	err = entry__set(c->pid);
	if (err || ptrace(PTRACE_CONT, c->pid, 0, 0)) {
		log_debug("%s: cannot be stopped at its entry point: %s", c->name,
			  strerror(err ? -err : errno));
		return false;
	}
	c->hold = HOLD_LOADING;
	while (!collect(c, WNOHANG) && c->hold == HOLD_LOADING && time__monotonic_ns() < until)
		nanosleep(&look, NULL);
	return c->hold == HOLD_STOPPED && !c->ended;
}

bool command__holds(const struct command *c)
{
	return c && c->hold != HOLD_OFF && !c->ended;
}

void command__let_go(struct command *c)
{
	if (!command__holds(c))
		return;
	c->let_go = true;
	/* the kernel reports the exec just before the stop; if the stop is seen later, collect()
	 * releases it */
	for (int i = 0; i < EXEC_LOOK_MS && !collect(c, WNOHANG) && c->hold != HOLD_OFF; i++)
		poll(NULL, 0, 1);
}

/* ── from its start to its end ───────────────────────────────────────────────────────────── */

static int start(struct command *c, char *const *argv)
{
	int go[2] = {-1, -1}, failed[2] = {-1, -1}, err;

	err = find_program(c->name, c->path);
	if (err)
		return err;
	c->file_fd = open(c->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (pipe2(go, O_CLOEXEC) || pipe2(failed, O_CLOEXEC) || (c->pid = fork()) < 0) {
		err = -errno;
		c->pid = 0;
	} else if (c->pid == 0) {
		fd__close(&go[1]);
		fd__close(&failed[0]);
		child_main(c, argv, go[0], failed[1]);
	} else {
		c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
		c->go_fd = go[1];
		c->failed_fd = failed[0];
		go[1] = failed[0] = -1;
	}
	for (int i = 0; i < 2; i++) {
		fd__close(&go[i]);
		fd__close(&failed[i]);
	}
	return err;
}

int command__start(char *const *argv, struct command **ret_command)
{
	struct command *c = calloc(1, sizeof(*c));
	int err = -ENOMEM;

	if (c) {
		c->name = argv[0];
		c->pidfd = c->go_fd = c->failed_fd = c->file_fd = -1;
		err = start(c, argv);
		if (!err)
			hold(c);
	}
	if (err) {
		log_error("%s: cannot be started: %s", argv[0], strerror(-err));
		command__free(c);
		return err;
	}
	*ret_command = c;
	return 0;
}

int command__go(struct command *c)
{
	struct pollfd failed = {.fd = c->failed_fd, .events = POLLIN};
	char word = 'g';
	int err = 0;

	if (write(c->go_fd, &word, 1) != 1)
		err = -errno;
	fd__close(&c->go_fd);
	while (!err && poll(&failed, 1, EXEC_LOOK_MS) <= 0)
		collect(c, WNOHANG);
	/* after a successful exec the pipe is closed, and there is nothing to read */
	if (!err && read(c->failed_fd, &err, sizeof(err)) != sizeof(err))
		err = 0;
	fd__close(&c->failed_fd);
	if (err)
		log_error("%s: cannot be started: %s", c->name, strerror(-err));
	return err;
}

bool command__ended(struct command *c)
{
	return c && collect(c, WNOHANG);
}

void command__free(struct command *c)
{
	bool waits;

	if (!c)
		return;
	waits = c->go_fd >= 0;
	fd__close(&c->go_fd);
	fd__close(&c->failed_fd);
	fd__close(&c->file_fd);
	fd__close(&c->pidfd);
	if (waits)
		collect(c, 0);
	command__let_go(c);
	free(c);
}

pid_t command__pid(const struct command *c)
{
	return c ? c->pid : 0;
}

int command__pidfd(const struct command *c)
{
	return c ? c->pidfd : -1;
}

int command__file(const struct command *c, const char **ret_path)
{
	if (!c)
		return -1;
	*ret_path = c->path;
	return c->file_fd;
}

int command__status(const struct command *c)
{
	return c && c->ended ? c->status : 0;
}

uint64_t command__cpu_ns(const struct command *c)
{
	return c && c->ended ? usage__cpu_ns(&c->usage) : 0;
}
