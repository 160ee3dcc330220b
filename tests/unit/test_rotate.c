/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which windows' files are removed: the oldest, all files of a window at once, and no others. */
#include <setjmp.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
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
	/* not on a disk: ext4 is slow to create files after many have been removed */
	snprintf(dir, sizeof(dir), "%s/test_rotate.XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
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
	char when[ROTATE_TIME_SIZE], path[256], other[256];

	for (size_t i = 0; i < 10; i++) {
		rotate__time(now - (4 - i / 2) * 60000000000, when);
		snprintf(names[i], 128, STEM "-%s%s", when, suffixes[i % 2]);
		make(names[i], 8192);
	}
	make("safescope-prog-12-20200101T000000.000Z.json", 1);
	make(STEM "-20200101T000000.json", 1);
	make(STEM "-notes.txt", 1);
	make(STEM "-20200101T000000.000Z.notes", 1);
	/* files with such a name that no session has made */
	snprintf(path, sizeof(path), "%s/%s", dir, STEM "-20200102T000000.000Z.json");
	snprintf(other, sizeof(other), "%s/other", dir);
	make("other", 1);
	assert_int_equal(link(other, path), 0);
	snprintf(path, sizeof(path), "%s/%s", dir, STEM "-20200103T000000.000Z.json");
	assert_int_equal(symlink("/dev/null", path), 0);
	make(STEM "-20200104T000000.000Z.json", 1);
	snprintf(path, sizeof(path), "%s/%s", dir, STEM "-20200104T000000.000Z.json");
	assert_true(geteuid() || chown(path, 65534, 65534) == 0);
}

/* What a session does after its first window, which could not be written. */
static void rotate(const struct output_opts *opts)
{
	struct rotate *r;

	assert_int_equal(rotate__new(opts, STEM, (uid_t)-1, &r), 0);
	assert_int_equal(rotate__window(r, time__realtime_ns(), false), 0);
	rotate__free(r);
}

static void check(struct output_opts *opts, size_t gone)
{
	char names[10][128];

	make_windows(names);
	opts->path = dir;
	rotate(opts);
	for (size_t i = 0; i < 10; i++)
		assert_int_equal(is_there(names[i]), i >= gone);
	assert_true(is_there("safescope-prog-12-20200101T000000.000Z.json"));
	assert_true(is_there(STEM "-20200101T000000.json"));
	assert_true(is_there(STEM "-notes.txt"));
	assert_true(is_there(STEM "-20200101T000000.000Z.notes"));
	assert_true(is_there(STEM "-20200102T000000.000Z.json"));
	assert_true(is_there(STEM "-20200103T000000.000Z.json"));
	assert_true(geteuid() || is_there(STEM "-20200104T000000.000Z.json"));
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
	rotate(&keep_for);
	assert_true(is_there(ahead[0]) && is_there(ahead[1]));
	assert_true(!is_there(now[0]) && is_there(now[1]) && is_there(now[2]));
	rotate(&keep);
	assert_true(!is_there(ahead[0]) && is_there(ahead[1]));
	assert_true(is_there(now[1]) && is_there(now[2]));
}

/* ── many windows ────────────────────────────────────────────────────────────────────────── */

#define MANY 2000

/* A whole second; the windows are numbered by the seconds after it. */
static uint64_t base_ns;

static uint64_t start_of(size_t i)
{
	return base_ns + i * 1000000000;
}

static const char *name_of(size_t i)
{
	static char name[128];
	char when[ROTATE_TIME_SIZE];

	rotate__time(start_of(i), when);
	snprintf(name, sizeof(name), STEM "-%s.json", when);
	return name;
}

static void make_many(size_t n)
{
	uint64_t now = time__realtime_ns();

	base_ns = now - now % 1000000000 - 20000ULL * 1000000000;
	for (size_t i = 0; i < n; i++)
		make(name_of(i), 1);
}

static struct rotate *begin(const struct output_opts *opts)
{
	struct rotate *r;

	assert_int_equal(rotate__new(opts, STEM, (uid_t)-1, &r), 0);
	return r;
}

static void write_window(struct rotate *r, size_t i)
{
	make(name_of(i), 1);
	assert_int_equal(rotate__window(r, start_of(i), true), 0);
}

static size_t count(void)
{
	struct dirent *e;
	size_t n = 0;
	DIR *d = opendir(dir);

	assert_non_null(d);
	while ((e = readdir(d)))
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

/* Exactly the windows from `first` to before `end` are there. */
static void expect(size_t first, size_t end, size_t others)
{
	for (size_t i = first; i < end; i++)
		assert_true(is_there(name_of(i)));
	assert_int_equal(count(), end - first + others);
}

/* The directory is not read again for each window, which would take as long each time. */
static void test_many(void **state)
{
	struct output_opts opts = {.path = dir, .keep = MANY};
	struct rotate *r = begin(&opts);
	uint64_t t, first, rest = 0;

	(void)state;
	make_many(MANY + 2);
	t = time__monotonic_ns();
	assert_int_equal(rotate__window(r, start_of(MANY + 1), true), 0);
	first = time__monotonic_ns() - t;
	expect(2, MANY + 2, 0);
	for (size_t i = MANY + 2; i < MANY + 202; i++) {
		make(name_of(i), 1);
		t = time__monotonic_ns();
		assert_int_equal(rotate__window(r, start_of(i), true), 0);
		rest += time__monotonic_ns() - t;
	}
	expect(202, MANY + 202, 0);
	assert_true(rest < 20 * first);
	rotate__free(r);
}

/* More windows are removed than are known by name after one reading of the directory. */
static void test_one_after_the_other(void **state)
{
	struct output_opts opts = {.path = dir, .keep = 1100};
	struct rotate *r = begin(&opts);

	(void)state;
	make_many(1100);
	for (size_t i = 1100; i < 2300; i++)
		write_window(r, i);
	expect(1200, 2300, 0);
	rotate__free(r);
}

/* Many more are there than may stay. */
static void test_too_many(void **state)
{
	struct output_opts opts = {.path = dir, .keep = 3};
	struct rotate *r = begin(&opts);

	(void)state;
	make_many(MANY);
	make("safescope-prog-12-20200101T000000.000Z.json", 1);
	for (size_t i = 0; i < 4; i++)
		write_window(r, MANY + i);
	expect(MANY + 1, MANY + 4, 1);
	rotate__free(r);
}

static void remove_by_hand(size_t first, size_t end)
{
	char path[256];

	for (size_t i = first; i < end; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, name_of(i));
		assert_int_equal(unlink(path), 0);
	}
}

/* Others remove most of the windows, some of the oldest among them: no more are removed until there
 * are too many again. */
static void test_removed_by_others(void **state)
{
	struct output_opts opts = {.path = dir, .keep = 1000};
	struct rotate *r = begin(&opts);
	uint64_t t;

	(void)state;
	make_many(1000);
	t = time__monotonic_ns();
	write_window(r, 1000);
	t = time__monotonic_ns() - t;
	remove_by_hand(1, 4);
	remove_by_hand(10, 990);
	write_window(r, 1001);
	usleep((useconds_t)(t / 1000 * 11));
	for (size_t i = 1002; i < 1020; i++)
		write_window(r, i);
	for (size_t i = 4; i < 10; i++)
		assert_true(is_there(name_of(i)));
	expect(990, 1020, 6);
	rotate__free(r);
}

/* The directory is moved away, and another one takes its place. */
static void test_replaced(void **state)
{
	struct output_opts opts = {.path = dir, .keep = 3};
	struct rotate *r = begin(&opts);
	char moved[80];

	(void)state;
	make_many(3);
	write_window(r, 3);
	expect(1, 4, 0);
	snprintf(moved, sizeof(moved), "%s.moved", dir);
	assert_int_equal(rename(dir, moved), 0);
	assert_int_equal(rotate__window(r, start_of(4), false), -ENOENT);
	assert_int_equal(mkdir(dir, 0700), 0);
	for (size_t i = 4; i < 9; i++)
		write_window(r, i);
	expect(6, 9, 0);
	assert_int_equal(tear_down(state), 0);
	assert_int_equal(rename(moved, dir), 0);
	expect(1, 4, 0);
	rotate__free(r);
}

/* Writers are processes of their own, and may be killed at any moment. */
static void test_killed(void **state)
{
	struct output_opts opts = {.path = dir, .keep = 3};
	struct rotate *r = begin(&opts);
	size_t next = MANY;
	int status;

	(void)state;
	make_many(3);
	for (useconds_t i = 0; i < 30; i++, next += 100) {
		pid_t pid = fork();

		if (!pid)
			for (size_t k = 0;; k = (k + 1) % 100)
				write_window(r, next + k);
		usleep(i * 200);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
	}
	/* what they could not count is counted when the directory is read again */
	for (size_t i = 0; i < 300; i++, next++) {
		write_window(r, next);
		if (i >= 2 && count() == 3)
			break;
		usleep(100000);
	}
	expect(next - 2, next + 1, 0);
	rotate__free(r);
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
		cmocka_unit_test_setup_teardown(test_many, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_one_after_the_other, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_too_many, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_removed_by_others, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_replaced, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_killed, set_up, tear_down),
		cmocka_unit_test(test_names_sort),
	};

	return cmocka_run_group_tests_name("rotate", tests, NULL, NULL);
}
