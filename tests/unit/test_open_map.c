/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A mapping that is gone by the time its file is opened: the file is found by its path, which may
 * lead to a server that does not answer.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "confine/confine.h"
#include "process/proc.h"
#include "temp_dir.h"

/* How long the server delays an answer, and a time that is well below that. */
#define HELD_MS 12000
#define SOON_NS 6000000000ULL

/* Mounts `fs` in a mount namespace of its own; returns false if that is not permitted. */
static bool mounted(const char *fs, const char *options)
{
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return false;
	return mount("test", dir, fs, 0, options) == 0;
}

/* A map entry of a file that no process maps any more. */
static struct proc_map map_of(const char *path, const struct stat *st)
{
	return (struct proc_map){.start = 0x1000,
				 .end = 0x2000,
				 .ino = st->st_ino,
				 .dev_major = major(st->st_dev),
				 .dev_minor = minor(st->st_dev),
				 .path = path};
}

static int open_map(const struct proc_map *map, int *ret_fd)
{
	char path[PROC_PATH_LEN];
	uint64_t dev, ino;

	return proc__open_map(getpid(), map, path, ret_fd, &dev, &ino);
}

static void found_by_its_path(void **state)
{
	char path[128];
	struct proc_map map;
	struct stat st, got;
	int fd;

	(void)state;
	if (geteuid() != 0 || !mounted("tmpfs", NULL))
		skip();
	snprintf(path, sizeof(path), "%s/file", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	close(fd);

	map = map_of(path, &st);
	assert_int_equal(open_map(&map, &fd), 0);
	assert_true(fcntl(fd, F_GETFL) & O_PATH);
	assert_int_equal(fstat(fd, &got), 0);
	assert_true(got.st_dev == st.st_dev && got.st_ino == st.st_ino);
	close(fd);

	/* another file has that name */
	map.ino++;
	assert_int_equal(open_map(&map, &fd), -ESTALE);
	map.path = dir;
	assert_int_equal(open_map(&map, &fd), -ESTALE);
	map.path = "/nonexistent/file";
	assert_int_equal(open_map(&map, &fd), -ENOENT);
	assert_int_equal(umount(dir), 0);
}

/* ── a server that holds its answers back ────────────────────────────────────────────────── */

static void answer(int fd, const struct fuse_in_header *in, int err, const void *body, size_t len)
{
	struct {
		struct fuse_out_header head;
		char body[256];
	} out = {.head = {.len = (uint32_t)(sizeof(out.head) + len),
			  .error = err,
			  .unique = in->unique}};

	if (len)
		memcpy(out.body, body, len);
	(void)!write(fd, &out, out.head.len);
}

/* Serves until the file system is unmounted. */
static void *serve(void *ctx)
{
	static union {
		struct fuse_in_header head;
		char room[1 << 18];
	} in;
	const struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION,
					   .minor = FUSE_KERNEL_MINOR_VERSION,
					   .max_write = 4096};
	int fd = *(const int *)ctx;

	while (read(fd, &in, sizeof(in)) > 0) {
		switch (in.head.opcode) {
		case FUSE_INIT:
			answer(fd, &in.head, 0, &init, sizeof(init));
			break;
		case FUSE_FORGET:
		case FUSE_INTERRUPT:
			break;
		case FUSE_LOOKUP:
			poll(NULL, 0, HELD_MS);
			/* fall through */
		default:
			answer(fd, &in.head, -ENOENT, NULL, 0);
		}
	}
	return NULL;
}

static void not_waited_for(void **state)
{
	int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC), fd;
	char options[128], path[128];
	const struct stat st = {.st_ino = 7};
	struct proc_map map;
	pthread_t server;
	uint64_t began;

	(void)state;
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
		 fuse);
	if (geteuid() != 0 || fuse < 0 || !mounted("fuse", options))
		skip();
	assert_int_equal(pthread_create(&server, NULL, serve, &fuse), 0);
	snprintf(path, sizeof(path), "%s/file", dir);
	map = map_of(path, &st);
	began = time__monotonic_ns();
	assert_int_equal(open_map(&map, &fd), -EREMOTEIO);
	assert_true(time__monotonic_ns() - began < SOON_NS);
	/* a process that waits there cannot die before it gets its answer */
	for (int i = 0; i < 3000 && confine__reap(); i++)
		poll(NULL, 0, 10);
	assert_int_equal(confine__reap(), 0);
	assert_int_equal(umount(dir), 0);
	pthread_join(server, NULL);
	close(fuse);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(found_by_its_path),
		cmocka_unit_test(not_waited_for),
	};

	return cmocka_run_group_tests_name("open_map", tests, make_dir, remove_dir);
}
