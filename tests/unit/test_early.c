/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes that ended before they could be looked at: which of them count as missed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "session/session_priv.h"

static struct wire_proc_new program(uint64_t ino, uint32_t flags)
{
	return (struct wire_proc_new){.ino = ino, .dev = 1, .flags = flags};
}

static void missed(struct session *s, uint64_t ino, uint32_t flags)
{
	const struct wire_proc_new rec = program(ino, flags);

	early__missed(s, &rec);
}

static void profiled(struct session *s, uint64_t ino)
{
	const struct wire_proc_new rec = program(ino, 0);

	early__profiled(s, &rec);
}

static int new_session(void **state)
{
	*state = calloc(1, sizeof(struct session));
	return *state ? 0 : -1;
}

static int end_session(void **state)
{
	free(*state);
	return 0;
}

/* Those that the kernel side had made targets count at once, others once a process of their program
 * has joined, whether they ended before that or after. */
static void test_before_and_after(void **state)
{
	struct session *s = *state;

	missed(s, 5, WIRE_PROC_TARGET);
	assert_int_equal(s->n_too_short, 1);
	missed(s, 7, 0);
	missed(s, 7, 0);
	missed(s, 8, 0);
	assert_int_equal(s->n_too_short, 1);
	profiled(s, 7);
	assert_int_equal(s->n_too_short, 3);
	profiled(s, 7);
	assert_int_equal(s->n_too_short, 3);
	missed(s, 7, 0);
	missed(s, 8, 0);
	assert_int_equal(s->n_too_short, 4);
	profiled(s, 8);
	assert_int_equal(s->n_too_short, 6);
}

/* A child without an exec has no program of its own. */
static void test_without_program(void **state)
{
	struct session *s = *state;

	profiled(s, 0);
	missed(s, 0, 0);
	assert_int_equal(s->n_too_short, 0);
	missed(s, 0, WIRE_PROC_TARGET | WIRE_PROC_FORK);
	assert_int_equal(s->n_too_short, 1);
}

/* Of more programs than there is room for, those used last are remembered. */
static void test_many_programs(void **state)
{
	struct session *s = *state;

	profiled(s, 1);
	for (uint64_t ino = 2; ino < 1000; ino++) {
		missed(s, ino, 0);
		missed(s, 1, 0);
	}
	assert_int_equal(s->n_too_short, 998);
	profiled(s, 2);
	assert_int_equal(s->n_too_short, 998);
	profiled(s, 999);
	assert_int_equal(s->n_too_short, 999);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_before_and_after, new_session, end_session),
		cmocka_unit_test_setup_teardown(test_without_program, new_session, end_session),
		cmocka_unit_test_setup_teardown(test_many_programs, new_session, end_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
