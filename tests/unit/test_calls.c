/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The stack of open safe calls: nesting, calls that never return, too many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "calls.bpf.h"

static struct wire_thread *make(void)
{
	struct wire_thread *th = calloc(1, sizeof(*th));

	assert_non_null(th);
	return th;
}

static void test_one_call(void **state)
{
	struct wire_thread *th = make();
	struct wire_open call;
	u32 gone;

	(void)state;
	th->blocked_ns = 100;
	th->runnable_ns = 10;
	assert_int_equal(calls_begin(th, 1000, 0x401, 0xa, 3, WIRE_CALL_INTERRUPTIBLE, &gone),
			 CALLS_OK);
	assert_int_equal(gone, 0);
	assert_int_equal(calls_top(th)->site, 0x401);
	th->blocked_ns = 350;
	th->runnable_ns = 15;
	assert_int_equal(calls_end(th, 0xa, &call, &gone), CALLS_OK);
	assert_int_equal(gone, 0);
	assert_int_equal(call.start_ns, 1000);
	assert_int_equal(call.blocked_ns, 250);
	assert_int_equal(call.runnable_ns, 5);
	assert_int_equal(call.cap_no, 3);
	assert_int_equal(call.flags, WIRE_CALL_INTERRUPTIBLE);
	assert_null(calls_top(th));
	free(th);
}

/* A foreign function calls back, and the Haskell code there makes the next safe call. */
static void test_nested(void **state)
{
	struct wire_thread *th = make();
	struct wire_open call;
	u32 gone;

	(void)state;
	for (u32 i = 0; i < WIRE_OPEN_MAX; i++)
		assert_int_equal(calls_begin(th, i, 0x400 + i, 0x10 + i, 0, 0, &gone), CALLS_OK);
	assert_int_equal(calls_begin(th, 99, 0x999, 0x99, 0, 0, &gone), CALLS_OVERFLOW);
	assert_int_equal(th->depth, WIRE_OPEN_MAX);
	assert_int_equal(calls_end(th, 0x99, &call, &gone), CALLS_UNMATCHED);
	for (u32 i = WIRE_OPEN_MAX; i-- > 0;) {
		assert_int_equal(calls_top(th)->site, 0x400 + i);
		assert_int_equal(calls_end(th, 0x10 + i, &call, &gone), CALLS_OK);
		assert_int_equal(gone, 0);
		assert_int_equal(call.site, 0x400 + i);
		assert_int_equal(call.start_ns, i);
	}
	assert_int_equal(calls_end(th, 0x10, &call, &gone), CALLS_UNMATCHED);
	free(th);
}

/* longjmp out of the inner call: the outer one's end takes it along. */
static void test_inner_abandoned(void **state)
{
	struct wire_thread *th = make();
	struct wire_open call;
	u32 gone;

	(void)state;
	calls_begin(th, 1, 0x401, 0xa, 0, 0, &gone);
	calls_begin(th, 2, 0x402, 0xb, 0, 0, &gone);
	calls_begin(th, 3, 0x403, 0xc, 0, 0, &gone);
	assert_int_equal(calls_end(th, 0xa, &call, &gone), CALLS_OK);
	assert_int_equal(gone, 2);
	assert_int_equal(call.site, 0x401);
	assert_int_equal(th->depth, 0);
	free(th);
}

/* The same InCall begins again: its call, and what was above it, never came back. */
static void test_begin_again(void **state)
{
	struct wire_thread *th = make();
	struct wire_open call;
	u32 gone;

	(void)state;
	calls_begin(th, 1, 0x401, 0xa, 0, 0, &gone);
	calls_begin(th, 2, 0x402, 0xb, 0, 0, &gone);
	assert_int_equal(calls_begin(th, 3, 0x403, 0xa, 0, 0, &gone), CALLS_OK);
	assert_int_equal(gone, 2);
	assert_int_equal(th->depth, 1);
	assert_int_equal(calls_end(th, 0xa, &call, &gone), CALLS_OK);
	assert_int_equal(call.start_ns, 3);
	free(th);
}

/* An end without a begin leaves what is open as it was. */
static void test_unmatched(void **state)
{
	struct wire_thread *th = make();
	struct wire_open call;
	u32 gone;

	(void)state;
	calls_begin(th, 1, 0x401, 0xa, 0, 0, &gone);
	assert_int_equal(calls_end(th, 0xb, &call, &gone), CALLS_UNMATCHED);
	assert_int_equal(th->depth, 1);
	assert_int_equal(calls_top(th)->site, 0x401);
	free(th);
}

/* A depth that cannot be is not believed. */
static void test_bad_depth(void **state)
{
	struct wire_thread *th = make();

	(void)state;
	th->depth = WIRE_OPEN_MAX + 1;
	assert_null(calls_top(th));
	free(th);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_call),	cmocka_unit_test(test_nested),
		cmocka_unit_test(test_inner_abandoned), cmocka_unit_test(test_begin_again),
		cmocka_unit_test(test_unmatched),	cmocka_unit_test(test_bad_depth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
