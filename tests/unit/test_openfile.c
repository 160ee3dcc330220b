/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which of a process's open files are its own, tried on a child that has all kinds of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "process/openfile.h"
#include "process/origin.h"
#include "process/proc.h"

#define OTHER 65534

#define FOLDER "/var/tmp/safescoped-test-XXXXXX"

struct files {
	char dir[sizeof(FOLDER)];
	int both, write, read, path, fifo, dir_fd, others;
};

static int open_at(const struct files *f, const char *name, int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	fd = open(path, flags | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	return fd;
}

static void make(struct files *f)
{
	char path[64];

	struct origin origin;

	strcpy(f->dir, FOLDER);
	assert_non_null(mkdtemp(f->dir));
	f->both = open_at(f, "own", O_RDWR | O_CREAT);
	/* in some containers no file system is known to be local */
	origin__of(0, f->both, (uid_t)-1, &origin);
	if (origin.reach == ORIGIN_FOREIGN)
		skip();
	assert_int_equal(write(f->both, "text", 4), 4);
	f->write = open_at(f, "own", O_WRONLY | O_APPEND);
	f->read = open_at(f, "own", O_RDONLY);
	f->path = open_at(f, "own", O_PATH);
	f->others = open_at(f, "others", O_RDWR | O_CREAT);
	snprintf(path, sizeof(path), "%s/fifo", f->dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	f->fifo = open_at(f, "fifo", O_RDWR);
	f->dir_fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void remove_all(struct files *f)
{
	static const char *const names[] = {"own", "others", "fifo"};
	int *fds[] = {&f->both, &f->write, &f->read, &f->path, &f->fifo, &f->dir_fd, &f->others};
	char path[64];

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fd__close(fds[i]);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", f->dir, names[i]);
		unlink(path);
	}
	assert_int_equal(rmdir(f->dir), 0);
}

static void assert_readable(pid_t pid, int number)
{
	char text[8] = "";
	int fd = -1;

	assert_int_equal(open_file__own(pid, number, &fd), 0);
	assert_int_equal(read(fd, text, sizeof(text)), 4);
	assert_string_equal(text, "text");
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	close(fd);
}

static void check_rights(const struct files *f, pid_t pid)
{
	int fd = -1;

	assert_readable(pid, f->both);
	assert_readable(pid, f->write);
	assert_int_equal(open_file__own(pid, f->read, &fd), -EPERM);
	assert_int_equal(open_file__own(pid, f->path, &fd), -EPERM);
	assert_int_equal(open_file__own(pid, f->dir_fd, &fd), -EPERM);
	assert_int_equal(open_file__own(pid, f->fifo, &fd), -EINVAL);
	assert_int_equal(open_file__own(pid, 1000000, &fd), -ENOENT);
	assert_int_equal(fd, -1);
}

static void test_ourselves(void **state)
{
	struct files f;
	int fd = -1, null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)state;
	make(&f);
	check_rights(&f, getpid());
	assert_true(open_file__own(getpid(), null, &fd) < 0);
	close(null);
	remove_all(&f);
}

static void test_another_user(void **state)
{
	int pipes[2], status, fd = -1;
	struct files f;
	char ready;
	pid_t pid;

	(void)state;
	if (geteuid())
		skip();
	make(&f);
	assert_int_equal(fchown(f.both, OTHER, OTHER), 0);
	assert_int_equal(fchown(f.fifo, OTHER, OTHER), 0);
	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (setresgid(OTHER, OTHER, OTHER) || setresuid(OTHER, OTHER, OTHER) ||
		    write(pipes[1], "r", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(pipes[0], &ready, 1), 1);
	check_rights(&f, pid);
	/* root opened it for the process: the content is still root's */
	assert_int_equal(open_file__own(pid, f.others, &fd), -EPERM);
	assert_int_equal(fd, -1);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(open_file__own(pid, f.both, &fd) < 0);
	close(pipes[0]);
	close(pipes[1]);
	remove_all(&f);
}

struct seen {
	const struct files *f;
	unsigned own, all;
};

static int see(void *ctx, int number, const char *path)
{
	struct seen *s = ctx;

	assert_int_equal(path[0], '/');
	s->all++;
	if (!strncmp(path, s->f->dir, strlen(s->f->dir)) && !strcmp(path__base(path), "own"))
		s->own++;
	return number == s->f->path && s->own == 4 ? 77 : 0;
}

static void test_each(void **state)
{
	struct files f;
	struct seen s = {.f = &f};
	int pipes[2];

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	make(&f);
	assert_int_equal(open_files__each(getpid(), 65536, see, &s), 77);
	assert_int_equal(s.own, 4);
	s.own = s.all = 0;
	assert_int_equal(open_files__each(getpid(), 4, see, &s), 0);
	assert_true(s.all <= 4 && s.own < 4);
	assert_int_equal(open_files__each(0x3fffffff, 9, see, &s), -ESRCH);
	remove_all(&f);
	close(pipes[0]);
	close(pipes[1]);
}

static void test_uids(void **state)
{
	static const char text[] = "Name:\ta\nUid:\t0\t1000\t4294967295\t7\nGid:\t1\n";
	uid_t uids[PROC_UIDS] = {0};

	(void)state;
	assert_int_equal(proc__parse_uids(text, strlen(text), uids), 0);
	assert_int_equal(uids[0], 0);
	assert_int_equal(uids[1], 1000);
	assert_int_equal(uids[2], UINT32_MAX);
	assert_int_equal(uids[3], 7);
	for (size_t len = 0; len < strlen("Name:\ta\nUid:\t0\t1000\t4294967295\t"); len++)
		assert_int_equal(proc__parse_uids(text, len, uids), -ENOENT);
	assert_int_equal(proc__parse_uids("a\nUid:\t0\t1\n", 11, uids), -ENOENT);
	assert_int_equal(proc__parse_uids("a\nUid:\t0\t1\t2\t4294967296\n", 25, uids), -ENOENT);
	assert_int_equal(proc__uids(getpid(), uids), 0);
	assert_int_equal(uids[1], geteuid());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ourselves),
		cmocka_unit_test(test_another_user),
		cmocka_unit_test(test_each),
		cmocka_unit_test(test_uids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
