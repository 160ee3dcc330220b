/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_pool: a confined server for each user, and the time that each user is waited for in a turn.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "confine/confine.h"
#include "process/proc.h"

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

static bool runs(pid_t pid)
{
	struct proc_stat st;

	return proc__stat(pid, 0, &st) == 0 && st.state != 'Z' && st.state != 'X';
}

/* On a busy machine a killed child takes a while to end. */
static bool ends(pid_t pid)
{
	for (int i = 0; runs(pid) && i < LONG_MS; i++)
		poll(NULL, 0, 1);
	return !runs(pid);
}

/* Returns the number of questions that the child has had; *ret_pid: the child that answered. */
static uint32_t who(struct confine_pool *p, uid_t user, pid_t *ret_pid)
{
	uint32_t got[2] = {0, 0};
	size_t len;

	/* the time limit for a turn is tested elsewhere */
	confine__new_turn();
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
	pid_t first, second, third = 0, again;
	uint32_t got[2];
	size_t len;

	(void)state;
	assert_int_equal(confine_pool__new(&service, NULL, &p), 0);
	assert_int_equal(who(p, 1, &first), 1);
	assert_int_equal(who(p, 2, &second), 1);
	assert_int_not_equal(first, second);
	assert_int_equal(who(p, 1, &again), 2);
	assert_int_equal(again, first);
	/* a child that dies affects only its own user */
	confine__new_turn();
	assert_int_equal(confine_pool__ask(p, 1, "crash", 5, LONG_MS, 60000000000ULL, got, &len),
			 -EIO);
	assert_true(ends(first));
	assert_int_equal(who(p, 2, &again), 2);
	assert_int_equal(again, second);
	/* if there are more users than places, the least recently used child gives way */
	for (uid_t user = 3; user < 3 + CONFINE_POOL_USERS - 1; user++) {
		assert_int_equal(who(p, user, &again), 1);
		if (user == 3)
			third = again;
	}
	assert_true(runs(second));
	assert_int_equal(who(p, 100, &again), 1);
	assert_true(ends(second));
	assert_true(runs(third));
	confine__last_turn();
	confine_pool__free(p);
	confine_pool__free(NULL);
	assert_true(ends(third));
}

#define TINY "tests/data/tiny.elf"

static bool has_tiny(pid_t pid)
{
	char path[64], line[512];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		found |= strstr(line, TINY) != NULL;
	fclose(f);
	return found;
}

/* What the daemon had mapped when a child started is not kept mapped for the child's lifetime. */
static void no_files_are_kept(void **state)
{
	static const struct confine_service service = {
		.how = {.name = "test"}, .answer = fn_who, .max_question = 8, .max_answer = 8};
	struct confine_pool *p;
	pid_t pid;
	void *at;
	int fd;

	(void)state;
	if (geteuid() != 0)
		skip();
	fd = open(TINY, O_RDONLY | O_CLOEXEC);
	at = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	close(fd);
	assert_true(has_tiny(getpid()));
	assert_int_equal(confine_pool__new(&service, NULL, &p), 0);
	assert_int_equal(who(p, 1, &pid), 1);
	assert_false(has_tiny(pid));
	assert_int_equal(who(p, 1, &pid), 2);
	confine__last_turn();
	confine_pool__free(p);
	munmap(at, 4096);
}

/* ── who is waited for ───────────────────────────────────────────────────────────────────── */

#define HONEST_NS 1000000000ULL
#define WORK_NS	  450000000LL
#define SLOW_MS	  1500

static int64_t cpu_ns(void)
{
	struct timespec at;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
	return at.tv_sec * 1000000000LL + at.tv_nsec;
}

static size_t fn_work(void *ctx, const void *question, size_t len, void *answer)
{
	const struct timespec slow = {.tv_sec = SLOW_MS / 1000,
				      .tv_nsec = SLOW_MS % 1000 * 1000000L};
	int64_t until = cpu_ns() + WORK_NS;

	(void)ctx;
	while (len == 4 && memcmp(question, "work", 4) == 0 && cpu_ns() < until)
		;
	if (len == 4 && memcmp(question, "slow", 4) == 0)
		for (unsigned int i = 0; i < machine__slowness(); i++)
			nanosleep(&slow, NULL);
	memset(answer, 0, 1);
	return 1;
}

/* Even work that takes less time than an honest question may is limited in total. */
static void many_that_work(void **state)
{
	static const struct confine_service service = {
		.how = {.name = "test"}, .answer = fn_work, .max_question = 8, .max_answer = 8};
	const uid_t honest = 95001, busy = 95002, slow = 95003;
	struct confine_pool *p;
	char answer[8];
	size_t len;
	int n = 0;

	(void)state;
	assert_int_equal(confine_pool__new(&service, NULL, &p), 0);
	confine__new_turn();
	/* the first answer includes the start of the child */
	assert_int_equal(confine_pool__ask(p, honest, "x", 1, LONG_MS, HONEST_NS, answer, &len), 0);
	confine__new_turn();
	for (int i = 0; i < 100; i++)
		assert_int_equal(
			confine_pool__ask(p, honest, "x", 1, LONG_MS, HONEST_NS, answer, &len), 0);
	/* each counts with 400 ms, except for the first, which includes the start of the child */
	while (confine__may_wait(busy) && n++ < 20) {
		int err = confine_pool__ask(p, busy, "work", 4, LONG_MS, HONEST_NS, answer, &len);

		/* on a busy machine the work may take longer than its user is waited for */
		assert_true(!err || err == -ETIMEDOUT);
	}
	assert_in_range(n, 1, 5);
	assert_int_equal(confine_pool__ask(p, busy, "x", 1, LONG_MS, HONEST_NS, answer, &len),
			 -ETIMEDOUT);
	assert_true(confine__may_wait(honest));
	/* an answer is waited for no longer than its user is */
	confine__waited(slow, CONFINE_TURN_NS - 1, 0);
	assert_int_equal(confine_pool__ask(p, slow, "slow", 4, LONG_MS, HONEST_NS, answer, &len),
			 -ETIMEDOUT);
	confine__last_turn();
	confine_pool__free(p);
}

static int fn_honest(void *ctx, void *out)
{
	(void)ctx;
	(void)out;
	poll(NULL, 0, 100 * (int)machine__slowness());
	return 0;
}

/* Many jobs, each of them honest by itself, are not all done in one turn either. */
static void many_in_a_turn(void **state)
{
	struct confine how = {.name = "test", .user = 90003};
	void *out;
	int n = 0;

	(void)state;
	confine__new_turn();
	while (confine__may_wait(how.user) && n++ < 100) {
		assert_int_equal(
			confine__aside(&how, LONG_MS, 60000000000ULL, fn_honest, NULL, 8, &out), 0);
		confine__free_out(out, 8);
	}
	assert_in_range(n, 1, 12);
	assert_int_equal(confine__aside(&how, LONG_MS, 60000000000ULL, fn_honest, NULL, 8, &out),
			 -EBUSY);
	assert_true(confine__may_wait(0));
	confine__new_turn();
	assert_true(confine__may_wait(how.user));
	confine__last_turn();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_for_each_user), cmocka_unit_test(no_files_are_kept),
		cmocka_unit_test(many_that_work), cmocka_unit_test(many_in_a_turn)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
