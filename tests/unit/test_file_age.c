/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How long files stay mapped after the last process has unmapped them. */
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
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "process/file.h"
#include "temp_dir.h"

static void copy_tiny(const char *name, char ret_path[128])
{
	char command[256];

	snprintf(ret_path, 128, "%s/%s", dir, name);
	snprintf(command, sizeof(command), "cp tests/data/tiny.elf %s", ret_path);
	assert_int_equal(system(command), 0);
}

static struct file *get(struct file_cache *cache, const char *path)
{
	struct file *file;

	assert_int_equal(file__get(cache, 0, open(path, O_RDONLY | O_CLOEXEC), path, &file), 0);
	assert_non_null(file->elf);
	return file;
}

/* Returns true if this process maps the file, according to /proc/self/maps. */
static bool is_mapped(const char *path)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	bool found = false;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		found |= strstr(line, path) != NULL;
	fclose(f);
	return found;
}

/* An unused file stays mapped for some time, and is then unmapped. */
static void t_unused(void **state)
{
	struct stat own, root;
	struct file_cache *cache;
	struct file *used;
	uint64_t longest, now;
	char path[2][128];

	(void)state;
	copy_tiny("old", path[0]);
	copy_tiny("used", path[1]);
	assert_int_equal(stat(dir, &own) | stat("/", &root), 0);
	longest = own.st_dev == root.st_dev ? FILES_UNUSED_ROOT_NS : FILES_UNUSED_NS;
	assert_int_equal(file_cache__new(&cache), 0);
	used = get(cache, path[1]);
	file__put(get(cache, path[0]));
	now = time__monotonic_ns();
	/* a turn's clock may be slightly late */
	file_cache__turn(cache, now - 1000000000);
	file_cache__turn(cache, now + longest / 2);
	assert_true(is_mapped(path[0]));
	file_cache__turn(cache, now + longest + 1);
	assert_false(is_mapped(path[0]));
	assert_true(is_mapped(path[1]));
	/* a file that is used again is not old */
	file__put(used);
	assert_ptr_equal(get(cache, path[1]), used);
	file_cache__turn(cache, now + 2 * longest);
	assert_true(is_mapped(path[1]));
	file__put(used);
	file_cache__turn(cache, time__monotonic_ns() + longest + 1);
	assert_false(is_mapped(path[1]));
	file_cache__free(cache);
}

/* Its file system can be unmounted then. */
static void t_unmount(void **state)
{
	struct file_cache *cache;
	char mounted[128], path[2][128];
	uint64_t now;

	(void)state;
	if (geteuid() != 0 || unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		skip();
	snprintf(mounted, sizeof(mounted), "%s/mounted", dir);
	assert_int_equal(mkdir(mounted, 0700), 0);
	assert_int_equal(mount("none", mounted, "tmpfs", 0, NULL), 0);
	copy_tiny("mounted/one", path[0]);
	copy_tiny("mounted/two", path[1]);
	assert_int_equal(file_cache__new(&cache), 0);
	for (int i = 0; i < 2; i++)
		file__put(get(cache, path[i]));
	assert_int_equal(umount(mounted), -1);
	assert_int_equal(errno, EBUSY);
	now = time__monotonic_ns();
	file_cache__turn(cache, now + FILES_UNUSED_NS + 1);
	assert_int_equal(umount(mounted), 0);
	file_cache__free(cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_unused),
		cmocka_unit_test(t_unmount),
	};

	return cmocka_run_group_tests_name("file_age", tests, make_dir, remove_dir);
}
