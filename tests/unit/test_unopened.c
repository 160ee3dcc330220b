/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What could not be opened for want of descriptors or memory proves nothing about a process:
 * neither that it has ended, nor that it has no runtime, nor whose it is.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "base/keyset.h"
#include "process/image.h"
#include "process/select.h"
#include "target/target_priv.h"
#include "refused_open.h"

#define TINY "tests/data/tiny.elf"

static const int unknown[] = {EMFILE, ENFILE, ENOMEM};

/* The result that a look must have then. */
static int found_by(int err)
{
	return err == EMFILE ? -EMFILE : -EBUSY;
}

/*
 * Makes the cache hold this test's executable as a file without a runtime, though it contains what
 * a runtime is found by.
 */
static struct file *hold_exe(struct target_cache *cache)
{
	struct file *file;

	assert_int_equal(file__get(target_cache__files(cache), getpid(),
				   open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "", &file),
			 0);
	elf__free(file->elf);
	file->elf = NULL;
	file->elf_err = -ENOEXEC;
	return file;
}

static void t_discover(void **state)
{
	static const char *const whats[] = {"/exe", "/map_files/", "/maps"};
	int fd = open(TINY, O_RDONLY | O_CLOEXEC);
	void *at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	struct target_cache *cache;
	struct file *exe;
	struct stat st;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_true(at != MAP_FAILED && fstat(fd, &st) == 0);
	assert_int_equal(target_cache__new(&cache), 0);
	exe = hold_exe(cache);
	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(whats); k++) {
			refuse(whats[k], unknown[i]);
			assert_int_equal(discover__process(cache, getpid()), found_by(unknown[i]));
		}
		assert_int_equal(discover__mapping(cache, getpid(), (uintptr_t)at, st.st_ino),
				 found_by(unknown[i]));
	}
	/* a process that may not be looked at does not count as a Haskell program */
	for (size_t k = 0; k < ARRAY_SIZE(whats); k++) {
		refuse(whats[k], EACCES);
		assert_int_equal(discover__process(cache, getpid()), 0);
	}
	refuse(NULL, 0);
	assert_int_equal(discover__process(cache, getpid()), 0);
	assert_int_equal(discover__mapping(cache, getpid(), (uintptr_t)at, st.st_ino), 0);
	file__put(exe);
	target_cache__free(cache);
	munmap(at, 4096);
	close(fd);
}

/* Starts a process that runs this program, and returns after the exec. */
static pid_t run(const char *path)
{
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		execl(path, path, "1000", (char *)NULL);
		_exit(127);
	}
	assert_true(pid > 0);
	close(ends[1]);
	/* until the exec has closed it */
	assert_int_equal(read(ends[0], &(char){0}, 1), 0);
	close(ends[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Replaces the file by /bin/sleep. */
static void copy_sleep(const char *path, bool sections)
{
	int in = open("/bin/sleep", O_RDONLY | O_CLOEXEC);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	Elf64_Ehdr *head;
	struct stat st;

	assert_true(in >= 0 && fd >= 0 && fstat(in, &st) == 0);
	assert_int_equal(sendfile(fd, in, NULL, (size_t)st.st_size), st.st_size);
	head = mmap(NULL, sizeof(*head), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(head != MAP_FAILED);
	if (!sections) {
		head->e_shoff = 0;
		head->e_shnum = head->e_shstrndx = 0;
	}
	munmap(head, sizeof(*head));
	close(in);
	close(fd);
}

/* Most programs that start are plain; one that is not known to be plain does not count as such. */
static void t_plain(void **state)
{
	static const char path[] = "build/unit/unopened.sleep";
	struct target_cache *cache;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(target_cache__new(&cache), 0);
	pid = run("/bin/sleep");
	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++) {
		refuse("/exe", unknown[i]);
		assert_false(discover__is_plain(cache, pid));
	}
	/* what else it maps is not looked at */
	refuse("/map", EMFILE);
	for (int i = 0; i < 2; i++) {
		assert_true(discover__is_plain(cache, pid));
		assert_int_equal(keyset__count(target_cache__plain(cache)), 1);
	}
	refuse(NULL, 0);
	/* contains what a runtime is found by */
	assert_false(discover__is_plain(cache, getpid()));
	end(pid);
	assert_false(discover__is_plain(cache, pid));

	/* a file that is written again is another program … */
	for (int i = 0; i < 2; i++) {
		copy_sleep(path, true);
		pid = run(path);
		assert_true(discover__is_plain(cache, pid));
		assert_int_equal(keyset__count(target_cache__plain(cache)), i + 2);
		end(pid);
	}
	/* … and without a section table it may be packed */
	copy_sleep(path, false);
	pid = run(path);
	assert_false(discover__is_plain(cache, pid));
	end(pid);
	unlink(path);
	target_cache__free(cache);
}

static void t_images(void **state)
{
	struct images images = {.uid = getuid()};

	(void)state;
	if (geteuid() != 0)
		skip();
	refuse("/map_files/", ENFILE);
	assert_int_equal(images__refresh(&images, getpid()), 0);
	assert_true(images__left_out(&images, IMAGE_NOT_YET) > 0);
	assert_int_equal(images__left_out(&images, IMAGE_NOT_OPENED), 0);
	assert_true(images__may_come_later(&images));
	assert_null(images__exe(&images));
	refuse(NULL, 0);
	assert_int_equal(images__refresh(&images, getpid()), 0);
	assert_int_equal(images__left_out(&images, IMAGE_NOT_YET), 0);
	assert_false(images__may_come_later(&images));
	assert_non_null(images__exe(&images));
	images__free(&images);
}

static int look(void)
{
	char why[256] = "";
	const struct target_opts opts = {.reason = why, .reason_size = sizeof(why)};
	enum target_verdict verdict;
	struct target *target;

	return target__open(getpid(), &opts, &target, &verdict);
}

static void t_target(void **state)
{
	static const char *const whats[] = {"/stat", "/status", "/ns/user", "/maps"};

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(look(), -ENOEXEC);
	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(whats); k++) {
			refuse(whats[k], unknown[i]);
			assert_int_equal(look(), -unknown[i]);
		}
		refuse("/map_files/", unknown[i]);
		assert_int_equal(look(), unknown[i] == ENOMEM ? -ENOMEM : -EBUSY);
	}
	/* it lives: it is only hidden */
	refuse("/stat", ENOENT);
	assert_int_equal(look(), -EPERM);
	refuse(NULL, 0);
}

/*
 * A file for which there is no room among its user's files may hold a runtime, as this test's own
 * seems to, and may find room later; one that is known to hold none needs no room.
 */
static void t_no_room(void **state)
{
	char why[256] = "", path[64];
	struct target_opts opts = {.reason = why, .reason_size = sizeof(why)};
	enum target_verdict verdict;
	struct target *target;
	struct file *held, *exe;
	struct rlimit limit, few;
	int err;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = (struct rlimit){.rlim_cur = 64, .rlim_max = limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	err = target_cache__new(&opts.cache);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(err, 0);
	for (size_t i = 0; !err; i++) {
		int fd = memfd_create("test", MFD_CLOEXEC);

		snprintf(path, sizeof(path), "test%zu", i);
		err = file__get_for(target_cache__files(opts.cache), getpid(), getuid(), fd, path,
				    &held);
	}
	assert_int_equal(err, -EDQUOT);
	assert_int_equal(target__open(getpid(), &opts, &target, &verdict), -EBUSY);
	exe = hold_exe(opts.cache);
	slots__free(&exe->slots);
	assert_int_equal(target__open(getpid(), &opts, &target, &verdict), -ENOEXEC);
	file__put(exe);
	target_cache__free(opts.cache);
}

static void t_alive(void **state)
{
	struct target t = {.info.pid = getpid()};
	struct proc_stat st;

	(void)state;
	assert_int_equal(proc__pidfd(getpid(), &t.pidfd), 0);
	assert_int_equal(proc__stat(getpid(), 0, &st), 0);
	t.first = st;
	assert_true(target__alive(&t));
	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++) {
		refuse("/stat", unknown[i]);
		assert_true(target__alive(&t));
	}
	refuse("/stat", ENOENT);
	assert_false(target__alive(&t));
	refuse(NULL, 0);
	close(t.pidfd);
}

static void t_selected(void **state)
{
	static const enum select_kind kinds[] = {SELECT_COMM, SELECT_USER, SELECT_CGROUP};
	static const char *const texts[] = {"*", "0", "*"};
	static const char *const whats[] = {"/stat", "/ns/user", "/cgroup"};

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		struct select_rules rules = {0};

		assert_int_equal(select__add(&rules, kinds[k], texts[k], false), 0);
		for (size_t i = 0; i < ARRAY_SIZE(unknown); i++) {
			refuse(whats[k], unknown[i]);
			assert_int_equal(select__wants(&rules, getpid()), -unknown[i]);
		}
		/* the process is gone */
		refuse("/proc/", ENOENT);
		assert_int_equal(select__wants(&rules, getpid()), 0);
		refuse(NULL, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_discover), cmocka_unit_test(t_plain),
		cmocka_unit_test(t_images),   cmocka_unit_test(t_target),
		cmocka_unit_test(t_alive),    cmocka_unit_test(t_selected),
		cmocka_unit_test(t_no_room),
	};

	return cmocka_run_group_tests_name("unopened", tests, NULL, NULL);
}
