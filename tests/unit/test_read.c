/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading whole files: up to the maximum and not beyond, however few bytes come at a time. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "base/read.h"

/* An open file of this size, in which each byte depends on its offset. */
static int file_of(size_t size)
{
	char path[] = "/tmp/test_read.XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	for (size_t i = 0; i < size; i++) {
		char c = (char)('a' + i % 26);

		assert_int_equal(pwrite(fd, &c, 1, (off_t)i), 1);
	}
	return fd;
}

static void check_all(size_t size)
{
	int fd = file_of(size);
	size_t len;
	char *text;

	for (size_t max = size; max <= size + 2; max++) {
		assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
		assert_int_equal(read__all(fd, max, &text, &len), 0);
		assert_int_equal(len, size);
		assert_int_equal(strlen(text), size);
		for (size_t i = 0; i < size; i++)
			assert_int_equal(text[i], 'a' + i % 26);
		free(text);
	}
	for (size_t less = 1; less <= MIN(size, (size_t)2); less++) {
		assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
		assert_int_equal(read__all(fd, size - less, &text, &len), -EFBIG);
	}
	fd__close(&fd);
}

static void a_file_is_read_up_to_its_maximum(void **state)
{
	const size_t sizes[] = {0, 1, 10, 4095, 4096, 4097, 20000};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		check_all(sizes[i]);
}

/* Reading a pipe returns everything that has been written, piece by piece, as one text. */
static void what_comes_in_pieces_is_one_text(void **state)
{
	int ends[2], status;
	size_t len;
	char *text;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		for (int i = 0; i < 3; i++) {
			if (write(ends[1], "abc", 3) != 3)
				_exit(1);
			usleep(20000);
		}
		_exit(0);
	}
	close(ends[1]);
	assert_int_equal(read__all(ends[0], 9, &text, &len), 0);
	assert_int_equal(len, 9);
	assert_string_equal(text, "abcabcabc");
	free(text);
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void what_cannot_be_read_is_an_error(void **state)
{
	int fd = open("/tmp", O_RDONLY | O_DIRECTORY);
	size_t len = 7;
	char *text = NULL, byte;

	(void)state;
	assert_int_equal(read__all(fd, 10, &text, &len), -EISDIR);
	assert_null(text);
	assert_int_equal(read__at(fd, &byte, 1, 0, &len), -EISDIR);
	assert_int_equal(len, 7);
	fd__close(&fd);
}

static void a_part_ends_with_the_file(void **state)
{
	int fd = file_of(30);
	char part[32];
	size_t got;

	(void)state;
	assert_int_equal(read__at(fd, part, 5, 24, &got), 0);
	assert_int_equal(got, 5);
	assert_memory_equal(part, "yzabc", 5);
	assert_int_equal(read__at(fd, part, sizeof(part), 24, &got), 0);
	assert_int_equal(got, 6);
	assert_int_equal(read__at(fd, part, sizeof(part), 30, &got), 0);
	assert_int_equal(got, 0);
	fd__close(&fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_read_up_to_its_maximum),
		cmocka_unit_test(what_comes_in_pieces_is_one_text),
		cmocka_unit_test(what_cannot_be_read_is_an_error),
		cmocka_unit_test(a_part_ends_with_the_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
