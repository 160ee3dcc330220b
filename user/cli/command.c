/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Starts the program of `safescoped -- COMMAND`. */
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "output.h"

void command__init(struct command *c)
{
	*c = (struct command){.pidfd = -1, .go_fd = -1, .failed_fd = -1, .file_fd = -1};
}

/* ── the program ─────────────────────────────────────────────────────────────────────────── */

static bool can_run(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111);
}

/* As execvp() looks: a name with a slash is a path, any other is looked for along PATH. */
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

/* The user who ran sudo, with that user's groups and home; else whoever we are. */
static int become_user(uid_t uid, gid_t gid)
{
	struct passwd *pw = getpwuid(uid);

	if (pw ? initgroups(pw->pw_name, gid) : setgroups(1, &gid))
		return -errno;
	if (setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
		return -errno;
	if (pw) {
		setenv("HOME", pw->pw_dir, 1);
		setenv("USER", pw->pw_name, 1);
		setenv("LOGNAME", pw->pw_name, 1);
	}
	return 0;
}

static void child_main(const struct command *c, char *const *argv, int go, int failed)
{
	struct sigaction dfl = {.sa_handler = SIG_DFL};
	sigset_t none;
	uid_t uid;
	gid_t gid;
	char word;
	int err = 0;

	/* the daemon blocks its signals and ignores SIGPIPE: the program shall not inherit that */
	sigaction(SIGPIPE, &dfl, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (read(go, &word, 1) != 1)
		_exit(0);
	outputs__owner(&uid, &gid);
	if (uid != (uid_t)-1)
		err = become_user(uid, gid == (gid_t)-1 ? uid : gid);
	if (!err) {
		execv(c->path, argv);
		err = -errno;
	}
	if (write(failed, &err, sizeof(err)) != sizeof(err))
		_exit(126);
	_exit(127);
}

int command__start(char *const *argv, struct command *c)
{
	int go[2] = {-1, -1}, failed[2] = {-1, -1}, err;

	err = find_program(argv[0], c->path);
	if (err) {
		log_error("%s: cannot be started: %s", argv[0], strerror(-err));
		return err;
	}
	c->file_fd = open(c->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (pipe2(go, O_CLOEXEC) || pipe2(failed, O_CLOEXEC) || (c->pid = fork()) < 0) {
		err = -errno;
		c->pid = 0;
		log_error("%s: cannot be started: %s", argv[0], strerror(-err));
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

int command__go(struct command *c, const char *name)
{
	char word = 'g';
	int err = 0;

	if (write(c->go_fd, &word, 1) != 1)
		err = -errno;
	fd__close(&c->go_fd);
	/* closed by the exec: nothing to read then */
	if (!err && read(c->failed_fd, &err, sizeof(err)) != sizeof(err))
		err = 0;
	fd__close(&c->failed_fd);
	if (err)
		log_error("%s: cannot be started: %s", name, strerror(-err));
	return err;
}

bool command__ended(struct command *c)
{
	if (c->pid && !c->ended && wait4(c->pid, &c->status, WNOHANG, &c->usage) == c->pid)
		c->ended = true;
	return c->ended;
}

void command__close(struct command *c)
{
	bool waiting = c->go_fd >= 0;

	fd__close(&c->go_fd);
	fd__close(&c->failed_fd);
	fd__close(&c->file_fd);
	fd__close(&c->pidfd);
	if (c->pid && !c->ended && waiting && wait4(c->pid, &c->status, 0, &c->usage) == c->pid)
		c->ended = true;
}
