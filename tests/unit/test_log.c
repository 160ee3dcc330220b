/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages that nobody reads: each waits for a moment, then is dropped and counted. */
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

#define PREFIX "safescoped: "

/* Replaces standard error by a pipe that is read without blocking. */
struct pipe_of {
	int ends[2], kept;
};

static void divert(struct pipe_of *p)
{
	assert_int_equal(pipe2(p->ends, O_CLOEXEC), 0);
	assert_int_equal(fcntl(p->ends[0], F_SETFL, O_NONBLOCK), 0);
	p->kept = dup(STDERR_FILENO);
	assert_int_equal(dup2(p->ends[1], STDERR_FILENO), STDERR_FILENO);
}

static void restore(struct pipe_of *p)
{
	assert_int_equal(dup2(p->kept, STDERR_FILENO), STDERR_FILENO);
	fd__close(&p->kept);
	fd__close(&p->ends[0]);
	fd__close(&p->ends[1]);
}

/* The number of lines that can be read; *ret_last is the last one. */
static unsigned read_lines(struct pipe_of *p, char ret_last[256])
{
	static char text[1 << 20];
	size_t len = 0;
	unsigned lines = 0;
	char *begin = text, *end;
	ssize_t n;

	while (len < sizeof(text) - 1 &&
	       (n = read(p->ends[0], text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	while ((end = strchr(begin, '\n'))) {
		*end = '\0';
		lines++;
		snprintf(ret_last, 256, "%.255s", begin);
		begin = end + 1;
	}
	assert_int_equal(*begin, '\0');
	return lines;
}

static void test_nobody_reads(void **state)
{
	struct pipe_of p;
	char last[256] = "";
	unsigned wanted = 5000, got;

	(void)state;
	divert(&p);
	for (unsigned i = 0; i < wanted; i++)
		log_info("line %u", i);
	/* the lines that came through are complete, and are the first ones */
	got = read_lines(&p, last);
	if (!got || got >= wanted) {
		restore(&p);
		fail_msg("%u of %u lines came through a pipe that nobody read", got, wanted);
	}
	log_info("here again");
	assert_int_equal(read_lines(&p, last), 2);
	assert_string_equal(last, "safescoped: here again");
	log_info("and again");
	assert_int_equal(read_lines(&p, last), 1);
	restore(&p);
}

static void test_how_many(void **state)
{
	struct pipe_of p;
	char last[256] = "", *end;
	unsigned got, lost;

	(void)state;
	divert(&p);
	for (unsigned i = 0; i < 5000; i++)
		log_info("line %u", i);
	got = read_lines(&p, last);
	/* an error waits for the reader, and the number of lost lines is reported before it */
	log_error("an error");
	assert_true(read(p.ends[0], last, sizeof(last) - 1) > 0);
	restore(&p);
	assert_int_equal(strncmp(last, PREFIX, strlen(PREFIX)), 0);
	lost = (unsigned)strtoul(last + strlen(PREFIX), &end, 10);
	assert_int_equal(strncmp(end, " lines were left out here", 25), 0);
	assert_int_equal(got + lost, 5000);
	assert_non_null(strstr(last, "\nsafescoped: an error\n"));
}

/* Errors wait for the reader too, but not every one of them. */
static void test_many_errors(void **state)
{
	char last[256] = "";
	uint64_t began, took;
	struct pipe_of p;

	(void)state;
	divert(&p);
	for (unsigned i = 0; i < 5000; i++)
		log_info("line %u", i);
	began = time__monotonic_ns();
	for (unsigned i = 0; i < 20; i++)
		log_error("error %u", i);
	took = time__monotonic_ns() - began;
	read_lines(&p, last);
	log_info("here again");
	assert_int_equal(read_lines(&p, last), 2);
	restore(&p);
	assert_true(took < 3000000000ULL);
}

static void test_files_take_all(void **state)
{
	char name[] = "/tmp/safescoped-log-XXXXXX", line[64];
	int fd = mkstemp(name), kept = dup(STDERR_FILENO);
	unsigned lines = 0;
	FILE *file;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	for (unsigned i = 0; i < 5000; i++)
		log_info("line %u", i);
	assert_int_equal(dup2(kept, STDERR_FILENO), STDERR_FILENO);
	file = fopen(name, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		lines++;
	fclose(file);
	unlink(name);
	fd__close(&fd);
	fd__close(&kept);
	assert_int_equal(lines, 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nobody_reads),
		cmocka_unit_test(test_how_many),
		cmocka_unit_test(test_many_errors),
		cmocka_unit_test(test_files_take_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
