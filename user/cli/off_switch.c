/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * off_switch: a session that an operator switches off and on with a file. It runs in a child: when
 * the file appears the child ends, and everything that it attached goes with it; when the file is
 * removed another child begins.
 */
#include "off_switch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "metrics/server.h"

#define LOOK_EVERY_MS 200

/* False: a signal, or the end of the time, ended it all. */
static bool wait_for_removal(const char *path, struct metrics_server *metrics, int signal_fd,
			     uint64_t end_ns)
{
	struct pollfd p = {.fd = signal_fd, .events = POLLIN};
	struct signal_taken taken;
	bool was_there = false;

	while (access(path, F_OK) == 0) {
		if (metrics)
			metrics_server__turn(metrics, false, time__monotonic_ns());
		if (end_ns && time__monotonic_ns() >= end_ns)
			return false;
		if (!was_there)
			log_info("%s exists: nothing is profiled until it is removed", path);
		was_there = true;
		poll(&p, 1, LOOK_EVERY_MS);
		if (signals__take(signal_fd, &taken) && taken.number != SIGUSR1)
			return false;
	}
	return true;
}

/* Passes signals on to the child until it ends; its exit code. */
static int wait_for_end(pid_t pid, int pidfd, int signal_fd)
{
	struct pollfd fds[] = {{.fd = signal_fd, .events = POLLIN},
			       {.fd = pidfd, .events = POLLIN}};
	struct signal_taken taken;
	int status;

	for (;;) {
		/* without a pidfd the child is polled */
		poll(fds, ARRAY_SIZE(fds), pidfd < 0 ? LOOK_EVERY_MS : -1);
		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED;
		/* the terminal sends its own signals to the child, too */
		if (signals__take(signal_fd, &taken) && !taken.by_terminal)
			kill(pid, taken.number);
	}
}

static int run_child(const struct session_opts *opts, int signal_fd)
{
	pid_t parent = getpid(), pid;
	int pidfd, code;

	fflush(NULL);
	pid = fork();
	if (pid < 0) {
		log_error("the session cannot begin: %s", strerror(errno));
		return EXIT_FAILED;
	}
	if (!pid) {
		close(signal_fd);
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		/* it may have ended before that */
		_exit(getppid() == parent ? session__run(opts) : EXIT_FAILED);
	}
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	code = wait_for_end(pid, pidfd, signal_fd);
	fd__close(&pidfd);
	return code;
}

int off_switch__run(const struct session_opts *opts)
{
	uint64_t now = time__monotonic_ns();
	uint64_t end_ns = opts->duration_ns ? now + opts->duration_ns : 0;
	struct session_opts rest = *opts;
	int signal_fd = -1, code = 0;
	int err = signals__open(&signal_fd);

	if (!err)
		err = signals__add_usr1(signal_fd);
	if (err) {
		log_error("signals: %s", strerror(-err));
		code = EXIT_FAILED;
	}
	while (!err && wait_for_removal(opts->off_path, opts->metrics, signal_fd, end_ns)) {
		/* the time that it was off counts, too */
		now = time__monotonic_ns();
		if (end_ns)
			rest.duration_ns = end_ns > now ? end_ns - now : 1;
		code = run_child(&rest, signal_fd);
		if (code != SESSION_SWITCHED_OFF)
			break;
		code = 0;
	}
	fd__close(&signal_fd);
	return code;
}
