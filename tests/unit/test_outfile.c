/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Output files: complete or absent, readable by their owner only, and not written through links. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "export/export.h"

#define NOBODY ((uid_t)-1)

/* Makes a directory for each test, which runs in it. */
static int enter(void **state)
{
	char *dir = strdup("/tmp/safescoped-test-XXXXXX");

	if (!dir || !mkdtemp(dir) || chdir(dir)) {
		free(dir);
		return -1;
	}
	*state = dir;
	return 0;
}

static int count_entries(void)
{
	DIR *dir = opendir(".");
	struct dirent *entry;
	int n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	closedir(dir);
	return n;
}

static int leave(void **state)
{
	DIR *dir = opendir(".");
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (unlink(entry->d_name))
			rmdir(entry->d_name);
	if (dir)
		closedir(dir);
	if (chdir("/") || rmdir(*state))
		return -1;
	free(*state);
	return 0;
}

static void put_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void assert_file(const char *path, const char *expected)
{
	char text[64] = "";
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	assert_true(fread(text, 1, sizeof(text) - 1, file) <= sizeof(text) - 1);
	fclose(file);
	assert_string_equal(text, expected);
}

static void test_commit(void **state)
{
	struct outfile *out;
	struct stat st;

	(void)state;
	umask(0);
	assert_int_equal(outfile__open("a", NOBODY, NOBODY, &out), 0);
	fputs("whole", outfile__stream(out));
	/* Before the commit there is no directory entry that could remain. */
	assert_int_equal(count_entries(), 0);
	assert_int_equal(outfile__commit(out), 0);
	assert_file("a", "whole");
	assert_int_equal(count_entries(), 1);
	assert_int_equal(stat("a", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

static void test_abort(void **state)
{
	struct outfile *out;

	(void)state;
	put_file("a", "old");
	assert_int_equal(outfile__open("./a", NOBODY, NOBODY, &out), 0);
	fputs("new", outfile__stream(out));
	outfile__abort(out);
	outfile__abort(NULL);
	assert_file("a", "old");
	assert_int_equal(count_entries(), 1);
}

static void test_replaces(void **state)
{
	struct outfile *out;
	char path[64];

	put_file("a", "old, and longer than the new one");
	snprintf(path, sizeof(path), "%s/a", (const char *)*state);
	assert_int_equal(outfile__open(path, NOBODY, NOBODY, &out), 0);
	fputs("new", outfile__stream(out));
	/* The directory is held open: changing the working directory makes no difference. */
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(outfile__commit(out), 0);
	assert_int_equal(chdir(*state), 0);
	assert_file("a", "new");
	assert_int_equal(count_entries(), 1);
}

static void test_refuses_what_is_no_file(void **state)
{
	struct outfile *out = NULL;

	(void)state;
	put_file("real", "kept");
	assert_int_equal(symlink("real", "link"), 0);
	assert_int_equal(symlink("nowhere", "dangling"), 0);
	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(mkdir("dir", 0700), 0);
	assert_int_equal(outfile__open("link", NOBODY, NOBODY, &out), -ELOOP);
	assert_int_equal(outfile__open("dangling", NOBODY, NOBODY, &out), -ELOOP);
	assert_int_equal(outfile__open("/dev/stdout", NOBODY, NOBODY, &out), -ELOOP);
	assert_int_equal(outfile__open("fifo", NOBODY, NOBODY, &out), -EINVAL);
	assert_int_equal(outfile__open("dir", NOBODY, NOBODY, &out), -EISDIR);
	assert_int_equal(outfile__open("dir/", NOBODY, NOBODY, &out), -EISDIR);
	assert_int_equal(outfile__open("", NOBODY, NOBODY, &out), -EISDIR);
	assert_int_equal(outfile__open("..", NOBODY, NOBODY, &out), -EISDIR);
	assert_int_equal(outfile__open("none/a", NOBODY, NOBODY, &out), -ENOENT);
	assert_int_equal(outfile__open("real/a", NOBODY, NOBODY, &out), -ENOTDIR);
	assert_null(out);
	assert_file("real", "kept");
	assert_int_equal(count_entries(), 5);
}

static void test_a_long_name(void **state)
{
	struct outfile *out = NULL;
	char name[300];

	(void)state;
	/* The longest possible name: that of the temporary file must not be longer. */
	memset(name, 'x', 255);
	name[255] = '\0';
	assert_int_equal(outfile__open(name, NOBODY, NOBODY, &out), 0);
	assert_int_equal(outfile__commit(out), 0);
	assert_int_equal(access(name, F_OK), 0);
	out = NULL;
	memset(name, 'x', 256);
	name[256] = '\0';
	assert_int_equal(outfile__open(name, NOBODY, NOBODY, &out), -ENAMETOOLONG);
	assert_null(out);
	assert_int_equal(count_entries(), 1);
}

/* A link that appears at the destination meanwhile is replaced, not followed. */
static void test_a_link_put_there_meanwhile(void **state)
{
	struct outfile *out;
	struct stat st;

	(void)state;
	put_file("victim", "kept");
	assert_int_equal(outfile__open("a", NOBODY, NOBODY, &out), 0);
	fputs("new", outfile__stream(out));
	assert_int_equal(symlink("victim", "a"), 0);
	assert_int_equal(outfile__commit(out), 0);
	assert_file("victim", "kept");
	assert_int_equal(lstat("a", &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_file("a", "new");
}

static void test_a_directory_put_there_meanwhile(void **state)
{
	struct outfile *out;

	(void)state;
	assert_int_equal(outfile__open("a", NOBODY, NOBODY, &out), 0);
	fputs("new", outfile__stream(out));
	assert_int_equal(mkdir("a", 0700), 0);
	assert_int_equal(outfile__commit(out), -EISDIR);
	assert_int_equal(count_entries(), 1);
}

static void put_link(const char *target, const char *path, uid_t owner)
{
	assert_int_equal(symlink(target, path), 0);
	assert_int_equal(lchown(path, owner, owner), 0);
}

/* Links in the path: our own are followed, other users' are not, wherever they are in the path. */
static void test_links_on_the_way(void **state)
{
	static const char *const refused[] = {"theirs/a", "x/../theirs/./a", "ours/../theirs/a",
					      "to_theirs/a", "deep/theirs/a"};
	static const char *const followed[] = {"ours/a", "absolute/a", "to_ours/a", "x/up/ours//a",
					       "./x/../ours/./a"};
	struct outfile *out = NULL;
	char here[64];

	if (geteuid())
		skip();
	snprintf(here, sizeof(here), "%s/x", (const char *)*state);
	assert_int_equal(mkdir("x", 0700), 0);
	assert_int_equal(mkdir("deep", 0700), 0);
	put_link("x", "ours", 0);
	put_link(here, "absolute", 0);
	put_link("ours", "to_ours", 0);
	put_link("..", "x/up", 0);
	put_link("x", "theirs", 4242);
	put_link("theirs", "to_theirs", 0);
	put_link("../x", "deep/theirs", 4242);
	put_link("round", "round", 0);
	for (size_t i = 0; i < ARRAY_SIZE(followed); i++) {
		assert_int_equal(outfile__open(followed[i], NOBODY, NOBODY, &out), 0);
		assert_int_equal(outfile__commit(out), 0);
		assert_int_equal(unlink("x/a"), 0);
	}
	out = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		assert_int_equal(outfile__open(refused[i], NOBODY, NOBODY, &out), -EPERM);
		assert_int_equal(outfile__open(refused[i], 4243, 4242, &out), -EPERM);
	}
	assert_int_equal(outfile__open("round/a", NOBODY, NOBODY, &out), -ELOOP);
	assert_int_equal(outfile__open("ours/none/a", NOBODY, NOBODY, &out), -ENOENT);
	assert_null(out);
	assert_int_equal(access("x/a", F_OK), -1);
	/* the links of the user who ran sudo are followed */
	assert_int_equal(outfile__open("theirs/a", 4242, 4242, &out), 0);
	assert_int_equal(outfile__commit(out), 0);
	assert_int_equal(unlink("x/a"), 0);
	assert_int_equal(unlink("x/up"), 0);
	assert_int_equal(unlink("deep/theirs"), 0);
}

/* However the program dies while writing, no file remains. */
static void test_killed(void **state)
{
	struct outfile *out;
	int status;
	pid_t pid;

	(void)state;
	put_file("a", "old");
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (outfile__open("a", NOBODY, NOBODY, &out))
			_exit(1);
		for (int i = 0; i < 1000000; i++)
			fputc('x', outfile__stream(out));
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_file("a", "old");
	assert_int_equal(count_entries(), 1);
}

static void test_owner(void **state)
{
	struct outfile *out;
	struct stat st;

	(void)state;
	if (geteuid())
		skip();
	assert_int_equal(outfile__open("a", 12345, 54321, &out), 0);
	assert_int_equal(outfile__commit(out), 0);
	assert_int_equal(stat("a", &st), 0);
	assert_int_equal(st.st_uid, 12345);
	assert_int_equal(st.st_gid, 54321);
	assert_int_equal(st.st_mode & 07777, 0600);
}

static void test_devices(void **state)
{
	struct stat before, after;
	struct outfile *out;

	(void)state;
	assert_int_equal(stat("/dev/null", &before), 0);
	assert_int_equal(outfile__open("/dev/null", 12345, 54321, &out), 0);
	fputs("gone", outfile__stream(out));
	assert_int_equal(outfile__commit(out), 0);
	assert_int_equal(stat("/dev/null", &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(before.st_uid, after.st_uid);
	assert_int_equal(before.st_mode, after.st_mode);

	assert_int_equal(outfile__open("/dev/full", NOBODY, NOBODY, &out), 0);
	fputs("too much", outfile__stream(out));
	assert_int_equal(outfile__commit(out), -ENOSPC);
}

/* A write that fails in the middle leaves the old file and nothing else. */
static void test_disk_full(void **state)
{
	struct rlimit old, tiny;
	struct outfile *out;
	int err;

	(void)state;
	put_file("a", "old");
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	tiny = old;
	tiny.rlim_cur = 100000;
	assert_int_equal(outfile__open("a", NOBODY, NOBODY, &out), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &tiny), 0);
	for (int i = 0; i < 200000; i++)
		fputc('x', outfile__stream(out));
	err = outfile__commit(out);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_true(err < 0);
	assert_file("a", "old");
	assert_int_equal(count_entries(), 1);
}

/* Without descriptors another place is not tried, as it would not help. */
static void test_no_descriptors(void **state)
{
	struct rlimit limit, none;
	char line[512];
	struct outfile *out;
	int ends[2], kept, err;
	ssize_t len;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	err = outfile__open("a", NOBODY, NOBODY, &out);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(dup2(kept, STDERR_FILENO), STDERR_FILENO);
	len = read(ends[0], line, sizeof(line) - 1);
	close(kept);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(err, -EMFILE);
	assert_true(len > 0);
	line[len] = '\0';
	assert_non_null(strstr(line, "RLIMIT_NOFILE"));
	assert_null(strstr(line, "place"));
}

static void put(const char *path, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static int open_own(const char *path, uid_t user)
{
	int fd = -1, err = fd__open_own(path, user, &fd);

	assert_int_equal(err == 0, fd >= 0);
	fd__close(&fd);
	return err;
}

static void test_own_files(void **state)
{
	(void)state;
	put("mine", 0644);
	put("group", 0664);
	put("all", 0646);
	assert_int_equal(open_own("mine", NOBODY), 0);
	assert_int_equal(open_own("group", NOBODY), -EPERM);
	assert_int_equal(open_own("all", NOBODY), -EPERM);
	assert_int_equal(open_own(".", NOBODY), -EINVAL);
	assert_int_equal(open_own("none", NOBODY), -ENOENT);
	if (geteuid())
		return;
	assert_int_equal(chown("mine", 65534, 65534), 0);
	assert_int_equal(open_own("mine", NOBODY), -EPERM);
	assert_int_equal(open_own("mine", 65533), -EPERM);
	assert_int_equal(open_own("mine", 65534), 0);
}

static int open_own_dir(const char *path)
{
	int fd = -1, err = dir__open_own(path, &fd);

	assert_int_equal(err == 0, fd >= 0);
	fd__close(&fd);
	return err;
}

static void test_own_directories(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(mkdir("a", 0700), 0);
	assert_int_equal(open_own_dir("a"), 0);
	/* missing directories are created, the last one for us alone */
	assert_int_equal(open_own_dir("a/b//c/"), 0);
	assert_int_equal(stat("a/b/c", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(chmod("a/b", 01777), 0);
	assert_int_equal(open_own_dir("a/b/c"), 0);
	assert_int_equal(chmod("a/b", 0777), 0);
	assert_int_equal(open_own_dir("a/b/c"), -EPERM);
	assert_int_equal(open_own_dir("a/b/new"), -EPERM);
	assert_int_equal(access("a/b/new", F_OK), -1);
	assert_int_equal(symlink("a", "link"), 0);
	assert_int_equal(open_own_dir("link/"), 0);
	assert_int_equal(rmdir("a/b/c"), 0);
	assert_int_equal(rmdir("a/b"), 0);
	if (geteuid())
		return;
	assert_int_equal(lchown("link", 65534, 65534), 0);
	assert_int_equal(open_own_dir("link"), -EPERM);
	assert_int_equal(chown("a", 65534, 65534), 0);
	assert_int_equal(open_own_dir("a"), -EPERM);
}

/* Creates a file that was last written `age_s` seconds ago. */
static void make_old(const char *name, time_t age_s, uid_t uid)
{
	const struct timespec at = {.tv_sec = time(NULL) - age_s}, times[2] = {at, at};
	int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	if (!geteuid())
		assert_int_equal(fchown(fd, uid, (gid_t)-1), 0);
	assert_int_equal(futimens(fd, times), 0);
	close(fd);
}

/* Files of killed writers are removed, and nothing else. */
static void test_sweep(void **state)
{
	static const char old[] = ".safescoped-0123456789abcdef0123456789abcdef",
			  of_owner[] = ".safescoped-1123456789abcdef0123456789abcdef";
	static const char *const stay[] = {".safescoped-2123456789abcdef0123456789abcdef.json",
					   ".safescoped-3123456789abcdef0123456789abcde",
					   ".safescoped-4123456789abcdef0123456789abcdex",
					   "safescoped-5123456789abcdef0123456789abcdef"};
	static const char young[] = ".safescoped-6123456789abcdef0123456789abcdef",
			  of_other[] = ".safescoped-7123456789abcdef0123456789abcdef",
			  link_name[] = ".safescoped-8123456789abcdef0123456789abcdef";
	const uid_t owner = geteuid() ? geteuid() : 65534;
	int dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), n = (int)ARRAY_SIZE(stay);

	(void)state;
	make_old(old, 4000, 0);
	make_old(of_owner, 4000, owner);
	make_old(young, 3000, 0);
	for (size_t i = 0; i < ARRAY_SIZE(stay); i++)
		make_old(stay[i], 4000, 0);
	assert_int_equal(symlink(stay[0], link_name), 0);
	if (!geteuid())
		make_old(of_other, 4000, 1);
	outfile__sweep(dir, owner);
	assert_int_not_equal(access(old, F_OK), 0);
	assert_int_not_equal(access(of_owner, F_OK), 0);
	assert_int_equal(access(young, F_OK), 0);
	assert_int_equal(count_entries(), n + 2 + !geteuid());
	close(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_commit, enter, leave),
		cmocka_unit_test_setup_teardown(test_abort, enter, leave),
		cmocka_unit_test_setup_teardown(test_replaces, enter, leave),
		cmocka_unit_test_setup_teardown(test_refuses_what_is_no_file, enter, leave),
		cmocka_unit_test_setup_teardown(test_a_long_name, enter, leave),
		cmocka_unit_test_setup_teardown(test_a_link_put_there_meanwhile, enter, leave),
		cmocka_unit_test_setup_teardown(test_a_directory_put_there_meanwhile, enter, leave),
		cmocka_unit_test_setup_teardown(test_links_on_the_way, enter, leave),
		cmocka_unit_test_setup_teardown(test_killed, enter, leave),
		cmocka_unit_test_setup_teardown(test_owner, enter, leave),
		cmocka_unit_test_setup_teardown(test_devices, enter, leave),
		cmocka_unit_test_setup_teardown(test_disk_full, enter, leave),
		cmocka_unit_test_setup_teardown(test_no_descriptors, enter, leave),
		cmocka_unit_test_setup_teardown(test_sweep, enter, leave),
		cmocka_unit_test_setup_teardown(test_own_files, enter, leave),
		cmocka_unit_test_setup_teardown(test_own_directories, enter, leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
