/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The session room's parts that need no kernel: the set of members, records that are held back. */
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/session_priv.h"
#include "test_timeline_kit.h"
#include "intake/tap.h"
#include "picture/make.h"
#include "process/proc.h"

/* ── the set of members ──────────────────────────────────────────────────────────────────── */

#define PIDS 50

static struct member *add(struct members *set, pid_t pid, bool ready)
{
	struct member *m = NULL;

	assert_int_equal(members__add(set, NULL, pid, 1000, ready, &m), 0);
	assert_int_equal(m->pid, pid);
	assert_false(m->live);
	return m;
}

/* It stays open until the member is set ended, or the set is freed. */
static int own_pidfd(void)
{
	int fd = -1;

	assert_int_equal(proc__pidfd(getpid(), &fd), 0);
	return fd;
}

/* The live ones are those of `want` that are not NULL, in that order. */
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

/* Members come and go in an order that repeats nothing; their pids come again. */
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
			/* once more changes nothing */
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
	/* all that ever joined stay, where they are */
	for (size_t i = 0; i < n; i++)
		assert_true(!live[i] || members__at(set, i) == live[i]);
	members__free(set);
	for (int p = 0; p < PIDS; p++)
		if (of_pid[p])
			close(pidfds[p]);
}

/* Three processes, two of which end: these are reported until their members are set ended. */
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
		/* of two of the same pid once */
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
	/* the pid is a member's now: they are its own */
	m = add(set, 10, true);
	assert_int_equal(members__set_live(set, m, pidfd), 0);
	assert_false(members__has_left_counters(set, 10));
	assert_null(members__take_left(set));
	assert_false(members__any_left_counters(set));
	assert_int_equal(members__leave_gone(set, 12), 0);
	members__free(set);
	close(pidfd);
}

/* The last ones stay, and those of which something is held. */
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

/* Where few descriptors may be open: the greedy get half of what others leave, and are counted. */
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
	assert_int_equal(members__add(set, NULL, 200, 1000, true, &m), -EDQUOT);
	assert_int_equal(members__add(set, NULL, 201, 1001, true, &m), 0);
	assert_int_equal(members__refused(set, 0)->uid, 1000);
	assert_int_equal(members__refused(set, 0)->n, 2);
	assert_null(members__refused(set, 1));
	members__set_ended(set, live[0]);
	assert_int_equal(members__add(set, NULL, 202, 1000, true, &m), 0);
	members__free(set);
	while (n > 0)
		close(pidfds[--n]);
}

/* ── records that are held back ──────────────────────────────────────────────────────────── */

#define HELD_NS UINT64_C(2000000000)

struct tapped {
	struct kit kit;
	struct feed *feed;
	struct held *held;
	size_t n;
	uint64_t last_ns;
};

/* What the timeline took: records in the order of their times. */
static void on_input(void *ctx, const struct intake_input *input)
{
	struct tapped *t = ctx;
	struct wire_hdr h;

	if (input->kind != TI_RECORD)
		return;
	memcpy(&h, input->data, sizeof(h));
	assert_true(h.ns >= t->last_ns);
	t->last_ns = h.ns;
	t->n++;
}

static void tapped_new(struct tapped *t)
{
	memset(t, 0, sizeof(*t));
	kit_new(&t->kit);
	intake__set_tap(t->kit.in, on_input, t);
	assert_int_equal(feed__new(t->kit.in, &t->feed), 0);
	assert_int_equal(held__new(&t->held), 0);
	held__begin(t->held, T0);
}

static void tapped_free(struct tapped *t)
{
	assert_int_equal(feed__lost_some(t->feed), feed__bad_records(t->feed) > 0);
	held__free(t->held);
	feed__free(t->feed);
	timeline__free(t->kit.tl);
}

static bool take(struct tapped *t, uint64_t ns)
{
	union rec r;

	mk_sample(&r, PID + 1, ns, WIRE_WHERE_HASKELL, 0ULL);
	return held__take(t->held, t->feed, &r, r.h.size);
}

static void held_until_given(void **state)
{
	struct tapped t;

	(void)state;
	tapped_new(&t);
	/* one that is older than the member is held as well */
	assert_true(take(&t, T0 - 1));
	for (unsigned i = 0; i < 100; i++)
		assert_true(take(&t, T0 + i));
	assert_true(take(&t, T0 + HELD_NS - 1));
	assert_int_equal(t.n, 0);
	assert_false(held__is_over(t.held));
	held__give(t.held, t.feed);
	assert_int_equal(t.n, 102);
	assert_true(held__is_over(t.held));
	assert_false(take(&t, T0 + 200));
	held__give(t.held, t.feed);
	assert_int_equal(t.n, 102);
	tapped_free(&t);
}

/* While the threads are looked at, too. */
static void held_a_second_time(void **state)
{
	struct tapped t;

	(void)state;
	tapped_new(&t);
	assert_true(take(&t, T0));
	held__give(t.held, t.feed);
	assert_false(take(&t, T0 + 1));
	held__begin(t.held, T0 + HELD_NS);
	assert_false(held__is_over(t.held));
	assert_true(take(&t, T0 + HELD_NS + 1));
	assert_int_equal(t.n, 1);
	held__give(t.held, t.feed);
	assert_int_equal(t.n, 2);
	tapped_free(&t);
}

static void users_are_served(void **state)
{
	struct served *served;

	(void)state;
	assert_int_equal(served__new(&served), 0);
	assert_int_equal(served__of(served, 7), 0);
	served__add(served, 7, 30);
	served__add(served, 8, 10);
	served__add(served, 7, 12);
	assert_int_equal(served__of(served, 7), 42);
	assert_int_equal(served__of(served, 8), 10);
	/* bounded */
	for (uid_t uid = 1000; uid < 11000; uid++)
		served__add(served, uid, 1);
	assert_int_equal(served__of(served, 10999), 1);
	assert_int_equal(served__of(served, 7), 0);
	served__free(served);
	served__free(NULL);
}

static void held_no_longer_than_its_time(void **state)
{
	struct tapped t;

	(void)state;
	tapped_new(&t);
	for (unsigned i = 0; i < 3; i++)
		assert_true(take(&t, T0 + i));
	assert_false(take(&t, T0 + HELD_NS));
	assert_int_equal(t.n, 3);
	assert_true(held__is_over(t.held));
	tapped_free(&t);
}

static void held_no_more_than_its_maximum(void **state)
{
	size_t n = 0;
	struct tapped t;

	(void)state;
	tapped_new(&t);
	while (n < 1 << 20 && take(&t, T0 + n))
		n++;
	assert_true(n > 1000 && n < 1 << 20);
	assert_int_equal(t.n, n);
	assert_true(held__is_over(t.held));
	tapped_free(&t);
}

static void held_and_dropped(void **state)
{
	struct tapped t;

	(void)state;
	tapped_new(&t);
	assert_true(take(&t, T0));
	held__drop(t.held);
	assert_true(held__is_over(t.held));
	held__give(t.held, t.feed);
	assert_int_equal(t.n, 0);
	tapped_free(&t);
	held__free(NULL);
}

/* A record whose length is not what it says is not kept: the timeline judges it. */
static void damaged_records_are_not_held(void **state)
{
	struct tapped t;
	union rec r;

	(void)state;
	tapped_new(&t);
	mk_sample(&r, PID + 1, T0, WIRE_WHERE_HASKELL, 0ULL);
	assert_false(held__take(t.held, t.feed, &r, r.h.size - 1));
	assert_false(held__is_over(t.held));
	feed__record(t.feed, &r, r.h.size - 1);
	assert_int_equal(feed__bad_records(t.feed), 1);
	r.h.size = sizeof(r.h) - 1;
	assert_false(held__take(t.held, t.feed, &r, sizeof(r)));
	feed__record(t.feed, &r, sizeof(r));
	assert_int_equal(feed__bad_records(t.feed), 2);
	assert_int_equal(t.n, 0);
	tapped_free(&t);
}

/* What was lost is lost from one window: those after it are complete. */
static void losses_belong_to_one_window(void **state)
{
	struct tapped t;
	union rec r;

	(void)state;
	tapped_new(&t);
	assert_false(feed__lost_some(t.feed));
	feed__failed(t.feed);
	assert_true(feed__lost_some(t.feed));
	feed__cut(t.feed);
	assert_false(feed__lost_some(t.feed));
	mk_sample(&r, PID + 1, T0, WIRE_WHERE_HASKELL, 0ULL);
	feed__record(t.feed, &r, r.h.size);
	assert_false(feed__lost_some(t.feed));
	feed__record(t.feed, &r, r.h.size - 1);
	assert_true(feed__lost_some(t.feed));
	feed__cut(t.feed);
	assert_false(feed__lost_some(t.feed));
	assert_int_equal(feed__bad_records(t.feed), 1);
	held__free(t.held);
	feed__free(t.feed);
	timeline__free(t.kit.tl);
}

/* ── candidates ──────────────────────────────────────────────────────────────────────────── */

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

/* Who has had least comes first, of one user who has waited longest; each once in a turn. */
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
	/* one that was dropped is looked at no more, and a new one comes after those that wait */
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

/* Down while it takes too much, up only where twice as many would not be too many at once. */
static void samples_are_spared(void **state)
{
	uint32_t every = 1;

	(void)state;
	assert_int_equal(sparing__next(1, 1.0, 1.0), 1);
	assert_int_equal(sparing__next(1, 0, 1.0), 1);
	for (int i = 0; i < 100; i++) {
		uint32_t next = sparing__next(every, 1.01, 1.0);

		assert_true(next == 2 * every || (next == every && every >= 32));
		every = next;
	}
	assert_int_equal(sparing__next(every, 0.5, 1.0), every);
	assert_int_equal(sparing__next(every, 0.26, 1.0), every);
	for (int i = 0; i < 10; i++)
		every = sparing__next(every, 0.24, 1.0);
	assert_int_equal(every, 1);
}

/* A window has the lowest frequency of its time, the next one that of its begin. */
static void frequencies_of_windows(void **state)
{
	const struct timeline_opts opts = {.frequency_hz = 99, .start_ns = T0};
	struct picture *pic;
	struct timeline *tl;

	(void)state;
	assert_int_equal(timeline__new(&opts, "0", "system", &tl), 0);
	assert_int_equal(picture__session(timeline__picture(tl))->frequency_hz, 99);
	timeline__set_frequency(tl, 24);
	timeline__set_frequency(tl, 49);
	assert_int_equal(timeline__window(tl, T0 + 1000, &pic), 0);
	assert_int_equal(picture__session(pic)->frequency_hz, 24);
	picture__free(pic);
	timeline__set_frequency(tl, 99);
	assert_int_equal(timeline__window(tl, T0 + 2000, &pic), 0);
	assert_int_equal(picture__session(pic)->frequency_hz, 49);
	picture__free(pic);
	assert_int_equal(timeline__finish(tl, T0 + 3000), 0);
	assert_int_equal(picture__session(timeline__picture(tl))->frequency_hz, 99);
	timeline__free(tl);
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
		cmocka_unit_test(held_until_given),
		cmocka_unit_test(held_a_second_time),
		cmocka_unit_test(users_are_served),
		cmocka_unit_test(held_no_longer_than_its_time),
		cmocka_unit_test(held_no_more_than_its_maximum),
		cmocka_unit_test(held_and_dropped),
		cmocka_unit_test(damaged_records_are_not_held),
		cmocka_unit_test(losses_belong_to_one_window),
		cmocka_unit_test(candidates_take_turns),
		cmocka_unit_test(samples_are_spared),
		cmocka_unit_test(frequencies_of_windows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
