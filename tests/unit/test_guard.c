/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Work in a child that may crash or hang: its result, its end, and how long the parent waits for
 * it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "confine/confine.h"
#include "process/mem.h"
#include "process/patience_priv.h"
#include "process/proc.h"

static int fn_sum(void *ctx, void *out)
{
	*(int *)out = *(const int *)ctx + 1;
	return 0;
}

static int fn_error(void *ctx, void *out)
{
	(void)ctx;
	(void)out;
	return -ENOEXEC;
}

static int fn_hang(void *ctx, void *out)
{
	(void)ctx;
	(void)out;
	for (;;)
		poll(NULL, 0, -1);
	return 0;
}

static int fn_crash(void *ctx, void *out)
{
	(void)ctx;
	(void)out;
	__builtin_trap();
	return 0;
}

/* No child is left, not even a zombie; killed ones are given time to die. */
static void no_child_left(void)
{
	while (confine__reap())
		poll(NULL, 0, 1);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void test_guard(void **state)
{
	uint64_t start, took;
	int value = 41;
	void *out;

	(void)state;
	assert_int_equal(mem__guard(1, GUARD_PROC, 5000, fn_sum, &value, sizeof(int), &out), 0);
	assert_int_equal(*(int *)out, 42);
	mem__guard_free(out, sizeof(int));
	assert_int_equal(mem__guard(1, GUARD_PROC, 5000, fn_error, NULL, 8, &out), -ENOEXEC);
	assert_int_equal(mem__guard(1, GUARD_PROC, 5000, fn_crash, NULL, 8, &out), -EIO);
	start = time__monotonic_ns();
	assert_int_equal(mem__guard(1, GUARD_PROC, 100, fn_hang, NULL, 8, &out), -ETIMEDOUT);
	took = time__monotonic_ns() - start;
	assert_in_range(took, 100 * 1000000ULL, 3000 * 1000000ULL);
	/* a process that hung is left alone for a time; others are not */
	assert_int_equal(mem__guard(1, GUARD_PROC, 5000, fn_sum, &value, sizeof(int), &out),
			 -EBUSY);
	assert_int_equal(mem__guard(2, GUARD_PROC, 5000, fn_sum, &value, sizeof(int), &out), 0);
	mem__guard_free(out, sizeof(int));
	no_child_left();
}

/* Takes longer than PATIENCE_SHORT_MS, the wait that remains when patience is used up. */
static int fn_slow_sum(void *ctx, void *out)
{
	struct timespec wait = {.tv_nsec = 300000000};

	nanosleep(&wait, NULL);
	return fn_sum(ctx, out);
}

/* Counts the daemon's open descriptors in the child, including standard output. Sanitizers keep
 * their own. */
static int fn_descriptors(void *ctx, void *out)
{
	struct stat st;

	for (int fd = 0; fd < 1024; fd++)
		*(int *)out += fd != STDERR_FILENO && fstat(fd, &st) == 0;
	return fstat(*(const int *)ctx, &st) < 0 && errno == EBADF ? 0 : -EEXIST;
}

static void test_guard_has_nothing(void **state)
{
	int fds[2];
	void *out;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(
		mem__guard(3, GUARD_PROC, 5000, fn_descriptors, &fds[1], sizeof(int), &out), 0);
	assert_int_equal(*(int *)out, 0);
	mem__guard_free(out, sizeof(int));
	close(fds[0]);
	close(fds[1]);
}

/* A child that sleeps for a while may do so: it waits for a target's next state in this way. */
static int fn_sleep(void *ctx, void *out)
{
	const struct timespec wait = {.tv_nsec = 30000000};

	(void)ctx;
	(void)out;
	return nanosleep(&wait, NULL) ? -errno : 0;
}

static void test_guard_sleeps(void **state)
{
	uint64_t start = time__monotonic_ns();
	void *out;

	(void)state;
	assert_int_equal(mem__guard(9, GUARD_PROC, 5000, fn_sleep, NULL, 8, &out), 0);
	assert_true(time__monotonic_ns() - start >= 30000000);
	mem__guard_free(out, 8);
}

/* Several at a time, without waiting for any of them. */
static void test_guard_not_waited_for(void **state)
{
	struct guard *hangs, *sums;
	int value = 1, err;
	void *out;

	(void)state;
	assert_int_equal(guard__start(4, GUARD_PROC, 60000, fn_hang, NULL, 8, &hangs), 0);
	assert_int_equal(guard__start(5, GUARD_PROC, 60000, fn_sum, &value, sizeof(int), &sums), 0);
	while ((err = guard__take(sums, &out)) == -EINPROGRESS) {
		struct pollfd p = {.fd = guard__fd(sums), .events = POLLIN};

		poll(&p, 1, 1000);
	}
	assert_int_equal(err, 0);
	assert_int_equal(*(int *)out, 2);
	mem__guard_free(out, sizeof(int));
	assert_int_equal(guard__take(hangs, &out), -EINPROGRESS);
	guard__free(hangs);
	no_child_left();
}

/* Only time spent waiting counts: however many children hang unwaited, the next one gets its
 * full time. */
static void test_guard_hangs_alone(void **state)
{
	struct guard *hangs[8];
	int value = 1, left = 8;
	void *out;

	(void)state;
	for (int i = 0; i < 8; i++)
		assert_int_equal(
			guard__start(20 + i, GUARD_PROC, 1000, fn_hang, NULL, 8, &hangs[i]), 0);
	while (left) {
		poll(NULL, 0, 10);
		for (int i = 0; i < 8; i++) {
			int err = hangs[i] ? guard__take(hangs[i], &out) : -EINPROGRESS;

			if (err == -EINPROGRESS)
				continue;
			assert_int_equal(err, -ETIMEDOUT);
			hangs[i] = NULL;
			left--;
		}
	}
	/* each of these processes is left alone for a while, with waiting or without */
	assert_int_equal(guard__start(20, GUARD_PROC, 1000, fn_sum, &value, sizeof(int), &hangs[0]),
			 -EBUSY);
	no_child_left();
	/* nobody waited for them, so the next one gets its full time */
	assert_int_equal(mem__guard(40, GUARD_PROC, 1000, fn_slow_sum, &value, sizeof(int), &out),
			 0);
	assert_int_equal(*(int *)out, 2);
	mem__guard_free(out, sizeof(int));
	no_child_left();
}

static void test_guard_hurries(void **state)
{
	uint64_t start = time__monotonic_ns();
	int fds[2], value = 1;
	void *out;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], "x", 1), 1);
	confine__hurry_by(fds[0], NULL, NULL);
	assert_int_equal(mem__guard(6, GUARD_PROC, 60000, fn_hang, NULL, 8, &out), -ETIMEDOUT);
	assert_true(time__monotonic_ns() - start < 30 * 1000000000ULL);
	confine__hurry_by(-1, NULL, NULL);
	/* a child that hangs leaves some of the time for the next */
	guard__all_until(time__monotonic_ns() + 20 * 1000000000ULL);
	assert_int_equal(mem__guard(7, GUARD_PROC, 60000, fn_hang, NULL, 8, &out), -ETIMEDOUT);
	assert_int_equal(mem__guard(8, GUARD_PROC, 60000, fn_sum, &value, sizeof(int), &out), 0);
	mem__guard_free(out, sizeof(int));
	guard__all_until(1);
	assert_int_equal(mem__guard(8, GUARD_PROC, 60000, fn_sum, &value, sizeof(int), &out),
			 -EBUSY);
	guard__all_until(0);
	close(fds[0]);
	close(fds[1]);
}

static void test_patience(void **state)
{
	const uint64_t s = 1000000000ULL;
	struct patience p = {0};
	uint64_t now = 100 * s;
	int ms = 0;

	(void)state;
	assert_int_equal(patience__ask(&p, 1, 2000, now, &ms), 0);
	assert_int_equal(ms, PATIENCE_WAITED_NS / 1000000);
	patience__hung(&p, 1, s, now);
	assert_int_equal(patience__ask(&p, 1, 2000, now + s / 2, &ms), -EBUSY);
	assert_int_equal(patience__ask(&p, 2, 2000, now + s / 2, &ms), 0);
	assert_int_equal(patience__ask(&p, 1, 2000, now + s, &ms), 0);
	/* the next pause is longer */
	now += s;
	patience__hung(&p, 1, s, now);
	assert_int_equal(patience__ask(&p, 1, 2000, now + s, &ms), -EBUSY);
	assert_int_equal(patience__ask(&p, 1, 2000, now + 2 * s, &ms), 0);
	/* all hanging processes together get a limited share of the time; others still get a
	 * short wait */
	now += 10 * s;
	for (pid_t pid = 10; pid < 14; pid++)
		patience__hung(&p, pid, s, now);
	assert_int_equal(patience__ask(&p, 2, 2000, now, &ms), 0);
	assert_int_equal(ms, PATIENCE_SHORT_MS);
	assert_int_equal(patience__ask(&p, 2, 1000, now + 20 * s, &ms), 0);
	assert_int_equal(ms, 1000);
	/* a success clears the process's record */
	patience__hung(&p, 1, s, now);
	patience__well(&p, 1);
	assert_int_equal(patience__ask(&p, 1, 2000, now, &ms), 0);
	/* the number of records is bounded */
	for (pid_t pid = 100; pid < 10000; pid++)
		patience__hung(&p, pid, 0, now);
	assert_int_equal(patience__ask(&p, 9999, 2000, now, &ms), -EBUSY);
	assert_int_equal(patience__ask(&p, 100, 2000, now, &ms), 0);
	for (pid_t pid = 1; pid < 10000; pid++)
		patience__well(&p, pid);
	assert_null(p.entries);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_guard_sleeps),
		cmocka_unit_test(test_guard),
		cmocka_unit_test(test_guard_has_nothing),
		cmocka_unit_test(test_guard_not_waited_for),
		cmocka_unit_test(test_guard_hangs_alone),
		cmocka_unit_test(test_guard_hurries),
		cmocka_unit_test(test_patience),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
