/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_pool: a confined server for each user. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "confine/confine.h"

#define LONG_MS 60000

static size_t fn_who(void *ctx, const void *question, size_t len, void *answer)
{
	static unsigned int asked;
	const uint32_t got[] = {(uint32_t)getpid(), ++asked};

	(void)ctx;
	if (len == 5 && memcmp(question, "crash", 5) == 0)
		__builtin_trap();
	memcpy(answer, got, sizeof(got));
	return sizeof(got);
}

/* *ret_pid: of the child that answered. Returns how many questions it has had. */
static uint32_t who(struct confine_pool *p, uid_t user, pid_t *ret_pid)
{
	uint32_t got[2] = {0, 0};
	size_t len;

	assert_int_equal(confine_pool__ask(p, user, "x", 1, LONG_MS, 60000000000ULL, got, &len), 0);
	assert_int_equal(len, sizeof(got));
	*ret_pid = (pid_t)got[0];
	return got[1];
}

static void a_child_for_each_user(void **state)
{
	static const struct confine_service service = {
		.how = {.name = "test"}, .answer = fn_who, .max_question = 8, .max_answer = 8};
	struct confine_pool *p;
	pid_t first, second, again;
	uint32_t got[2];
	size_t len;

	(void)state;
	assert_int_equal(confine_pool__new(&service, NULL, &p), 0);
	assert_int_equal(confine_pool__pid(p, 1), 0);
	assert_int_equal(who(p, 1, &first), 1);
	assert_int_equal(who(p, 2, &second), 1);
	assert_int_not_equal(first, second);
	assert_int_equal(confine_pool__pid(p, 1), first);
	assert_int_equal(who(p, 1, &again), 2);
	assert_int_equal(again, first);
	/* one that ends is its user's matter alone */
	assert_int_equal(confine_pool__ask(p, 1, "crash", 5, LONG_MS, 60000000000ULL, got, &len),
			 -EIO);
	assert_int_equal(confine_pool__pid(p, 1), 0);
	assert_int_equal(confine_pool__pid(p, 2), second);
	assert_int_equal(who(p, 2, &again), 2);
	/* of more users than there is room for, who was asked about the longest ago gives way */
	for (uid_t user = 3; user < 3 + CONFINE_POOL_USERS - 1; user++)
		assert_int_equal(who(p, user, &again), 1);
	assert_int_equal(confine_pool__pid(p, 1), 0);
	assert_int_equal(confine_pool__pid(p, 2), second);
	assert_int_equal(who(p, 100, &again), 1);
	assert_int_equal(confine_pool__pid(p, 2), 0);
	assert_int_not_equal(confine_pool__pid(p, 3), 0);
	confine_pool__free(p);
	confine_pool__free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_child_for_each_user)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
