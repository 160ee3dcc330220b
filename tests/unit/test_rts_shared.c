/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is found out about a file's runtime by way of one process's path holds for all processes
 * that map the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "process/image.h"
#include "rts/rts.h"

/* Has the strings of a runtime, and a variable of it that only its symbols show. */
static const char source[] =
	"const char text[] = \"\\0009.4.7\\0    (GHC version %s for %s)\\n\\0rts_thr\\0RTS way\";\n"
	"int rtsConfig[4];\n"
	"int main(int n, char **args) { return rtsConfig[n & 3] + text[n] + !args; }\n";

static char dir[] = "/tmp/test_rts_shared.XXXXXX";

static int setup(void **state)
{
	char path[64], command[512];
	FILE *out;

	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/a.c", dir);
	out = fopen(path, "w");
	if (!out || fputs(source, out) < 0 || fclose(out))
		return -1;
	snprintf(command, sizeof(command),
		 "cd %s && mkdir with && gcc -g -O1 -fno-inline -Wl,--build-id=none a.c -o full && "
		 "objcopy --only-keep-debug full with/a.debug && strip -o bare full && "
		 "objcopy --add-gnu-debuglink=with/a.debug bare linked",
		 dir);
	return system("command -v gcc objcopy strip >/dev/null 2>&1") ? 0 : system(command);
}

static int teardown(void **state)
{
	char command[80];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

/*
 * Maps the file as a process that has it at the path `at`. Returns false if there is no compiler.
 */
static bool map_at(struct images *images, struct file_cache *cache, const char *at)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/linked", dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	*images = (struct images){.cache = cache, .uid = getuid()};
	assert_int_equal(images__of_file(images, fd, path, at, true), 0);
	close(fd);
	return true;
}

static enum rts_found found_in(const struct images *images)
{
	struct rts rts;

	assert_int_equal(rts__find(0, images, &rts), 0);
	assert_string_equal(rts.version, "9.4.7");
	return rts.config.found;
}

/*
 * A process that maps the file first, at a place without a debug file, spoils nothing for others.
 */
static void another_place(void **state)
{
	struct images first, second, third;
	struct file_cache *cache;
	char at[64];

	(void)state;
	assert_int_equal(file_cache__new(&cache), 0);
	if (!map_at(&first, cache, "/nowhere/linked"))
		skip();
	assert_int_equal(found_in(&first), FOUND_NONE);
	assert_int_equal(found_in(&first), FOUND_NONE);
	snprintf(at, sizeof(at), "%s/with/linked", dir);
	assert_true(map_at(&second, cache, at));
	assert_ptr_equal(second.images[0]->file, first.images[0]->file);
	assert_int_equal(found_in(&second), FOUND_DEBUGFILE);
	/* the result holds for all, whatever their path of the file */
	assert_true(map_at(&third, cache, "/elsewhere/linked"));
	assert_int_equal(found_in(&third), FOUND_DEBUGFILE);
	assert_int_equal(found_in(&first), FOUND_DEBUGFILE);
	images__free(&first);
	images__free(&second);
	images__free(&third);
	file_cache__free(cache);
}

/* Without time for another look, what is already known is used. */
static void no_time(void **state)
{
	struct images first, second;
	struct file_cache *cache;
	struct file *file;
	char at[64];

	(void)state;
	assert_int_equal(file_cache__new(&cache), 0);
	if (!map_at(&first, cache, "/nowhere/linked"))
		skip();
	assert_int_equal(found_in(&first), FOUND_NONE);
	file = first.images[0]->file;
	snprintf(at, sizeof(at), "%s/with/linked", dir);
	assert_true(map_at(&second, cache, at));
	assert_true(file__put_off(file, -ETIMEDOUT));
	assert_int_equal(found_in(&second), FOUND_NONE);
	file->put_off.until_ns = 0;
	assert_int_equal(found_in(&second), FOUND_DEBUGFILE);
	images__free(&first);
	images__free(&second);
	file_cache__free(cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_place),
		cmocka_unit_test(no_time),
	};

	return cmocka_run_group_tests_name("rts_shared", tests, setup, teardown);
}
