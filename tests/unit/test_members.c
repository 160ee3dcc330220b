/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The set of processes that have joined a session. */
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/session_priv.h"
#include "test_timeline_kit.h"
#include "process/proc.h"

#define PIDS 50

static struct member *add(struct members *set, pid_t pid, bool ready)
{
	struct member *m = NULL;

	assert_int_equal(members__add(set, NULL, pid, 1000, ready, &m), 0);
	assert_int_equal(m->pid, pid);
	assert_false(m->live);
	return m;
}

/* The descriptor stays open until the member is set ended or the set is freed. */
static int own_pidfd(void)
{
	int fd = -1;

	assert_int_equal(proc__pidfd(getpid(), &fd), 0);
	return fd;
}

/* The set's live members are the entries of `want` that are not NULL, in that order. */
static void check_live(const struct members *set, struct member *const *want, size_t n)
{
	const struct member *m = NULL;
	size_t live = 0, starting = 0;

	for (size_t i = 0; i < n; i++) {
		if (!want[i])
			continue;
		m = members__next_live(set, m);
		assert_ptr_equal(m, want[i]);
		assert_ptr_equal(members__find_live(set, m->pid), m);
		live++;
		starting += !m->ready;
	}
	assert_null(members__next_live(set, m));
	assert_int_equal(members__count_live(set), live);
	assert_int_equal(members__count_starting(set), starting);
}

/* Members come and go in pseudo-random order, and pids are used again. */
static void members_come_and_go(void **state)
{
	struct member *live[4000] = {0}, *of_pid[PIDS] = {0};
	int pidfds[PIDS];
	struct members *set;
	size_t n = 0;
	uint32_t seed = 12345;

	(void)state;
	assert_int_equal(members__new(&set), 0);
	check_live(set, live, 0);
	for (int step = 0; step < 4000; step++) {
		unsigned p;

		seed = seed * 1664525 + 1013904223;
		p = (seed >> 16) % PIDS;
		if (!of_pid[p]) {
			of_pid[p] = live[n++] = add(set, (pid_t)(1000 + p), seed & 1);
			pidfds[p] = own_pidfd();
			assert_int_equal(members__set_live(set, of_pid[p], pidfds[p]), 0);
			assert_true(of_pid[p]->live);
		} else if (!of_pid[p]->ready) {
			members__set_ready(set, of_pid[p]);
			assert_true(of_pid[p]->ready);
		} else {
			for (size_t i = 0; i < n; i++)
				if (live[i] == of_pid[p])
					live[i] = NULL;
			members__set_ended(set, of_pid[p]);
			assert_false(of_pid[p]->live);
			/* ending a member twice changes nothing */
			members__set_ended(set, of_pid[p]);
			close(pidfds[p]);
			assert_null(members__find_live(set, (pid_t)(1000 + p)));
			of_pid[p] = NULL;
		}
		if (step % 50 == 0)
			check_live(set, live, n);
	}
	check_live(set, live, n);
	assert_int_equal(members__count(set), n);
	assert_true(n > 1000);
	/* members stay in the set, at their places, after they have ended */
	for (size_t i = 0; i < n; i++)
		assert_true(!live[i] || members__at(set, i) == live[i]);
	members__free(set);
	for (int p = 0; p < PIDS; p++)
		if (of_pid[p])
			close(pidfds[p]);
}

/* Two of three processes end: they are reported until their members are set ended. */
static void members_whose_processes_exit(void **state)
{
	struct pollfd ends = {.events = POLLIN};
	struct member *m[3], *exited[3];
	int pidfds[3], pipes[3][2];
	struct members *set;
	pid_t pids[3];
	char byte;

	(void)state;
	assert_int_equal(members__new(&set), 0);
	ends.fd = members__ends_fd(set);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pipe2(pipes[i], O_CLOEXEC), 0);
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (!pids[i]) {
			close(pipes[i][1]);
			_exit(read(pipes[i][0], &byte, 1) != 1);
		}
		assert_int_equal(proc__pidfd(pids[i], &pidfds[i]), 0);
		m[i] = add(set, pids[i], true);
		assert_int_equal(members__set_live(set, m[i], pidfds[i]), 0);
	}
	assert_int_equal(members__set_live(set, add(set, 1, true), -1), -EBADF);
	assert_int_equal(members__count_live(set), 3);
	assert_int_equal(poll(&ends, 1, 0), 0);
	assert_int_equal(members__exited(set, exited, 3), 0);
	assert_int_equal(write(pipes[1][1], "x", 1), 1);
	assert_int_equal(poll(&ends, 1, 60000), 1);
	for (int again = 0; again < 2; again++) {
		assert_int_equal(members__exited(set, exited, 3), 1);
		assert_ptr_equal(exited[0], m[1]);
	}
	assert_int_equal(write(pipes[2][1], "x", 1), 1);
	assert_int_equal(waitpid(pids[2], NULL, 0), pids[2]);
	assert_int_equal(members__exited(set, exited, 3), 2);
	assert_int_equal(members__exited(set, exited, 1), 1);
	members__set_ended(set, m[1]);
	assert_int_equal(members__exited(set, exited, 3), 1);
	assert_ptr_equal(exited[0], m[2]);
	members__set_ended(set, m[2]);
	assert_int_equal(poll(&ends, 1, 0), 0);
	assert_int_equal(write(pipes[0][1], "x", 1), 1);
	assert_int_equal(waitpid(pids[0], NULL, 0), pids[0]);
	assert_int_equal(waitpid(pids[1], NULL, 0), pids[1]);
	members__free(set);
	for (int i = 0; i < 3; i++) {
		close(pidfds[i]);
		close(pipes[i][0]);
		close(pipes[i][1]);
	}
}

static void a_member_that_ends_before_it_is_ready(void **state)
{
	int pidfd = own_pidfd();
	struct members *set;
	struct member *m;

	(void)state;
	assert_int_equal(members__new(&set), 0);
	m = add(set, 7, false);
	assert_int_equal(members__count_starting(set), 0);
	assert_int_equal(members__set_live(set, m, pidfd), 0);
	assert_int_equal(members__count_starting(set), 1);
	members__set_ended(set, m);
	assert_int_equal(members__count_starting(set), 0);
	members__set_ready(set, m);
	assert_int_equal(members__count_starting(set), 0);
	members__free(set);
	members__free(NULL);
	close(pidfd);
}

static void counters_are_left_until_they_are_taken(void **state)
{
	struct members *set;
	struct member *m[3], *seen[3];

	(void)state;
	assert_int_equal(members__new(&set), 0);
	for (int i = 0; i < 3; i++)
		m[i] = add(set, 10 + i / 2, true); /* the first two have the same pid */
	assert_false(members__any_left_counters(set));
	for (int round = 0; round < 2; round++) {
		assert_int_equal(members__leave_counters(set, m[0]), 0);
		assert_int_equal(members__leave_counters(set, m[1]), 0);
		assert_true(members__any_left_counters(set));
		assert_true(members__has_left_counters(set, 10));
		assert_false(members__has_left_counters(set, 11));
		assert_int_equal(members__leave_counters(set, m[2]), 0);
		assert_true(members__has_left_counters(set, 11));
		for (int i = 0; i < 3; i++)
			seen[i] = members__take_left(set);
		assert_null(members__take_left(set));
		/* two members with the same pid are reported once */
		assert_ptr_equal(seen[0], m[0]);
		assert_ptr_equal(seen[1], m[2]);
		assert_null(seen[2]);
		assert_false(members__any_left_counters(set));
		assert_false(members__has_left_counters(set, 10));
	}
	members__free(set);
}

static void counters_of_no_member(void **state)
{
	int pidfd = own_pidfd();
	struct members *set;
	struct member *m;

	(void)state;
	assert_int_equal(members__new(&set), 0);
	assert_int_equal(members__leave_gone(set, 10), 0);
	assert_int_equal(members__leave_gone(set, 10), 0);
	assert_true(members__any_left_counters(set));
	assert_true(members__has_left_counters(set, 10));
	assert_false(members__has_left_counters(set, 11));
	/* another member has the pid: the counters are its own */
	m = add(set, 10, true);
	assert_int_equal(members__set_live(set, m, pidfd), 0);
	assert_false(members__has_left_counters(set, 10));
	assert_null(members__take_left(set));
	assert_false(members__any_left_counters(set));
	assert_int_equal(members__leave_gone(set, 12), 0);
	members__free(set);
	close(pidfd);
}

/* The last released members are kept, and so are those that are still in use. */
static void released_members_go(void **state)
{
	struct members *set;
	struct member *m[10];

	(void)state;
	assert_int_equal(members__new(&set), 0);
	for (int i = 0; i < 10; i++)
		m[i] = add(set, 10 + i, true);
	for (int i = 0; i < 10; i++)
		if (i != 2)
			members__set_released(set, m[i]);
	members__set_released(set, m[0]);
	assert_int_equal(members__count_released(set), 9);
	members__forget_released(set, 9);
	assert_int_equal(members__count(set), 10);
	members__forget_released(set, 4);
	assert_int_equal(members__count_released(set), 4);
	assert_int_equal(members__count(set), 5);
	assert_ptr_equal(members__at(set, 0), m[2]);
	for (size_t i = 1; i < 5; i++)
		assert_ptr_equal(members__at(set, i), m[5 + i]);
	members__free(set);
}

/* With few descriptors: a greedy user gets half of what others leave, and refusals are counted. */
static void one_users_members_leave_room(void **state)
{
	struct rlimit limit, few;
	struct member *live[16], *m;
	struct members *set;
	unsigned n = 0;
	int pidfds[16];

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = limit;
	few.rlim_cur = 128;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(members__new(&set), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_null(members__refused(set, 0));
	while (n < 16 && members__add(set, NULL, (pid_t)(100 + n), 1000, true, &m) == 0) {
		pidfds[n] = own_pidfd();
		assert_int_equal(members__set_live(set, m, pidfds[n]), 0);
		live[n++] = m;
	}
	assert_int_equal(n, 8);
	assert_false(members__has_room(set, 1000));
	assert_true(members__has_room(set, 1001));
	assert_int_equal(members__add(set, NULL, 200, 1000, true, &m), -EDQUOT);
	assert_int_equal(members__add(set, NULL, 201, 1001, true, &m), 0);
	assert_int_equal(members__refused(set, 0)->uid, 1000);
	assert_int_equal(members__refused(set, 0)->n, 2);
	assert_null(members__refused(set, 1));
	/* a cut keeps those that are still waiting */
	assert_int_equal(members__refused(set, 0)->lately, 2);
	members__cut_refused(set, 0, 1);
	assert_int_equal(members__refused(set, 0)->lately, 1);
	assert_int_equal(members__refused(set, 0)->n, 2);
	members__cut_refused(set, 0, 0);
	assert_int_equal(members__refused(set, 0)->lately, 0);
	members__set_ended(set, live[0]);
	assert_true(members__has_room(set, 1000));
	assert_int_equal(members__add(set, NULL, 202, 1000, true, &m), 0);
	members__free(set);
	while (n > 0)
		close(pidfds[--n]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_come_and_go),
		cmocka_unit_test(members_whose_processes_exit),
		cmocka_unit_test(a_member_that_ends_before_it_is_ready),
		cmocka_unit_test(counters_are_left_until_they_are_taken),
		cmocka_unit_test(counters_of_no_member),
		cmocka_unit_test(released_members_go),
		cmocka_unit_test(one_users_members_leave_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
