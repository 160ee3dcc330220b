/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The base room: what callers may rely on, and the behaviour at each maximum. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <fcntl.h>
#include <signal.h>
#include <cmocka.h>

#include "base/retry.h"
#include "base/base.h"
#include "base/keyset.h"
#include "base/search.h"

static void array_grows_and_keeps_its_content(void **state)
{
	uint32_t *a = NULL;
	size_t cap = 0, i;

	(void)state;
	for (i = 0; i < 1000; i++) {
		void *p = a;

		assert_int_equal(array__reserve(&p, &cap, i + 1, 1000, sizeof(*a)), 0);
		a = p;
		a[i] = (uint32_t)i * 3;
	}
	assert_true(cap >= 1000);
	for (i = 0; i < 1000; i++)
		assert_int_equal(a[i], i * 3);
	free(a);
}

static void array_stops_at_its_maximum(void **state)
{
	void *p = NULL;
	void *before;
	size_t cap = 0;

	(void)state;
	assert_int_equal(array__reserve(&p, &cap, 10, 10, 8), 0);
	assert_int_equal(cap, 10);
	before = p;
	assert_int_equal(array__reserve(&p, &cap, 11, 10, 8), -E2BIG);
	assert_ptr_equal(p, before);
	assert_int_equal(cap, 10);
	/* a product that wraps round */
	assert_int_equal(array__reserve(&p, &cap, SIZE_MAX / 2, SIZE_MAX, 8), -E2BIG);
	assert_int_equal(array__reserve(&p, &cap, 20, 30, 0), -EINVAL);
	assert_ptr_equal(p, before);
	free(p);
}

static void buf_collects(void **state)
{
	struct buf b;
	char big[1000];

	(void)state;
	buf__init(&b, 4096);
	assert_null(b.data);
	assert_int_equal(buf__adds(&b, "ab"), 0);
	assert_int_equal(buf__addc(&b, 'c'), 0);
	assert_int_equal(buf__addf(&b, "%d", 42), 0);
	assert_string_equal(b.data, "abc42");
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	assert_int_equal(buf__addf(&b, "<%s>", big), 0);
	assert_int_equal(b.len, 5 + 2 + 999);
	assert_int_equal(strlen(b.data), b.len);
	buf__reset(&b);
	assert_int_equal(b.len, 0);
	assert_string_equal(b.data, "");
	buf__free(&b);
	assert_null(b.data);
	buf__free(&b);
	buf__free(NULL);
}

static void buf_keeps_its_first_failure(void **state)
{
	struct buf b;

	(void)state;
	buf__init(&b, 4);
	assert_int_equal(buf__adds(&b, "1234"), 0);
	assert_int_equal(buf__addc(&b, '5'), -E2BIG);
	assert_string_equal(b.data, "1234");
	assert_int_equal(buf__add(&b, "", 0), -E2BIG);
	assert_int_equal(buf__addf(&b, "x"), -E2BIG);
	buf__reset(&b);
	assert_int_equal(buf__addf(&b, "%s", "12345"), -E2BIG);
	buf__reset(&b);
	assert_int_equal(buf__adds(&b, "ok"), 0);
	assert_string_equal(b.data, "ok");
	buf__free(&b);
}

static void buf_zeroed_has_a_default_maximum(void **state)
{
	struct buf b = {0};
	char *big = calloc(1, BUF_DEFAULT_MAX + 1);

	(void)state;
	assert_non_null(big);
	assert_int_equal(buf__adds(&b, "x"), 0);
	assert_int_equal(buf__add(&b, big, BUF_DEFAULT_MAX), -E2BIG);
	assert_string_equal(b.data, "x");
	buf__free(&b);
	free(big);
}

static void strtab_interns(void **state)
{
	struct strtab *tab = NULL;
	const char *first;
	uint32_t a, b, c, i;

	(void)state;
	assert_int_equal(strtab__new(&tab), 0);
	assert_int_equal(strtab__count(tab), 1);
	assert_string_equal(strtab__get(tab, 0), "");
	assert_int_equal(strtab__add(tab, "fib", 3, &a), 0);
	assert_int_equal(a, 1);
	first = strtab__get(tab, a);
	assert_int_equal(strtab__add(tab, "fibre", 5, &b), 0);
	assert_int_equal(strtab__add(tab, "fibre", 3, &c), 0); /* only the first three bytes */
	assert_int_equal(c, a);
	assert_int_equal(strtab__add(tab, "", 0, &c), 0);
	assert_int_equal(c, 0);
	for (i = 0; i < 20000; i++) {
		char s[16];
		int n = snprintf(s, sizeof(s), "s%u", i);

		assert_int_equal(strtab__add(tab, s, (size_t)n, &c), 0);
		assert_int_equal(c, 3 + i);
	}
	assert_ptr_equal(strtab__get(tab, a), first);
	assert_string_equal(strtab__get(tab, 3 + 777), "s777");
	assert_string_equal(strtab__get(tab, 1u << 30), "");
	assert_int_equal(strtab__count(tab), 3 + 20000);
	strtab__free(tab);
	strtab__free(NULL);
}

static void strtab_bounds_strings(void **state)
{
	struct strtab *tab = NULL;
	char *big = malloc(STRTAB_MAX_STRING + 1);
	uint32_t a, b;

	(void)state;
	assert_non_null(big);
	memset(big, 'a', STRTAB_MAX_STRING + 1);
	assert_int_equal(strtab__new(&tab), 0);
	assert_int_equal(strtab__add(tab, big, STRTAB_MAX_STRING, &a), 0);
	assert_int_equal(strlen(strtab__get(tab, a)), STRTAB_MAX_STRING);
	assert_int_equal(strtab__add(tab, big, STRTAB_MAX_STRING + 1, &a), -E2BIG);
	/* bytes after a NUL do not distinguish two strings */
	assert_int_equal(strtab__add(tab, "x\0y", 3, &a), 0);
	assert_int_equal(strtab__add(tab, "x\0z", 3, &b), 0);
	assert_int_equal(a, b);
	strtab__free(tab);
	free(big);
}

/* Captures what one log call writes to standard error. */
static size_t captured(void (*call)(void), char *out, size_t size)
{
	int fds[2], saved;
	ssize_t n;

	assert_int_equal(pipe(fds), 0);
	saved = dup(STDERR_FILENO);
	assert_true(saved >= 0);
	dup2(fds[1], STDERR_FILENO);
	close(fds[1]);
	call();
	dup2(saved, STDERR_FILENO);
	close(saved);
	n = read(fds[0], out, size - 1);
	close(fds[0]);
	assert_true(n >= 0);
	out[n] = '\0';
	return (size_t)n;
}

static void log_hostile(void)
{
	log_error("%s", "a\033[31mb\nc\x7f \xc2\x9b \xff \xe2\x80\xae \xc3\xa9\n");
}

static void log_long(void)
{
	log_error("%010000d", 1);
}

static void log_an_info(void)
{
	errno = ENOENT;
	log_info("x %m");
}

static void log_a_warning(void)
{
	log_warn("w");
}

static void log_is_one_clean_line(void **state)
{
	char out[8192];
	size_t n;

	(void)state;
	captured(log_hostile, out, sizeof(out));
	assert_string_equal(
		out, "safescoped: a\\u{1b}[31mb\\u{a}c\\u{7f} \\u{9b} \\xff \\u{202e} \xc3\xa9\n");
	n = captured(log_long, out, sizeof(out));
	assert_true(n <= 4096);
	assert_int_equal(out[n - 1], '\n');
	assert_null(memchr(out, '\n', n - 1));
	captured(log_an_info, out, sizeof(out));
	assert_string_equal(out, "safescoped: x No such file or directory\n");
	assert_int_equal(errno, ENOENT);
}

static void log_levels(void **state)
{
	char out[256];

	(void)state;
	assert_int_equal(log__level(), LOG_LVL_INFO);
	log__set_level(LOG_LVL_WARN);
	assert_int_equal(captured(log_an_info, out, sizeof(out)), 0);
	assert_true(captured(log_a_warning, out, sizeof(out)) > 0);
	log__set_level(LOG_LVL_QUIET);
	assert_int_equal(captured(log_a_warning, out, sizeof(out)), 0);
	assert_true(captured(log_hostile, out, sizeof(out)) > 0);
	log__set_level(LOG_LVL_INFO);
}

static void fd_close_is_idempotent(void **state)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int copy = fd;

	(void)state;
	assert_true(fd >= 0);
	errno = EAGAIN;
	fd__close(&fd);
	assert_int_equal(fd, -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(fcntl(copy, F_GETFD), -1);
	fd__close(&fd);
	assert_int_equal(fd, -1);
}

static void clocks_run(void **state)
{
	uint64_t a = time__monotonic_ns(), b, c, of_boottime, realtime;
	struct timespec boottime;

	(void)state;
	clock_gettime(CLOCK_BOOTTIME, &boottime);
	b = time__monotonic_ns();
	assert_true(a > 0 && b >= a);
	of_boottime = time__of_boottime_ns((uint64_t)boottime.tv_sec * 1000000000ULL +
					   (uint64_t)boottime.tv_nsec);
	c = time__monotonic_ns();
	/* too early by at most the time that the conversion took */
	assert_in_range(of_boottime, a - (c - b), b);
	assert_int_equal(time__of_boottime_ns(0), 0);
	if (!time__both_ns(&b, &realtime)) {
		assert_in_range(b, c, time__monotonic_ns());
		assert_true(realtime <= time__realtime_ns());
	}
	assert_true(time__realtime_ns() > 1600000000ULL * 1000000000ULL);
}

static int by_key(const void *pa, const void *pb)
{
	const struct keyed *a = pa, *b = pb;

	return CMP(a->key, b->key);
}

/* The input consists of any number of sorted pieces; equal elements keep the order of their
 * pieces. */
static void array_sorts_pieces(void **state)
{
	static const size_t pieces[] = {1, 2, 3, 4, 5, 7, 64, 255, 256};
	static struct keyed v[1000], want[1000];
	uint64_t seed = 7;

	(void)state;
	array__sort(v, 0, sizeof(*v), by_key);
	array__sort(v, 1, sizeof(*v), by_key);
	for (size_t p = 0; p < ARRAY_SIZE(pieces); p++) {
		for (uint32_t i = 0; i < ARRAY_SIZE(v); i++) {
			bool begins = i % (ARRAY_SIZE(v) / pieces[p]) == 0;
			uint32_t at = i;

			seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
			v[i] = (struct keyed){.key = begins ? seed >> 62
							    : v[i - 1].key + (seed >> 63),
					      .index = i};
			for (; at && want[at - 1].key > v[i].key; at--)
				want[at] = want[at - 1];
			want[at] = v[i];
		}
		array__sort(v, ARRAY_SIZE(v), sizeof(*v), by_key);
		assert_memory_equal(v, want, sizeof(v));
	}
	/* in random order */
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		v[i].key = seed;
	}
	array__sort(v, ARRAY_SIZE(v), sizeof(*v), by_key);
	for (size_t i = 1; i < ARRAY_SIZE(v); i++)
		assert_true(v[i - 1].key <= v[i].key);
}

/* Compares with a plain insertion sort, which is stable too. */
static void keyed_sorts_and_keeps_order(void **state)
{
	static const uint64_t masks[] = {0, 0xff, 0x3ff, 0xff00ff, UINT64_MAX};
	struct keyed v[500], tmp[500], want[500] = {{0}};
	uint64_t seed = 42;

	(void)state;
	keyed__sort(v, tmp, 0);
	for (size_t m = 0; m < ARRAY_SIZE(masks); m++) {
		for (uint32_t i = 0; i < ARRAY_SIZE(v); i++) {
			uint32_t at = i;

			seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
			v[i] = (struct keyed){.key = (seed ^ seed >> 29) & masks[m], .index = i};
			for (; at && want[at - 1].key > v[i].key; at--)
				want[at] = want[at - 1];
			want[at] = v[i];
		}
		keyed__sort(v, tmp, ARRAY_SIZE(v));
		for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
			assert_int_equal(v[i].key, want[i].key);
			assert_int_equal(v[i].index, want[i].index);
		}
	}
}

/* ── text, descriptors, signals ──────────────────────────────────────────────────────────── */

static void path_base_is_what_follows_the_last_slash(void **state)
{
	(void)state;
	assert_string_equal(path__base("/usr/bin/ghc"), "ghc");
	assert_string_equal(path__base("ghc"), "ghc");
	assert_string_equal(path__base("dir/"), "");
	assert_string_equal(path__base(""), "");
}

static void only_regular_files_are_opened(void **state)
{
	char dir[] = "/tmp/safescoped-test-XXXXXX", path[64], byte;
	int fd = -1, file;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/x", dir);
	assert_int_equal(fd__open_regular(path, &fd), -ENOENT);
	assert_int_equal(fd__open_regular(dir, &fd), -EINVAL);
	assert_int_equal(fd__open_regular("/dev/null", &fd), -EINVAL);
	/* no writer: a plain open would block */
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(fd__open_regular(path, &fd), -EINVAL);
	assert_int_equal(unlink(path), 0);
	file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(file >= 0);
	assert_int_equal(write(file, "x", 1), 1);
	assert_int_equal(fd, -1);
	assert_int_equal(fd__open_regular(path, &fd), 0);
	assert_int_equal(read(fd, &byte, 1), 1);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	fd__close(&fd);
	fd__close(&file);
	unlink(path);
	rmdir(dir);
}

static void signals_come_by_a_descriptor(void **state)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct signal_taken taken;
	sigset_t before;
	int fd = -1;

	(void)state;
	/* under nohup it is ignored, and signals__open() leaves it so */
	signal(SIGHUP, SIG_DFL);
	sigprocmask(SIG_BLOCK, NULL, &before);
	assert_int_equal(signals__open(&fd), 0);
	assert_false(signals__take(fd, &taken));
	assert_false(signals__came(&fd));
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		kill(getpid(), numbers[i]);
		assert_true(signals__take(fd, &taken));
		assert_int_equal(taken.number, numbers[i]);
		assert_false(taken.by_terminal);
		assert_false(signals__came(&fd));
		kill(getpid(), numbers[i]);
		assert_true(signals__came(&fd));
		assert_false(signals__came(&fd));
	}
	/* SIGPIPE is ignored: this process goes on */
	kill(getpid(), SIGPIPE);
	fd__close(&fd);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

/* SIGUSR1 is not mistaken for a request to end. */
static void usr1_comes_by_its_own(void **state)
{
	struct signal_taken taken;
	int ends = -1, writes = -1;
	sigset_t before;

	(void)state;
	sigprocmask(SIG_BLOCK, NULL, &before);
	assert_int_equal(signals__open(&ends), 0);
	assert_int_equal(signals__open_usr1(&writes), 0);
	kill(getpid(), SIGUSR1);
	assert_false(signals__came(&ends));
	assert_true(signals__take(writes, &taken));
	assert_int_equal(taken.number, SIGUSR1);
	kill(getpid(), SIGTERM);
	assert_false(signals__came(&writes));
	assert_true(signals__came(&ends));
	fd__close(&ends);
	fd__close(&writes);
	assert_false(signals__came(&writes));
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

static void usage_is_this_process_s(void **state)
{
	const struct rusage r = {.ru_utime = {.tv_sec = 1, .tv_usec = 2},
				 .ru_stime = {.tv_sec = 3, .tv_usec = 999999}};
	uint64_t before, after, rss, until = time__monotonic_ns() + 30000000;

	(void)state;
	assert_int_equal(usage__cpu_ns(&r), 5000001000ULL);
	usage__own(&before, &rss);
	while (time__monotonic_ns() < until)
		;
	usage__own(&after, &rss);
	assert_true(after > before);
	assert_true(rss > 100000 && rss < 1ULL << 40);
}

static void search_finds_the_first(void **state)
{
	static const uint32_t v[] = {2, 4, 4, 4, 9, 11};

	(void)state;
	for (size_t n = 0; n <= ARRAY_SIZE(v); n++) {
		for (uint32_t want = 0; want < 14; want++) {
			size_t first = 0;

			while (first < n && v[first] < want)
				first++;
			assert_int_equal(search__first(n, i, v[i] >= want), first);
		}
	}
	/* an empty range must not be read */
	assert_int_equal(search__first(0, i, *(volatile uint32_t *)(i + 1) > 0), 0);
}

/* Each pause is twice as long as the previous one, up to the maximum; zeroing starts over. */
static void retry_doubles(void **state)
{
	struct retry b = {0};
	uint64_t now = 1000;

	(void)state;
	assert_false(retry__waits(&b, now));
	for (uint64_t ns = 10; ns <= 160; ns *= 2) {
		retry__begin(&b, now, 10, 100);
		assert_true(retry__waits(&b, now));
		assert_true(retry__waits(&b, now + MIN(ns, (uint64_t)100) - 1));
		now += MIN(ns, (uint64_t)100);
		assert_false(retry__waits(&b, now));
	}
	assert_true(retry__has_begun(&b));
	retry__end(&b);
	assert_false(retry__has_begun(&b));
	retry__begin(&b, now, 10, 100);
	assert_false(retry__waits(&b, now + 10));
	assert_int_equal(retry__longer(UINT64_MAX - 1, 10, UINT64_MAX), UINT64_MAX);
}

static void keyset_forgets_all_when_it_is_full(void **state)
{
	enum { MAX_KEYS = 100 };
	struct keyset *known;
	uint64_t key[2] = {1, 0};

	(void)state;
	assert_int_equal(keyset__new(sizeof(key), MAX_KEYS, &known), 0);
	for (key[1] = 0; key[1] < MAX_KEYS; key[1]++) {
		assert_false(keyset__has(known, key));
		keyset__add(known, key);
		keyset__add(known, key);
		assert_true(keyset__has(known, key));
		assert_int_equal(keyset__count(known), key[1] + 1);
	}
	keyset__add(known, key);
	assert_int_equal(keyset__count(known), 1);
	assert_true(keyset__has(known, key));
	keyset__forget(known);
	assert_false(keyset__has(known, key));
	keyset__free(known);
	keyset__free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(array_grows_and_keeps_its_content),
		cmocka_unit_test(array_stops_at_its_maximum),
		cmocka_unit_test(buf_collects),
		cmocka_unit_test(buf_keeps_its_first_failure),
		cmocka_unit_test(buf_zeroed_has_a_default_maximum),
		cmocka_unit_test(strtab_interns),
		cmocka_unit_test(strtab_bounds_strings),
		cmocka_unit_test(log_is_one_clean_line),
		cmocka_unit_test(log_levels),
		cmocka_unit_test(fd_close_is_idempotent),
		cmocka_unit_test(clocks_run),
		cmocka_unit_test(array_sorts_pieces),
		cmocka_unit_test(keyed_sorts_and_keeps_order),
		cmocka_unit_test(path_base_is_what_follows_the_last_slash),
		cmocka_unit_test(only_regular_files_are_opened),
		cmocka_unit_test(signals_come_by_a_descriptor),
		cmocka_unit_test(usr1_comes_by_its_own),
		cmocka_unit_test(usage_is_this_process_s),
		cmocka_unit_test(search_finds_the_first),
		cmocka_unit_test(retry_doubles),
		cmocka_unit_test(keyset_forgets_all_when_it_is_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
