/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The path of a running program whose file is replaced or removed, or has a name that looks like
 * a removed file's. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "process/proc.h"
#include "process/select.h"
#include "temp_dir.h"

#define GONE " (deleted)"

static const char *in_dir(const char *name)
{
	static char paths[4][PATH_MAX];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, PATH_MAX, "%s/%s", dir, name);
	return path;
}

static void copy_program(const char *name)
{
	char command[PATH_MAX * 2];

	snprintf(command, sizeof(command), "cp /bin/sleep '%s'", in_dir(name));
	assert_int_equal(system(command), 0);
}

/* Runs a copy of a program under that name. */
static pid_t start(const char *name)
{
	int ready[2];
	char byte;
	pid_t pid;

	copy_program(name);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		execl(in_dir(name), "sleep", "1000", NULL);
		_exit(1);
	}
	close(ready[1]);
	/* closed by the exec */
	assert_int_equal(read(ready[0], &byte, 1), 0);
	close(ready[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void check(pid_t pid, const char *name)
{
	struct select_rules rules = {.n = 0};
	char path[PATH_MAX];

	assert_int_equal(proc__exe(pid, path, sizeof(path)), 0);
	assert_string_equal(path, in_dir(name));
	/* and --exe matches that path */
	assert_int_equal(select__add(&rules, SELECT_EXE, path, false), 0);
	assert_true(select__wants(&rules, pid));
}

/* Checks the target of /proc/PID/exe. */
static void check_link(pid_t pid, const char *name)
{
	char link[64], path[PATH_MAX] = "";

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	assert_true(readlink(link, path, sizeof(path) - 1) > 0);
	assert_string_equal(path, in_dir(name));
}

/* As by a package upgrade; the old file may have another name as well. */
static void test_replaced(void **state)
{
	pid_t pid = start("app");

	(void)state;
	check(pid, "app");
	copy_program("new");
	assert_int_equal(link(in_dir("app"), in_dir("kept")), 0);
	assert_int_equal(rename(in_dir("new"), in_dir("app")), 0);
	check_link(pid, "app" GONE);
	check(pid, "app");
	assert_int_equal(unlink(in_dir("kept")), 0);
	check(pid, "app");
	/* nor is it mistaken for another file that has the kernel's name with the suffix */
	copy_program("app" GONE);
	check_link(pid, "app" GONE);
	check(pid, "app");
	end(pid);
}

/* A file whose real name ends in the kernel's suffix, also when it is removed and gets a second
 * one. */
static void test_called_so(void **state)
{
	pid_t pid = start("tool" GONE);

	(void)state;
	check_link(pid, "tool" GONE);
	check(pid, "tool" GONE);
	copy_program("tool");
	check(pid, "tool" GONE);
	assert_int_equal(unlink(in_dir("tool" GONE)), 0);
	check_link(pid, "tool" GONE GONE);
	check(pid, "tool" GONE);
	end(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replaced),
		cmocka_unit_test(test_called_so),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
