/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes that are candidates for profiling: whose turn it is, and which ones wait. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "session/session_priv.h"

#define T0 UINT64_C(1000000000)

static struct candidate *candidate(struct candidates *set, pid_t pid, uid_t user, uint64_t due)
{
	const struct wire_proc_new rec = {.h = {.tgid = (uint32_t)pid}};
	struct candidate *c = candidates__add(set, &rec, due, T0);

	assert_non_null(c);
	assert_ptr_equal(candidates__find(set, pid), c);
	c->user = user;
	c->has_user = true;
	return c;
}

/* The user who has been served least comes first; of one user, the process that has waited
 * longest; each process once per turn. */
static void candidates_take_turns(void **state)
{
	struct candidate *a, *b, *c;
	struct candidates *set;
	struct served *served;

	(void)state;
	assert_int_equal(candidates__new(&set), 0);
	assert_int_equal(served__new(&served), 0);
	a = candidate(set, 1, 1000, 10);
	b = candidate(set, 2, 1000, 10);
	c = candidate(set, 3, 1001, 10);
	candidate(set, 4, 1002, 100);
	served__add(served, 1000, 5);
	candidates__new_turn(set);
	assert_ptr_equal(candidates__next_due(set, served, 50), c);
	assert_ptr_equal(candidates__next_due(set, served, 50), a);
	assert_ptr_equal(candidates__next_due(set, served, 50), b);
	assert_null(candidates__next_due(set, served, 50));
	/* a dropped candidate is not returned again, and a fresh one comes after those that wait */
	candidates__drop(set, c);
	assert_null(candidates__find(set, 3));
	c = candidate(set, 5, 1000, 10);
	candidates__new_turn(set);
	assert_ptr_equal(candidates__next_due(set, served, 50), a);
	candidates__new_turn(set);
	assert_ptr_equal(candidates__next_due(set, served, 50), b);
	assert_ptr_equal(candidates__next_due(set, served, 50), c);
	assert_ptr_equal(candidates__next_due(set, served, 50), a);
	candidates__free(set);
	served__free(served);
}

/* Processes for which there was no room are kept, up to a limit, and start afresh when there is
 * room. */
static void candidates_wait_for_room(void **state)
{
	struct candidate *c = NULL;
	struct candidates *set;
	pid_t pid = 1;

	(void)state;
	assert_int_equal(candidates__new(&set), 0);
	do {
		c = candidate(set, pid++, 1000, 10);
	} while (candidates__wait(set, c, 100));
	assert_int_equal(pid, 4096 + 2);
	assert_false(c->waits);
	/* one that is already waiting may go on waiting */
	c = candidates__find(set, 7);
	assert_true(candidates__wait(set, c, 200));
	assert_false(candidate__is_due(c, 150));
	assert_true(candidate__is_due(c, 200));
	assert_true(c->running && !c->reported);
	c->tries = 5;
	candidates__go_on(set, c, 300);
	assert_false(c->waits);
	assert_int_equal(c->tries, 0);
	assert_int_equal(c->give_up_ns, 300);
	/* which frees a place for another one, as does one that is dropped or added anew */
	assert_true(candidates__wait(set, candidates__find(set, 4097), 100));
	assert_false(candidates__wait(set, c, 100));
	candidates__drop(set, candidates__find(set, 8));
	assert_true(candidates__wait(set, c, 100));
	candidate(set, 9, 1000, 10);
	assert_false(candidates__find(set, 9)->waits);
	assert_true(candidates__wait(set, candidate(set, 5000, 1000, 10), 100));
	candidates__free(set);
}

/* Processes for which there was no time are tried again after ten seconds, then at growing
 * intervals; the number that wait for room does not matter. */
static void candidates_wait_for_time(void **state)
{
	const uint64_t s = 1000000000;
	struct candidates *set;
	struct candidate *c;
	uint64_t now = T0;
	pid_t pid = 1;

	(void)state;
	assert_int_equal(candidates__new(&set), 0);
	do {
		c = candidate(set, pid++, 1000, 10);
	} while (candidates__wait(set, c, now + 1000 * s));
	for (uint64_t pause = 10; pause < 5000; pause *= 2) {
		assert_true(candidates__wait_for_time(set, c, now));
		assert_true(c->running && !c->reported && !c->refused && !c->missed);
		now += MIN(pause, 600) * s;
		assert_true(!candidate__is_due(c, now - 1) && candidate__is_due(c, now));
		candidates__go_on(set, c, now + s);
	}
	assert_int_equal(candidates__count_waiting(set, 1000), 4096);
	/* also the one that is being looked at once more */
	assert_false(c->waits);
	assert_int_equal(candidates__count_all_waiting(set), 4097);
	/* after an exec the process starts afresh */
	c = candidate(set, c->pid, 1000, 10);
	assert_int_equal(candidates__count_all_waiting(set), 4096);
	assert_true(candidates__wait_for_time(set, c, now) && candidate__is_due(c, now + 10 * s));
	/* a process that waits for one thing may wait for another, and takes only one place */
	c = candidates__find(set, 1);
	assert_true(candidates__wait_for_time(set, c, now));
	assert_int_equal(candidates__count_waiting(set, 1000), 4095);
	/* another user may have half of what those two leave */
	for (size_t n = 0; n < (8192 - 2) / 2; n++)
		assert_true(candidates__wait_for_time(set, candidate(set, pid++, 1001, 10), now));
	assert_false(candidates__wait_for_time(set, candidate(set, pid, 1001, 10), now));
	candidates__free(set);
}

/* A user who has filled all the places that he may have leaves some for other users, whether
 * waiting is for room, for descriptors or for time; whatever he then has beyond his reduced
 * share goes on waiting. */
static void candidates_wait_by_user(void **state)
{
	static bool (*const waits[])(struct candidates *, struct candidate *, uint64_t) = {
		candidates__wait, candidates__wait_for_files, candidates__wait_for_time};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(waits); i++) {
		struct candidate *c = NULL;
		struct candidates *set;
		pid_t pid = 1;

		assert_int_equal(candidates__new(&set), 0);
		while (waits[i](set, candidate(set, pid, 1000, 10), T0))
			pid++;
		assert_int_equal(pid, 4096 + 1);
		while (waits[i](set, candidate(set, pid, 1001, 10), T0))
			pid++;
		assert_int_equal(pid, 4096 + 2048 + 1);
		while (waits[i](set, (c = candidate(set, pid, 1002, 10)), T0))
			pid++;
		assert_int_equal(pid, 4096 + 2048 + 1024 + 1);
		assert_false(c->waits);
		c = candidates__find(set, 1);
		assert_true(c->waits && waits[i](set, c, T0 + 1));
		/* his share has shrunk: he gets a freed place back only after he has dropped
		 * below it */
		candidates__drop(set, c);
		assert_false(waits[i](set, candidate(set, pid, 1000, 10), T0));
		while (c = candidates__find(set, --pid), pid > 4096)
			candidates__drop(set, c);
		assert_true(waits[i](set, candidate(set, 7000, 1000, 10), T0));
		assert_false(waits[i](set, candidate(set, 7001, 1000, 10), T0));
		candidates__free(set);
	}
}

/* If the user cannot be determined for want of descriptors, the process is neither counted as
 * root's nor left without a user for good. */
static void candidate_of_nobody_yet(void **state)
{
	const struct wire_proc_new rec = {.h = {.tgid = (uint32_t)getpid()}};
	struct rlimit limit, none;
	struct candidates *set;
	struct candidate *c;

	(void)state;
	assert_int_equal(candidates__new(&set), 0);
	c = candidates__add(set, &rec, T0, T0);
	assert_non_null(c);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_true(candidates__wait(set, c, T0));
	assert_int_equal(candidates__count_waiting(set, getuid()), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_false(c->has_user);
	assert_int_equal(candidates__count_waiting(set, getuid()), 1);
	assert_true(c->has_user);
	candidates__drop(set, c);
	candidates__free(set);
}

/* A process that could not join for want of memory waits for time, like one whose examination
 * was cut short; it does not count as one that lacked descriptors. */
static void room_for_want_of_memory(void **state)
{
	static const int errs[] = {-ENOMEM, -ENFILE, -EIO, -ETIMEDOUT};
	const struct session_opts opts = {.kind = SESSION_SYSTEM};
	struct session s = {.opts = &opts};

	(void)state;
	assert_int_equal(candidates__new(&s.candidates), 0);
	for (size_t i = 0; i < ARRAY_SIZE(errs); i++) {
		struct candidate *c = candidate(s.candidates, getpid(), 1000, 10);
		uint64_t now = time__monotonic_ns();

		assert_true(room__wait(&s, c, now, errs[i]));
		assert_int_equal(c->waits, WAITS_FOR_TIME);
		assert_false(c->missed || c->refused || candidate__is_due(c, now + RETRY_NS - 1));
		assert_true(candidate__is_due(c, now + 2 * RETRY_NS));
	}
	assert_int_equal(s.no_files.n, 0);
	candidates__free(s.candidates);
}

/* Once there are too many candidates, another one is not added but noted, so that all processes
 * are scanned again. */
static void too_many(void **state)
{
	const struct session_opts opts = {.kind = SESSION_SYSTEM};
	struct session s = {.opts = &opts};
	pid_t pid = 1;

	(void)state;
	assert_int_equal(candidates__new(&s.candidates), 0);
	while (pid <= 65535)
		candidate(s.candidates, pid++, 1000, 10);
	follow__on_mapped(&s, pid);
	assert_false(s.unseen.processes);
	assert_non_null(candidates__find(s.candidates, pid));
	follow__on_mapped(&s, ++pid);
	assert_null(candidates__find(s.candidates, pid));
	assert_true(s.unseen.processes);
	candidates__free(s.candidates);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(candidates_take_turns),
		cmocka_unit_test(candidates_wait_for_room),
		cmocka_unit_test(candidates_wait_for_time),
		cmocka_unit_test(candidates_wait_by_user),
		cmocka_unit_test(candidate_of_nobody_yet),
		cmocka_unit_test(room_for_want_of_memory),
		cmocka_unit_test(too_many),
	};

	return cmocka_run_group_tests_name("candidates", tests, NULL, NULL);
}
