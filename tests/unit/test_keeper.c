/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The keeper, with pipes instead of links: the other end shows whether anybody still holds one. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "confine/caps.h"
#include "kernel/keeper_priv.h"
#include "kernel/kernel_priv.h"

/* Far longer than anything here takes on a busy machine. */
#define PATIENCE_MS 60000

struct link {
	int mine, theirs;
	uint32_t id;
};

static struct link make_link(void)
{
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	return (struct link){.mine = fds[0], .theirs = fds[1]};
}

static struct link hold(struct keeper *k, enum keep_kind kind)
{
	struct link l = make_link();

	assert_int_equal(keeper__hold(k, kind, l.theirs, &l.id), 0);
	assert_true(l.id != 0);
	/* closed in this process */
	assert_int_equal(fcntl(l.theirs, F_GETFD), -1);
	return l;
}

static bool is_held(const struct link *l, int patience_ms)
{
	struct pollfd p = {.fd = l->mine};

	return poll(&p, 1, patience_ms) == 0;
}

static void test_holds_and_drops(void **state)
{
	struct keeper *k;
	struct link a, b, c;
	uint64_t number = 0;

	(void)state;
	assert_int_equal(keeper__new(&k), 0);
	a = hold(k, KEEP_PROBE);
	b = hold(k, KEEP_PROBE);
	c = hold(k, KEEP_REST);
	assert_true(a.id != b.id && b.id != c.id && a.id != c.id);
	keeper__drop(k, a.id, &number);
	assert_true(keeper__await(k, number));
	assert_false(is_held(&a, 0));
	keeper__drop(k, b.id, NULL);
	assert_false(is_held(&b, PATIENCE_MS));
	assert_true(is_held(&c, 0));
	assert_true(keeper__works(k));
	keeper__free(k);
	assert_false(is_held(&c, 0));
	/* no child is left */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	close(a.mine);
	close(b.mine);
	close(c.mine);
}

static void test_discards(void **state)
{
	struct keeper *k;
	struct link l = make_link();

	(void)state;
	assert_int_equal(keeper__new(&k), 0);
	keeper__discard(k, l.theirs);
	assert_false(is_held(&l, PATIENCE_MS));
	keeper__free(k);
	close(l.mine);
}

/* More than the socket holds at once, and each can be dropped. */
static void test_many(void **state)
{
	enum { N = 2000 };
	static struct link links[N];
	int fds[2], last = -1;
	struct keeper *k;

	(void)state;
	assert_int_equal(keeper__new(&k), 0);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	for (int i = 0; i < N && last < 0; i++) {
		int fd = dup(fds[1]), err;

		assert_true(fd >= 0);
		err = keeper__hold(k, KEEP_PROBE, fd, &links[i].id);
		/* as many as it can have open */
		if (err)
			assert_int_equal(err, -EMFILE);
		if (err)
			last = i;
	}
	assert_true(last < 0 || last > 100);
	close(fds[1]);
	for (int i = 0; i < (last < 0 ? N : last); i++) {
		struct link l = {.mine = fds[0]};

		assert_true(is_held(&l, 0));
		keeper__drop(k, links[i].id, NULL);
	}
	assert_false(is_held(&(struct link){.mine = fds[0]}, PATIENCE_MS));
	assert_true(keeper__works(k));
	keeper__free(k);
	close(fds[0]);
}

/* Nothing is taken off while the loop turns; after that the probes, then the rest. */
static void test_watches(void **state)
{
	struct link probe, rest, later;
	struct keeper *k;
	uint64_t number = 0;

	(void)state;
	assert_int_equal(keeper__new(&k), 0);
	probe = hold(k, KEEP_PROBE);
	rest = hold(k, KEEP_REST);
	for (int i = 0; i < 60; i++) {
		keeper__beat(k);
		poll(NULL, 0, 50);
	}
	assert_true(is_held(&probe, 0));
	assert_int_equal(keeper__times_taken(k), 0);
	assert_false(is_held(&probe, PATIENCE_MS));
	assert_true(keeper__times_taken(k) >= 1);
	/* a probe handed over at this point stays until the next time */
	later = hold(k, KEEP_PROBE);
	keeper__drop(k, probe.id, &number);
	assert_true(keeper__await(k, number));
	assert_false(is_held(&rest, PATIENCE_MS));
	assert_false(is_held(&later, PATIENCE_MS));
	assert_false(keeper__works(k));
	keeper__free(k);
	close(probe.mine);
	close(rest.mine);
	close(later.mine);
}

/* The daemon is killed, while another process still has its descriptors. */
static void test_outlives_nobody(void **state)
{
	int fds[2], hangs[2];
	pid_t daemon;
	char c;

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(pipe2(hangs, O_CLOEXEC), 0);
	daemon = fork();
	assert_true(daemon >= 0);
	if (daemon == 0) {
		struct keeper *k;
		uint32_t id;

		close(fds[0]);
		if (keeper__new(&k) || keeper__hold(k, KEEP_REST, fds[1], &id))
			_exit(1);
		/* this process has the keeper's socket too */
		if (fork() == 0) {
			close(hangs[1]);
			_exit(read(hangs[0], &c, 1) != 0);
		}
		for (;;)
			pause();
	}
	close(fds[1]);
	close(hangs[0]);
	assert_true(is_held(&(struct link){.mine = fds[0]}, 500));
	assert_int_equal(kill(daemon, SIGKILL), 0);
	assert_int_equal(waitpid(daemon, NULL, 0), daemon);
	assert_false(is_held(&(struct link){.mine = fds[0]}, PATIENCE_MS));
	close(hangs[1]);
	close(fds[0]);
}

static void test_is_gone(void **state)
{
	struct keeper *k;
	struct link l = make_link(), kept;
	char path[64], name[32] = "";
	pid_t pid = 0;
	FILE *f;

	(void)state;
	assert_int_equal(keeper__new(&k), 0);
	kept = hold(k, KEEP_REST);
	/* the keeper is the only child */
	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	f = fopen(path, "re");
	if (!f || !fgets(name, sizeof(name), f))
		skip();
	fclose(f);
	pid = (pid_t)strtol(name, NULL, 10);
	assert_true(pid > 0);
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	while (strcmp(name, "safescoped:keep\n") != 0) {
		f = fopen(path, "re");
		assert_non_null(f);
		assert_non_null(fgets(name, sizeof(name), f));
		fclose(f);
	}
	/* signals that end the daemon do not end the keeper */
	kill(pid, SIGTERM);
	kill(pid, SIGINT);
	assert_true(is_held(&kept, 300));
	kill(pid, SIGKILL);
	assert_false(is_held(&kept, PATIENCE_MS));
	while (keeper__works(k))
		poll(NULL, 0, 1);
	assert_int_equal(keeper__hold(k, KEEP_PROBE, l.theirs, &l.id), -EPIPE);
	assert_false(is_held(&l, 0));
	keeper__free(k);
	close(l.mine);
	close(kept.mine);
}

static pid_t only_child(void)
{
	char path[64], children[64] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	f = fopen(path, "re");
	assert_non_null(f);
	assert_non_null(fgets(children, sizeof(children), f));
	fclose(f);
	return (pid_t)strtol(children, NULL, 10);
}

/* Returns true if this process's only child has the descriptor that enables BPF statistics. */
static bool child_has_account(void)
{
	char path[64], target[64];
	bool has = false;

	for (int fd = 0; fd < 16; fd++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", only_child(), fd);
		n = readlink(path, target, sizeof(target) - 1);
		target[MAX(n, 0)] = '\0';
		has |= strstr(target, "bpf-stats") || strstr(target, "bpf_stats");
	}
	return has;
}

static void await(const struct keeper *k, uint64_t number)
{
	for (int i = 0; i < PATIENCE_MS / 500 && !keeper__is_done(k, number); i++)
		keeper__await(k, number);
	assert_true(keeper__is_done(k, number));
}

static void account(struct keeper *k, bool on)
{
	uint64_t number;

	assert_int_equal(keeper__account(k, on, &number), 0);
	await(k, number);
	assert_true(keeper__accounts(k) == on);
	assert_true(child_has_account() == on);
}

static void test_account(void **state)
{
	uint64_t number = 0;
	struct keeper *k;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(keeper__new(&k), 0);
	account(k, false);
	account(k, true);
	account(k, false);
	keeper__release(k);
	assert_int_equal(keeper__account(k, true, &number), -EPIPE);
	assert_int_equal(number, 0);
	keeper__free(k);
}

/* A late keeper is not waited for; it does what was last requested. */
static void test_late_account(void **state)
{
	uint64_t on = 0, off = 0;
	struct keeper *k;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(keeper__new(&k), 0);
	/* after this it has given up its rights and has its name */
	account(k, false);
	assert_int_equal(kill(only_child(), SIGSTOP), 0);
	assert_int_equal(keeper__account(k, true, &on), 0);
	assert_int_equal(keeper__account(k, false, &off), 0);
	assert_true(off > on);
	assert_false(keeper__is_done(k, on));
	assert_false(keeper__await(k, on));
	assert_int_equal(kill(only_child(), SIGCONT), 0);
	await(k, off);
	assert_false(child_has_account());
	account(k, true);
	keeper__free(k);
}

/* The events are for the given CPU, and where this process may not open one, the result is the
 * kernel's own error. */
static void test_opens_events(void **state)
{
	uint64_t before = 0, after = 0;
	int status, fd;
	struct keeper *k;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(keeper__new(&k), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		/* without rights a process cannot open an event for a CPU */
		if (caps__reduce_to(0))
			_exit(3);
		fd = cpu_event__open_here(CPU_EVENT_CLOCK, 0, 1000000000);
		if (fd < 0 && fd != -EACCES && fd != -EPERM)
			_exit(4);
		fd = cpu_event__open(k, CPU_EVENT_MAPPINGS, 0, 0);
		if (fd < 0)
			_exit(5);
		fd = cpu_event__open(k, CPU_EVENT_CLOCK, 0, 1000000000);
		if (fd < 0)
			_exit(6);
		if (read(fd, &before, sizeof(before)) != sizeof(before))
			_exit(7);
		for (int ms = 0; after <= before && ms < PATIENCE_MS; ms++) {
			usleep(1000);
			if (read(fd, &after, sizeof(after)) != sizeof(after))
				_exit(8);
		}
		_exit(after > before ? 0 : 9);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* a CPU that does not exist on any machine */
	assert_int_equal(keeper__open_event(k, CPU_EVENT_CLOCK, 1 << 20, 1000000000),
			 cpu_event__open_here(CPU_EVENT_CLOCK, 1 << 20, 1000000000));
	assert_int_equal(keeper__open_event(k, 0, 0, 1000000000), -EINVAL);
	assert_true(keeper__works(k));
	keeper__release(k);
	assert_int_equal(keeper__open_event(k, CPU_EVENT_CLOCK, 0, 1000000000), -EPIPE);
	keeper__free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_opens_events), cmocka_unit_test(test_account),
		cmocka_unit_test(test_late_account), cmocka_unit_test(test_holds_and_drops),
		cmocka_unit_test(test_discards),     cmocka_unit_test(test_many),
		cmocka_unit_test(test_watches),	     cmocka_unit_test(test_outlives_nobody),
		cmocka_unit_test(test_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
