/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The names of code while its symbols are being downloaded, when that fails, and once they are
 * there: on a file that is compiled here. The server is simulated.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "debuginfod/debuginfod.h"
#include "names/names.h"
#include "names/pause_priv.h"
#include "process/image.h"
#include "rts/rts.h"
#include "wire.h"
#include "refused_open.h"

static struct {
	int err; /* 0: the file is at `path` */
	char path[PATH_MAX];
	unsigned asked;
} server;

/* Replaces the function of the debuginfod room. */
int debuginfod__find(struct debuginfod *debuginfod, uid_t account, const char *build_id,
		     char ret_path[PATH_MAX])
{
	(void)debuginfod;
	(void)account;
	assert_int_equal(strlen(build_id), 40);
	server.asked++;
	if (!server.err)
		memcpy(ret_path, server.path, PATH_MAX);
	return server.err;
}

/* Seconds by which the clock has been advanced. */
static time_t ahead_s;

/* Replaces the C library's function, for calls from libraries too. */
int clock_gettime(clockid_t clock, struct timespec *ret_ts)
{
	int err = (int)syscall(SYS_clock_gettime, clock, ret_ts);

	ret_ts->tv_sec += ahead_s;
	return err;
}

struct fixture {
	char dir[64];
	uint64_t addr; /* in the function "ours" */
	struct images images;
	struct rts rts;
	struct names *names;
};

static uint64_t address_of(const struct fixture *f)
{
	char command[160], line[64];
	uint64_t addr;
	FILE *in;

	snprintf(command, sizeof(command), "nm %s/full | grep ' T ours$'", f->dir);
	in = popen(command, "r");
	assert_non_null(in);
	assert_non_null(fgets(line, sizeof(line), in));
	pclose(in);
	addr = strtoull(line, NULL, 16);
	assert_true(addr > 0);
	return addr;
}

/* Returns false if there is no compiler. */
static bool make(struct fixture *f)
{
	struct names_of of = {.images = &f->images, .rts = &f->rts, .debuginfod = (void *)&server};
	char command[512], path[80];
	int fd;

	memset(f, 0, sizeof(*f));
	memset(&server, 0, sizeof(server));
	if (system("command -v gcc strip nm >/dev/null 2>&1") != 0)
		return false;
	strcpy(f->dir, "/tmp/test_names_download.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(command, sizeof(command),
		 "cd %s && printf 'int ours(int x)\\n{\\nreturn x * 3 + 1;\\n}\\n"
		 "int main(void) { return ours(1); }\\n' >a.c && "
		 "gcc -g -O1 -fno-inline -no-pie -Wl,--build-id a.c -o full && strip -o a full",
		 f->dir);
	assert_int_equal(system(command), 0);
	snprintf(server.path, sizeof(server.path), "%s/full", f->dir);
	f->addr = address_of(f) + 2;
	snprintf(path, sizeof(path), "%s/a", f->dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(images__of_file(&f->images, fd, path, path, true), 0);
	close(fd);
	f->rts.image = f->images.images[0];
	assert_int_equal(names__new(&of, &f->names), 0);
	return true;
}

static void end(struct fixture *f)
{
	char command[80];

	names__free(f->names);
	images__free(&f->images);
	snprintf(command, sizeof(command), "rm -rf %s", f->dir);
	assert_int_equal(system(command), 0);
}

static struct code_name name(struct fixture *f)
{
	struct code_name n;

	names__frame(f->names, (uint64_t)WIRE_FRAME_C_IP << WIRE_FRAME_KIND_SHIFT | f->addr, &n);
	return n;
}

/* A server that is down at first provides names, with lines, once it is up. */
static void test_fails_at_first(void **state)
{
	static const int errs[] = {-EAGAIN, -EIO, -ETIMEDOUT, -EDQUOT};
	struct fixture f;
	struct code_name n;

	(void)state;
	if (!make(&f))
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(errs); i++) {
		server.err = errs[i];
		n = name(&f);
		assert_string_not_equal(n.name, "ours");
		assert_true(n.partial);
	}
	server.err = 0;
	n = name(&f);
	assert_string_equal(n.name, "ours");
	assert_false(n.partial);
	assert_int_equal(n.source, NAME_DWARF);
	assert_non_null(strstr(n.src, "a.c:"));
	/* it is not asked again */
	server.asked = 0;
	assert_string_equal(name(&f).name, "ours");
	f.addr++;
	assert_string_equal(name(&f).name, "ours");
	assert_int_equal(server.asked, 0);
	end(&f);
}

/*
 * No server has the file: it is not asked for again before an hour has passed. Code that is named
 * after that has a better name; earlier names stay.
 */
static void test_has_not(void **state)
{
	struct code_name n;
	struct fixture f;
	struct file *file;

	(void)state;
	if (!make(&f))
		skip();
	server.err = -ENOENT;
	assert_false(name(&f).partial);
	server.err = 0;
	f.addr++;
	n = name(&f);
	assert_string_not_equal(n.name, "ours");
	assert_false(n.partial);
	assert_int_equal(server.asked, 1);
	file = f.rts.image->file;
	assert_in_range(file->download_ns - time__monotonic_ns(), 3500000000000ULL,
			3600000000000ULL);
	file->download_ns = time__monotonic_ns();
	assert_string_equal(name(&f).name, n.name);
	assert_int_equal(server.asked, 1);
	/* while the download is running */
	server.err = -EAGAIN;
	f.addr++;
	assert_true(name(&f).partial);
	server.err = 0;
	n = name(&f);
	assert_string_equal(n.name, "ours");
	assert_false(n.partial);
	assert_int_equal(n.source, NAME_DWARF);
	end(&f);
}

/*
 * A downloaded file that could not be opened or read is tried again after a pause, unless it is
 * broken.
 */
static void test_read_later(void **state)
{
	static const int errs[] = {EMFILE, ENFILE, ENOMEM};
	struct code_name n;
	struct fixture f;

	(void)state;
	if (!make(&f))
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(errs); i++) {
		refuse(server.path, errs[i]);
		n = name(&f);
		refuse(NULL, 0);
		assert_string_not_equal(n.name, "ours");
		assert_int_equal(server.asked, i + 1);
		/* at first there is hope for a better name */
		assert_int_equal(n.partial, i < NAMES_PAUSE_LASTING - 1);
		assert_false(f.rts.image->file->download_over);
		/* not before the pause is over, even though the file is readable */
		assert_string_not_equal(name(&f).name, "ours");
		assert_int_equal(server.asked, i + 1);
		ahead_s += NAMES_PAUSE_NS / 1000000000 << i;
	}
	f.addr++;
	n = name(&f);
	assert_string_equal(n.name, "ours");
	assert_false(n.partial);
	assert_int_equal(n.source, NAME_DWARF);
	end(&f);
	/* a broken file is not read again */
	if (!make(&f))
		skip();
	refuse(server.path, ENOEXEC);
	assert_false(name(&f).partial);
	assert_true(f.rts.image->file->download_over);
	refuse(NULL, 0);
	end(&f);
}

/* A process that has the file at the path `at`. */
static void map_at(struct fixture *f, struct file_cache *cache, const char *path, const char *at)
{
	struct names_of of = {.images = &f->images, .rts = &f->rts};
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	f->images.cache = cache;
	assert_int_equal(images__of_file(&f->images, fd, path, at, true), 0);
	close(fd);
	f->rts.image = f->images.images[0];
	assert_int_equal(names__new(&of, &f->names), 0);
}

/*
 * A debug file found by one process's path of the file replaces the names that another process made
 * without it, for both.
 */
static void test_another_place(void **state)
{
	struct fixture f, first = {0}, second = {0};
	struct file_cache *cache;
	char command[320], path[96], at[96];

	(void)state;
	if (system("command -v objcopy >/dev/null 2>&1") != 0 || !make(&f))
		skip();
	snprintf(command, sizeof(command),
		 "cd %s && mkdir with && strip -g -o with/a.debug full && "
		 "objcopy --add-gnu-debuglink=with/a.debug a linked",
		 f.dir);
	assert_int_equal(system(command), 0);
	snprintf(path, sizeof(path), "%s/linked", f.dir);
	snprintf(at, sizeof(at), "%s/with/linked", f.dir);
	assert_int_equal(file_cache__new(&cache), 0);
	map_at(&first, cache, path, "/nowhere/linked");
	map_at(&second, cache, path, at);
	first.addr = second.addr = f.addr;
	assert_ptr_equal(first.rts.image->file, second.rts.image->file);
	assert_string_not_equal(name(&first).name, "ours");
	assert_string_equal(name(&second).name, "ours");
	first.addr++;
	assert_string_equal(name(&first).name, "ours");
	names__free(first.names);
	names__free(second.names);
	images__free(&first.images);
	images__free(&second.images);
	file_cache__free(cache);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fails_at_first),
		cmocka_unit_test(test_has_not),
		cmocka_unit_test(test_read_later),
		cmocka_unit_test(test_another_place),
	};

	return cmocka_run_group_tests_name("names_download", tests, NULL, NULL);
}
