/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A process without rights, as the kernel shows it (/proc/PID/status and the errors of its calls),
 * and what its parent learns of its end.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "confine/confine.h"
#include "process/proc.h"
#include "waiting_process.h"

#define LONG_MS 60000

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static const struct confine plain = {.name = "test"};

/* ── what the kernel says of one ─────────────────────────────────────────────────────────── */

/* Writes its pid to an inherited descriptor, then stays until it is killed. */
static int fn_say_and_stay(void *ctx, void *out)
{
	pid_t pid = getpid();

	(void)out;
	if (write(*(int *)ctx, &pid, sizeof(pid)) != (ssize_t)sizeof(pid))
		return -EIO;
	while (poll(NULL, 0, 1000) == 0)
		;
	return -EINTR;
}

struct running {
	struct confine_job *job;
	int fds[2];
	pid_t pid;
	char *status;
};

/* Waits for the child's pid; a child that could not be confined writes none. */
static void fds_ready(const struct running *r)
{
	struct pollfd p[] = {{.fd = r->fds[0], .events = POLLIN},
			     {.fd = confine_job__fd(r->job), .events = POLLIN}};

	assert_true(poll(p, ARRAY_SIZE(p), LONG_MS) > 0);
	assert_true(p[0].revents & POLLIN);
}

static void start_one(struct running *r, uint32_t keep)
{
	struct confine how = plain;
	char path[64];
	size_t len;

	assert_int_equal(pipe2(r->fds, O_CLOEXEC), 0);
	how.keep = keep;
	how.fds = &r->fds[1];
	how.n_fds = 1;
	assert_int_equal(confine__start(&how, LONG_MS, fn_say_and_stay, &r->fds[1], 64, &r->job),
			 0);
	fds_ready(r);
	assert_int_equal(read(r->fds[0], &r->pid, sizeof(r->pid)), sizeof(r->pid));
	snprintf(path, sizeof(path), "/proc/%d/status", r->pid);
	assert_int_equal(proc__text(path, 65536, &r->status, &len), 0);
}

static void stop_one(struct running *r)
{
	siginfo_t info = {0};

	confine_job__free(r->job);
	/* it has ended, whether or not it has been reaped */
	for (int i = 0; waitid(P_PID, (id_t)r->pid, &info, WEXITED) < 0 && errno == EINTR && i < 9;
	     i++)
		;
	assert_int_equal(confine__reap(), 0);
	free(r->status);
	close(r->fds[0]);
	close(r->fds[1]);
}

static const char *field(const struct running *r, const char *name)
{
	const char *at = strstr(r->status, name);

	assert_non_null(at);
	return at + strlen(name) + strspn(at + strlen(name), " \t");
}

static void nothing_is_left(void **state)
{
	struct running r;
	char path[64], link[64];
	int n_open = 0;

	(void)state;
	start_one(&r, 0);
	if (getuid() == 0) {
		char *uid = (char *)field(&r, "\nUid:"), *gid = (char *)field(&r, "\nGid:");

		/* real, effective, saved, filesystem */
		for (int i = 0; i < 4; i++) {
			assert_true(strtoul(uid, &uid, 10) >= 65534);
			assert_true(strtoul(gid, &gid, 10) >= 65534);
		}
		assert_int_equal(*field(&r, "\nGroups:"), '\n');
	}
	assert_int_equal(strtoull(field(&r, "\nCapEff:"), NULL, 16), 0);
	assert_int_equal(strtoull(field(&r, "\nCapPrm:"), NULL, 16), 0);
	assert_int_equal(strtoull(field(&r, "\nCapInh:"), NULL, 16), 0);
	assert_int_equal(strtoull(field(&r, "\nCapAmb:"), NULL, 16), 0);
	assert_int_equal(strtol(field(&r, "\nNoNewPrivs:"), NULL, 10), 1);
	if (!SANITIZED)
		assert_int_equal(strtol(field(&r, "\nSeccomp:"), NULL, 10), 2);
	for (int fd = 0; fd < 1024; fd++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", r.pid, fd);
		n_open += readlink(path, link, sizeof(link)) >= 0;
	}
	/* an ordinary user may not see it, although the process is his */
	assert_int_equal(n_open, getuid() ? 0 : SANITIZED ? 2 : 1);
	stop_one(&r);
}

static void only_what_memory_needs(void **state)
{
	struct running r;

	(void)state;
	if (getuid())
		skip();
	start_one(&r, CONFINE_MEMORY);
	assert_int_equal(strtoull(field(&r, "\nCapEff:"), NULL, 16), 1ULL << 19); /* SYS_PTRACE */
	assert_int_equal(strtoull(field(&r, "\nCapPrm:"), NULL, 16), 1ULL << 19);
	assert_true(strtoul(field(&r, "\nUid:"), NULL, 10) >= 65534);
	stop_one(&r);
}

/* ── what it may do ──────────────────────────────────────────────────────────────────────── */

struct tried {
	int open_file, open_proc, make_socket, fork_one, kill_parent, use_fd, exec_memory, trace;
	int read_other, write_file;
};

static int error_of(long result)
{
	return result < 0 ? errno : 0;
}

struct attempt {
	int fd;
	pid_t other;
	const char *other_word;
};

static int fn_try(void *ctx, void *out)
{
	const struct attempt *a = ctx;
	struct tried *t = out;
	char word[4];
	struct iovec here = {word, sizeof(word)}, there = {(void *)a->other_word, sizeof(word)};

	t->open_file = error_of(open("/etc/passwd", O_RDONLY));
	t->write_file = error_of(open("/tmp", O_RDWR | O_TMPFILE, 0600));
	t->open_proc = error_of(open("/proc/self/status", O_RDONLY));
	t->make_socket = error_of(socket(AF_INET, SOCK_STREAM, 0));
	t->fork_one = error_of(syscall(SYS_fork));
	if (t->fork_one == 0 && getpid() != syscall(SYS_getppid))
		t->fork_one = 0;
	t->kill_parent = error_of(kill(getppid(), 0));
	t->use_fd = error_of(write(a->fd, "x", 1));
	t->exec_memory = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			      0) == MAP_FAILED
				 ? errno
				 : 0;
	t->read_other = process_vm_readv(a->other, &here, 1, &there, 1, 0) == (ssize_t)sizeof(word)
				? 0
				: errno;
	return 0;
}

static void may_do_nothing(void **state)
{
	struct attempt a = {.other_word = "abc"};
	int fds[2];
	struct tried *t;
	void *out;

	(void)state;
	if (SANITIZED)
		skip();
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	a.fd = fds[1];
	a.other = waiting_process();
	assert_int_equal(confine__aside(&plain, LONG_MS, 0, fn_try, &a, sizeof(*t), &out), 0);
	t = out;
	assert_int_not_equal(t->open_file, 0);
	assert_int_not_equal(t->write_file, 0);
	assert_int_not_equal(t->open_proc, 0);
	assert_int_not_equal(t->make_socket, 0);
	assert_int_not_equal(t->fork_one, 0);
	assert_int_not_equal(t->kill_parent, 0);
	assert_int_equal(t->use_fd, EBADF);
	assert_int_not_equal(t->exec_memory, 0);
	assert_int_equal(t->read_other, EPERM);
	confine__free_out(out, sizeof(*t));

	/* nor can one that reads memory do anything else */
	{
		struct confine how = plain;

		how.keep = CONFINE_MEMORY;
		assert_int_equal(confine__aside(&how, LONG_MS, 0, fn_try, &a, sizeof(*t), &out), 0);
		t = out;
		assert_int_equal(t->read_other, 0);
		assert_int_not_equal(t->open_file, 0);
		assert_int_not_equal(t->make_socket, 0);
		assert_int_not_equal(t->fork_one, 0);
		assert_int_equal(t->use_fd, EBADF);
		confine__free_out(out, sizeof(*t));
		how.keep = CONFINE_PROC;
		assert_int_equal(confine__aside(&how, LONG_MS, 0, fn_try, &a, sizeof(*t), &out), 0);
		t = out;
		assert_int_equal(t->read_other, 0);
		assert_int_equal(t->open_proc, 0);
		assert_int_not_equal(t->make_socket, 0);
		confine__free_out(out, sizeof(*t));
	}
	/* one that copies files may read them, but not write */
	{
		struct confine how = plain;

		how.keep = CONFINE_FILES;
		assert_int_equal(confine__aside(&how, LONG_MS, 0, fn_try, &a, sizeof(*t), &out), 0);
		t = out;
		assert_int_equal(t->open_file, 0);
		assert_int_not_equal(t->write_file, 0);
		assert_int_equal(t->read_other, EPERM);
		assert_int_not_equal(t->make_socket, 0);
		confine__free_out(out, sizeof(*t));
	}
	end_process(a.other);
	close(fds[0]);
	close(fds[1]);
}

/* Memory that is shared with the parent and writable is unmapped in the child. */
static int fn_write_shared(void *ctx, void *out)
{
	*(volatile int *)out = 1;
	*(volatile int *)ctx = 1;
	return 0;
}

static void changes_nothing_of_ours(void **state)
{
	int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	void *out;

	(void)state;
	assert_true(shared != MAP_FAILED);
	assert_int_equal(confine__aside(&plain, LONG_MS, 0, fn_write_shared, shared, 4, &out),
			 -EIO);
	assert_int_equal(*shared, 0);
	munmap(shared, 4096);
}

/* ── limits ──────────────────────────────────────────────────────────────────────────────── */

static int fn_eat(void *ctx, void *out)
{
	size_t *got = out;
	void *at;

	while (*got < *(size_t *)ctx &&
	       (at = mmap(NULL, 1U << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			  0)) != MAP_FAILED) {
		memset(at, 1, 1U << 20);
		*got += 1U << 20;
	}
	return 0;
}

static int fn_spin(void *ctx, void *out)
{
	(void)out;
	while (*(volatile int *)ctx >= 0)
		*(volatile unsigned int *)ctx ^= 1;
	return 0;
}

static void within_limits(void **state)
{
	size_t enough = 512U << 20, *got;
	struct confine how = plain;
	int count = 0;
	void *out;

	(void)state;
	if (SANITIZED)
		skip();
	how.memory = 64U << 20;
	assert_int_equal(confine__aside(&how, LONG_MS, 0, fn_eat, &enough, sizeof(*got), &out), 0);
	got = out;
	assert_in_range(*got, 16U << 20, 64U << 20);
	confine__free_out(out, sizeof(*got));

	how.cpu_s = 1;
	assert_int_equal(confine__aside(&how, LONG_MS, 0, fn_spin, &count, 4, &out), -EIO);
}

/* ── how it ends ─────────────────────────────────────────────────────────────────────────── */

static int fn_sum(void *ctx, void *out)
{
	const uint32_t *n = ctx;
	uint64_t *sum = out;

	for (uint32_t i = 1; i <= *n; i++)
		*sum += i;
	return 0;
}

static int fn_return(void *ctx, void *out)
{
	(void)out;
	return *(int *)ctx;
}

static int fn_crash(void *ctx, void *out)
{
	(void)ctx;
	(void)out;
	__builtin_trap();
}

static int fn_exit(void *ctx, void *out)
{
	(void)ctx;
	(void)out;
	_exit(0);
}

/* The child can also write the head of the shared memory. */
static int fn_forge(void *ctx, void *out)
{
	memset((char *)out - 64, *(int *)ctx, 64);
	_exit(0);
}

static int fn_hang(void *ctx, void *out)
{
	(void)ctx;
	(void)out;
	while (poll(NULL, 0, 1000) == 0)
		;
	return -EINTR;
}

static void results(void **state)
{
	uint32_t n = 1000;
	int value;
	void *out = NULL;

	(void)state;
	assert_int_equal(confine__aside(&plain, LONG_MS, 0, fn_sum, &n, sizeof(uint64_t), &out), 0);
	assert_int_equal(*(uint64_t *)out, 500500);
	confine__free_out(out, sizeof(uint64_t));
	confine__free_out(NULL, 4);
	value = -ENOEXEC;
	assert_int_equal(confine__aside(&plain, LONG_MS, 0, fn_return, &value, 8, &out), -ENOEXEC);
	/* -EAGAIN means that the job is still running, which is not true */
	value = -EAGAIN;
	assert_int_equal(confine__aside(&plain, LONG_MS, 0, fn_return, &value, 8, &out), -EIO);
	value = 7;
	assert_int_equal(confine__aside(&plain, LONG_MS, 0, fn_return, &value, 8, &out), -EIO);
	value = -70000;
	assert_int_equal(confine__aside(&plain, LONG_MS, 0, fn_return, &value, 8, &out), -EIO);
	assert_int_equal(confine__aside(&plain, LONG_MS, 0, fn_crash, NULL, 8, &out), -EIO);
	assert_int_equal(confine__aside(&plain, LONG_MS, 0, fn_exit, NULL, 8, &out), -EIO);
	value = 0x7f;
	assert_int_equal(confine__aside(&plain, LONG_MS, 0, fn_forge, &value, 8, &out), -EIO);
	value = 0x80;
	assert_int_equal(confine__aside(&plain, LONG_MS, 0, fn_forge, &value, 8, &out), -EIO);
	assert_int_equal(confine__aside(&plain, 100, 0, fn_hang, NULL, 8, &out), -ETIMEDOUT);
	assert_int_equal(confine__aside(&plain, LONG_MS, 0, fn_sum, &n, SIZE_MAX - 8, &out),
			 -EINVAL);
	assert_int_equal(confine__aside(&plain, LONG_MS, 0, fn_sum, &n, 1ULL << 62, &out), -ENOMEM);
}

/* Includes killed children, which take a moment to end on a busy machine. */
static int all_have_ended(void **state)
{
	(void)state;
	for (unsigned i = 0; confine__reap() > 0 && i < 6000; i++)
		poll(NULL, 0, 10);
	assert_int_equal(confine__reap(), 0);
	return 0;
}

static void not_waited_for(void **state)
{
	struct confine_job *jobs[CONFINE_MAX + 1];
	struct pollfd p;
	uint32_t n = 10;
	void *out;
	size_t i;

	(void)state;
	for (i = 0; i < CONFINE_MAX; i++)
		assert_int_equal(confine__start(&plain, LONG_MS, fn_hang, NULL, 8, &jobs[i]), 0);
	assert_int_equal(confine__start(&plain, LONG_MS, fn_hang, NULL, 8, &jobs[i]), -EBUSY);
	assert_int_equal(confine_job__result(jobs[0], &out), -EAGAIN);
	for (i = 0; i < CONFINE_MAX; i++)
		confine_job__free(jobs[i]);
	confine_job__free(NULL);
	all_have_ended(NULL);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);

	assert_int_equal(confine__start(&plain, LONG_MS, fn_sum, &n, 8, &jobs[0]), 0);
	p = (struct pollfd){.fd = confine_job__fd(jobs[0]), .events = POLLIN};
	if (p.fd >= 0)
		assert_int_equal(poll(&p, 1, LONG_MS), 1);
	assert_int_equal(confine__wait(jobs[0], UINT64_MAX, &out), 0);
	assert_int_equal(*(uint64_t *)out, 55);
	confine__free_out(out, 8);
	confine_job__free(jobs[0]);
}

/* A child never has a raised priority; it inherits a lowered one. */
static void gives_way(void **state)
{
	static const struct {
		int ours, its;
	} cases[] = {{-5, 0}, {0, 0}, {7, 7}};
	int before = getpriority(PRIO_PROCESS, 0);

	(void)state;
	if (getuid())
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct running r;

		assert_int_equal(setpriority(PRIO_PROCESS, 0, cases[i].ours), 0);
		start_one(&r, 0);
		assert_int_equal(getpriority(PRIO_PROCESS, (id_t)r.pid), cases[i].its);
		stop_one(&r);
	}
	assert_int_equal(setpriority(PRIO_PROCESS, 0, before), 0);
}

/* ── what they cost ──────────────────────────────────────────────────────────────────────── */

#define SPIN_NS 50000000ULL

static void spin(void)
{
	struct timespec cpu = {};

	while ((uint64_t)cpu.tv_sec * 1000000000ULL + (uint64_t)cpu.tv_nsec < SPIN_NS)
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
}

/* Forks a child, as a sender does; both use SPIN_NS of CPU time, report it and stay. */
static void run_two(void *ctx, int in, int out)
{
	pid_t pid;
	char byte = confine__fork(&pid) != 0;

	(void)ctx;
	spin();
	if (write(out, &byte, 1) == 1)
		recv(in, &byte, 1, 0);
	_exit(0);
}

static void their_cpu_time(void **state)
{
	const struct confine how = {.name = "test",
				    .memory = 1 << 26,
				    .cpu_s = CONFINE_NO_END,
				    .keep = CONFINE_NETWORK | CONFINE_FORK,
				    .user = CONFINE_NOBODY};
	uint64_t ended = usage__children_cpu_ns(), cpu;
	struct confine_peer *peer;
	struct pollfd p;
	char byte;

	(void)state;
	assert_int_equal(confine__running_cpu_ns(), 0);
	assert_int_equal(confine_peer__start(&how, run_two, NULL, &peer), 0);
	p = (struct pollfd){.fd = confine_peer__fd(peer), .events = POLLIN};
	for (int i = 0; i < 2; i++) {
		assert_int_equal(poll(&p, 1, LONG_MS), 1);
		assert_int_equal(confine_peer__take(peer, &byte, 1), 0);
		assert_int_equal(byte, 0);
	}
	cpu = confine__running_cpu_ns();
	assert_true(cpu >= 2 * SPIN_NS);
	assert_true(cpu < 20 * SPIN_NS);
	confine_peer__free(peer);
	while (confine__reap())
		poll(NULL, 0, 1);
	assert_int_equal(confine__running_cpu_ns(), 0);
	assert_true(usage__children_cpu_ns() - ended >= SPIN_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_left),
		cmocka_unit_test(only_what_memory_needs),
		cmocka_unit_test(may_do_nothing),
		cmocka_unit_test(changes_nothing_of_ours),
		cmocka_unit_test(within_limits),
		cmocka_unit_test(results),
		cmocka_unit_test_setup(their_cpu_time, all_have_ended),
		cmocka_unit_test_setup(not_waited_for, all_have_ended),
		cmocka_unit_test_setup(gives_way, all_have_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
