/* SPDX-License-Identifier: GPL-2.0-or-later */
/* No further process can be created at the moment. */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "confine/confine.h"

#define LONG_MS 60000

static const struct confine plain = {.name = "test"};

/* errno of a failing fork(): EAGAIN or ENOMEM; 0: it succeeds. */
static int fork_fails;

pid_t fork(void)
{
	pid_t (*real)(void);
	void *at = dlsym(RTLD_NEXT, "fork");

	if (fork_fails) {
		errno = fork_fails;
		return -1;
	}
	memcpy(&real, &at, sizeof(real));
	return real();
}

static int fn_nothing(void *ctx, void *out)
{
	(void)ctx;
	(void)out;
	return 0;
}

/* A failing fork() is temporary and is no evidence against what was to be read. */
static void no_process_now(void **state)
{
	static const int errs[] = {EAGAIN, ENOMEM};
	void *out;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(errs); i++) {
		fork_fails = errs[i];
		assert_int_equal(
			confine__aside(&plain, LONG_MS, LONG_MS, fn_nothing, NULL, 8, &out),
			-EBUSY);
		fork_fails = 0;
		assert_int_equal(
			confine__aside(&plain, LONG_MS, LONG_MS, fn_nothing, NULL, 8, &out), 0);
		confine__free_out(out, 8);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(no_process_now)};

	return cmocka_run_group_tests_name("confine_fork", tests, NULL, NULL);
}
