/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Separate debug files: parsing .gnu_debuglink, and which files are accepted. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "confine/confine.h"
#include "process/debugfile.h"

static int parse(const char *bytes, size_t size, char name[DEBUGLINK_NAME], uint32_t *crc)
{
	uint8_t *copy = malloc(
		size ? size : 1); /* exact size, so that the sanitizer catches reads beyond it */
	int err;

	assert_non_null(copy);
	memcpy(copy, bytes, size);
	err = debugfile__parse_link(copy, size, name, crc);
	free(copy);
	return err;
}

static void link_section(void **state)
{
	char name[DEBUGLINK_NAME], big[400];
	uint32_t crc = 0;

	(void)state;
	assert_int_equal(parse("a.debug\0\x78\x56\x34\x12", 12, name, &crc), 0);
	assert_string_equal(name, "a.debug");
	assert_int_equal(crc, 0x12345678);
	assert_int_equal(parse("ab\0\0\x01\0\0\0more", 12, name, &crc), 0);
	assert_int_equal(crc, 1);

	assert_int_equal(parse("", 0, name, &crc), -EINVAL);
	assert_int_equal(parse("a.debug", 7, name, &crc), -EINVAL);		   /* no NUL */
	assert_int_equal(parse("a.debug\0\x78\x56\x34", 11, name, &crc), -EINVAL); /* too short */
	assert_int_equal(parse("\0\0\0\0\x78\x56\x34\x12", 8, name, &crc), -EINVAL);
	assert_int_equal(parse("a/b\0\x78\x56\x34\x12", 8, name, &crc), -EINVAL);
	assert_int_equal(parse("/b\0\0\x78\x56\x34\x12", 8, name, &crc), -EINVAL);
	assert_int_equal(parse(".\0\0\0\x78\x56\x34\x12", 8, name, &crc), -EINVAL);
	assert_int_equal(parse("..\0\0\x78\x56\x34\x12", 8, name, &crc), -EINVAL);
	memset(big, 'x', sizeof(big));
	big[399] = 0;
	assert_int_equal(parse(big, sizeof(big), name, &crc), -EINVAL);
}

/* ── files ───────────────────────────────────────────────────────────────────────────────── */

struct files {
	char dir[64];
	bool have;
};

static int make_files(void **state)
{
	struct files *f = calloc(1, sizeof(*f));
	char command[2048];

	*state = f;
	if (!f || system("command -v gcc strip objcopy >/dev/null 2>&1") != 0)
		return f ? 0 : -1;
	snprintf(f->dir, sizeof(f->dir), "/tmp/test_debugfile.XXXXXX");
	if (!mkdtemp(f->dir))
		return -1;
	snprintf(command, sizeof(command),
		 "cd %s && exec >/dev/null 2>&1\n"
		 "echo 'int main(void) { return 0; }' >a.c\n"
		 "echo 'int other; int main(void) { return other + 3; }' >b.c\n"
		 "gcc -Wl,--build-id a.c -o a && gcc -Wl,--build-id b.c -o b\n"
		 "gcc -Wl,--build-id=none a.c -o a0 && gcc -Wl,--build-id=none b.c -o b0\n"
		 "strip -o a0.stripped a0 && strip -o a.stripped a\n"
		 "objcopy --only-keep-debug a a.debug && cp a.debug b.debug && echo >>b.debug\n"
		 "mkdir -p one/.debug two three\n"
		 "strip -o one/a a && objcopy --add-gnu-debuglink=a.debug one/a\n"
		 "cp one/a two/a && cp one/a three/a\n"
		 "cp a.debug one/.debug/a.debug\n" /* next to it, in .debug */
		 "cp b.debug two/a.debug\n"	   /* another checksum */
		 "mkfifo three/a.debug",	   /* must not hang */
		 f->dir);
	f->have = system(command) == 0;
	return 0;
}

static int remove_files(void **state)
{
	struct files *f = *state;
	char command[128];

	if (f->dir[0]) {
		snprintf(command, sizeof(command), "rm -rf %s", f->dir);
		assert_int_equal(system(command), 0);
	}
	free(f);
	return 0;
}

static void open_image(const struct files *f, const char *name, struct image *image)
{
	char path[160];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	memset(image, 0, sizeof(*image));
	image->name = strdup(path);
	assert_non_null(image->name);
	image->base = strrchr(image->name, '/') + 1;
	assert_int_equal(stat(path, &st), 0);
	image->dev = st.st_dev;
	image->uid = st.st_uid;
	assert_int_equal(elf__open_fd(open(path, O_RDONLY | O_CLOEXEC), path, &image->elf), 0);
}

static void close_image(struct image *image)
{
	elf__free(image->debug);
	elf__free(image->elf);
	free(image->name);
}

static bool finds(const struct files *f, const char *name)
{
	struct image image;
	struct elf_sym sym;
	bool found;

	open_image(f, name, &image);
	debugfile__look(getpid(), &image);
	found = image.debug != NULL;
	if (found)
		assert_int_equal(elf__find_symbol(image.debug, "main", &sym, NULL), 0);
	close_image(&image);
	return found;
}

static void by_debuglink(void **state)
{
	const struct files *f = *state;

	if (!f->have)
		skip();
	assert_true(finds(f, "one/a"));
	assert_false(finds(f, "two/a"));
	assert_false(finds(f, "three/a"));
	assert_false(finds(f, "a")); /* has symbols of its own */
	assert_false(finds(f, "a.stripped"));
}

static int take(const struct files *f, const char *name, const char *symbols, bool force)
{
	struct image image;
	char path[160];
	int err;

	open_image(f, name, &image);
	snprintf(path, sizeof(path), "%s/%s", f->dir, symbols);
	err = debugfile__take(path, force, &image);
	assert_true((err == 0) == (image.debug != NULL));
	close_image(&image);
	return err;
}

static void by_option(void **state)
{
	const struct files *f = *state;

	if (!f->have)
		skip();
	assert_int_equal(take(f, "a.stripped", "a", false), 0);
	assert_int_equal(take(f, "a.stripped", "a.debug", false), 0);
	assert_int_equal(take(f, "a.stripped", "b", false), -EINVAL);
	assert_int_equal(take(f, "a.stripped", "b", true), 0);
	assert_int_equal(take(f, "a.stripped", "a.stripped", true), -EINVAL); /* no symbols */
	assert_int_equal(take(f, "a.stripped", "a.c", true), -EINVAL);
	assert_int_equal(take(f, "a.stripped", "absent", true), -EINVAL);
	assert_int_equal(take(f, "a.stripped", "three/a.debug", true), -EINVAL);
	/* without build-ids, by the code itself */
	assert_int_equal(take(f, "a0.stripped", "a0", false), 0);
	assert_int_equal(take(f, "a0.stripped", "b0", false), -EINVAL);
	assert_int_equal(take(f, "a0.stripped", "a", false), -EINVAL);
}

/* Looks for the debug file through a fresh image of a file that other processes share. */
static bool finds_of(const struct files *f, const char *name, struct file *file)
{
	struct image image;
	bool found;

	open_image(f, name, &image);
	image.file = file;
	assert_int_equal(debugfile__look(getpid(), &image), 0);
	found = image.debug != NULL;
	assert_true(image.debug == file->debug);
	image.debug = NULL;
	close_image(&image);
	return found;
}

/*
 * A process's own path to the file, as in another namespace, determines where its .gnu_debuglink
 * leads, which does not matter to other processes; but what one process has found is used for all.
 */
static void for_each_process(void **state)
{
	const struct files *f = *state;
	struct file file = {0};

	if (!f->have)
		skip();
	assert_false(finds_of(f, "three/a", &file));
	assert_false(finds_of(f, "two/a", &file));
	assert_true(finds_of(f, "one/a", &file));
	assert_true(finds_of(f, "three/a", &file));
	elf__free(file.debug);
}

/* If the user's time is used up, the result is unknown and the search is repeated later. */
static void later(void **state)
{
	const struct files *f = *state;
	const struct timespec pause = {.tv_sec = 1};
	struct file file = {0};
	struct image image;

	if (!f->have)
		skip();
	open_image(f, "one/a", &image);
	image.file = &file;
	image.account = 4242;
	/* the daemon has already waited for this user for too long */
	confine__waited(image.account, CONFINE_USER_NS + 100000000ULL, 0);
	assert_int_equal(debugfile__look(getpid(), &image), -EBUSY);
	assert_null(image.debug);
	/* not retried at once */
	assert_int_equal(debugfile__look(getpid(), &image), -EBUSY);
	/* other users find it meanwhile */
	assert_true(finds_of(f, "one/a", &file));
	elf__free(file.debug);
	file.debug = NULL;
	/* and this one does once he has time again */
	for (int i = 0; i < 100 && debugfile__look(getpid(), &image); i++)
		nanosleep(&pause, NULL);
	assert_non_null(image.debug);
	assert_ptr_equal(file.debug, image.debug);
	close_image(&image);
}

/* The same if there are no descriptors for the lookup that is done once for all processes. */
static void no_descriptor(void **state)
{
	const struct files *f = *state;
	const struct timespec pause = {.tv_nsec = 100000000};
	struct rlimit was, none;
	struct file file = {0};
	struct image image;

	if (!f->have)
		skip();
	open_image(f, "one/a", &image);
	image.file = &file;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(debugfile__look(getpid(), &image), -EBUSY);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_false(file.debug_tried);
	for (int i = 0; i < 100 && debugfile__look(getpid(), &image); i++)
		nanosleep(&pause, NULL);
	assert_non_null(image.debug);
	assert_true(file.debug_tried);
	close_image(&image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(link_section), cmocka_unit_test(by_debuglink),
		cmocka_unit_test(by_option),	cmocka_unit_test(for_each_process),
		cmocka_unit_test(later),	cmocka_unit_test(no_descriptor),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
