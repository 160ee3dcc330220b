/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The advice given if something is refused, with made-up kernel features. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <errno.h>

#include <cmocka.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "kernel/kernel.h"

#define OTHERS ((1ULL << CAP_BPF) | (1ULL << CAP_PERFMON) | (1ULL << CAP_SYS_PTRACE))

/* What kernel__require() prints for these features. */
static const char *printed_of(const struct kernel_features *f)
{
	static char text[1024];
	int ends[2], kept = dup(STDERR_FILENO);
	ssize_t n;

	assert_true(kept >= 0);
	assert_int_equal(pipe(ends), 0);
	fflush(stderr);
	assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
	assert_int_equal(kernel__require(f), -ENOTSUP);
	fflush(stderr);
	assert_true(dup2(kept, STDERR_FILENO) >= 0);
	close(kept);
	close(ends[1]);
	n = read(ends[0], text, sizeof(text) - 1);
	close(ends[0]);
	assert_true(n > 0);
	text[n] = '\0';
	return text;
}

static struct kernel_features refused(int paranoid, uint64_t caps, bool seccomp)
{
	return (struct kernel_features){.proc = true,
					.sys = true,
					.host_pids = true,
					.host_clocks = true,
					.host_users = true,
					.btf = true,
					.ringbuf = true,
					.uprobes = true,
					.sched = true,
					.caps = caps,
					.seccomp = seccomp,
					.perf_paranoid = paranoid,
					.release = "6.8"};
}

/* Nobody is advised to set a value that is already set. */
static void test_perf_is_refused(void **state)
{
	struct kernel_features f = refused(2, OTHERS, true);
	const char *text = printed_of(&f);

	(void)state;
	assert_non_null(strstr(text, "seccomp"));
	assert_null(strstr(text, "perf_event_paranoid to 2"));
	f = refused(2, OTHERS, false);
	text = printed_of(&f);
	assert_null(strstr(text, "seccomp"));
	assert_null(strstr(text, "perf_event_paranoid to 2"));
	/* the default of Debian and Ubuntu */
	f = refused(4, OTHERS, true);
	assert_non_null(strstr(printed_of(&f), "kernel.perf_event_paranoid to 2"));
	/* with which the kernel itself would allow it */
	f = refused(4, OTHERS | 1ULL << CAP_SYS_ADMIN, true);
	assert_non_null(strstr(printed_of(&f), "seccomp"));
}

/* The same profiles refuse bpf(), without which ring buffers cannot be detected. */
static void test_bpf_is_refused(void **state)
{
	struct kernel_features f = refused(2, OTHERS, true);

	(void)state;
	f.ringbuf = false;
	assert_non_null(strstr(printed_of(&f), "seccomp"));
	f.seccomp = false;
	assert_null(strstr(printed_of(&f), "seccomp"));
}

static void test_other_clocks(void **state)
{
	struct kernel_features f = refused(2, OTHERS, false);

	(void)state;
	assert_null(strstr(printed_of(&f), "time namespace"));
	f.host_clocks = false;
	assert_non_null(strstr(printed_of(&f), "time namespace"));
}

static void test_other_users(void **state)
{
	struct kernel_features f = refused(2, OTHERS, false);
	const char *text;

	(void)state;
	assert_null(strstr(printed_of(&f), "user namespace"));
	f.host_users = f.ringbuf = false;
	text = printed_of(&f);
	assert_non_null(strstr(text, "user namespace"));
	assert_null(strstr(text, "ring buffer"));
}

/* CAP_SYS_ADMIN has the powers that later capabilities took over, and no others. */
static void test_admin(void **state)
{
	struct kernel_features f = refused(2, 1ULL << CAP_SYS_ADMIN, false);

	(void)state;
	assert_true(kernel__has_cap(&f, CAP_BPF));
	assert_true(kernel__has_cap(&f, CAP_PERFMON));
	assert_true(kernel__has_cap(&f, CAP_CHECKPOINT_RESTORE));
	assert_false(kernel__has_cap(&f, CAP_SYS_PTRACE));
	assert_false(kernel__has_cap(&f, CAP_DAC_READ_SEARCH));
	assert_false(kernel__has_cap(&f, CAP_SYSLOG));
	assert_false(kernel__has_cap(&f, CAP_LEASE));
	assert_int_equal(kernel__require(&f), -EPERM);
}

/* A filter that allows everything is still detected. */
static void test_filter_is_seen(void **state)
{
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = {.len = 1, .filter = &all};
	struct kernel_features f;
	pid_t pid = fork();
	int status;

	(void)state;
	assert_true(pid >= 0);
	if (!pid) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
			_exit(2);
		kernel__features(&f);
		_exit(!f.seccomp);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_perf_is_refused), cmocka_unit_test(test_bpf_is_refused),
		cmocka_unit_test(test_other_clocks),	cmocka_unit_test(test_other_users),
		cmocka_unit_test(test_admin),		cmocka_unit_test(test_filter_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
