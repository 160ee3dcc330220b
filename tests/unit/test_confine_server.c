/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process without rights that answers questions, and how long the daemon waits for each user's
 * data. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "confine/confine.h"

#define LONG_MS 60000

static const struct confine plain = {.name = "test"};

static int fn_sum(void *ctx, void *out)
{
	const uint32_t *n = ctx;
	uint64_t *sum = out;

	for (uint32_t i = 1; i <= *n; i++)
		*sum += i;
	return 0;
}

/* ── a server ────────────────────────────────────────────────────────────────────────────── */

static size_t twice(void *ctx, const void *question, size_t len, void *answer)
{
	const char *word = question;

	(void)ctx;
	if (memcmp(word, "crash", MIN(len, 5U)) == 0)
		__builtin_trap();
	while (memcmp(word, "hangs", MIN(len, 5U)) == 0)
		poll(NULL, 0, 1000);
	if (memcmp(word, "large", MIN(len, 5U)) == 0)
		return 33;
	memcpy(answer, question, len);
	memcpy((char *)answer + len, question, len);
	return 2 * len;
}

static int refuse(void *ctx)
{
	(void)ctx;
	return -ENOEXEC;
}

static void ask(struct confine_server *s, const char *word)
{
	char answer[32], want[32];
	size_t len;

	assert_int_equal(confine_server__ask(s, word, strlen(word), LONG_MS, answer, &len), 0);
	snprintf(want, sizeof(want), "%s%s", word, word);
	assert_int_equal(len, strlen(want));
	assert_memory_equal(answer, want, len);
}

static void answers(void **state)
{
	struct confine_service service = {
		.how = plain, .answer = twice, .max_question = 16, .max_answer = 32};
	struct confine_server *s;
	char answer[32];
	size_t len;
	pid_t pid;

	(void)state;
	assert_int_equal(confine_server__new(&service, NULL, &s), 0);
	assert_int_equal(confine_server__pid(s), 0);
	ask(s, "one");
	pid = confine_server__pid(s);
	assert_true(pid > 0);
	ask(s, "two");
	assert_int_equal(confine_server__pid(s), pid);
	assert_int_equal(confine_server__ask(s, "crash", 5, LONG_MS, answer, &len), -EIO);
	ask(s, "three");
	assert_int_not_equal(confine_server__pid(s), pid);
	assert_int_equal(confine_server__ask(s, "hangs", 5, 50, answer, &len), -ETIMEDOUT);
	assert_int_equal(confine_server__ask(s, "large", 5, LONG_MS, answer, &len), -EIO);
	assert_int_equal(confine_server__ask(s, "seventeen letters", 17, 50, answer, &len),
			 -EINVAL);
	assert_int_equal(confine_server__ask(s, "", 0, 50, answer, &len), -EINVAL);
	ask(s, "four");
	confine_server__stop(s);
	ask(s, "five");
	confine_server__free(s);
	confine_server__free(NULL);

	service.begin = refuse;
	assert_int_equal(confine_server__new(&service, NULL, &s), 0);
	assert_int_equal(confine_server__ask(s, "x", 1, LONG_MS, answer, &len), -EIO);
	confine_server__free(s);
}

/* A server that is not asked ends, and is restarted when it is needed. */
static void idle(void **state)
{
	struct confine_service service = {
		.how = plain, .answer = twice, .max_question = 16, .max_answer = 32, .idle_ms = 20};
	struct confine_server *s;
	siginfo_t info = {0};
	pid_t pid;

	(void)state;
	assert_int_equal(confine_server__new(&service, NULL, &s), 0);
	for (int i = 0; i < 3; i++) {
		ask(s, "again");
		pid = confine_server__pid(s);
		assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
		assert_int_equal(info.si_code, CLD_EXITED);
		assert_int_equal(info.si_status, 0);
	}
	confine_server__free(s);
}

/* An ended server is reaped as the loop turns, not only when it is asked again. */
static void idle_is_reaped(void **state)
{
	struct confine_service service = {
		.how = plain, .answer = twice, .max_question = 16, .max_answer = 32, .idle_ms = 20};
	uint64_t until = time__monotonic_ns() + 20000000000ULL;
	struct confine_server *s, *other;
	pid_t pid;

	(void)state;
	assert_int_equal(confine_server__new(&service, NULL, &s), 0);
	assert_int_equal(confine_server__new(&service, NULL, &other), 0);
	ask(s, "again");
	pid = confine_server__pid(s);
	while (confine_server__pid(s) && time__monotonic_ns() < until) {
		confine__new_turn();
		usleep(10000);
	}
	confine__last_turn();
	assert_int_equal(confine_server__pid(s), 0);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	ask(s, "and again");
	confine_server__free(s);
	ask(other, "too");
	confine_server__free(other);
}

static int begin_slowly(void *ctx)
{
	struct timespec cpu;

	(void)ctx;
	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	while (cpu.tv_nsec < 50000000 && !cpu.tv_sec);
	return 0;
}

/* A server that took 50 ms to start is not restarted for each occasional question. */
static void idle_but_costly(void **state)
{
	struct confine_service service = {.how = plain,
					  .begin = begin_slowly,
					  .answer = twice,
					  .max_question = 16,
					  .max_answer = 32,
					  .idle_ms = 20};
	struct confine_server *s;
	pid_t pid;

	(void)state;
	assert_int_equal(confine_server__new(&service, NULL, &s), 0);
	ask(s, "first");
	pid = confine_server__pid(s);
	usleep(300000);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	ask(s, "again");
	assert_int_equal(confine_server__pid(s), pid);
	confine_server__free(s);
}

/* ── whose bytes are waited for ──────────────────────────────────────────────────────────── */

static void users(void **state)
{
	const uid_t slow = 70001, honest = 70002;

	(void)state;
	assert_true(confine__may_wait(slow));
	confine__waited(0, 1000000000000ULL, CONFINE_HONEST_NS);
	assert_true(confine__may_wait(0));
	for (int i = 0; i < 100; i++)
		confine__waited(honest, 50000000, CONFINE_HONEST_NS);
	assert_true(confine__may_wait(honest));
	confine__waited(slow, CONFINE_USER_NS, CONFINE_HONEST_NS);
	assert_true(confine__may_wait(slow));
	confine__waited(slow, 1000000000000ULL, CONFINE_HONEST_NS);
	assert_false(confine__may_wait(slow));
	assert_true(confine__may_wait(honest));
	/* a thousand other users do not displace him, nor are they refused */
	for (uid_t id = 80000; id < 81000; id++) {
		assert_true(confine__may_wait(id));
		confine__waited(id, 2 * CONFINE_HONEST_NS, CONFINE_HONEST_NS);
	}
	assert_false(confine__may_wait(slow));
}

static int fn_too_slow(void *ctx, void *out)
{
	(void)ctx;
	(void)out;
	poll(NULL, 0, 1500 * (int)machine__slowness());
	return 0;
}

/* In one turn of the loop a user gets part of his total; the next turn starts afresh. */
static void turns(void **state)
{
	struct confine how = {.name = "test", .user = 90001};
	const uid_t other = 90002;
	uint32_t n = 10;
	void *out;

	(void)state;
	confine__new_turn();
	/* he does not get all of his time at once */
	assert_int_equal(confine__aside(&how, LONG_MS, 1, fn_too_slow, NULL, 8, &out), -ETIMEDOUT);
	assert_false(confine__may_wait(how.user));
	assert_int_equal(confine__aside(&how, LONG_MS, 1, fn_sum, &n, 8, &out), -EBUSY);
	assert_true(confine__may_wait(other));
	confine__new_turn();
	assert_int_equal(confine__aside(&how, LONG_MS, CONFINE_HONEST_NS, fn_sum, &n, 8, &out), 0);
	confine__free_out(out, 8);
	confine__waited(how.user, CONFINE_TURN_NS, 0);
	assert_false(confine__may_wait(how.user));
	/* after the last turn only the overall limit counts */
	confine__last_turn();
	assert_true(confine__may_wait(how.user));
	/* root's jobs may take long, but not a whole turn */
	how.user = 0;
	confine__new_turn();
	confine__waited(0, 1000000000000ULL, 0);
	assert_int_equal(confine__patience_ns(0), UINT64_MAX);
	for (int i = 0; i < 20 && confine__may_wait(0); i++)
		assert_int_equal(confine__aside(&how, LONG_MS, 0, fn_too_slow, NULL, 8, &out), 0);
	assert_int_equal(confine__aside(&how, LONG_MS, 0, fn_sum, &n, 8, &out), -EBUSY);
	confine__last_turn();
	assert_int_equal(confine__patience_ns(0), UINT64_MAX);
	/* nor does each of many users get all of a turn */
	confine__new_turn();
	for (how.user = 90010; how.user < 90012; how.user++)
		assert_int_equal(confine__aside(&how, LONG_MS, 1, fn_too_slow, NULL, 8, &out),
				 -ETIMEDOUT);
	assert_int_equal(confine__aside(&how, LONG_MS, 1, fn_sum, &n, 8, &out), -EBUSY);
	assert_int_equal(confine__patience_ns(0), 0);
	confine__new_turn();
	assert_true(confine__may_wait(how.user));
	assert_int_equal(confine__patience_ns(0), UINT64_MAX);
	confine__last_turn();
	how.user = 90001;
	confine__waited(how.user, CONFINE_USER_NS, 0);
	assert_false(confine__may_wait(how.user));
}

/* A job that is still running is waited for again in a later turn, once its user's share of this
 * turn is used up. */
static void awaited(void **state)
{
	const struct confine how = {.name = "test", .user = 90003};
	struct confine_job *job;
	uint32_t n = 10;
	void *out;

	(void)state;
	confine__new_turn();
	assert_int_equal(confine__start(&how, LONG_MS, fn_too_slow, NULL, 8, &job), 0);
	assert_false(confine_job__is_over(job));
	assert_int_equal(confine_job__await(job, how.user, 1, &out), -EBUSY);
	/* there is no more waiting for him in this turn */
	assert_int_equal(confine_job__await(job, how.user, 1, &out), -EBUSY);
	confine__new_turn();
	assert_int_equal(confine_job__await(job, how.user, CONFINE_HONEST_NS, &out), 0);
	confine__free_out(out, 8);
	assert_true(confine_job__is_over(job));
	confine_job__free(job);

	assert_int_equal(confine__start(&how, LONG_MS, fn_sum, &n, 8, &job), 0);
	while (!confine_job__is_over(job))
		poll(NULL, 0, 1);
	confine__waited(how.user, CONFINE_USER_NS, 0);
	assert_false(confine__may_wait(how.user));
	/* a finished job needs no waiting */
	assert_int_equal(confine_job__await(job, how.user, 1, &out), 0);
	assert_int_equal(*(uint64_t *)out, 55);
	confine__free_out(out, 8);
	confine_job__free(job);
	confine__last_turn();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers),	   cmocka_unit_test(idle),
		cmocka_unit_test(idle_but_costly), cmocka_unit_test(users),
		cmocka_unit_test(turns),	   cmocka_unit_test(awaited),
		cmocka_unit_test(idle_is_reaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
