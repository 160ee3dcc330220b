/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that could not be read for want of time: when they are read again, and for whom. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "confine/confine.h"
#include "process/file.h"
#include "process/image.h"
#include "target/target_priv.h"

#define TINY "tests/data/tiny.elf"

/* Makes the file look unread, for this reason. */
static void unread(struct image *image, int err, uint64_t again_ns)
{
	elf__free(image->file->elf);
	image->file->elf = image->elf = NULL;
	image->file->elf_err = image->elf_err = err;
	image->file->again_ns = again_ns;
	image->file->again = (struct retry){0};
}

/* A file that could not be read in time when a process mapped it is read for that process later. */
static void t_read_later(void **state)
{
	struct images images = {.uid = getuid()};
	int fd = open(TINY, O_RDONLY | O_CLOEXEC);
	struct image_place place;
	struct image *image;
	uint64_t bias;
	uint8_t *at;

	(void)state;
	if (geteuid() != 0)
		skip();
	at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(images__refresh(&images, getpid()), 0);
	image = images__at(&images, (uintptr_t)at)->image;
	bias = images__at(&images, (uintptr_t)at)->bias;
	assert_non_null(image->elf);
	assert_false(images__may_come_later(&images));
	/* broken: never again; too early; due */
	unread(image, -ENOEXEC, 0);
	assert_false(images__may_come_later(&images));
	assert_int_equal(images__refresh(&images, getpid()), 0);
	assert_null(image->elf);
	unread(image, -ETIMEDOUT, 1);
	retry__begin(&image->file->again, time__monotonic_ns(), UINT32_MAX, UINT32_MAX);
	assert_int_equal(images__refresh(&images, getpid()), 0);
	assert_null(image->elf);
	assert_true(images__may_come_later(&images));
	unread(image, -ETIMEDOUT, 1);
	assert_int_equal(images__refresh(&images, getpid()), 0);
	assert_false(images__may_come_later(&images));
	assert_ptr_equal(images__at(&images, (uintptr_t)at)->image, image);
	assert_non_null(image->elf);
	assert_int_equal(image->elf_err, 0);
	assert_int_equal(images__at(&images, (uintptr_t)at)->bias, bias);
	/* names made without the file must be made again, although its place has not changed */
	assert_true(images__take_retaken(&images, &place));
	assert_int_equal(place.start, (uintptr_t)at);
	/* another process has caused it to be read */
	image->elf = NULL;
	image->elf_err = -EBUSY;
	assert_true(images__may_come_later(&images));
	assert_int_equal(images__refresh(&images, getpid()), 0);
	assert_ptr_equal(image->elf, image->file->elf);
	assert_int_equal(image->elf_err, 0);
	munmap(at, 4096);
	close(fd);
	images__free(&images);
}

/* A timeout in a search is not held against a file, but it is left alone for a while. */
static void t_rests(void **state)
{
	struct file_cache *cache;
	struct file *file;

	(void)state;
	assert_int_equal(file_cache__new(&cache), 0);
	assert_int_equal(file__get(cache, 0, open(TINY, O_RDONLY | O_CLOEXEC), "tiny", &file), 0);
	assert_false(file__put_off(file, 0));
	assert_false(file__put_off(file, -ENOENT));
	assert_false(file__put_off(file, -EBUSY));
	assert_false(file__rests(file));
	assert_true(file__put_off(file, -EIO));
	assert_true(file__rests(file));
	file->put_off.until_ns = time__monotonic_ns();
	assert_false(file__rests(file));
	assert_true(file__put_off(file, -ETIMEDOUT));
	assert_true(file__rests(file));
	/* the file itself need not be read again for that; nor does reading it late make it rest */
	assert_false(file__is_due(file));
	file->put_off = (struct retry){0};
	file->again_ns = 1;
	retry__begin(&file->again, time__monotonic_ns(), UINT32_MAX, UINT32_MAX);
	assert_false(file__rests(file));
	assert_non_null(file->elf);
	file__put(file);
	file_cache__free(cache);
}

/* If there was no memory for a file, it is retried at growing intervals, however often it is
 * opened. */
static void t_pauses(void **state)
{
	struct rlimit limit, none;
	struct file_cache *cache;
	struct file *file;
	uint64_t began;
	int fd;

	(void)state;
	assert_int_equal(file_cache__new(&cache), 0);
	assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
	none = limit;
	none.rlim_cur = 1;
	for (uint64_t pause = RETRY_NS; pause <= 2 * RETRY_NS; pause *= 2) {
		fd = open(TINY, O_RDONLY | O_CLOEXEC);
		began = time__monotonic_ns();
		assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
		assert_int_equal(file__get(cache, 0, fd, "tiny", &file), 0);
		assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
		assert_int_equal(file->elf_err, -ENOMEM);
		assert_true(file->again_ns >= began + pause);
		/* the pause is over */
		file->again_ns = 1;
		file->again.until_ns = 0;
		file__put(file);
	}
	assert_int_equal(file__get(cache, 0, open(TINY, O_RDONLY | O_CLOEXEC), "tiny", &file), 0);
	assert_non_null(file->elf);
	assert_int_equal(file->again_ns, 0);
	file__put(file);
	file_cache__free(cache);
}

/* A memfd is on a file system that is in no list of mounts: its file is copied. Lack of a
 * descriptor or of time for the copy is not held against the file; excessive size is. */
static void t_copies(void **state)
{
	int from = open(TINY, O_RDONLY | O_CLOEXEC), fd = memfd_create("copied", MFD_CLOEXEC);
	const uid_t user = 4711;
	struct file_cache *cache;
	struct rlimit limit, none;
	struct file *file;
	struct stat st;
	uint64_t began;
	int given;

	(void)state;
	assert_int_equal(fstat(from, &st), 0);
	assert_int_equal(sendfile(fd, from, NULL, (size_t)st.st_size), st.st_size);
	assert_int_equal(file_cache__new(&cache), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	given = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	none = limit;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(file__get_for(cache, 0, user, given, "copied", &file), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(file->elf_err, -EMFILE);
	assert_true(file__may_be_read_later(file));
	assert_false(file__is_not_copied(file));
	/* this user's time is used up */
	confine__waited(user, UINT32_MAX * 1000ULL, 0);
	assert_false(confine__may_wait(user));
	began = time__monotonic_ns();
	file->again_ns = 1;
	file__put_for(file, user);
	given = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	assert_int_equal(file__get_for(cache, 0, user, given, "copied", &file), 0);
	assert_int_equal(file->elf_err, -ETIME);
	assert_true(file__may_be_read_later(file));
	assert_true(file__is_not_copied(file));
	assert_true(file->again_ns >= began + RETRY_NS);
	/* other users have their own time */
	file->again_ns = 1;
	file__put_for(file, user);
	given = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	assert_int_equal(file__get_for(cache, 0, user + 1, given, "copied", &file), 0);
	assert_non_null(file->elf);
	assert_false(file__may_be_read_later(file));
	file__put_for(file, user + 1);
	assert_int_equal(ftruncate(fd, (off_t)FETCH_MAX_FILE + 1), 0);
	given = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	assert_int_equal(file__get_for(cache, 0, user + 1, given, "copied", &file), 0);
	assert_int_equal(file->elf_err, -EREMOTEIO);
	assert_false(file__may_be_read_later(file));
	assert_true(file__is_not_copied(file));
	file__put_for(file, user + 1);
	file_cache__free(cache);
	close(from);
	close(fd);
}

/* Makes a copy of the file at that path and opens it. */
static int copy_of_tiny(const char *path)
{
	int from = open(TINY, O_RDONLY | O_CLOEXEC);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	struct stat st;

	assert_true(from >= 0 && fd >= 0);
	assert_int_equal(fstat(from, &st), 0);
	assert_int_equal(sendfile(fd, from, NULL, (size_t)st.st_size), st.st_size);
	close(from);
	return fd;
}

/* A package manager renames a new file over the mapped one before that was read: it has no name
 * left, but all its contents. */
static void t_upgraded(void **state)
{
	char dir[] = "/tmp/test_file_again.XXXXXX", path[64], new[64];
	struct images images = {.uid = getuid()};
	const struct timespec later[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1}};
	struct image *image;
	struct stat st;
	int fd, other;
	uint8_t *at;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/old", dir);
	snprintf(new, sizeof(new), "%s/new", dir);
	fd = copy_of_tiny(path);
	other = copy_of_tiny(new);
	at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(images__refresh(&images, getpid()), 0);
	image = images__at(&images, (uintptr_t)at)->image;
	assert_non_null(image->elf);
	unread(image, -ETIMEDOUT, 1);
	assert_int_equal(rename(new, path), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_nlink, 0);
	assert_int_equal(images__refresh(&images, getpid()), 0);
	assert_non_null(image->elf);
	assert_false(images__may_come_later(&images));
	/* an open of the file finds what has been read */
	assert_int_equal(image->file->ctime.tv_sec, st.st_ctim.tv_sec);
	assert_int_equal(image->file->ctime.tv_nsec, st.st_ctim.tv_nsec);
	/* a changed file is another file */
	unread(image, -ETIMEDOUT, 1);
	assert_int_equal(futimens(fd, later), 0);
	assert_int_equal(images__refresh(&images, getpid()), 0);
	assert_null(image->elf);
	assert_false(images__may_come_later(&images));
	munmap(at, 4096);
	close(fd);
	close(other);
	images__free(&images);
	unlink(path);
	rmdir(dir);
}

/* Keeps the file in the cache; the descriptor remains the caller's. */
static struct file *hold(struct target_cache *cache, int fd)
{
	struct file *file;

	assert_int_equal(file__get(target_cache__files(cache), getpid(),
				   fcntl(fd, F_DUPFD_CLOEXEC, 3), "", &file),
			 0);
	return file;
}

/* Makes the file look as if it were not an ELF file, or could not be read. */
static void lose_elf(struct file *file, int err)
{
	elf__free(file->elf);
	file->elf = NULL;
	file->elf_err = err;
}

/* A process that maps a file about which nothing is known may be one to profile. */
static void t_discover_late(void **state)
{
	int fd = open(TINY, O_RDONLY | O_CLOEXEC), exe_fd;
	void *at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	struct target_cache *cache;
	struct file *exe, *tiny;

	(void)state;
	exe_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && exe_fd >= 0 && at != MAP_FAILED);
	assert_int_equal(target_cache__new(&cache), 0);
	exe = hold(cache, exe_fd);
	tiny = hold(cache, fd);
	/* the search was recently killed or timed out */
	assert_true(file__put_off(exe, -ETIMEDOUT));
	assert_int_equal(discover__process(cache, getpid()), -EBUSY);
	/* the file itself could not be read: temporarily, or for good */
	lose_elf(exe, -ETIMEDOUT);
	assert_int_equal(discover__process(cache, getpid()), -EBUSY);
	exe->elf_err = -EIO;
	assert_int_equal(discover__process(cache, getpid()), -EBUSY);
	exe->elf_err = -ETIME;
	assert_int_equal(discover__process(cache, getpid()), -EBUSY);
	exe->elf_err = -EREMOTEIO;
	assert_int_equal(discover__process(cache, getpid()), 0);
	exe->elf_err = -ENOEXEC;
	assert_int_equal(discover__process(cache, getpid()), 0);
	/* the same for a library */
	file__put(tiny);
	target_cache__free(cache);
	assert_int_equal(target_cache__new(&cache), 0);
	file__put(exe);
	exe = hold(cache, exe_fd);
	tiny = hold(cache, fd);
	lose_elf(exe, -ENOEXEC);
	assert_true(file__put_off(tiny, -EIO));
	assert_int_equal(discover__process(cache, getpid()), -EBUSY);
	assert_int_equal(discover__mapping(cache, getpid(), (uintptr_t)at, tiny->ino), -EBUSY);
	tiny->put_off.until_ns = 0;
	assert_int_equal(discover__process(cache, getpid()), 0);
	assert_int_equal(discover__mapping(cache, getpid(), (uintptr_t)at, tiny->ino), 0);
	file__put(exe);
	file__put(tiny);
	target_cache__free(cache);
	munmap(at, 4096);
	close(fd);
	close(exe_fd);
}

/* Two file systems, each with a file that has the same inode number, mapped side by side.
 * Returns the number of the check that failed, 0 if none, 77 to skip. */
static int look_at_neighbours(const char *dir)
{
	int fds[2], exe_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct target_cache *cache;
	uint8_t *room = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct file *second;
	struct stat st[2];
	char path[64];

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return 77;
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%d", dir, i);
		if (mkdir(path, 0755) || mount("none", path, "tmpfs", 0, NULL))
			return 77;
		snprintf(path, sizeof(path), "%s/%d/tiny", dir, i);
		fds[i] = copy_of_tiny(path);
		if (fstat(fds[i], &st[i]) || mmap(room + 4096 * i, 4096, PROT_READ | PROT_EXEC,
						  MAP_PRIVATE | MAP_FIXED, fds[i], 0) == MAP_FAILED)
			return 1;
	}
	if (st[0].st_ino != st[1].st_ino || st[0].st_dev == st[1].st_dev)
		return 77;
	if (target_cache__new(&cache))
		return 2;
	second = hold(cache, fds[1]);
	file__put_off(second, -ETIMEDOUT);
	/* this executable contains what identifies a runtime */
	lose_elf(hold(cache, exe_fd), -ENOEXEC);
	/* the second file is examined too */
	return discover__process(cache, getpid()) == -EBUSY ? 0 : 3;
}

static void t_discover_neighbours(void **state)
{
	char dir[] = "/tmp/test_file_again.XXXXXX", path[64];
	int status;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_non_null(mkdtemp(dir));
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(look_at_neighbours(dir));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%d", dir, i);
		rmdir(path);
	}
	rmdir(dir);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_read_later),
		cmocka_unit_test(t_rests),
		cmocka_unit_test(t_pauses),
		cmocka_unit_test(t_upgraded),
		cmocka_unit_test(t_copies),
		cmocka_unit_test(t_discover_late),
		cmocka_unit_test(t_discover_neighbours),
	};

	return cmocka_run_group_tests_name("file_again", tests, NULL, NULL);
}
