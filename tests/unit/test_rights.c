/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the rest of a session may still do, tried against the kernel. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/session_priv.h"

/* The pid of no process: the kernel's limit is 2^22. */
#define NO_PID 0x7ffffff0

#ifndef SANITIZED
#define SANITIZED 0
#endif

/* Returns the error: ESRCH comes from the kernel, EPERM from the filter. */
static int ask(uint64_t request)
{
	return syscall(SYS_ptrace, request, NO_PID, 0, 0) < 0 ? errno : 0;
}

/* Returns 0 if exactly the expected requests are permitted. */
static int wrong_request(unsigned traces)
{
	static const uint64_t large[] = {
		1ULL << 16, 1ULL << 31, 1ULL << 32, (1ULL << 32) + 17, (1ULL << 32) + PTRACE_SEIZE,
		UINT64_MAX};

	for (uint64_t r = 0; r < 0x9000; r++) {
		bool left =
			r == PTRACE_DETACH ||
			(traces & RIGHTS_STOP && (r == PTRACE_SEIZE || r == PTRACE_INTERRUPT)) ||
			(traces & RIGHTS_COMMAND && r == PTRACE_CONT);

		if (ask(r) != (left ? ESRCH : EPERM))
			return 1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(large); i++)
		if (ask(large[i]) != EPERM)
			return 2;
	for (uint64_t at = 0; at < sizeof(struct user) + 64; at += 8) {
		bool debug = at >= offsetof(struct user, u_debugreg) &&
			     at < offsetof(struct user, u_debugreg) +
					     sizeof(((struct user *)NULL)->u_debugreg);
		int want = traces & RIGHTS_COMMAND && debug ? ESRCH : EPERM;

		if (syscall(SYS_ptrace, PTRACE_POKEUSER, NO_PID, at, 0) == 0 || errno != want)
			return 3;
	}
	return 0;
}

/* The exit status of a child that has given up its rights. */
static int given_up(unsigned traces)
{
	const struct kernel_features features = {0};
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(rights__give_up(&features, traces) ? 9 : wrong_request(traces));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_ptrace(void **state)
{
	(void)state;
	if (SANITIZED)
		skip();
	for (unsigned traces = 0; traces <= (RIGHTS_STOP | RIGHTS_COMMAND); traces++)
		assert_int_equal(given_up(traces), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ptrace),
	};

	return cmocka_run_group_tests_name("rights", tests, NULL, NULL);
}
