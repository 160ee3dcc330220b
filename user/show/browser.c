/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Opens a browser for the page. It is given the file's name rather than the address: command lines
 * are readable by all users of the host, and the address alone gives access to the page.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "output/output.h"
#include "show_priv.h"

#define OPENER "/usr/bin/xdg-open"

static bool has_display(void)
{
	const char *x = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");

	return (x && *x) || (wayland && *wayland);
}

/* The child keeps neither the terminal nor any descriptor; what it starts outlives both it and the
 * daemon. */
static void child_main(uid_t uid, gid_t gid, const char *path)
{
	int null = open("/dev/null", O_RDWR);
	char *const argv[] = {"xdg-open", (char *)(size_t)path, NULL};

	signals__reset();
	if (setsid() < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0)
		_exit(126);
	closefrom(STDERR_FILENO + 1);
	if (uid != (uid_t)-1 && output__become(uid, gid))
		_exit(126);
	execv(OPENER, argv);
	_exit(127);
}

bool show__open_browser(const char *path)
{
	char *whole = realpath(path, NULL);
	uid_t uid = (uid_t)-1;
	gid_t gid = (gid_t)-1;
	pid_t pid;

	/* never run a browser as root */
	if (!whole || !has_display() || output__owner(&uid, &gid) ||
	    (uid == (uid_t)-1 && geteuid() == 0) || uid == 0 || access(OPENER, X_OK)) {
		free(whole);
		return false;
	}
	pid = fork();
	if (pid == 0)
		child_main(uid, gid, whole);
	free(whole);
	return pid > 0;
}
