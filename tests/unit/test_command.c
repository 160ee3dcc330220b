/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command's program is stopped at its exec and then released, and cannot detect it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "session/command_priv.h"

/* Timeout for anything that a program must do: far longer than it needs. */
#define PATIENCE_NS 30000000000ULL
/* How long a program is held if nobody releases it. */
#define HELD_NS 5000000000ULL

static struct command *begin(const char *script)
{
	char *argv[] = {"/bin/sh", "-c", (char *)script, NULL};
	struct command *c;

	assert_int_equal(command__start(argv, &c), 0);
	return c;
}

/* 't': stopped by a tracer; '?': there is no such process. */
static char state_of(pid_t pid)
{
	char path[64], state = '?';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return '?';
	if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = '?';
	fclose(f);
	return state;
}

static void wait_for_state(struct command *c, char state)
{
	uint64_t until = time__monotonic_ns() + PATIENCE_NS;

	while (state_of(command__pid(c)) != state) {
		assert_true(time__monotonic_ns() < until);
		usleep(1000);
	}
}

static int end_of(struct command *c)
{
	uint64_t until = time__monotonic_ns() + PATIENCE_NS;
	int status;

	while (!command__ended(c)) {
		assert_true(time__monotonic_ns() < until);
		usleep(1000);
	}
	assert_false(command__holds(c));
	status = command__status(c);
	command__free(c);
	return status;
}

static void test_held(void **state)
{
	struct command *c = begin("exit 7");

	(void)state;
	assert_int_equal(command__go(c), 0);
	wait_for_state(c, 't');
	/* its exec is complete: the program is mapped, but has not begun */
	assert_false(command__ended(c));
	usleep(20000);
	assert_int_equal(state_of(command__pid(c)), 't');
	assert_false(command__ended(c));
	assert_true(command__holds(c));
	command__let_go(c);
	command__let_go(c);
	assert_false(command__holds(c));
	assert_int_equal(WEXITSTATUS(end_of(c)), 7);
}

/* It may be released before it has stopped, or without a check that it has. */
static void test_let_go_at_once(void **state)
{
	struct command *c = begin("exit 8");

	(void)state;
	assert_int_equal(command__go(c), 0);
	command__let_go(c);
	assert_int_equal(WEXITSTATUS(end_of(c)), 8);
}

/* The same well before that; it does not wait for the timeout of a program that is never
 * released. */
static void test_let_go_early(void **state)
{
	struct command *c = begin("exit 8");
	uint64_t began;

	(void)state;
	command__let_go(c);
	assert_true(command__holds(c));
	assert_int_equal(command__go(c), 0);
	began = time__monotonic_ns();
	assert_int_equal(WEXITSTATUS(end_of(c)), 8);
	assert_true(time__monotonic_ns() - began < HELD_NS);
}

/* What the program can see: no tracer, no signal, nothing blocked or pending. */
static void test_unseen(void **state)
{
	/* not by the shell, which briefly blocks signals while it waits for a child */
	struct command *c = begin("exec awk '/^(TracerPid|SigPnd|ShdPnd|SigBlk):/ "
				  "{ n++; bad += $2 !~ /^0+$/ } END { exit n != 4 || bad }' "
				  "/proc/self/status");

	(void)state;
	assert_int_equal(command__go(c), 0);
	command__let_go(c);
	assert_int_equal(end_of(c), 0);
}

/* A signal reaches it while it waits for its start, while stopped, and while running. */
static void test_signals(void **state)
{
	struct command *c = begin("exit 9");

	(void)state;
	kill(command__pid(c), SIGTERM);
	wait_for_state(c, 't');
	command__ended(c);
	assert_int_equal(WTERMSIG(end_of(c)), SIGTERM);

	c = begin("exit 9");
	assert_int_equal(command__go(c), 0);
	wait_for_state(c, 't');
	kill(command__pid(c), SIGTERM);
	command__ended(c);
	command__let_go(c);
	assert_int_equal(WTERMSIG(end_of(c)), SIGTERM);

	c = begin("exit 9");
	assert_int_equal(command__go(c), 0);
	wait_for_state(c, 't');
	kill(command__pid(c), SIGKILL);
	assert_int_equal(WTERMSIG(end_of(c)), SIGKILL);

	/* a signal that it ignores arrives while it waits for its start */
	c = begin("exit 9");
	kill(command__pid(c), SIGCONT);
	assert_int_equal(command__go(c), 0);
	command__ended(c);
	command__let_go(c);
	assert_int_equal(WEXITSTATUS(end_of(c)), 9);
}

/* The tracer is killed before it can release the program: the program runs all the same. */
static void test_tracer_dies(void **state)
{
	int out[2];
	pid_t pid;
	char byte = 0;

	(void)state;
	assert_int_equal(pipe(out), 0);
	pid = fork();
	if (pid == 0) {
		struct command *c;

		dup2(out[1], 1);
		c = begin("printf x");
		if (command__go(c) == 0)
			wait_for_state(c, 't');
		kill(getpid(), SIGKILL);
	}
	close(out[1]);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(read(out[0], &byte, 1), 1);
	assert_int_equal(byte, 'x');
	close(out[0]);
}

/* Nobody releases it: it runs after the timeout. */
static void test_time_out(void **state)
{
	struct command *c = begin("exit 10");
	uint64_t began = time__monotonic_ns();

	(void)state;
	assert_int_equal(command__go(c), 0);
	assert_int_equal(WEXITSTATUS(end_of(c)), 10);
	assert_true(time__monotonic_ns() - began > 1000000000ULL);
}

static void test_cannot_start(void **state)
{
	char *argv[] = {"/proc/self/status", NULL};
	struct command *c;

	(void)state;
	assert_int_equal(command__start(argv, &c), -EACCES);
	c = begin("exit 0");
	/* never started */
	command__free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_held),	     cmocka_unit_test(test_let_go_at_once),
		cmocka_unit_test(test_let_go_early), cmocka_unit_test(test_unseen),
		cmocka_unit_test(test_signals),	     cmocka_unit_test(test_tracer_dies),
		cmocka_unit_test(test_time_out),     cmocka_unit_test(test_cannot_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
