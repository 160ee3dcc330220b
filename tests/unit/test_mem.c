/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_mem: a child that can read the memory of one process, and do nothing else. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "confine/confine.h"
#include "process/mem.h"
#include "waiting_process.h"

#ifndef SANITIZED
#define SANITIZED 0
#endif

/* No child is left, not even as a zombie; a killed one is given time to die. */
static void no_child_left(void)
{
	while (confine__reap())
		poll(NULL, 0, 1);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

struct word {
	pid_t pid;
	uint64_t addr; /* in that process */
	pid_t other;   /* whose memory it must not read */
};

struct words {
	uint64_t value;
	int read, at_null, high, whole, by_pid, open_file;
};

static int fn_read(void *ctx, void *out)
{
	const struct word *w = ctx;
	struct words *o = out;
	uint64_t here[4096];
	struct iovec to = {here, 8}, from = {(void *)(uintptr_t)w->addr, 8};

	o->read = mem__read_u64(w->pid, w->addr, &o->value);
	o->at_null = mem__read(w->pid, 8, here, 8);
	o->high = mem__read(w->pid, 1ULL << 63, here, 8);
	/* the end of the range is not mapped */
	o->whole = mem__read(w->pid, w->addr & ~4095ULL, here, sizeof(here));
	o->by_pid = process_vm_readv(w->other, &to, 1, &from, 1, 0) < 0 ? errno : 0;
	o->open_file = open("/etc/passwd", O_RDONLY) < 0 ? errno : 0;
	return 0;
}

/* Maps a page that is followed by an unmapped one; returns a pointer into it. */
static uint64_t *lone_page(uint64_t value)
{
	uint64_t *page =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(page != MAP_FAILED);
	assert_int_equal(munmap((char *)page + 4096, 4096), 0);
	page[3] = value;
	return page + 3;
}

static void test_guard_of_memory(void **state)
{
	uint64_t *ours = lone_page(0x1122334455667788);
	struct word w = {.addr = (uintptr_t)ours};
	struct words *got;
	void *out;

	(void)state;
	w.pid = waiting_process();
	w.other = waiting_process();
	/* clear our own copy, which the child inherits: the value must come from the process */
	*ours = 0;
	assert_int_equal(mem__guard(w.pid, GUARD_MEMORY, 5000, fn_read, &w, sizeof(*got), &out), 0);
	got = out;
	assert_int_equal(got->read, 0);
	assert_true(got->value == 0x1122334455667788);
	assert_int_equal(got->at_null, -EFAULT);
	assert_int_equal(got->high, -EFAULT);
	assert_int_equal(got->whole, -EFAULT);
	if (!SANITIZED) {
		assert_int_equal(got->by_pid, EPERM);
		assert_int_not_equal(got->open_file, 0);
	}
	mem__guard_free(out, sizeof(*got));
	end_process(w.pid);
	/* after the process has ended its memory cannot be read, though the child still runs */
	assert_int_equal(mem__guard(w.pid, GUARD_MEMORY, 5000, fn_read, &w, sizeof(*got), &out), 0);
	got = out;
	assert_int_equal(got->read, -ESRCH);
	mem__guard_free(out, sizeof(*got));
	end_process(w.other);
	munmap((void *)((uintptr_t)ours & ~4095ULL), 4096);
	no_child_left();
}

/* A process that execs once its memory has been opened: the new program's memory is not read. */
static void test_memory_of_another_program(void **state)
{
	uint64_t value;
	int fds[2], fd;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		char c;

		if (read(fds[0], &c, 1) == 1)
			execl("/bin/sleep", "sleep", "1000", (char *)NULL);
		_exit(1);
	}
	assert_int_equal(mem__open(pid, &fd), 0);
	/* the child is a fork, so the same address is valid there */
	assert_int_equal(pread(fd, &value, sizeof(value), (off_t)(uintptr_t)fds), sizeof(value));
	assert_int_equal(write(fds[1], "x", 1), 1);
	while (pread(fd, &value, sizeof(value), (off_t)(uintptr_t)fds) > 0)
		poll(NULL, 0, 1);
	assert_int_equal(pread(fd, &value, sizeof(value), (off_t)(uintptr_t)fds), 0);
	mem__use(fd);
	assert_int_equal(mem__read_u64(pid, (uintptr_t)fds, &value), -ESRCH);
	mem__use(-1);
	assert_int_equal(mem__read_u64(pid, (uintptr_t)fds, &value), -ESRCH);
	end_process(pid);
	assert_int_equal(mem__open(pid, &fd), -ESRCH);
	close(fd);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_guard_of_memory),
		cmocka_unit_test(test_memory_of_another_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
