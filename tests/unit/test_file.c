/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files shared between targets: one object as long as the file is unchanged, kept for a while
 * after its last use, then freed. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "process/file.h"
#include "process/image.h"
#include "process/origin.h"
#include "target/target.h"
#include "temp_dir.h"

#define TINY_BYTES 4016

static void path_of(const char *name, char out[128])
{
	snprintf(out, 128, "%s/%s", dir, name);
}

static void copy_self(const char *name)
{
	char command[256];

	snprintf(command, sizeof(command), "cp /proc/%d/exe %s/%s", getpid(), dir, name);
	assert_int_equal(system(command), 0);
}

static struct file *get(struct file_cache *cache, const char *name)
{
	struct file *file;
	char path[128];

	path_of(name, path);
	assert_int_equal(file__get(cache, 0, open(path, O_RDONLY | O_CLOEXEC), name, &file), 0);
	return file;
}

static void t_shared(void **state)
{
	struct file_cache *cache;
	struct file *a, *b;

	(void)state;
	copy_self("one");
	assert_int_equal(file_cache__new(&cache), 0);
	a = get(cache, "one");
	b = get(cache, "one");
	assert_ptr_equal(a, b);
	assert_non_null(a->elf);
	assert_int_equal(a->refs, 2);
	file__put(a);
	file__put(b);
	/* kept, although nobody uses it */
	assert_ptr_equal(get(cache, "one"), a);
	assert_int_equal(a->refs, 1);
	file__put(a);
	file_cache__free(cache);
}

static void t_no_cache(void **state)
{
	struct file *a, *b;

	(void)state;
	copy_self("one");
	a = get(NULL, "one");
	b = get(NULL, "one");
	assert_ptr_not_equal(a, b);
	file__put(a);
	file__put(b);
	file__put(NULL);
}

static void t_another_content(void **state)
{
	struct timespec times[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
	struct file_cache *cache;
	struct file *a, *b;
	char path[128];
	int fd;

	(void)state;
	copy_self("changes");
	path_of("changes", path);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	assert_int_equal(file_cache__new(&cache), 0);
	a = get(cache, "changes");
	/* overwritten in place: the inode stays, and its modification time is set back */
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "x", 1, 0), 1);
	close(fd);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	b = get(cache, "changes");
	assert_ptr_not_equal(a, b);
	assert_null(b->elf);
	file__put(a);
	file__put(b);
	file_cache__free(cache);
}

static void t_another_file(void **state)
{
	struct file_cache *cache;
	struct file *a, *b;
	char path[128];

	(void)state;
	copy_self("replaced");
	path_of("replaced", path);
	assert_int_equal(file_cache__new(&cache), 0);
	a = get(cache, "replaced");
	assert_int_equal(unlink(path), 0);
	copy_self("replaced");
	b = get(cache, "replaced");
	assert_ptr_not_equal(a, b);
	file__put(a);
	file__put(b);
	file_cache__free(cache);
}

static void t_bounded(void **state)
{
	struct file_cache *cache;
	static const struct slot_key key;
	struct file *first, *again;
	char name[32], path[128];
	void *what;

	(void)state;
	assert_int_equal(file_cache__new(&cache), 0);
	for (int i = 0; i < FILES_MAX_UNUSED + 8; i++) {
		snprintf(name, sizeof(name), "many%d", i);
		path_of(name, path);
		close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	}
	first = get(cache, "many0");
	slots__put(&first->slots, &key, first);
	file__put(first);
	for (int i = 1; i < FILES_MAX_UNUSED + 8; i++) {
		snprintf(name, sizeof(name), "many%d", i);
		file__put(get(cache, name));
	}
	/* the oldest was evicted, with everything learnt about it */
	again = get(cache, "many0");
	assert_false(slots__get(&again->slots, &key, &what));
	file__put(again);
	file_cache__free(cache);
}

static void t_outlives_its_cache(void **state)
{
	struct file_cache *cache;
	struct file *file;

	(void)state;
	copy_self("one");
	assert_int_equal(file_cache__new(&cache), 0);
	file = get(cache, "one");
	file_cache__free(cache);
	assert_non_null(file->elf);
	file__put(file);
}

static void t_bad_descriptor(void **state)
{
	struct file *file;

	(void)state;
	assert_true(file__get(NULL, 0, -1, "none", &file) < 0);
}

/* Neither this test nor a process that does not exist is a GHC program. */
static void t_discover_none(void **state)
{
	struct target_cache *cache;

	(void)state;
	assert_int_equal(target_cache__new(&cache), 0);
	assert_int_equal(discover__process(cache, 0x3fffffff), 0);
	assert_int_equal(discover__process(cache, 2), 0);
	target_cache__free(cache);
}

static int freed[3];
static size_t n_freed;

static void note_freed(void *what)
{
	freed[n_freed++] = *(int *)what;
}

static void t_slots(void **state)
{
	static const struct slot_key key[SLOTS_MAX + 1] = {{note_freed}, {note_freed}, {NULL}};
	int one = 1, two = 2, three = 3;
	struct slots slots = {0};
	void *what = &slots;

	(void)state;
	n_freed = 0;
	assert_false(slots__get(&slots, &key[0], &what));
	assert_ptr_equal(slots__put(&slots, &key[0], &one), &one);
	assert_ptr_equal(slots__put(&slots, &key[1], &two), &two);
	/* this key has no function to free it */
	assert_ptr_equal(slots__put(&slots, &key[2], &three), &three);
	/* cached as looked for and not found */
	assert_null(slots__put(&slots, &key[3], NULL));
	assert_true(slots__get(&slots, &key[1], &what));
	assert_ptr_equal(what, &two);
	assert_true(slots__get(&slots, &key[3], &what));
	assert_null(what);
	slots__free(&slots);
	assert_int_equal(n_freed, 2);
	assert_int_equal(freed[0], 2);
	assert_int_equal(freed[1], 1);
	assert_false(slots__get(&slots, &key[1], &what));

	/* one too many is freed at once */
	n_freed = 0;
	for (size_t i = 0; i < SLOTS_MAX; i++)
		slots__put(&slots, &key[i + 1], NULL);
	assert_null(slots__put(&slots, &key[0], &one));
	assert_int_equal(n_freed, 1);
	assert_false(slots__get(&slots, &key[0], &what));
	slots__free(&slots);
	assert_int_equal(n_freed, 1);
}

enum { ANNA = 1000, BERT = 1001 };

static int get_for(struct file_cache *cache, uid_t uid, unsigned no, struct file **ret_file)
{
	char path[128], name[32];
	int fd;

	snprintf(name, sizeof(name), "n%u", no);
	path_of(name, path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	return file__get_for(cache, 0, uid, fd, name, ret_file);
}

/* One user's files leave room for another's; a file that is open already can be used by anybody. */
static void t_users(void **state)
{
	struct rlimit limit, few;
	struct file_cache *cache;
	struct file *files[64], *file;
	unsigned n = 0, m = 0;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = limit;
	few.rlim_cur = 128;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(file_cache__new(&cache), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	while (n < 64 && get_for(cache, ANNA, n, &files[n]) == 0)
		n++;
	assert_int_equal(n, 16);
	assert_int_equal(get_for(cache, ANNA, n, &file), -EDQUOT);
	while (n + m < 64 && get_for(cache, BERT, n + m, &files[n + m]) == 0)
		m++;
	assert_int_equal(m, 8);
	assert_int_equal(get_for(cache, BERT, 0, &file), 0);
	assert_ptr_equal(file, files[0]);
	file__put_for(file, BERT);
	/* released files make room again */
	for (unsigned i = n; i < n + m; i++)
		file__put_for(files[i], BERT);
	assert_int_equal(get_for(cache, ANNA, 60, &file), -EDQUOT);
	file__put_for(files[0], ANNA);
	assert_int_equal(get_for(cache, ANNA, 60, &files[0]), 0);
	for (unsigned i = 0; i < n; i++)
		file__put_for(files[i], ANNA);
	file_cache__free(cache);
}

/* A file for which there was no room is opened by a later reading, after other files of the user
 * are gone. */
static void t_room_comes(void **state)
{
	struct images images = {.uid = ANNA};
	struct rlimit limit, few;
	struct file *files[64];
	unsigned n = 0;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = limit;
	few.rlim_cur = 256;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(file_cache__new(&images.cache), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	while (n < 64 && get_for(images.cache, ANNA, n, &files[n]) == 0)
		n++;
	assert_int_equal(images__refresh(&images, getpid()), 0);
	assert_true(images__left_out(&images, IMAGE_NO_ROOM) > 0);
	assert_null(images__exe(&images));
	for (unsigned i = 0; i < n; i++)
		file__put_for(files[i], ANNA);
	assert_int_equal(images__refresh(&images, getpid()), 0);
	assert_int_equal(images__left_out(&images, IMAGE_NO_ROOM), 0);
	assert_non_null(images__exe(&images));
	images__free(&images);
	file_cache__free(images.cache);
}

/* A memfd is on a file system that is in no list of mounts: its file is copied, unless it is too
 * large. */
static void t_not_copied(void **state)
{
	struct images images = {.uid = getuid()};
	int fd = memfd_create("large", MFD_CLOEXEC), self = open("/proc/self/exe", O_RDONLY);
	uint8_t head[4096];
	void *at;

	(void)state;
	/* other users' files are opened through their mappings, which only root may do */
	if (geteuid() != 0)
		skip();
	assert_int_equal(pread(self, head, sizeof(head), 0), sizeof(head));
	assert_int_equal(pwrite(fd, head, sizeof(head), 0), sizeof(head));
	assert_int_equal(ftruncate(fd, (off_t)FETCH_MAX_FILE + 1), 0);
	assert_int_equal(images__refresh(&images, getpid()), 0);
	assert_int_equal(images__left_out(&images, IMAGE_NOT_COPIED), 0);
	at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(images__refresh(&images, getpid()), 0);
	assert_int_equal(images__left_out(&images, IMAGE_NOT_COPIED), 1);
	assert_int_equal(images__left_out(&images, IMAGE_NO_ROOM), 0);
	/* the same if it is already known */
	assert_int_equal(images__refresh(&images, getpid()), 0);
	assert_int_equal(images__left_out(&images, IMAGE_NOT_COPIED), 1);
	munmap(at, 4096);
	close(self);
	close(fd);
	images__free(&images);
}

static struct image *mapped_anew(struct images *images, int fd)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	struct image *image;

	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(images__refresh(images, getpid()), 0);
	assert_non_null(images__at(images, (uintptr_t)at));
	image = images__at(images, (uintptr_t)at)->image;
	munmap(at, 4096);
	assert_int_equal(images__refresh(images, getpid()), 0);
	return image;
}

/* A plugin that is overwritten in place and loaded again is another file; one that is removed
 * while mapped stays the same. */
static void t_rewritten(void **state)
{
	struct images images = {.uid = getuid()};
	uint8_t text[TINY_BYTES + 64] = {0};
	struct image *first;
	char path[128];
	int fd, tiny;

	(void)state;
	if (geteuid() != 0)
		skip();
	tiny = open("tests/data/tiny.elf", O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(tiny, text, TINY_BYTES), TINY_BYTES);
	close(tiny);
	path_of("rewritten", path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, text, TINY_BYTES), TINY_BYTES);
	first = mapped_anew(&images, fd);
	assert_non_null(first);
	assert_ptr_equal(mapped_anew(&images, fd), first);
	assert_int_equal(pwrite(fd, text, sizeof(text), 0), sizeof(text));
	assert_ptr_not_equal(mapped_anew(&images, fd), first);
	first = mapped_anew(&images, fd);
	assert_int_equal(first->file->size, sizeof(text));
	assert_int_equal(unlink(path), 0);
	assert_ptr_equal(mapped_anew(&images, fd), first);
	close(fd);
	images__free(&images);
}

/* If a file is mapped where another one was, at once or later, the other's names must not be
 * used for it. */
static void t_retaken(void **state)
{
	struct images images = {.uid = getuid()};
	int fd = open("tests/data/tiny.elf", O_RDONLY | O_CLOEXEC);
	int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct image_place place;
	uint8_t *at;

	(void)state;
	if (geteuid() != 0)
		skip();
	at = mmap(NULL, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	munmap(at + 4096, 4096);
	assert_int_equal(images__refresh(&images, getpid()), 0);
	assert_false(images__take_retaken(&images, &place));
	/* the same file once more */
	munmap(at, 4096);
	assert_int_equal(images__refresh(&images, getpid()), 0);
	assert_ptr_equal(mmap(at, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0), at);
	assert_int_equal(images__refresh(&images, getpid()), 0);
	assert_false(images__take_retaken(&images, &place));
	/* another file, with no refresh in between; then one mapped after the first was seen to
	 * be gone */
	for (int i = 0; i < 2; i++) {
		munmap(at, 4096);
		if (i)
			assert_int_equal(images__refresh(&images, getpid()), 0);
		assert_ptr_equal(
			mmap(at, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, i ? fd : self, 0), at);
		assert_int_equal(images__refresh(&images, getpid()), 0);
		assert_true(images__take_retaken(&images, &place));
		assert_int_equal(place.start, (uintptr_t)at);
		assert_int_equal(place.end, (uintptr_t)at + 4096);
		assert_false(images__take_retaken(&images, &place));
		assert_int_equal(images__refresh(&images, getpid()), 0);
		assert_false(images__take_retaken(&images, &place));
	}
	munmap(at, 4096);
	close(self);
	close(fd);
	images__free(&images);
}

/* As in a process that loads plugins again and again: its current ones are known, and some of
 * its former ones. */
static void t_many_one_after_the_other(void **state)
{
	enum { ROUNDS = 50, FILES = 30 };
	struct images images = {.uid = getuid()};
	uint8_t *at[FILES], text[4096];
	size_t at_first, most = 0;
	char name[32], path[128];
	int fd;

	(void)state;
	if (geteuid() != 0)
		skip();
	fd = open("tests/data/tiny.elf", O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, text, sizeof(text)), TINY_BYTES);
	close(fd);
	assert_int_equal(images__refresh(&images, getpid()), 0);
	at_first = images.n;
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < FILES; i++) {
			snprintf(name, sizeof(name), "plugin-%d-%d", round, i);
			path_of(name, path);
			fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
			assert_int_equal(write(fd, text, TINY_BYTES), TINY_BYTES);
			at[i] = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
			assert_ptr_not_equal(at[i], MAP_FAILED);
			close(fd);
		}
		assert_int_equal(images__refresh(&images, getpid()), 0);
		assert_int_equal(images__left_out(&images, IMAGE_NO_ROOM), 0);
		for (int i = 0; i < FILES; i++) {
			const struct image_map *map = images__at(&images, (uintptr_t)at[i]);

			snprintf(name, sizeof(name), "plugin-%d-%d", round, i);
			assert_non_null(map->image);
			assert_non_null(map->image->elf);
			assert_string_equal(map->image->base, name);
		}
		for (int i = 0; i < FILES; i++)
			munmap(at[i], 4096);
		assert_int_equal(images__refresh(&images, getpid()), 0);
		most = MAX(most, images.n);
	}
	assert_true(most > at_first + FILES && most < at_first + 10 * FILES);
	assert_int_equal(images.opened, at_first + ROUNDS * FILES);
	assert_non_null(images__exe(&images));
	/* these were unmapped a moment ago */
	for (int i = 0; i < FILES; i++) {
		const struct image_map *map = images__ever_at(&images, (uintptr_t)at[i]);

		assert_non_null(map);
		assert_non_null(map->image->elf);
	}
	images__free(&images);
}

/* The user on whose account root's file is read if user 4242 maps it. */
static int reader_of(const char *path, uid_t *ret_user, bool *ret_roots)
{
	int err, fd = open(path, O_RDONLY | O_CLOEXEC);
	struct file *file;

	if (fd < 0)
		return -errno;
	*ret_roots = origin__is_roots(0, fd);
	err = file__get_for(NULL, 0, 4242, fd, "true", &file);
	if (err)
		return err;
	err = file->elf_err;
	if (!err)
		*ret_user = elf__user(file->elf);
	file__put(file);
	return err;
}

/* 0: correct; 1: such a mount is not possible here; 2 or more: what is wrong. */
static int look_at_brought(void)
{
	char command[256];
	uid_t user = 1;
	bool roots = true;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("brought", dir, "tmpfs", 0, NULL))
		return 1;
	snprintf(command, sizeof(command), "cp /bin/true %s/true", dir);
	if (system(command))
		return 2;
	snprintf(command, sizeof(command), "%s/true", dir);
	if (reader_of(command, &user, &roots) || roots || user != 4242)
		return 3;
	/* on the host's own file system */
	if (reader_of("/bin/true", &user, &roots) || user != (roots ? 0U : 4242U))
		return 4;
	return 0;
}

/* The owner of a file is not trusted on a file system that the host has not mounted, or mounted
 * only for a user: the file is read aside, as other users' files are, and on the account of the
 * user who maps it. */
static void t_brought(void **state)
{
	int status = -1;
	pid_t child;

	(void)state;
	if (geteuid() != 0)
		skip();
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(look_at_brought());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 1)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_slots),
		cmocka_unit_test(t_shared),
		cmocka_unit_test(t_no_cache),
		cmocka_unit_test(t_another_content),
		cmocka_unit_test(t_another_file),
		cmocka_unit_test(t_bounded),
		cmocka_unit_test(t_outlives_its_cache),
		cmocka_unit_test(t_bad_descriptor),
		cmocka_unit_test(t_discover_none),
		cmocka_unit_test(t_users),
		cmocka_unit_test(t_brought),
		cmocka_unit_test(t_room_comes),
		cmocka_unit_test(t_not_copied),
		cmocka_unit_test(t_rewritten),
		cmocka_unit_test(t_retaken),
		cmocka_unit_test(t_many_one_after_the_other),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
