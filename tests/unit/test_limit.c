/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits: which one is named if something failed because of it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/base.h"
#include "base/limit.h"
#include "temp_dir.h"

static void put(const char *folder, const char *file, const char *text)
{
	char path[256];
	FILE *out;

	snprintf(path, sizeof(path), "%s%s", dir, folder);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s%s/%s", dir, folder, file);
	out = fopen(path, "w");
	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	assert_int_equal(fclose(out), 0);
}

static void test_groups(void **state)
{
	(void)state;
	put("/a", "memory.max", "60000000\n");
	put("/a/b", "memory.max", "max\n");
	put("/a/c", "memory.max", "50000000\n");
	put("/memory", "memory.limit_in_bytes", "9223372036854771712\n");
	put("/memory/d", "memory.limit_in_bytes", "40000000\n");
	assert_true(limit__cgroup_memory(dir, "0::/\n") == UINT64_MAX);
	assert_true(limit__cgroup_memory(dir, "0::/none\n") == UINT64_MAX);
	assert_int_equal(limit__cgroup_memory(dir, "0::/a\n"), 60000000);
	/* limited by the group above it */
	assert_int_equal(limit__cgroup_memory(dir, "0::/a/b\n"), 60000000);
	assert_int_equal(limit__cgroup_memory(dir, "0::/a/c"), 50000000);
	assert_true(limit__cgroup_memory(dir, "4:memory:/\n2:cpu:/a\n") == UINT64_MAX);
	assert_int_equal(limit__cgroup_memory(dir, "4:memory:/d\n0::/a\n"), 40000000);
	/* processes and threads */
	put("/a", "pids.max", "1024\n");
	put("/a/c", "pids.max", "2000\n");
	put("/pids", "pids.max", "max\n");
	put("/pids/e", "pids.max", "7\n");
	assert_int_equal(limit__cgroup_processes(dir, "0::/a/c\n"), 1024);
	assert_int_equal(limit__cgroup_processes(dir, "9:pids:/e\n0::/a\n"), 7);
	assert_true(limit__cgroup_processes(dir, "9:pids:/\n8:pidsx:/e\n4:pid:/e\n") == UINT64_MAX);
	assert_true(limit__cgroup_memory(dir, "") == UINT64_MAX);
	assert_true(limit__cgroup_memory(dir, "a line\n::\n:\n") == UINT64_MAX);
}

static void test_named(void **state)
{
	struct rlimit before, limit;

	(void)state;
	assert_string_equal(limit__why(0).text, "");
	assert_string_equal(limit__why(-EINVAL).text, "");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	limit.rlim_cur = 50;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_non_null(strstr(
		limit__why(-EMFILE).text,
		"no more than 50 descriptors may be open (RLIMIT_NOFILE); safescoped needs "));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(getrlimit(RLIMIT_DATA, &before), 0);
	limit = before;
	limit.rlim_cur = 20000000;
	assert_int_equal(setrlimit(RLIMIT_DATA, &limit), 0);
	assert_string_equal(limit__why(-ENOMEM).text,
			    ": no more than 20.0 MB of memory may be used (RLIMIT_DATA)");
	assert_int_equal(setrlimit(RLIMIT_DATA, &before), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_named),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
