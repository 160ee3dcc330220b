/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stopping a process for a while, and what the process that stops it is allowed to do. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "confine/confine.h"
#include "process/freeze.h"

#ifndef SANITIZED
#define SANITIZED 0
#endif

enum { N_THREADS = 4 };

static void *spin(void *unused)
{
	(void)unused;
	for (;;)
		;
	return NULL;
}

/* So that a failed test does not leave a process that spins. */
static void end_with_the_test(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static pid_t start_spinning(void)
{
	pid_t pid = fork();
	pthread_t thread;

	assert_true(pid >= 0);
	if (pid)
		return pid;
	end_with_the_test();
	for (int i = 1; i < N_THREADS; i++)
		if (pthread_create(&thread, NULL, spin, NULL))
			_exit(1);
	spin(NULL);
	_exit(0);
}

/* The number of threads in that state; 't' is a tracer's stop. */
static int count(pid_t pid, char state)
{
	char command[128], line[16] = "";
	FILE *in;

	/* the third field: the name has no spaces here */
	snprintf(command, sizeof(command),
		 "cut -d' ' -f3 /proc/%d/task/*/stat 2>/dev/null | grep -c %c", pid, state);
	in = popen(command, "r"); /* NOLINT(cert-env33-c): a command built by this test */
	assert_non_null(in);
	assert_non_null(fgets(line, sizeof(line), in));
	pclose(in);
	return (int)strtol(line, NULL, 10);
}

static void await_count(pid_t pid, char state, int wanted)
{
	for (int i = 0; i < 2000 && count(pid, state) != wanted; i++)
		usleep(5000);
	assert_int_equal(count(pid, state), wanted);
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_stops(void **state)
{
	uint64_t ns = 0, began;
	bool until_now = false;
	struct freeze *f;
	pid_t pid = start_spinning();

	(void)state;
	await_count(pid, 'R', N_THREADS);
	began = time__monotonic_ns();
	assert_int_equal(freeze__start(pid, 10000, &f), 0);
	assert_int_equal(count(pid, 't'), N_THREADS);
	freeze__end(f, &ns, &until_now);
	assert_true(until_now);
	assert_true(ns > 0 && ns < time__monotonic_ns() - began);
	await_count(pid, 'R', N_THREADS);
	/* its time is up before it is released */
	assert_int_equal(freeze__start(pid, 1000, &f), 0);
	await_count(pid, 'R', N_THREADS);
	freeze__end(f, &ns, &until_now);
	assert_false(until_now);
	assert_true(ns > 0 && ns <= 1000000000);
	/* ending NULL does nothing */
	freeze__end(NULL, &ns, &until_now);
	end(pid);
	assert_int_equal(freeze__start(pid, 300, &f), -ESRCH);
}

/* A process that was already stopped stays so when released; one that is traced by another
 * process is not stopped. */
static void test_others(void **state)
{
	uint64_t ns = 0;
	bool until_now = false;
	struct freeze *f;
	pid_t pid = start_spinning();
	int status;

	(void)state;
	await_count(pid, 'R', N_THREADS);
	kill(pid, SIGSTOP);
	await_count(pid, 'T', N_THREADS);
	assert_int_equal(freeze__start(pid, 10000, &f), 0);
	freeze__end(f, &ns, &until_now);
	await_count(pid, 'T', N_THREADS);
	kill(pid, SIGCONT);
	await_count(pid, 'R', N_THREADS);
	assert_int_equal(ptrace(PTRACE_SEIZE, pid, NULL, NULL), 0);
	assert_int_equal(freeze__start(pid, 10000, &f), -EPERM);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
	assert_int_equal(waitpid(pid, &status, __WALL), pid);
	assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
	await_count(pid, 'R', N_THREADS);
	end(pid);
}

enum { N_FREEZES = 400, SIGNALS_EVERY_US = 100 };

static struct counts {
	unsigned long sent, received, ready;
} * counts;

static void on_signal(int number)
{
	(void)number;
	counts->received++;
}

static pid_t start_receiving(void)
{
	const struct sigaction act = {.sa_handler = on_signal};
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	end_with_the_test();
	sigaction(SIGRTMIN, &act, NULL);
	__atomic_store_n(&counts->ready, 1, __ATOMIC_SEQ_CST);
	spin(NULL);
	_exit(0);
}

static pid_t start_sending(pid_t to)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	end_with_the_test();
	while (__atomic_load_n(&counts->ready, __ATOMIC_SEQ_CST) < 2) {
		if (sigqueue(to, SIGRTMIN, (union sigval){0}) == 0)
			counts->sent++;
		usleep(SIGNALS_EVERY_US);
	}
	_exit(0);
}

/* Real-time signals are queued: each one that is sent must be received, if late. */
static void test_signals(void **state)
{
	bool until_now = false;
	uint64_t ns = 0;
	struct freeze *f;
	pid_t pid, sender;

	(void)state;
	counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	assert_ptr_not_equal(counts, MAP_FAILED);
	pid = start_receiving();
	while (!__atomic_load_n(&counts->ready, __ATOMIC_SEQ_CST))
		usleep(1000);
	sender = start_sending(pid);
	for (int n = 0; n < N_FREEZES;) {
		int err = freeze__start(pid, 10000, &f);

		/* the previous tracer has not quite exited */
		if (err == -EPERM)
			continue;
		assert_int_equal(err, 0);
		freeze__end(f, &ns, &until_now);
		n++;
	}
	__atomic_store_n(&counts->ready, 2, __ATOMIC_SEQ_CST);
	assert_int_equal(waitpid(sender, NULL, 0), sender);
	for (int i = 0; i < 2000 && counts->received != counts->sent; i++)
		usleep(5000);
	end(pid);
	assert_true(counts->sent > N_FREEZES);
	assert_int_equal(counts->received, counts->sent);
	munmap(counts, sizeof(*counts));
}

/* -EPERM comes from the filter; for a process that does not exist the kernel returns -ESRCH. */
static int refused(long request, long options)
{
	return syscall(SYS_ptrace, request, 0x7ffffff0, 0, options) < 0 && errno == EPERM;
}

/* Writes one byte: what is wrong, 0 if nothing. */
static void try_requests(void *ctx, int in, int out)
{
	static const long others[] = {PTRACE_PEEKDATA,	 PTRACE_POKEDATA,   PTRACE_GETREGS,
				      PTRACE_SETREGS,	 PTRACE_ATTACH,	    PTRACE_CONT,
				      PTRACE_SETOPTIONS, PTRACE_GETREGSET,  PTRACE_SETREGSET,
				      PTRACE_LISTEN,	 PTRACE_SETSIGINFO, PTRACE_TRACEME};
	char wrong = 0;

	(void)ctx;
	(void)in;
	if (refused(PTRACE_SEIZE, 0) || refused(PTRACE_INTERRUPT, 0))
		wrong = 1;
	if (!refused(PTRACE_SEIZE, PTRACE_O_EXITKILL))
		wrong = 2;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (!refused(others[i], 0))
			wrong = 3;
	if (write(out, &wrong, 1) != 1)
		_exit(1);
}

static void test_requests(void **state)
{
	const struct confine how = {.name = "safescoped:test",
				    .keep = CONFINE_PROC | CONFINE_TRACE,
				    .user = CONFINE_NOBODY};
	struct confine_peer *peer;
	char wrong = 9;

	(void)state;
	if (SANITIZED)
		skip();
	assert_int_equal(confine_peer__start(&how, try_requests, NULL, &peer), 0);
	for (int i = 0; i < 2000 && confine_peer__take(peer, &wrong, 1); i++)
		usleep(5000);
	assert_int_equal(wrong, 0);
	confine_peer__free(peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stops),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_requests),
	};

	return cmocka_run_group_tests_name("freeze", tests, NULL, NULL);
}
