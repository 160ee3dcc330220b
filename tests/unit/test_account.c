/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The account that a process belongs to, also in user namespaces. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "process/proc.h"

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

/* Enters a new user namespace, waits until ids are mapped there, and becomes its user 1, or root
 * if user 1 is not mapped. */
static bool enter_ns(int up, int down)
{
	char go;

	return unshare(CLONE_NEWUSER) == 0 && write(up, "u", 1) == 1 && read(down, &go, 1) == 1 &&
	       setresuid(0, 0, 0) == 0 && (setresuid(1, 1, 1) == 0 || errno == EINVAL);
}

/* Runs as a container's process: first itself, then with a child in a nested namespace, and
 * finally in a nested namespace of its own. */
static int in_container(int up, int down, uid_t maker)
{
	pid_t within;
	char go;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (setresuid(maker, maker, maker) || prctl(PR_SET_DUMPABLE, 1) || !enter_ns(up, down))
		return 1;
	within = fork();
	if (within < 0)
		return 1;
	if (within == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWUSER))
			return 1;
		within = getpid();
		return write(up, &within, sizeof(within)) != sizeof(within) || pause();
	}
	if (read(down, &go, 1) != 1)
		return 1;
	kill(within, SIGKILL);
	waitpid(within, NULL, 0);
	if (unshare(CLONE_NEWUSER) || write(up, "r", 1) != 1)
		return 1;
	return pause();
}

/* Returns false if user namespaces are not available here. */
static bool accounts_of(uid_t maker, const char *map, const uid_t want[4])
{
	int up[2], down[2];
	char path[64], go = 0;
	uid_t uid = 12345;
	pid_t child, within;
	bool has_ns;

	assert_int_equal(pipe2(up, O_CLOEXEC), 0);
	assert_int_equal(pipe2(down, O_CLOEXEC), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(in_container(up[1], down[0], maker));
	close(up[1]);
	has_ns = read(up[0], &go, 1) == 1;
	if (has_ns) {
		assert_int_equal(proc__account(child, &uid), 0);
		assert_int_equal(uid, want[0]);
		snprintf(path, sizeof(path), "/proc/%d/uid_map", child);
		write_text(path, map);
		/* unshare(2): the maker of a nested namespace needs mapped ids in the outer one */
		snprintf(path, sizeof(path), "/proc/%d/gid_map", child);
		write_text(path, "0 0 1");
		assert_int_equal(write(down[1], "m", 1), 1);
		assert_int_equal(read(up[0], &within, sizeof(within)), sizeof(within));
		assert_int_equal(proc__account(child, &uid), 0);
		assert_int_equal(uid, want[1]);
		assert_int_equal(proc__account(within, &uid), 0);
		assert_int_equal(uid, want[2]);
		assert_int_equal(write(down[1], "n", 1), 1);
		assert_int_equal(read(up[0], &go, 1), 1);
		assert_int_equal(proc__account(child, &uid), 0);
		assert_int_equal(uid, want[3]);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(up[0]);
	close(down[0]);
	close(down[1]);
	assert_int_equal(proc__account(child, &uid), -ESRCH);
	return has_ns;
}

/*
 * In a user namespace the visible ids are whatever was mapped there. The account is that of the
 * namespace's maker; in a container that root made, it is the id that the container's first id maps
 * to. If no process is left in the outermost namespace to show that mapping, the account is -2,
 * which all such containers share, so that nobody gains an account of his own.
 */
static void test_account(void **state)
{
	const uid_t container[] = {0, 100000, 100000, (uid_t)-2},
		    users[] = {4242, 4242, 4242, 4242}, hosts[] = {0, 1, 1, (uid_t)-2};

	(void)state;
	if (geteuid() != 0)
		skip();
	if (!accounts_of(0, "5 7 1\n0 100000 3\n", container))
		skip();
	accounts_of(0, "0 0 10", hosts);
	accounts_of(4242, "0 4242 1", users);
}

static void test_maps_of_ids(void **state)
{
	static const char text[] =
		"Name:\tx\\nPPid:\t7\nUmask:\t0022\nPid:\t42\nPPid:\t41\nUid:\t1\n";
	pid_t pid = 0;
	uid_t uid = 0;

	(void)state;
	assert_int_equal(proc__parse_parent(text, sizeof(text) - 1, &pid), 0);
	assert_int_equal(pid, 41);
	assert_int_equal(proc__parse_parent("a\nPPid:\t-1\n", 12, &pid), -ENOENT);
	assert_int_equal(proc__parse_parent("a\nPPid:\t99999999999\n", 21, &pid), -ENOENT);
	assert_int_equal(proc__parse_parent("", 0, &pid), -ENOENT);

	assert_int_equal(proc__parse_uid_map("  1000 1000 1\n   0  100000 1000\n", 32, &uid), 0);
	assert_int_equal(uid, 100000);
	assert_int_equal(proc__parse_uid_map("0 4294967295 1\n7 8 9", 20, &uid), 0);
	assert_int_equal(uid, 8);
	assert_int_equal(proc__parse_uid_map("", 0, &uid), -ENODATA);
	assert_int_equal(proc__parse_uid_map("\n0\nx 5 1\n", 10, &uid), -ENODATA);
	assert_int_equal(proc__parse_uid_map("0 99999999999 1", 15, &uid), -ENODATA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_account),
		cmocka_unit_test(test_maps_of_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
