/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parsers of /proc's texts with what a hostile process can put into them, and reads of this
 * process.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sys/syscall.h>

#include <cmocka.h>

#include "base/base.h"
#include "process/mem.h"
#include "process/proc.h"
#include "wire.h"

static void parse_stat(const char *text, int want_err, const char *want_comm, char want_state,
		       uint64_t want_ticks)
{
	struct proc_stat st;
	/* exactly as long as the text, so that the sanitizer detects a read beyond it */
	char *copy = malloc(strlen(text) + 1);
	int err;

	assert_non_null(copy);
	memcpy(copy, text, strlen(text));
	err = proc__parse_stat(copy, strlen(text), &st);
	free(copy);
	assert_int_equal(err, want_err);
	if (err < 0)
		return;
	assert_string_equal(st.comm, want_comm);
	assert_int_equal(st.state, want_state);
	assert_int_equal(st.start_ticks, want_ticks);
	assert_int_equal(st.cpu_ticks, 11 + 12);
}

static bool is_kernel_thread(const char *text)
{
	struct proc_stat st;

	assert_int_equal(proc__parse_stat(text, strlen(text), &st), 0);
	return st.kernel_thread;
}

#define AFTER_STATE " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 424242 20 21\n"

static void test_stat(void **state)
{
	(void)state;
	parse_stat("1234 (cat) S" AFTER_STATE, 0, "cat", 'S', 424242);
	parse_stat("1234 (a b) R 9 (x) S" AFTER_STATE, 0, "a b) R 9 (x", 'S', 424242);
	parse_stat("1234 ()) Z" AFTER_STATE, 0, ")", 'Z', 424242);
	parse_stat("1234 (\n(\t) D" AFTER_STATE, 0, "\n(\t", 'D', 424242);
	parse_stat("1234 () S" AFTER_STATE, 0, "", 'S', 424242);
	parse_stat("1234 (a name longer than fifteen) S" AFTER_STATE, 0, "a name longer t", 'S',
		   424242);
	assert_true(is_kernel_thread("2 (kthreadd) S 0 0 0 0 -1 2129984" AFTER_STATE));
	assert_false(is_kernel_thread("9 (cat) R 1 9 9 34816 9 4194304" AFTER_STATE));
	parse_stat("", -EINVAL, NULL, 0, 0);
	parse_stat("1234", -EINVAL, NULL, 0, 0);
	parse_stat("1234 (cat", -EINVAL, NULL, 0, 0);
	parse_stat("1234 )cat( S 1", -EINVAL, NULL, 0, 0);
	parse_stat("1234 (cat)", -EINVAL, NULL, 0, 0);
	parse_stat("1234 (cat) S 1 2 3", -EINVAL, NULL, 0, 0);
	parse_stat("1 (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 99999999999999999999999",
		   -EINVAL, NULL, 0, 0);
	parse_stat("1 (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 -1 ", -EINVAL, NULL, 0, 0);
	parse_stat("1 (c) S 1 2 3 4 5 6 7 8 9 10 x 12 13 14 15 16 17 18 5 ", -EINVAL, NULL, 0, 0);
	parse_stat("1 (c) S 1 2 3 4 5 6 7 8 9 10 11 18446744073709551615 13 14 15 16 17 18 5 ",
		   -EINVAL, NULL, 0, 0);
}

static struct proc_maps parse_maps(const char *text, size_t len)
{
	struct proc_maps maps;
	char *copy = malloc(len + 1);

	assert_non_null(copy);
	memcpy(copy, text, len);
	copy[len] = '\0';
	assert_int_equal(proc__parse_maps(copy, len, &maps), 0);
	return maps;
}

static void test_maps(void **state)
{
	static const char text[] =
		"00400000-004cc000 r-xp 00000000 fd:01 1234567                /usr/bin/thr\n"
		"004cc000-004d9000 rw-p 000cb000 fd:01 1234567                /usr/bin/thr\n"
		"004d9000-004dc000 rw-p 00000000 00:00 0 \n"
		"7f0000000000-7f0000001000 r-xp 00001000 103:02 77            /tmp/a b (deleted)\n"
		"7f0000001000-7f0000002000 r--s 00000000 00:05 18446744073709551615 /dev/x\\012y\n"
		"7f0000002000-7f0000003000 r-xp 00000000 00:05 1 /back\\slash\\01\n"
		"7ffe00000000-7ffe00001000 r-xp 00000000 00:00 0                          [vdso]\n";
	struct proc_maps m = parse_maps(text, sizeof(text) - 1);

	(void)state;
	assert_int_equal(m.n, 7);
	assert_int_equal(m.maps[0].start, 0x400000);
	assert_int_equal(m.maps[0].end, 0x4cc000);
	assert_true(m.maps[0].exec && m.maps[0].read && !m.maps[0].write);
	assert_int_equal(m.maps[0].dev_major, 0xfd);
	assert_int_equal(m.maps[0].dev_minor, 1);
	assert_int_equal(m.maps[0].ino, 1234567);
	assert_string_equal(m.maps[0].path, "/usr/bin/thr");
	assert_int_equal(m.maps[1].offset, 0xcb000);
	assert_string_equal(m.maps[2].path, "");
	assert_true(m.maps[3].deleted);
	assert_string_equal(m.maps[3].path, "/tmp/a b");
	assert_string_equal(m.maps[4].path, "/dev/x\ny");
	assert_true(m.maps[4].ino == UINT64_MAX);
	assert_string_equal(m.maps[5].path, "/back\\slash\\01");
	assert_string_equal(m.maps[6].path, "[vdso]");

	assert_ptr_equal(proc_maps__at(&m, 0x400000), &m.maps[0]);
	assert_ptr_equal(proc_maps__at(&m, 0x4cbfff), &m.maps[0]);
	assert_ptr_equal(proc_maps__at(&m, 0x4cc000), &m.maps[1]);
	assert_null(proc_maps__at(&m, 0x3fffff));
	assert_null(proc_maps__at(&m, 0x500000));
	assert_null(proc_maps__at(&m, UINT64_MAX));
	proc_maps__free(&m);
	proc_maps__free(&m);
}

/* Damaged lines are left out; the lines after them are kept. */
static void test_maps_damaged(void **state)
{
	static const char text[] = "2000-1000 r-xp 0 00:00 0 /backwards\n"
				   "1000-1000 r-xp 0 00:00 0 /empty\n"
				   "fffffffffffffffff-1 r-xp 0 00:00 0 /too big\n"
				   "1000-2000 r-x\n"
				   "1000-2000\n"
				   "\n"
				   "1000-2000 r-xp 0 fffffffff:00 0 /device\n"
				   "3000-4000 r-xp 0 00:00 5 /good\n"
				   "3800-4800 r-xp 0 00:00 5 /overlaps\n"
				   "5000-6000 r-xp 0 00:00 6 \0hidden\n"
				   "7000-8000 r-xp 0 00:00 7 /cut off";
	struct proc_maps m = parse_maps(text, sizeof(text) - 1);

	(void)state;
	assert_int_equal(m.n, 2);
	assert_string_equal(m.maps[0].path, "/good");
	assert_int_equal(m.maps[1].start, 0x5000);
	proc_maps__free(&m);
	m = parse_maps("", 0);
	assert_int_equal(m.n, 0);
	assert_null(proc_maps__at(&m, 0));
	proc_maps__free(&m);
}

static void test_ns_pid(void **state)
{
	static const char text[] = "Name:\tx\\nNSpid:\t7\nPid:\t42\nNSpid:\t42\t9\t1\nVmPeak:\t1\n";
	pid_t pid = 0;

	(void)state;
	assert_int_equal(proc__parse_ns_pid(text, sizeof(text) - 1, &pid), 0);
	assert_int_equal(pid, 1);
	assert_int_equal(proc__parse_ns_pid("a\nNSpid:\n", 9, &pid), -ENOENT);
	assert_int_equal(proc__parse_ns_pid("a\nNSpid:\tx\n", 11, &pid), -ENOENT);
	assert_int_equal(proc__parse_ns_pid("a\nNSpid:\t99999999999\n", 20, &pid), -ENOENT);
	assert_int_equal(proc__parse_ns_pid("", 0, &pid), -ENOENT);
}

static void test_uid(void **state)
{
	static const char text[] =
		"Name:\tx\\nUid:\\t7\nUmask:\t0022\nUid:\t1000\t0\t0\t0\nGid:\t5\t5\n";
	uid_t uid = 0, uids[PROC_UIDS] = {0};

	(void)state;
	assert_int_equal(proc__parse_uids(text, sizeof(text) - 1, uids), 0);
	assert_int_equal(uids[0], 1000);
	assert_int_equal(proc__parse_uids("a\nUid:\t\n", 8, uids), -ENOENT);
	assert_int_equal(proc__parse_uids("a\nUid:\t99999999999\n", 19, uids), -ENOENT);
	assert_int_equal(proc__parse_uids("a\nUid:\t-1", 9, uids), -ENOENT);
	assert_int_equal(proc__parse_uids("", 0, uids), -ENOENT);
	assert_int_equal(proc__account(getpid(), &uid), 0);
	assert_int_equal(uid, getuid());
}

static void test_syscall(void **state)
{
	static const char in[] = "230 0x0 0x0 0x7ffc 0x0 0xffffffff 0x1 0x7ffd00 0x7fabc\n";
	static const char cut[] = "230 0x0 0x0";
	struct proc_syscall sc;

	(void)state;
	assert_int_equal(proc__parse_syscall(in, sizeof(in) - 1, &sc), 0);
	assert_false(sc.running);
	assert_int_equal(sc.nr, 230);
	assert_int_equal(sc.sp, 0x7ffd00);
	assert_int_equal(sc.pc, 0x7fabc);
	assert_int_equal(proc__parse_syscall("running\n", 8, &sc), 0);
	assert_true(sc.running);
	assert_int_equal(proc__parse_syscall("-1 0x7ffd00 0x7fabc\n", 20, &sc), 0);
	assert_int_equal(sc.nr, WIRE_NO_SYSCALL);
	assert_int_equal(sc.sp, 0x7ffd00);
	assert_int_equal(proc__parse_syscall(cut, sizeof(cut) - 1, &sc), -EINVAL);
	assert_int_equal(proc__parse_syscall("", 0, &sc), -EINVAL);
	assert_int_equal(proc__parse_syscall("x", 1, &sc), -EINVAL);
}

/* This process, under a name that is meant to break the parser. */
static void test_self(void **state)
{
	struct proc_stat st;
	struct proc_maps maps;
	const struct proc_map *map;
	char path[PROC_PATH_LEN], exe[4096];
	uint64_t dev, ino, now;
	struct timespec ts;
	struct stat self;
	pid_t *tids, ns;
	size_t n;
	int fd;

	(void)state;
	prctl(PR_SET_NAME, "x) R 1 (y", 0, 0, 0);
	assert_int_equal(proc__stat(getpid(), 0, &st), 0);
	assert_string_equal(st.comm, "x) R 1 (y");
	assert_int_equal(st.state, 'R');
	clock_gettime(CLOCK_BOOTTIME, &ts);
	now = (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
	assert_true(proc__ticks_to_ns(st.start_ticks) <= now);
	assert_true(now - proc__ticks_to_ns(st.start_ticks) < 600ULL * 1000000000ULL);
	assert_true((uintptr_t)test_self >= st.start_code && (uintptr_t)test_self < st.end_code);
	assert_true((uintptr_t)&st < st.start_stack);
	assert_true(st.start_stack < getauxval(AT_EXECFN));

	assert_int_equal(proc__ns_pid(getpid(), 0, &ns), 0);
	assert_int_equal(proc__threads(getpid(), &tids, &n), 0);
	assert_true(n >= 1 && tids[0] > 0);
	free(tids);
	assert_int_equal(proc__exe(getpid(), exe, sizeof(exe)), 0);
	assert_non_null(strstr(exe, "test_proc"));

	assert_int_equal(proc__maps(getpid(), &maps), 0);
	map = proc_maps__at(&maps, (uint64_t)(uintptr_t)test_self);
	assert_non_null(map);
	assert_true(map->exec);
	assert_non_null(strstr(map->path, "test_proc"));
	assert_int_equal(proc__open_map(getpid(), map, path, &fd, &dev, &ino), 0);
	assert_int_equal(stat("/proc/self/exe", &self), 0);
	assert_true(self.st_dev == dev && self.st_ino == ino);
	close(fd);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	close(fd);
	proc_maps__free(&maps);
	assert_int_equal(proc__stat(999999999, 0, &st), -ESRCH);
}

/* An exec changes nothing about a process except what describes its program's image. */
static void test_exec(void **state)
{
	struct proc_stat before, now;
	int go[2];
	char word;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(go), 0);
	pid = fork();
	if (!pid) {
		if (read(go[0], &word, 1) == 1)
			execl("/bin/sleep", "sleep", "1000", NULL);
		_exit(1);
	}
	assert_int_equal(proc__stat(pid, 0, &before), 0);
	assert_int_equal(proc__stat(pid, 0, &now), 0);
	assert_int_equal(before.start_stack, now.start_stack);
	assert_int_equal(write(go[1], "x", 1), 1);
	do {
		poll(NULL, 0, 1);
		assert_int_equal(proc__stat(pid, 0, &now), 0);
		assert_int_not_equal(now.state, 'Z');
	} while (strcmp(now.comm, "sleep") != 0 || !now.start_stack);
	assert_int_equal(now.start_ticks, before.start_ticks);
	assert_int_not_equal(now.start_stack, before.start_stack);
	assert_int_not_equal(now.start_code, before.start_code);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(go[0]);
	close(go[1]);
}

static void test_read(void **state)
{
	uint64_t here = 0x1122334455667788ULL, value = 0;
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char buf[16];

	(void)state;
	assert_true(page != MAP_FAILED);
	assert_int_equal(munmap(page + 4096, 4096), 0);
	assert_int_equal(mem__read_u64(getpid(), (uint64_t)(uintptr_t)&here, &value), 0);
	assert_true(value == here);
	/* all or nothing */
	assert_int_equal(mem__read(getpid(), (uint64_t)(uintptr_t)page + 4088, buf, 16), -EFAULT);
	assert_int_equal(mem__read(getpid(), (uint64_t)(uintptr_t)page + 4088, buf, 8), 0);
	assert_int_equal(mem__read(getpid(), 0, buf, 8), -EFAULT);
	assert_int_equal(mem__read(getpid(), UINT64_MAX - 3, buf, 8), -EFAULT);
	munmap(page, 4096);
}

/* Compares a child's exit status with the one that wait() reports. */
static void check_exit(int how)
{
	int status = 0, want, pidfd;
	siginfo_t info;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		if (how < 0)
			kill(getpid(), -how);
		_exit(how);
	}
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	assert_true(pidfd >= 0);
	/* the child stays a zombie */
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(proc__exit_status(pid, pidfd, &status), 0);
	assert_int_equal(waitpid(pid, &want, 0), pid);
	assert_int_equal(status, want);
	status = -1;
	/* after the child was reaped: recent kernels still know the status */
	if (!proc__exit_status(pid, pidfd, &status))
		assert_int_equal(status, want);
	close(pidfd);
}

static void test_exit_status(void **state)
{
	int status;

	(void)state;
	check_exit(0);
	check_exit(3);
	check_exit(-SIGKILL);
	check_exit(-SIGTERM);
	assert_int_equal(proc__parse_exit("1 (x) Z 1 2 3", 13, &status), -EINVAL);
	assert_int_equal(proc__parse_exit("", 0, &status), -EINVAL);
}

/* A file that is no larger than the maximum is read, however small the maximum is. */
static void test_text(void **state)
{
	char path[] = "/tmp/test_proc.XXXXXX", *text = NULL;
	int fd = mkstemp(path);
	size_t len;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "0123456789", 10), 10);
	close(fd);
	for (size_t max = 10; max < 10000; max += max / 2) {
		assert_int_equal(proc__text(path, max, &text, &len), 0);
		assert_int_equal(len, 10);
		assert_string_equal(text, "0123456789");
		free(text);
	}
	for (size_t max = 0; max < 10; max++)
		assert_int_equal(proc__text(path, max, &text, &len), -EFBIG);
	unlink(path);
	assert_int_equal(proc__text(path, 100, &text, &len), -ESRCH);
}

static int clock_of(const char *text, int64_t *ret_ns)
{
	return proc__parse_clock(text, strlen(text), ret_ns);
}

static void test_clock(void **state)
{
	int64_t ns = 1;

	(void)state;
	assert_int_equal(
		clock_of("monotonic           0         0\nboottime            5         0\n", &ns),
		0);
	assert_int_equal(ns, 0);
	assert_int_equal(clock_of("monotonic      100000 000000007\n", &ns), 0);
	assert_int_equal(ns, 100000000000007);
	/* minus two and a half seconds */
	assert_int_equal(clock_of("monotonic          -3 500000000\n", &ns), 0);
	assert_true(ns == -2500000000);
	ns = 1;
	assert_int_equal(clock_of("monotonic           0 1000000000\n", &ns), -EINVAL);
	assert_int_equal(clock_of("monotonic 9223372036854775807 0\n", &ns), -EINVAL);
	assert_int_equal(clock_of("monotonic -99999999999999999999 0\n", &ns), -EINVAL);
	assert_int_equal(clock_of("monotonic           0\n", &ns), -EINVAL);
	assert_int_equal(clock_of("monotonic ", &ns), -EINVAL);
	assert_int_equal(clock_of("boottime            0         0\n", &ns), -EINVAL);
	assert_int_equal(clock_of("", &ns), -EINVAL);
	assert_int_equal(ns, 1);
}

/* The child is in the time namespace that the process has created; the process itself is not. */
static void in_own_namespace(int to)
{
	static const char offsets[] = "monotonic 5000 0\nboottime 0 0\n";
	int64_t ns[4] = {0};
	pid_t child;
	int fd;

	ns[3] = unshare(CLONE_NEWTIME) ? -errno : 0;
	fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
	if (!ns[3] && (fd < 0 || write(fd, offsets, sizeof(offsets) - 1) < 0))
		ns[3] = -errno;
	child = ns[3] ? -1 : fork();
	if (!child) {
		pause();
		_exit(0);
	}
	if (child > 0) {
		ns[0] = proc__clock_ahead(child, &ns[1]);
		/* not visible from inside */
		ns[2] = proc__clock_ahead(getpid(), &ns[2]);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	_exit(write(to, ns, sizeof(ns)) != sizeof(ns));
}

static void test_clock_ahead(void **state)
{
	int64_t got[4] = {0}, ns = -1;
	int ends[2];
	pid_t child;

	(void)state;
	assert_int_equal(proc__clock_ahead(getpid(), &ns), 0);
	assert_int_equal(proc__clock_ahead(INT32_MAX, &ns), -ESRCH);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		in_own_namespace(ends[1]);
	close(ends[1]);
	assert_int_equal(read(ends[0], got, sizeof(got)), sizeof(got));
	close(ends[0]);
	waitpid(child, NULL, 0);
	/* no time namespaces here, or not for this user */
	if (got[3] == -EPERM || got[3] == -EINVAL || got[3] == -EACCES)
		skip();
	assert_int_equal(got[3], 0);
	assert_int_equal(got[0], 0);
	assert_int_equal(got[1] - ns, 5000000000000);
	assert_int_equal(got[2], -ENOTSUP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),	     cmocka_unit_test(test_stat),
		cmocka_unit_test(test_exit_status),  cmocka_unit_test(test_maps),
		cmocka_unit_test(test_maps_damaged), cmocka_unit_test(test_ns_pid),
		cmocka_unit_test(test_uid),	     cmocka_unit_test(test_syscall),
		cmocka_unit_test(test_clock),	     cmocka_unit_test(test_clock_ahead),
		cmocka_unit_test(test_self),	     cmocka_unit_test(test_exec),
		cmocka_unit_test(test_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
