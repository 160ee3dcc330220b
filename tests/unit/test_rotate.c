/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which windows' files are removed: the oldest, all files of a window at once, and no others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "output/output.h"
#include "output/rotate_priv.h"

#define STEM "safescope-prog-1"

static char dir[64];

static int set_up(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/test_rotate.XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r '%s'", dir);
	return system(command);
}

static void make(const char *name, size_t bytes)
{
	char path[256];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	out = fopen(path, "w");
	assert_non_null(out);
	for (size_t i = 0; i < bytes; i++)
		putc('x', out);
	assert_int_equal(fclose(out), 0);
}

static bool is_there(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return access(path, F_OK) == 0;
}

/* Five windows of two files each, a minute apart, of which the last one has just begun. */
static void make_windows(char names[10][128])
{
	static const char *const suffixes[] = {".json", ".folded"};
	uint64_t now = time__realtime_ns();
	char when[ROTATE_TIME_SIZE];

	for (size_t i = 0; i < 10; i++) {
		rotate__time(now - (4 - i / 2) * 60000000000, when);
		snprintf(names[i], 128, STEM "-%s%s", when, suffixes[i % 2]);
		make(names[i], 8192);
	}
	make("safescope-prog-12-20200101T000000.000Z.json", 1);
	make(STEM "-20200101T000000.json", 1);
	make(STEM "-notes.txt", 1);
	make(STEM "-20200101T000000.000Z.notes", 1);
}

static void check(struct output_opts *opts, size_t gone)
{
	char names[10][128];

	make_windows(names);
	opts->path = dir;
	rotate__files(opts, STEM, (uid_t)-1);
	for (size_t i = 0; i < 10; i++)
		assert_int_equal(is_there(names[i]), i >= gone);
	assert_true(is_there("safescope-prog-12-20200101T000000.000Z.json"));
	assert_true(is_there(STEM "-20200101T000000.json"));
	assert_true(is_there(STEM "-notes.txt"));
	assert_true(is_there(STEM "-20200101T000000.000Z.notes"));
}

static void test_all_stay(void **state)
{
	struct output_opts none = {0}, many = {.keep = 5, .keep_bytes = 1 << 20};

	many.keep_for_ns = 3600000000000;
	(void)state;
	check(&none, 0);
	tear_down(state);
	set_up(state);
	check(&many, 0);
}

static void test_keep(void **state)
{
	struct output_opts opts = {.keep = 2};

	(void)state;
	check(&opts, 6);
}

static void test_bytes(void **state)
{
	/* room for three windows of 16 kB, not for four */
	struct output_opts opts = {.keep_bytes = 60000};

	(void)state;
	check(&opts, 4);
}

static void test_time(void **state)
{
	struct output_opts opts = {.keep_for_ns = 150000000000};

	(void)state;
	check(&opts, 4);
}

/* The newest window stays, however little may be kept. */
static void test_newest(void **state)
{
	struct output_opts opts = {.keep_bytes = 1};

	(void)state;
	check(&opts, 8);
}

/* The clock was set back by an hour: files of the future go first, instead of each new one. */
static void test_ahead(void **state)
{
	struct output_opts keep = {.path = dir, .keep = 3};
	struct output_opts keep_for = {.path = dir, .keep_for_ns = 30000000000};
	char when[ROTATE_TIME_SIZE], ahead[2][128] = {{0}}, now[3][128] = {{0}};

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		char *name = i < 2 ? ahead[i] : now[i - 2];

		/* the files with current times are 35, 25 and 15 s old */
		rotate__time(time__realtime_ns() + (i < 2 ? 3600000000000 : 0) -
				     (55 - i * 10) * 1000000000,
			     when);
		snprintf(name, 128, STEM "-%s.json", when);
		make(name, 8192);
	}
	rotate__files(&keep_for, STEM, (uid_t)-1);
	assert_true(is_there(ahead[0]) && is_there(ahead[1]));
	assert_true(!is_there(now[0]) && is_there(now[1]) && is_there(now[2]));
	rotate__files(&keep, STEM, (uid_t)-1);
	assert_true(!is_there(ahead[0]) && is_there(ahead[1]));
	assert_true(is_there(now[1]) && is_there(now[2]));
}

static void test_names_sort(void **state)
{
	char a[ROTATE_TIME_SIZE], b[ROTATE_TIME_SIZE];

	(void)state;
	/* date -u -d @1795352130 */
	rotate__time(1795352130250000000, a);
	assert_string_equal(a, "20261122T125530.250Z");
	rotate__time(1795352131000000000, b);
	assert_true(strcmp(a, b) < 0);
}

/* A killed writer's leftover is removed when a session with windows begins in that directory. */
static void test_left_over(void **state)
{
	static const char name[] = ".safescoped-0123456789abcdef0123456789abcdef";
	const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	struct output_opts opts = {.formats = {&export_json}, .n_formats = 1, .path = dir};
	struct outputs *outputs;
	char path[256];

	(void)state;
	make(name, 1);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	for (int windows = 0; windows < 2; windows++) {
		opts.windows = windows;
		assert_int_equal(outputs__plan(&opts, "prog", 1, &outputs), 0);
		outputs__free(outputs);
		assert_int_equal(is_there(name), !windows);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all_stay, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_keep, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_bytes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_newest, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_ahead, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_left_over, set_up, tear_down),
		cmocka_unit_test(test_names_sort),
	};

	return cmocka_run_group_tests_name("rotate", tests, NULL, NULL);
}
