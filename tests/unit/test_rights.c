/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the rest of a session may still do, asked of the kernel. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/session_priv.h"

/* Of no process: the kernel's limit is 2^22. */
#define NO_PID 0x7ffffff0

#ifndef SANITIZED
#define SANITIZED 0
#endif

/* -ESRCH comes from the kernel, and -EPERM from the filter. */
static int ask(uint64_t request)
{
	return syscall(SYS_ptrace, request, NO_PID, 0, 0) < 0 ? errno : 0;
}

/* 0: just these are left. */
static int wrong_request(bool may_stop)
{
	static const uint64_t large[] = {
		1ULL << 16, 1ULL << 31, 1ULL << 32, (1ULL << 32) + 17, (1ULL << 32) + PTRACE_SEIZE,
		UINT64_MAX};

	for (uint64_t r = 0; r < 0x9000; r++) {
		bool left = r == PTRACE_DETACH ||
			    (may_stop && (r == PTRACE_SEIZE || r == PTRACE_INTERRUPT));

		if (ask(r) != (left ? ESRCH : EPERM))
			return 1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(large); i++)
		if (ask(large[i]) != EPERM)
			return 2;
	return 0;
}

/* The status of a child that has given up its rights. */
static int given_up(bool may_stop)
{
	const struct kernel_features features = {0};
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(rights__give_up(&features, may_stop) ? 9 : wrong_request(may_stop));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_ptrace(void **state)
{
	(void)state;
	if (SANITIZED)
		skip();
	assert_int_equal(given_up(false), 0);
	assert_int_equal(given_up(true), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ptrace),
	};

	return cmocka_run_group_tests_name("rights", tests, NULL, NULL);
}
